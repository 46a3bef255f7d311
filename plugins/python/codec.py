# The worker of a plugin that is written in Python. It is these files one after the other, as one program: codec.py,
# calls.py and names.py. plugins/worker describes the messages; the numbers here are those of its protocol.go, codec.go and
# codecevent.go.
import itertools
import json
import os
import struct
import sys
import threading
import time
import types

LOAD, CHECK, CALL, TOOLS, EXECUTE, SETTINGS, CANCEL, DONE, ASK, REPLY = range(1, 11)
(PLUGIN, FILE, SOURCE, POINT, DO, KEY, ERROR, UNIT, CALL_ID, SYSTEM, FOUND, VALUE, ARGS, KWARGS, NAMES, REQUEST, RESPONSE,
 EVENT, SETTINGS_FIELD) = range(1, 20)
NONE, FALSE, TRUE, NUMBER, TEXT, BYTES, LIST, MAP = range(8)

MAX_DEPTH = 32
MAX_MESSAGE = 16 << 20
WHOLE = 1 << 53  # from there on a number does not say which one it is


# Values.

double = struct.Struct(">d")
length = struct.Struct(">I")


def get_uint(b, i):
    n = b[i]
    i += 1
    if n < 128:
        return n, i
    n &= 127
    shift = 7
    while True:
        c = b[i]
        i += 1
        n |= (c & 127) << shift
        if c < 128:
            return n, i
        shift += 7


def get_text(b, i):
    n = b[i]
    i += 1
    if n > 127:
        n, i = get_uint(b, i - 1)
    j = i + n
    return str(b[i:j], "utf-8", "replace"), j


def get_value(b, i):
    kind = b[i]
    i += 1
    if kind == TEXT:
        return get_text(b, i)
    if kind == NUMBER:
        n = double.unpack_from(b, i)[0]
        if n == n // 1 and -WHOLE < n < WHOLE:  # JSON doesn't tell 2 from 2.0; plugins mostly count
            n = int(n)
        return n, i + 8
    if kind == MAP:
        n, i = get_uint(b, i)
        m = {}
        for _ in range(n):
            k, i = get_text(b, i)
            m[k], i = get_value(b, i)
        return m, i
    if kind == LIST:
        n, i = get_uint(b, i)
        items = []
        for _ in range(n):
            v, i = get_value(b, i)
            items.append(v)
        return items, i
    if kind == BYTES:
        n, i = get_uint(b, i)
        return b[i:i + n], i + n
    if kind == NONE:
        return None, i
    if kind == TRUE:
        return True, i
    if kind == FALSE:
        return False, i
    raise ValueError("a value of kind %d" % kind)


def put_uint(out, n):
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)


def put_text(out, s):
    b = s.encode()
    n = len(b)
    if n < 128:
        out.append(n)
    else:
        put_uint(out, n)
    out += b


def put_value(out, v, depth=0):
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")
    if v is None:
        out.append(NONE)
    elif v is True:
        out.append(TRUE)
    elif v is False:
        out.append(FALSE)
    elif isinstance(v, str):
        out.append(TEXT)
        put_text(out, v)
    elif isinstance(v, int):
        if not -WHOLE < v < WHOLE:
            raise ValueError("the number %d is too large" % v)
        out.append(NUMBER)
        out += double.pack(v)
    elif isinstance(v, float):
        if v != v or v in (float("inf"), float("-inf")):
            raise ValueError("%r is no number that can be kept" % v)
        out.append(NUMBER)
        out += double.pack(v)
    elif isinstance(v, dict):
        out.append(MAP)
        put_uint(out, len(v))
        for k, x in v.items():
            if not isinstance(k, str):
                raise TypeError("a dict's keys must be strings, not %s" % type(k).__name__)
            put_text(out, k)
            put_value(out, x, depth + 1)
    elif isinstance(v, (list, tuple, set, frozenset)):
        out.append(LIST)
        put_uint(out, len(v))
        for x in v:
            put_value(out, x, depth + 1)
    elif isinstance(v, (bytes, bytearray, memoryview)):
        out.append(BYTES)
        put_uint(out, len(v) if not isinstance(v, memoryview) else v.nbytes)
        out += v
    else:
        raise TypeError("a %s can't be kept" % type(v).__name__)


# Messages. One that was read is a dict of its fields by their numbers; one that is to be written is a bytearray.

FLAGS = {SYSTEM, FOUND}
TEXTS = {PLUGIN, FILE, SOURCE, POINT, DO, KEY, ERROR, REQUEST, RESPONSE}


def read_message(b):
    n, i = get_uint(b, 1)
    m = {}
    while True:
        field = b[i]
        i += 1
        if field == 0:
            return n, m
        if field in TEXTS:
            m[field], i = get_text(b, i)
        elif field == EVENT:
            m[field], i = read_event(b, i)
        elif field in FLAGS:
            m[field] = True
        elif field == UNIT or field == CALL_ID:
            m[field], i = get_uint(b, i)
        else:
            m[field], i = get_value(b, i)


def begin(op, n):
    out = bytearray(b"\0\0\0\0")
    out.append(op)
    put_uint(out, n)
    return out


