from core.plugin_loader import plugin_loader

rows = plugin_loader.get_chat_state("fence")


def tools_filter(event):
    hidden = rows.get(event.chat_name, "hidden", []) if event.chat_name else []
    event.tools = [t for t in event.tools or [] if t.get("function", {}).get("name") not in hidden]
