def prompt_inject(event):
    event.context_parts.append("The household's time zone is Europe/Zurich.")
