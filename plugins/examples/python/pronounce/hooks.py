def handle(event):
    event.tts_text = (event.tts_text or "").replace("API", "A.P.I.")
