COMFORTING = ("sorry", "understand", "feel")


def post_chat(event):
    system = event.metadata.get("system")
    if not system or not system.tts:
        return
    text = (event.response or "").lower()
    if any(word in text for word in COMFORTING):
        system.tts.set_speed(0.9)
        system.tts.set_voice("en-gb")
    elif "!" in text:
        system.tts.set_speed(1.3)
