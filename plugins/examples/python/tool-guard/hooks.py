LIMIT = 50


def pre_execute(event):
    if event.function_name == "delete_memory":
        event.skip_llm = True
        event.result = "Nothing is deleted here."
    elif event.function_name == "order":
        price = event.arguments.get("price", 0)
        if price > LIMIT:
            event.skip_llm = True
            event.result = f"Refused: {price} is more than {LIMIT}."
        else:
            event.require_confirmation = f"This costs {price}."
    elif event.function_name == "set_volume":
        event.arguments["percent"] = min(event.arguments.get("percent", 50), 80)
