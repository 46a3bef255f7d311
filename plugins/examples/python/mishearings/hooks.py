import re

FIXES = {"bell bird": "Bellbird", "tea tea ess": "TTS"}
PATTERN = re.compile("|".join(map(re.escape, FIXES)), re.IGNORECASE)


def post_stt(event):
    event.input = PATTERN.sub(lambda m: FIXES[m.group().lower()], event.input)
