// The plugins: which are on, where they come from, what is wrong with them, what their hooks cost, and their settings.

import {check, doing, el, field, ms} from "./dom.js";
import {at, get, post, put} from "./api.js";

const budgets = fetch("budgets.json").then(r => r.json()).catch(() => ({}));
let body, most;

export async function load(into) {
  body = into;
  most = await budgets;
  const list = await get("/api/plugins");
  const open = new Set([...body.querySelectorAll("details[open]")].map(d => d.dataset.name));
  body.replaceChildren(rescan(), ...list.map(p => card(p, open.has(p.name))));
  if (!list.length) body.append(el("p", {class: "quiet"}, "There are none."));
}

function rescan() {
  const how = el("p", {class: "note", role: "status"});
  return el("div", {class: "bar-row"}, el("button", {type: "button", onclick: e => doing(e.target, how, async () => {
    const found = await post("/api/plugins/rescan");
    await load(body);
    const text = [...found.added.map(n => n + " came"), ...found.removed.map(n => n + " went")].join(", ") || "Nothing new.";
    body.querySelector(".bar-row .note").textContent = text;
  })}, "Look for new plugins"), how);
}

function card(p, open) {
  const how = el("p", {class: "note", role: "status"});
  const path = at`/api/plugins/${p.name}`;
  const redo = async () => card(await get(path), node.querySelector("details")?.open);
  const on = el("input", {type: "checkbox", role: "switch", checked: p.enabled, "aria-label": "Enable " + p.name, onchange: async e => {
    const wanted = e.target.checked;
    e.target.disabled = true;
    let wrong = "";
    try {
      await put(path + "/enabled", wanted);
    } catch (err) {
      wrong = err.message;
    }
    await replace(wrong);
  }});
  // replace draws the card anew, as the plugin is now, and leaves the focus where it was.
  const replace = async wrong => {
    try {
      const fresh = await redo();
      node.replaceWith(fresh);
      fresh.querySelector("[role=switch]").focus({preventScroll: true});
      const text = fresh.querySelector(":scope > .note");
      text.textContent = wrong;
      text.classList.toggle("bad", Boolean(wrong));
    } catch (err) {
      how.textContent = err.message;
      on.disabled = false;
    }
  };
  const state = p.loaded ? "on" : p.enabled ? "failed" : "off";
  const facts = [p.origin, p.system && "came with the speaker", p.voice_commands && `${p.voice_commands} voice command${p.voice_commands > 1 ? "s" : ""}`,
    p.network?.length && "may reach " + p.network.join(", "), p.tools?.length && "tools: " + p.tools.join(", ")].filter(Boolean);
  const node = el("article", {class: "card plugin " + state},
    el("div", {class: "head"}, el("h2", {}, p.name, " ", el("small", {class: "quiet"}, p.version)),
      el("label", {class: "switch"}, on, el("span", {"aria-hidden": "true"}, state))),
    el("p", {}, p.description),
    el("p", {class: "quiet"}, facts.join(" · ")),
    p.errors?.length ? el("ul", {class: "problems", "aria-label": "Errors"}, p.errors.map(e => el("li", {}, e))) : null,
    how,
    p.hooks?.length ? hooks(p) : null,
    settings(p, path, open),
    el("div", {class: "buttons"}, el("button", {type: "button", onclick: async e => {
      e.target.disabled = true;
      let wrong = "";
      try {
        await post(path + "/reload");
      } catch (err) {
        wrong = err.message;
      }
      await replace(wrong);
    }}, "Read anew")));
  return node;
}

function hooks(p) {
  const late = h => h.misses > 0 || h.worst_ms > (most[h.point] ?? most[""]);
  return el("div", {class: "wide"}, el("table", {class: "hooks"},
    el("caption", {}, "Hooks since the start"),
    el("thead", {}, el("tr", {}, ["Point", "May take", "Calls", "Mean", "Worst", "Misses", "Failures"].map(t => el("th", {scope: "col"}, t)))),
    el("tbody", {}, p.hooks.map(h => el("tr", {class: late(h) || h.failures ? "bad" : ""},
      el("th", {scope: "row"}, h.point, h.error && el("span", {class: "note bad"}, h.error)),
      el("td", {}, ms(most[h.point] ?? most[""] ?? 0)), el("td", {}, h.calls), el("td", {}, h.calls ? ms(h.mean_ms) : "–"),
      el("td", {}, h.calls ? ms(h.worst_ms) : "–"), el("td", {}, h.misses), el("td", {}, h.failures))))));
}

