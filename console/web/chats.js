// The chats, their settings, what a model would be asked next, and the vault of the private ones.

import {check, doing, el, field} from "./dom.js";
import {at, get, post, put, remove} from "./api.js";

let body;

export async function load(into) {
  body = into;
  const [list, vault] = await Promise.all([get("/api/chats"), get("/api/vault")]);
  body.replaceChildren(create(), el("div", {class: "list"}, list.map(card)), vaultCard(vault.state));
}

const again = () => load(body);

function create() {
  const name = el("input", {maxLength: 100, required: true, autocomplete: "off"});
  const how = el("p", {class: "note", role: "status"});
  const button = el("button", {class: "first"}, "Begin");
  return el("form", {class: "card row", onsubmit: e => {
    e.preventDefault();
    doing(button, how, async () => {
      await post("/api/chats", {name: name.value});
      await again();
    });
  }}, field("A new chat", name), button, how);
}

function card(chat) {
  const how = el("p", {class: "note", role: "status"});
  const marks = [chat.active && "active", chat.private && "private", chat.sealed && "sealed", chat.pinned && "pinned"].filter(Boolean);
  const used = chat.used ? "last used " + new Date(chat.used).toLocaleString() : "never used";
  const act = (text, what, sure) => el("button", {type: "button", onclick: e => {
    if (sure && !confirm(sure)) return;
    doing(e.target, how, what);
  }}, text);
  const then = async promise => {
    await promise;
    await again();
  };
  const path = at`/api/chats/${chat.name}`;
  return el("article", {class: "card chat" + (chat.active ? " active" : "")},
    el("h2", {}, chat.name),
    el("p", {class: "quiet"}, [...marks, used].join(", ")),
    el("div", {class: "buttons"},
      !chat.active && act("Talk in this chat", () => then(post(path + "/activate"))),
      act("Export", () => save(chat.name, path)),
      act("Clear", () => then(post(path + "/clear")), `Forget all that was said in “${chat.name}”?`),
      act("Delete", () => then(remove(path)), `Delete “${chat.name}” with all that is in it?`)),
    how,
    opens("Settings", () => settings(chat, path)),
    opens("Prompt preview", () => preview(path)));
}

// opens is a part that is asked for when it is opened.
function opens(title, content) {
  const inside = el("div", {});
  return el("details", {ontoggle: async e => {
    if (!e.target.open) return;
    try {
      inside.replaceChildren(await content());
    } catch (err) {
      inside.replaceChildren(el("p", {class: "note bad", role: "alert"}, err.message));
    }
  }}, el("summary", {}, title), inside);
}

