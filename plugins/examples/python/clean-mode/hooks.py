SWEARS = {"damn": "darn", "hell": "heck"}


def handle(event):
    for field in ("response", "tts_text"):
        text = getattr(event, field)
        for word, clean in SWEARS.items():
            text = text and text.replace(word, clean)
        setattr(event, field, text)
