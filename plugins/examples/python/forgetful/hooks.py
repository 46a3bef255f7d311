import time

from core.plugin_loader import plugin_loader

state = plugin_loader.get_plugin_state("forgetful")


def post_chat(event):
    if event.chat_name and not event.chat_private:
        state.save(event.chat_name, int(time.time()))


def chat_vaulted(event):
    name = (event.metadata or {}).get("name")
    if name:
        state.delete(name)