async function save(name, path) {
  const text = JSON.stringify(await get(path + "/export"), null, 2);
  const url = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  el("a", {href: url, download: name.replace(/[^\p{L}\p{N}_-]+/gu, "_") + ".json"}).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

async function settings(chat, path) {
  const s = await get(path + "/settings");
  const how = el("p", {class: "note", role: "status"});
  const button = el("button", {class: "first"}, "Save");
  const name = el("input", {maxLength: 100, required: true, value: chat.name, autocomplete: "off"});
  const text = key => el("textarea", {rows: 5, value: s[key] || "", name: key});
  const custom = text("custom_context"), ghost = text("ghost_context");
  const box = key => el("input", {type: "checkbox", checked: Boolean(s[key]), name: key});
  const boxes = {inject_datetime: box("inject_datetime"), spice_enabled: box("spice_enabled"), private_chat: box("private_chat"), pinned: box("pinned")};
  const mode = select("mode", s.mode || "", [["", "Talking"], ["game", "Games and stories"]]);
  const surface = select("surface", s.surface || "", [["", "As the mode says"], ["chat", "Chat"], ["game", "Game"]]);
  const voice = el("input", {value: s.voice || "", name: "voice", autocomplete: "off"});
  return el("form", {class: "settings", onsubmit: e => {
    e.preventDefault();
    doing(button, how, async () => {
      const wanted = {custom_context: custom.value, ghost_context: ghost.value, mode: mode.value, surface: surface.value, voice: voice.value};
      for (const [key, b] of Object.entries(boxes)) wanted[key] = b.checked;
      const changes = Object.fromEntries(Object.entries(wanted).filter(([key, v]) => v !== (s[key] ?? (typeof v === "boolean" ? false : ""))));
      if (Object.keys(changes).length) Object.assign(s, await put(path + "/settings", changes));
      if (name.value.trim() !== chat.name) {
        await post(path + "/rename", {name: name.value});
        await again();
      }
    }, "Saved.");
  }},
  el("div", {class: "beside"},
    field("Custom context", custom, "Part of the system prompt: who the model is and what it knows in this chat. It comes first, stays the same from turn to turn, and the server can keep it in its cache."),
    field("Ghost message", ghost, "Told to the model with each turn, just before what you say, and never kept: neither the chat nor its export shows it. Because it is so near, the model heeds it more.")),
  check("The model is told the time", boxes.inject_datetime, "With each turn, in the ghost message."),
  check("Spice", boxes.spice_enabled, "A suggestion that changes from turn to turn, so that answers don't all sound the same."),
  check("Private", boxes.private_chat, "Nothing of it is shown here or kept in records; plugins that don't know how to treat it are left out. With a vault it is also sealed."),
  check("Pinned", boxes.pinned, "Its messages are never removed to make room."),
  el("div", {class: "beside"}, field("Mode", mode), field("Shown as", surface, "Which plugins are at home here."), field("Voice", voice, "Empty: the configured one.")),
  field("Name", name), el("div", {class: "buttons"}, button), how);
}

function select(name, value, options) {
  if (!options.some(([v]) => v === value)) options.push([value, value]);
  const node = el("select", {name}, options.map(([v, label]) => el("option", {value: v}, label)));
  node.value = value;
  return node;
}

function preview(path) {
  const input = el("input", {autocomplete: "off", name: "input"});
  const out = el("div", {class: "preview", "aria-live": "polite"});
  const how = el("p", {class: "note", role: "status"});
  const button = el("button", {class: "first"}, "Show");
  return el("form", {onsubmit: e => {
    e.preventDefault();
    doing(button, how, async () => {
      const p = await get(path + "/prompt-preview?input=" + encodeURIComponent(input.value));
      out.replaceChildren(
        el("ol", {class: "messages"}, p.messages.map(m => el("li", {class: "message " + m.role + (m.ghost ? " ghost" : "")},
          el("p", {class: "role"}, m.role, m.ghost && el("span", {class: "mark"}, "in this request only")), el("pre", {}, m.content)))),
        el("p", {class: "quiet"}, p.tools?.length ? "Tools: " + p.tools.join(", ") + "." : "No tools."));
      if (p.hooks?.length) out.append(el("p", {class: "quiet"}, "Hooks: " + p.hooks.map(h => `${h.plugin} ${h.point} ${h.outcome}`).join("; ") + "."));
    });
  }}, el("div", {class: "row"}, field("What you would say next", input, "This is what the model would be asked; nothing is sent to it."), button), how, out);
}

function vaultCard(state) {
  const how = el("p", {class: "note", role: "status"});
  if (state === "open") {
    return el("section", {class: "card"}, el("h2", {}, "Private chats"), el("p", {}, "The vault is open."),
      el("div", {class: "buttons"}, el("button", {type: "button", onclick: e => doing(e.target, how, async () => {
        await post("/api/vault/lock");
        await again();
      })}, "Lock")), how);
  }
  const word = el("input", {type: "password", autocomplete: "off", required: true});
  const button = el("button", {}, state === "none" ? "Set up" : "Unlock");
  return el("form", {class: "card", onsubmit: e => {
    e.preventDefault();
    doing(button, how, async () => {
      await post("/api/vault/" + (state === "none" ? "setup" : "unlock"), {passphrase: word.value});
      await again();
    });
  }}, el("h2", {}, "Private chats"),
  el("p", {}, state === "none" ? "There is no vault: private chats are kept apart, but can be read by who has the storage. A passphrase seals them. If it is forgotten there is no way back." : "The vault is locked: private chats aren't there."),
  el("div", {class: "row"}, field("Passphrase", word), button), how);
}
