# Nothing of it is needed to parse.
