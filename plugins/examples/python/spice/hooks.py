import random

SPICE = ["Splendid.", "There you go.", "Ta-da."]


def post_llm(event):
    if event.response and random.random() < 0.3:
        event.response += " " + random.choice(SPICE)
