import requests

from core.plugin_loader import plugin_loader

URL = "http://homeassistant.local:8123/api/services/scene/turn_on"


def pre_chat(event):
    system = event.metadata.get("system")
    if system and system.tts:
        system.tts.set_speed(0.8)
    event.skip_llm = True
    event.ephemeral = True
    event.stop_propagation = True
    token = plugin_loader.get_plugin_settings("goodnight").get("token", "")
    try:
        answer = requests.post(URL, json={"entity_id": "scene.goodnight"}, headers={"Authorization": "Bearer " + token}, timeout=0.3)
        answer.raise_for_status()
        event.response = "Goodnight. The lights are dimmed."
    except requests.RequestException:
        event.response = "Goodnight. The lights didn't answer."
