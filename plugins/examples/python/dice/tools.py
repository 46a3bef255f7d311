import random

ENABLED = True
AVAILABLE_FUNCTIONS = ["roll_dice"]
TOOLS = [{
    "type": "function",
    "is_local": True,
    "function": {
        "name": "roll_dice",
        "description": "Rolls dice and tells what came.",
        "parameters": {
            "type": "object",
            "properties": {
                "count": {"type": "integer", "description": "how many dice; 1 if it is left out"},
                "sides": {"type": "integer", "description": "sides of each"},
            },
        },
    },
}]


def execute(name, arguments, config, plugin_settings):
    count = arguments.get("count", 1)
    sides = arguments.get("sides", int(plugin_settings.get("sides", 6)))
    if not 1 <= count <= 20 or sides < 2:
        return "I can roll one to twenty dice with two sides or more.", False
    rolls = [random.randint(1, sides) for _ in range(count)]
    if count == 1:
        return f"A {rolls[0]}.", True
    return f"{', '.join(map(str, rolls))}, together {sum(rolls)}.", True