function settings(p, path, open) {
  const inside = el("div", {});
  const fill = async () => {
    try {
      inside.replaceChildren(form(await get(path + "/settings"), path));
    } catch (err) {
      inside.replaceChildren(el("p", {class: "note bad", role: "alert"}, err.message));
    }
  };
  const node = el("details", {ontoggle: () => { if (node.open) fill(); }}, el("summary", {}, "Settings"), inside);
  node.dataset.name = p.name;
  node.open = Boolean(open);
  return node;
}

// form is the form of settings as their manifest describes them.
function form(list, path) {
  if (!list.length) return el("p", {class: "quiet"}, "It has none.");
  const how = el("p", {class: "note", role: "status"});
  const button = el("button", {class: "first"}, "Save");
  const controls = list.map(control);
  const save = values => doing(button, how, async () => {
    await put(path + "/settings", values);
    node.replaceWith(form(await get(path + "/settings"), path));
  }, "Saved.");
  const node = el("form", {class: "settings", onsubmit: e => {
    e.preventDefault();
    const values = {};
    controls.forEach((c, i) => {
      const v = c.value();
      if (v !== undefined && JSON.stringify(v) !== JSON.stringify(list[i].value)) values[list[i].key] = v;
    });
    save(values);
  }}, controls.map(c => c.node), el("div", {class: "buttons"}, button,
    el("button", {type: "button", onclick: () => save(Object.fromEntries(list.map(s => [s.key, null])))}, "Defaults")), how);
  return node;
}

// control is a setting's part of the form; its value is undefined if it is to stay as it is.
function control(s) {
  const label = s.label || s.key;
  if (s.type === "boolean") {
    const box = el("input", {type: "checkbox", checked: Boolean(s.value), name: s.key});
    return {node: check(label, box, s.help), value: () => box.checked};
  }
  if (s.key === "surfaces" && s.type === "list") { // the speaker's own: where the plugin is at home
    const boxes = ["chat", "game"].map(name => [name, el("input", {type: "checkbox", checked: (s.value || []).includes(name)})]);
    return {
      node: el("fieldset", {}, el("legend", {}, label), boxes.map(([name, box]) => el("label", {class: "check"}, box, " " + name))),
      value: () => boxes.filter(([, box]) => box.checked).map(([name]) => name),
    };
  }
  if (s.options?.length && s.type !== "list") {
    const choice = el("select", {name: s.key}, s.options.map((o, i) => el("option", {value: String(i)}, o.label || String(o.value))));
    choice.selectedIndex = s.options.findIndex(o => o.value === s.value);
    return {node: field(label, choice, s.help), value: () => s.options[choice.selectedIndex]?.value};
  }
  if (s.type === "number") {
    const number = el("input", {type: "number", step: "any", min: String(s.min ?? ""), max: String(s.max ?? ""), name: s.key, value: s.value === null ? "" : String(s.value)});
    return {node: field(label, number, s.help), value: () => number.value === "" ? undefined : Number(number.value)};
  }
  if (s.type === "list") {
    const lines = el("textarea", {rows: 3, name: s.key, value: (s.value || []).map(v => typeof v === "string" ? v : JSON.stringify(v)).join("\n")});
    const plain = (s.value || []).every(v => typeof v === "string");
    return {
      node: field(label, lines, [s.help, "One on each line."].filter(Boolean).join(" ")),
      value: () => lines.value.split("\n").map(l => l.trim()).filter(Boolean).map(l => {
        try {
          return plain ? l : JSON.parse(l);
        } catch {
          return l;
        }
      }),
    };
  }
  const secret = s.widget === "password";
  const text = el("input", {type: secret ? "password" : "text", autocomplete: "off", name: s.key, value: secret ? null : s.value ?? "", placeholder: secret && s.set ? "kept as it is" : null});
  return {node: field(label, text, s.help), value: () => secret && !text.value ? undefined : text.value};
}
