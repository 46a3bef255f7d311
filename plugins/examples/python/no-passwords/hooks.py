def pre_chat(event):
    if "password" not in event.input.lower():
        return
    event.skip_llm = True
    event.response = "Better keep your passwords to yourself."
    event.stop_propagation = True
