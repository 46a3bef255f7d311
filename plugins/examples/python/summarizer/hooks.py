from core.plugin_loader import plugin_loader

state = plugin_loader.get_plugin_state("summarizer")


def post_chat(event):
    system = event.metadata.get("system")
    if not system or not system.llm_chat:
        return
    turns = state.update_with_lock("turns", lambda n: n + 1, 0)
    if turns % 10:
        return
    messages = system.llm_chat.session_manager.get_messages()
    said = "\n".join(m["content"] for m in messages[-20:] if isinstance(m.get("content"), str))

    # The model takes longer than a hook has: with save its answer goes into the state when it is there.
    system.llm_chat.chat("Summarize this in three sentences:\n\n" + said, save="summary")


def prompt_inject(event):
    summary = state.get("summary")
    if summary:
        event.context_parts.append("What was talked about before: " + summary)
