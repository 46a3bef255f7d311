# What the worker does: it runs the plugin's files for the appliance at the other end of its pipes.
#
# The main thread reads, and hands each call to a thread of its own, so that a handler which waits keeps no other one
# waiting. Standard output is the log, as is standard error: nothing that a plugin prints gets between the messages.

class DeadlinePassed(KeyboardInterrupt):
    """Is raised in a handler that has no time left."""


running = {}  # threads by the numbers of their calls, as long as these can be cancelled
idle = []
current = threading.local()


class Thread:
    """Runs one call after the other, when it is given them."""

    def __init__(self):
        self.baton = threading.Lock()
        self.baton.acquire()
        self.frame = None
        self.told = False
        self.asking = None
        self.id = self.unit = 0
        thread = threading.Thread(target=self.loop, daemon=True)
        thread.start()
        self.ident = thread.ident

    def loop(self):
        current.thread = self
        while True:
            try:
                self.baton.acquire()
                answer = self.run()
                if not self.settle():
                    answer = failure(self.id, "the deadline passed")
            except DeadlinePassed:  # it comes once
                answer = failure(self.id, "the deadline passed")
            self.frame = None
            send(answer)
            idle.append(self)

    def run(self):
        try:
            _, m = read_message(self.frame)
            self.unit = m.get(UNIT) or self.id
            out = begin(DONE, self.id)
            do(self.frame[0], self.id, m, out)
            return end(out)
        except DeadlinePassed:
            raise
        except BaseException as err:  # also SystemExit, which only ends the handler
            return failure(self.id, explain(err))

    def settle(self):
        """Reports whether the call was not cancelled. Afterwards it can't be any more."""
        if running.pop(self.id, None):
            return True
        while not self.told:  # the main thread is about to tell
            time.sleep(0.0005)
        raise_in(self.ident, None)  # if it has not come yet, it need not
        return False

    def cancel(self):
        raise_in(self.ident, DeadlinePassed)
        self.told = True
        asking = self.asking
        if asking:
            answered(asking, {ERROR: "the deadline passed"})


