def ghost_inject(event):
    event.ghost_text = "Light rain outside. Mention it only if it fits."


handle = ghost_inject