def put_field(out, field, v):
    out.append(field)
    if field in TEXTS:
        put_text(out, v)
    elif field == UNIT or field == CALL_ID:
        put_uint(out, v)
    elif field not in FLAGS:
        put_value(out, v)


def end(out):
    out.append(0)
    n = len(out) - 4
    if n > MAX_MESSAGE - 4:
        raise ValueError("a message of %d bytes is too large" % n)
    length.pack_into(out, 0, n)
    return out


def failure(n, text):
    out = begin(DONE, n)
    put_field(out, ERROR, text or "it failed")
    return end(out)


# Events.

EVENT_TEXTS = ("response", "function_name", "result", "require_confirmation", "tts_text", "ghost_text", "chat_name", "surface")
EVENT_FLAGS = ("skip_llm", "ephemeral", "stop_propagation", "skip_tts")
INPUT, PARTS, ARGUMENTS, EVENT_TOOLS, CONTRIBUTIONS, METADATA, CONFIG, PUBLIC, PRIVATE = range(1, 10)
FIRST_TEXT, FIRST_FLAG = 20, 40
STAMPED = {"function_name", "chat_name", "surface"}


class HookEvent:
    input = ""
    skip_llm = ephemeral = stop_propagation = skip_tts = False
    response = function_name = arguments = result = tools = tts_text = ghost_text = None
    require_confirmation = chat_name = chat_private = surface = config = None
    ghost_label = ""

    def __init__(self):
        self.context_parts = []
        self.metadata = {}
        self.ghost_contributions = []

    def __repr__(self):
        return "HookEvent(%r)" % self.__dict__


def read_event(b, i):
    """Returns the event, and what of it is sent back as it came, whatever a handler does to it."""
    e = HookEvent()
    stamped = bytearray()
    while True:
        field = b[i]
        begins = i
        i += 1
        if field == 0:
            return (e, stamped), i
        if field == INPUT:
            e.input, i = get_text(b, i)
        elif field >= FIRST_FLAG:
            setattr(e, EVENT_FLAGS[field - FIRST_FLAG], True)
        elif field >= FIRST_TEXT:
            name = EVENT_TEXTS[field - FIRST_TEXT]
            v, i = get_text(b, i)
            setattr(e, name, v)
            if name in STAMPED:
                stamped += b[begins:i]
        elif field == PUBLIC or field == PRIVATE:
            e.chat_private = field == PRIVATE
            stamped += b[begins:i]
        elif field == METADATA:
            e.metadata, i = get_value(b, i)
        elif field == PARTS:
            e.context_parts, i = get_value(b, i)
        elif field == ARGUMENTS:
            e.arguments, i = get_value(b, i)
        elif field == EVENT_TOOLS:
            e.tools, i = get_value(b, i)
        elif field == CONFIG:
            e.config, i = get_value(b, i)
            stamped += b[begins:i]
        elif field == CONTRIBUTIONS:
            text, i = get_text(b, i)
            e.ghost_contributions = [(c["plugin"], c["text"]) for c in json.loads(text)]
            stamped += b[begins:i]
        else:
            raise ValueError("an event with a field %d" % field)


def put_event(out, e, stamped):
    out.append(EVENT)
    if not isinstance(e.input, str):
        raise TypeError("event.input is a string, not a %s" % type(e.input).__name__)
    if e.input:
        out.append(INPUT)
        put_text(out, e.input)
    for at, name in enumerate(EVENT_TEXTS, FIRST_TEXT):
        v = getattr(e, name)
        if v is None or name in STAMPED:
            continue
        if not isinstance(v, str):
            if name != "ghost_text":
                raise TypeError("event.%s is a string, not a %s" % (name, type(v).__name__))
            if not v:  # anything is taken there, as its text; what is false is nothing
                continue
            v = str(v)
        out.append(at)
        put_text(out, v)
    for at, name in enumerate(EVENT_FLAGS, FIRST_FLAG):
        if getattr(e, name):
            out.append(at)
    if e.context_parts:
        for part in e.context_parts:
            if not isinstance(part, str):
                raise TypeError("event.context_parts: its parts are strings, not a %s" % type(part).__name__)
        put_container(out, PARTS, "context_parts", list(e.context_parts))
    if e.arguments is not None:
        put_container(out, ARGUMENTS, "arguments", e.arguments, dict)
    if e.tools is not None:
        tools = [t for t in e.tools if isinstance(t, dict)]
        put_container(out, EVENT_TOOLS, "tools", tools)
    if e.metadata:
        metadata = {k: v for k, v in e.metadata.items() if k != "system" and k != "captures"}
        put_container(out, METADATA, "metadata", metadata)
    out += stamped
    out.append(0)


def put_container(out, field, name, v, kind=None):
    if kind and not isinstance(v, kind):
        raise TypeError("event.%s is a %s, not a %s" % (name, kind.__name__, type(v).__name__))
    out.append(field)
    try:
        put_value(out, v)
    except (TypeError, ValueError) as err:
        raise type(err)("event.%s: %s" % (name, err)) from None
