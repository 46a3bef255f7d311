from core.event_bus import publish
from core.plugin_loader import plugin_loader

state = plugin_loader.get_plugin_state("captions")


def tts_stream_start(event):
    state.save("text", "")


def tts_chunk_text(event):
    text = state.update_with_lock("text", lambda old: (old + " " + (event.tts_text or "")).strip(), "")
    publish("caption", {"text": text, "chunk": event.metadata.get("chunk_index")})


def tts_stream_end(event):
    print(f"{event.metadata.get('chunk_count')} chunks, interrupted: {event.metadata.get('interrupted')}")
