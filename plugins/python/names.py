# What the plugin finds by the names of the reference: what it keeps, its settings, the event bus, and the appliance.


class PluginState:
    """What the plugin keeps whatever the chat. With a prefix, a part of it."""

    def __init__(self, prefix):
        self._prefix = prefix

    def get(self, key, default=None):
        answer = ask("get", [(KEY, self._prefix + key)])
        return answer.get(VALUE) if FOUND in answer else default

    def save(self, key, value):
        json.dumps(value, allow_nan=False)
        ask("save", [(KEY, self._prefix + key), (VALUE, value)])

    def delete(self, key):
        ask("delete", [(KEY, self._prefix + key)])

    def all(self):
        values = ask("all").get(VALUE) or {}
        return {k[len(self._prefix):]: v for k, v in values.items() if k.startswith(self._prefix)}

    def clear(self):
        if not self._prefix:
            ask("clear")
            return
        for key in self.all():
            self.delete(key)

    def update_with_lock(self, key, mutator, default=None):
        with updating:
            value = mutator(self.get(key, default))
            self.save(key, value)
            return value


updating = threading.RLock()  # nobody else writes to the plugin's state


class ChatState:
    """What the plugin keeps in chats."""

    def get(self, chat, key, default=None):
        value = self._do("get", (chat, key))
        return default if value is None else value

    def delete(self, chat, key=None):
        self._do("delete", (chat,) if key is None else (chat, key))

    def _do(self, name, args, kwargs=None):
        return ask("rows", [(KEY, name)] + call_arguments(args, kwargs)).get(VALUE)

    def __getattr__(self, name):
        if name not in options["rows"]:
            raise AttributeError("chat_state has no function %s" % name)
        return lambda *args, **kwargs: self._do(name, args, kwargs)


class PluginLoader:
    def get_plugin_state(self, name=None):
        return PluginState("" if name in (None, plugin["name"]) else name + ": ")

    def get_chat_state(self, name=None):
        if name not in (None, plugin["name"]):
            raise PermissionError("what plugin %s keeps in chats is its own" % name)
        return ChatState()

    def get_plugin_settings(self, name=None):
        if name not in (None, plugin["name"]):
            raise PermissionError("the settings of plugin %s are its own" % name)
        return dict(plugin["settings"])


class Settings:
    """The plugin's settings as they are when they are looked at."""

    def get(self, key, default=None):
        return plugin["settings"].get(key, default)

    def __getitem__(self, key):
        return plugin["settings"][key]

    def __contains__(self, key):
        return key in plugin["settings"]

    def __iter__(self):
        return iter(dict(plugin["settings"]))

    def __len__(self):
        return len(plugin["settings"])

    def __getattr__(self, name):
        try:
            return plugin["settings"][name]
        except KeyError:
            raise AttributeError("there is no setting %s" % name) from None


settings = Settings()


class EventNames(type):
    def __getattr__(cls, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return name.lower()


class Events(metaclass=EventNames):
    """Has a name for every event: Events.TTS_STOPPED is "tts_stopped"."""


def publish(event_type, data=None):
    """Tells everybody who listens to the appliance."""
    json.dumps(data, allow_nan=False)
    ask("publish", [(KEY, str(event_type)), (VALUE, data)])


# The appliance.

powers = {"functions": None, "parts": None}


class System:
    """What the plugin may do with the appliance, or with a part of it. It can be kept, and used while a call has it."""

    __slots__ = ("_part",)

    def __init__(self, part):
        object.__setattr__(self, "_part", part)

    def __getattr__(self, attr):
        if attr.startswith("__"):
            raise AttributeError(attr)
        if powers["functions"] is None:
            learn()
        name = self._part + attr
        if name in powers["functions"]:
            return lambda *args, **kwargs: ask("power", [(KEY, name)] + call_arguments(args, kwargs)).get(VALUE)
        if name in powers["parts"]:
            return System(name + ".")
        if not self._part and attr in options["parts"]:
            return None
        raise AttributeError("system.%s: there is no such part or function here" % name)

    def __setattr__(self, attr, value):
        raise AttributeError("system.%s can't be set" % (self._part + attr))

    def __dir__(self):
        if powers["functions"] is None:
            learn()
        names = powers["functions"] | powers["parts"]
        here = {n[len(self._part):].split(".")[0] for n in names if n.startswith(self._part)}
        return sorted(here if self._part else here | set(options["parts"]))

    def __repr__(self):
        return "<%s>" % ("system." + self._part).rstrip(".")


whole = System("")


def learn():
    """Asks once which powers there are."""
    names = ask("names").get(NAMES) or []
    powers["parts"] = {n[:i] for n in names for i in range(len(n)) if n[i] == "."}
    powers["functions"] = set(names)


# Modules.

def module(name, **names):
    m = types.ModuleType(name)
    m.__dict__.update(names)
    sys.modules[name] = m
    return m


loader = PluginLoader()
core = module("core", __path__=[])
core.plugin_loader = module(
    "core.plugin_loader", plugin_loader=loader, get_plugin_state=loader.get_plugin_state, get_chat_state=loader.get_chat_state,
    get_plugin_settings=loader.get_plugin_settings)
core.event_bus = module("core.event_bus", publish=publish, Events=Events)
core.settings_manager = module("core.settings_manager", settings=settings)
core.hooks = module("core.hooks", HookEvent=HookEvent)
module("config").__getattr__ = settings.__getattr__


class Finder:
    """Finds the modules that come with the worker: they take the place of what the plugin can't have here."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in options["modules"]:
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, Finder)

    @staticmethod
    def create_module(spec):
        return None

    @staticmethod
    def exec_module(m):
        m.__dict__["ask_appliance"] = lambda request: json.loads(ask("fetch", [(REQUEST, json.dumps(request))]).get(RESPONSE) or "null")
        exec(compile(options["modules"][m.__name__], m.__name__ + ".py", "exec"), m.__dict__)


sys.meta_path.insert(len(sys.meta_path) if options["sockets"] else 0, Finder)  # with sockets, the real ones come first
if options["dir"]:
    sys.path.append(options["dir"])

main()
