"""A shopping list as an integration, with nothing but Python's standard library.

    python3 server.py               speaks on its standard input and output
    python3 server.py --http 8765   speaks streamable HTTP, on this machine only
"""

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ITEMS = []
TURNS = []  # receipts, of which only the number is kept


# What the model may do.

def add_item(args):
    ITEMS.append(args["item"])
    return "%s is on the list." % args["item"]


def list_items(args):
    return json.dumps(ITEMS)


def clear_list(args):
    ITEMS.clear()
    return "The list is empty."


# What the appliance asks before and after. An empty answer means: go on as if nobody had been asked.

def transcript(event):
    m = re.fullmatch(r"(?:please )?add (.+) to (?:the|my) shopping list", event["transcript"].lower().strip(" .!"))
    if not m:
        return {}
    ITEMS.append(m[1])
    return {
        "decision": "handled",
        "responseText": "%s is on the list." % m[1].capitalize(),
        "view": {"blocks": [{"type": "list", "title": "Shopping", "items": ITEMS}]},
    }


def dictation(event):
    ITEMS.extend(i.strip() for i in re.split(r",| and ", event["text"]) if i.strip())
    return {"decision": "handled"}  # it is delivered to nobody else


def pre_tool_use(event):
    if event["toolName"] == "clear_list" and ITEMS:
        return {"requireConfirmation": True, "reason": "There are %d things on the list." % len(ITEMS)}
    if event["toolName"] == "add_item":
        return {"updatedArgs": {"item": event["args"]["item"].strip()}}
    return {}


def post_tool_use(event):
    if event["toolName"] == "list_items":
        return {"updatedResult": ", ".join(json.loads(event["result"])) or "There is nothing on the list."}
    return {}


def turn_complete(event):
    TURNS.append(len(event["toolsUsed"]))
    return {}


TEXT = {"type": "object", "properties": {"item": {"type": "string"}}, "required": ["item"]}
NOTHING = {"type": "object"}
TOOLS = {
    "add_item": (add_item, "Puts something on the shopping list.", TEXT),
    "list_items": (list_items, "Tells what is on the shopping list.", NOTHING),
    "clear_list": (clear_list, "Takes everything off the shopping list.", NOTHING),
}
HOOKS = {
    "voiceos_hook_transcript": transcript,
    "voiceos_hook_dictation": dictation,
    "voiceos_hook_preToolUse": pre_tool_use,
    "voiceos_hook_postToolUse": post_tool_use,
    "voiceos_hook_turnComplete": turn_complete,
}

VERSIONS = ("2025-06-18", "2025-03-26", "2024-11-05")


def call(name, args):
    """The result of a call, as MCP has it."""
    try:
        if name in HOOKS:
            answer = HOOKS[name](args)
            return {"content": [{"type": "text", "text": json.dumps(answer)}], "structuredContent": answer}
        return {"content": [{"type": "text", "text": TOOLS[name][0](args)}]}
    except Exception as err:
        return {"content": [{"type": "text", "text": "%s: %r" % (name, err)}], "isError": True}


def answer(message):
    """The answer to one message of JSON-RPC; None if it wants none."""
    if "id" not in message or "method" not in message:
        return None
    method, params = message["method"], message.get("params") or {}
    if method == "initialize":
        asked = params.get("protocolVersion")
        result = {
            "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "shopping", "version": "1.0.0"},
        }
    elif method == "tools/list":
        tools = [{"name": n, "description": d, "inputSchema": s} for n, (_, d, s) in TOOLS.items()]
        tools += [{"name": n, "inputSchema": NOTHING} for n in HOOKS]
        result = {"tools": tools}
    elif method == "tools/call":
        result = call(params.get("name"), params.get("arguments") or {})
    elif method == "ping":
        result = {}
    else:
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no method " + method}}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Handler(BaseHTTPRequestHandler):
    """Each message comes with a POST, and its answer goes back as the response."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body of a response go out together

    def do_POST(self):
        length = int(self.headers.get("Content-Length") or 0)
        if length > 1 << 20:
            return self.reply(413, b"")
        reply = answer(json.loads(self.rfile.read(length)))
        if reply is None:
            return self.reply(202, b"")
        self.reply(200, json.dumps(reply).encode())

    def do_GET(self):
        self.reply(405, b"")  # there is nothing to tell unasked

    do_DELETE = do_GET

    def reply(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass  # what is said is not for logs


def main():
    if sys.argv[1:2] == ["--http"]:
        server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
        print("http://127.0.0.1:%d/mcp" % server.server_port, flush=True)
        server.serve_forever()
    for line in sys.stdin:
        reply = answer(json.loads(line))
        if reply is not None:
            print(json.dumps(reply), flush=True)


main()
