SUMMARY = "What the layer appends to"
OS_RELEASE_FIELDS = "ID"