def raise_in(ident, error):
    """Raises an error in another thread, when that runs Python code next; None takes it back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error) if error else ctypes.py_object())


try:
    import ctypes
except Exception:  # where it may not make code; then the worker is killed when a handler's time is over
    def raise_in(ident, error):
        pass


def explain(err):
    """Makes one line of an error, with its place in the plugin."""
    text = "%s: %s" % (type(err).__name__, err) if str(err) else type(err).__name__
    if isinstance(err, SyntaxError) and err.filename:
        return ("%s:%s: %s" % (os.path.basename(err.filename), err.lineno, text))[:2000]
    place = ""
    tb = err.__traceback__
    while tb:
        name = units_by_path.get(tb.tb_frame.f_code.co_filename)
        if name:
            place = "%s:%d: in %s: " % (name, tb.tb_lineno, tb.tb_frame.f_code.co_name)
        tb = tb.tb_next
    return (place + text)[:2000]


# Asking the appliance.

asked = itertools.count(1)
waiting = {}  # by the number of what was asked: [lock, answer]


class RefusedError(RuntimeError):
    """Is raised when the appliance does not do what it is asked for, and says why."""


def ask(do, fields=()):
    thread = getattr(current, "thread", None)
    n = next(asked)
    out = begin(ASK, n)
    put_field(out, DO, do)
    put_field(out, UNIT, thread.unit if thread else any_unit())
    if thread:
        put_field(out, CALL_ID, thread.id)
    for field, v in fields:
        put_field(out, field, v)
    end(out)
    lock = threading.Lock()
    lock.acquire()
    entry = waiting[n] = [lock, None]
    if thread:
        thread.asking = n
    try:
        send(out)
        lock.acquire()
    finally:
        waiting.pop(n, None)
        if thread:
            thread.asking = None
    answer = entry[1]
    if ERROR in answer:
        text = answer[ERROR]
        raise ValueError(text) if "no such chat" in text else RefusedError(text)
    return answer


def answered(n, m):
    entry = waiting.pop(n, None)
    if entry:
        entry[1] = m
        entry[0].release()


def call_arguments(args, kwargs):
    """The arguments of a call that the appliance does: what JSON can say."""
    json.dumps([args, kwargs], allow_nan=False)
    fields = []
    if args:
        fields.append((ARGS, list(args)))
    if kwargs:
        fields.append((KWARGS, kwargs))
    return fields


# What was loaded.

class Unit:
    def __init__(self, name, module):
        self.name = name
        self.globals = module.__dict__


units = {}
units_by_path = {}
plugin = {"name": "", "settings": {}}


def any_unit():
    return max(units, default=0)


def do(op, n, m, out):
    if op == LOAD:
        load(n, m)
        return
    unit = units.get(m.get(UNIT))
    if unit is None:
        raise LookupError("there is no such unit")
    if op == CHECK:
        find(unit, m[POINT])
    elif op == CALL:
        e, stamped = m[EVENT]
        if m.get(SYSTEM):
            e.metadata["system"] = whole
        handler = find(unit, m[POINT])
        if m[POINT] == "run":
            run_task(handler, e)
        else:
            handler(e)
        put_event(out, e, stamped)
    elif op == TOOLS:
        schemas = tools_of(unit)
        if schemas:
            put_field(out, ARGS, schemas)
    elif op == EXECUTE:
        text, ok = execute(unit, m[KEY], m.get(KWARGS) or {})
        put_field(out, VALUE, text)
        if ok:
            put_field(out, FOUND, True)


def load(n, m):
    name, file = m[PLUGIN], m[FILE]
    plugin["name"], plugin["settings"] = name, m.get(SETTINGS_FIELD) or {}
    path = os.path.join(options["dir"], file) if options["dir"] else file
    units_by_path[path] = file
    module = types.ModuleType("plugin_%s_%s" % (name.replace("-", "_"), os.path.splitext(os.path.basename(file))[0]))
    module.__file__ = path
    sys.modules[module.__name__] = module
    code = compile(m.get(SOURCE, "").lstrip("\ufeff"), path, "exec")
    exec(code, module.__dict__)
    units[n] = Unit(file, module)


def find(unit, point):
    """The function that handles a point: the one with its name, or else the one called handle. run is for schedules."""
    for name in (point,) if point == "run" else (point, "handle"):
        f = unit.globals.get(name)
        if callable(f):
            return f
    if point == "run":
        raise LookupError("%s: there is no function run(event), which is for schedules" % unit.name)
    if callable(unit.globals.get("run")):
        raise LookupError("%s: there is no function %s or handle, only run, which is for schedules: rename it" % (unit.name, point))
    raise LookupError("%s: there is no function %s or handle(event)" % (unit.name, point))


def run_task(handler, e):
    """What schedules call gets a dict, and what it returns is for the log."""
    result = handler({
        "system": e.metadata.get("system"), "config": e.config, "task": e.metadata.get("task"), "plugin_state": PluginState(""),
    })
    e.result = None if result is None else str(result)[:2000]


def tools_of(unit):
    g = unit.globals
    if not callable(g.get("execute")):
        raise LookupError("%s: there is no function execute(name, arguments)" % unit.name)
    if not g.get("ENABLED", True):
        return []
    schemas = g["get_tools"]() if callable(g.get("get_tools")) else g.get("TOOLS")
    if not isinstance(schemas, (list, tuple)):
        raise LookupError("%s: there is no list TOOLS" % unit.name)
    only = g.get("AVAILABLE_FUNCTIONS")
    chosen = []
    for i, schema in enumerate(schemas):
        if not isinstance(schema, dict):
            raise TypeError("%s: TOOLS[%d] is no dict" % (unit.name, i))
        function = schema.get("function")
        name = (function if isinstance(function, dict) else schema).get("name")
        if only is None or name in only:
            chosen.append(schema)
    return chosen


def execute(unit, name, arguments):
    f = unit.globals["execute"]
    possible = [name, arguments, settings, dict(plugin["settings"]), {}]  # the reference's tools take some of them
    code = getattr(f, "__code__", None)
    most = 2 if code is None else code.co_argcount
    result = f(*possible[:min(max(most, 2), len(possible))])
    ok = True
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], bool):
        result, ok = result
    if isinstance(result, dict) and isinstance(result.get("text"), str):
        result = result["text"]  # the pictures that may be beside it can't be shown
    if result is None:
        return "", ok
    return result if isinstance(result, str) else json.dumps(result), ok


# Starting.

options = json.loads(sys.argv.pop(1))
sys.argv[0] = "plugin"
source = os.fdopen(os.dup(0), "rb", 1 << 16)
sink = os.dup(1)
null = os.open(os.devnull, os.O_RDONLY)
os.dup2(null, 0)
os.close(null)
os.dup2(2, 1)
sys.stdout.reconfigure(line_buffering=True)
sending = threading.Lock()
threading.stack_size(2 << 20)


def send(out):
    with sending:
        view = memoryview(out)
        while view:
            view = view[os.write(sink, view):]


def main():
    idle.append(Thread())
    while True:
        head = source.read(4)
        if len(head) < 4:
            os._exit(0)
        frame = source.read(length.unpack(head)[0])
        op = frame[0]
        if op <= EXECUTE:
            thread = idle.pop() if idle else Thread()
            thread.id, _ = get_uint(frame, 1)
            thread.frame, thread.told = frame, False
            running[thread.id] = thread
            thread.baton.release()
            continue
        n, m = read_message(frame)
        if op == REPLY:
            answered(n, m)
        elif op == CANCEL:
            thread = running.pop(n, None)
            if thread:
                thread.cancel()
        elif op == SETTINGS:
            plugin["settings"] = m.get(SETTINGS_FIELD) or {}
