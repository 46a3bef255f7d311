import re

PATTERNS = [
    (re.compile(r"\b\d{3}[-.]?\d{3}[-.]?\d{4}\b"), "a telephone number"),
    (re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.]*\w"), "a mail address"),
]


def handle(event):
    text = event.tts_text or ""
    for pattern, instead in PATTERNS:
        text = pattern.sub(instead, text)
    event.tts_text = text
