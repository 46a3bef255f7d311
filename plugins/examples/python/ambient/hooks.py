import time

import requests

from core.settings_manager import settings

URL = "http://homeassistant.local:8123/api/states/weather.home"

_cache = {"text": "", "at": 0}


def prompt_inject(event):
    if time.monotonic() - _cache["at"] > 300 or not _cache["text"]:
        try:
            # The hook has a quarter of a second: who waits longer for a server comes too late.
            answer = requests.get(URL, headers={"Authorization": "Bearer " + settings.get("token", "")}, timeout=0.15)
            answer.raise_for_status()
            w = answer.json()
            _cache["text"] = f"Weather: {w['state']}, {w['attributes']['temperature']} degrees."
            _cache["at"] = time.monotonic()
        except (requests.RequestException, KeyError):
            pass
    if _cache["text"]:
        event.context_parts.append(_cache["text"])
