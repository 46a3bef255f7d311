// The timers and alarms.

import {doing, el, field} from "./dom.js";
import {get, now, post, remove} from "./api.js";

let body, ticking;

export async function load(into) {
  body = into;
  const list = await get("/api/timers");
  const left = [];
  const rows = list.map(t => row(t, left));
  if (body.firstElementChild?.tagName === "FORM") body.lastElementChild.replaceWith(shown(rows));
  else body.replaceChildren(create(), shown(rows));
  clearInterval(ticking);
  const tick = () => {
    if (!left.length || !left[0].node.isConnected) clearInterval(ticking);
    for (const l of left) l.node.textContent = length((l.ends - now()) / 1000);
  };
  tick();
  ticking = setInterval(tick, 1000);
}

function shown(rows) {
  return rows.length ? el("ul", {class: "plain"}, rows) : el("p", {class: "quiet"}, "None is set.");
}

function row(t, left) {
  const how = el("p", {class: "note", role: "status"});
  const time = el("span", {class: "left", role: "timer"});
  const ends = Date.parse(t.ends);
  const name = t.name || (t.alarm ? "Alarm" : "Timer");
  if (t.ringing) time.textContent = "rings";
  else if (t.alarm) time.textContent = new Date(ends).toLocaleString([], {weekday: "short", hour: "2-digit", minute: "2-digit"});
  else left.push({node: time, ends});
  const about = [t.alarm ? "alarm" : "of " + length(t.seconds), t.snoozed && "snoozed", t.days?.length && "every " + t.days.join(", ")].filter(Boolean).join(", ");
  return el("li", {class: "card timer" + (t.ringing ? " ringing" : "")}, time, el("div", {}, el("b", {}, name), el("p", {class: "quiet"}, about)),
    el("button", {type: "button", "aria-label": "Cancel " + name, onclick: e => doing(e.target, how, async () => {
      await remove("/api/timers/" + t.id);
      await load(body);
    })}, t.ringing ? "Silence" : "Cancel"), how);
}

function create() {
  const minutes = el("input", {type: "number", min: "0", max: "10080", value: "5", required: true});
  const seconds = el("input", {type: "number", min: "0", max: "59", value: "0", required: true});
  const name = el("input", {maxLength: 100, autocomplete: "off"});
  const how = el("p", {class: "note", role: "status"});
  const button = el("button", {class: "first"}, "Set");
  return el("form", {class: "card", onsubmit: e => {
    e.preventDefault();
    doing(button, how, async () => {
      await post("/api/timers", {name: name.value.trim(), seconds: 60 * Number(minutes.value) + Number(seconds.value)});
      name.value = "";
      await load(body);
    });
  }}, el("h2", {}, "A new timer"), el("div", {class: "row"}, field("Minutes", minutes), field("Seconds", seconds), field("Name", name), button), how);
}

function length(seconds) {
  const s = Math.max(0, Math.round(seconds));
  const two = n => String(n).padStart(2, "0");
  const h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  return h ? `${h}:${two(m)}:${two(s % 60)}` : `${m}:${two(s % 60)}`;
}
