// The first page: what is going on, how loud it is, the conversation as it happens, and the last turns.

import {byID, doing, el, note, svg} from "./dom.js";
import {get, now, post, put} from "./api.js";
import {Ring} from "./ring.js";
import {waterfall} from "./waterfall.js";

const mostLines = 100, mostTurns = 20; // the page may be open for a day

const states = {idle: "Idle", listening: "Listening", thinking: "Thinking", speaking: "Speaking", follow_up: "Listening for more", error: "Failed"};

const failures = {
  recognizer: "what was said couldn't be recognised", model: "the model didn't answer", voice: "the voice didn't work",
  microphone: "the microphone didn't work", deadline: "it took too long", locked: "the chat is locked", "no chat": "there is no such chat",
};

let ring;
const said = new Map(); // the line of what it says, by turn
const heard = new Set(); // the turns of which it is shown what was heard
const typed = []; // the lines of what was asked here, until their turns are over
const timers = new Map(); // those that run, and when they end by the browser's clock
const ringing = new Set();

export function start() {
  ring = new Ring(byID("ring"), byID("shows"));
  const mistake = err => note(byID("talk-note"), err.message, true);
  const volume = byID("volume");
  volume.addEventListener("input", () => { byID("percent").textContent = volume.value + " %"; });
  volume.addEventListener("change", () => put("/api/volume", {percent: Number(volume.value)}).then(showVolume, mistake));
  byID("silent").addEventListener("change", e => put("/api/volume", {muted: e.target.checked}).then(showVolume, mistake));
  byID("mute").addEventListener("change", e => {
    const wanted = e.target.checked;
    put("/api/mute", {muted: wanted}).then(showMute, err => {
      e.target.checked = !wanted;
      note(byID("mute-note"), err.message, true);
    });
  });
  byID("talk").addEventListener("submit", e => {
    e.preventDefault();
    talk("ask");
  });
  byID("text").addEventListener("keydown", e => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      talk("ask");
    }
  });
  byID("say").addEventListener("click", () => talk("say"));
  byID("stop").addEventListener("click", e => doing(e.target, byID("talk-note"), () => post("/api/stop")));
}

async function talk(how) {
  const text = byID("text").value.trim();
  if (!text) {
    byID("text").focus();
    return;
  }
  let aside = "";
  await doing(byID(how), byID("talk-note"), async () => {
    byID("text").value = "";
    if (how === "ask") typed.push({text, line: line("You", text)});
    let record;
    try {
      record = await post("/api/" + how, {text});
    } catch (err) {
      taken(text)?.remove();
      byID("text").value ||= text;
      throw err;
    }
    if (!record.private) return;
    taken(text)?.remove();
    aside = "That was in a private chat, and isn't shown here.";
  });
  if (aside) note(byID("talk-note"), aside);
}

// taken is the line of a text that was typed here, which is no longer waited for.
function taken(text) {
  const i = typed.findIndex(t => t.text === text);
  return i < 0 ? null : typed.splice(i, 1)[0].line;
}

// load shows how things stand, before the events tell what changes.
export async function load() {
  const state = await get("/api/state");
  showState(state.state);
  showVolume(state.volume);
  showMute(state.mute);
  showGlance(state);
  const list = await get("/api/timers");
  timers.clear();
  ringing.clear();
  for (const t of list) {
    if (t.ringing) ringing.add(t.id);
    else if (!t.alarm && t.seconds) timers.set(t.id, {ends: performance.now() + Date.parse(t.ends) - now(), total: t.seconds * 1000});
  }
  showTimers();
  const turns = await Promise.all((await get("/api/turns?limit=" + mostTurns)).map(waterfall));
  byID("turns").replaceChildren(...turns);
  if (!turns.length) byID("turns").append(el("p", {class: "quiet empty"}, "None yet."));
}

async function refresh() {
  showGlance(await get("/api/state"));
}

function showGlance(state) {
  byID("chat").textContent = state.private ? "In a private chat" : state.chat ? "In the chat " + state.chat : "";
  byID("version").textContent = "Bellbird " + state.version + ", running since " + new Date(state.began).toLocaleString();
  const problems = byID("problems");
  problems.replaceChildren(...state.problems.map(p => el("li", {}, p)));
  problems.hidden = !state.problems.length;
  if (state.private) ring.show("private chat");
  else ring.hide("private chat");
}

function showState(to) {
  byID("state").textContent = states[to] || to;
  document.title = to === "idle" ? "Bellbird" : (states[to] || to) + " – Bellbird";
  ring.state(to);
}

function showVolume(v) {
  byID("volume").value = v.percent;
  byID("percent").textContent = v.percent + " %";
  byID("silent").checked = v.muted;
}

function showMute(m) {
  const box = byID("mute");
  box.disabled = !m || m.switch;
  box.checked = Boolean(m?.muted);
  note(byID("mute-note"), !m ? "This speaker has no microphone." : m.switch ? "The switch on the speaker mutes it." : "");
  ring.mute(Boolean(m?.muted));
}

function showTimers() {
  if (ringing.size) ring.show("timer ringing");
  else ring.hide("timer ringing");
  const soonest = [...timers.values()].sort((a, b) => a.ends - b.ends)[0];
  const left = soonest ? soonest.ends - performance.now() : 0;
  if (left > 0) ring.show("timer running", {left, total: Math.max(soonest.total, left)}, left);
  else ring.hide("timer running");
}

// line adds a line to the conversation, and leaves the view at its end if it was there.
function line(who, text, quiet = false, before = null) {
  const log = byID("log");
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  const words = el("span", {class: "words"}, text);
  const node = el("p", {class: "line " + (quiet ? "about" : who.toLowerCase())}, quiet ? null : el("b", {}, who), quiet ? null : " ", words);
  log.insertBefore(node, before);
  while (log.childElementCount > mostLines) log.firstElementChild.remove();
  if (atEnd) log.scrollTop = log.scrollHeight;
  return node;
}

// scores draws how sure the wake word's model was, below the bar that it didn't exceed.
function scores(fact) {
  const list = fact.Scores || [];
  const points = list.map((s, i) => `${(60 * i / Math.max(list.length - 1, 1)).toFixed(1)},${(20 - 20 * s).toFixed(1)}`).join(" ");
  return svg("svg", {viewBox: "0 0 60 20", class: "scores", "aria-hidden": "true"},
    svg("line", {x1: 0, x2: 60, y1: 20 - 20 * fact.Bar, y2: 20 - 20 * fact.Bar}), svg("polyline", {points}));
}

// tell shows an event.
export function tell(kind, fact) {
  switch (kind) {
    case "state_changed":
      showState(fact.To);
      break;
    case "woke":
      line("", (fact.Stops ? "Stopped by " : "Woke to ") + `“${fact.Word}” (${fact.Score.toFixed(2)})`, true);
      if (!fact.Stops) ring.show("waking");
      break;
    case "near_miss":
      line("", `Nearly woke to “${fact.Word}” (${fact.Peak.toFixed(2)}, not above ${fact.Bar.toFixed(2)})` + (fact.Untold ? `, and ${fact.Untold} times more` : ""), true)
        .append(" ", scores(fact));
      break;
    case "heard":
      line("You", fact.Text || "(not understood)");
      heard.add(fact.Run);
      break;
    case "said": {
      const node = said.get(fact.Run);
      if (node?.isConnected) {
        node.lastChild.append(" " + fact.Text.trim());
        byID("log").scrollTop = byID("log").scrollHeight;
      } else {
        said.set(fact.Run, line("Bellbird", fact.Text.trim()));
      }
      break;
    }
    case "turn_ended":
      ended(fact.Record);
      break;
    case "volume_changed":
      showVolume({percent: fact.Percent, muted: fact.Muted});
      ring.show("volume", {fraction: fact.Percent / 100, silent: fact.Muted});
      break;
    case "mute_changed":
      showMute({muted: fact.Muted, switch: fact.Switch});
      break;
    case "timer_changed":
      timer(fact);
      break;
    case "microphone_fault":
      ring.show("no microphone");
      break;
    case "microphone_well":
      ring.hide("no microphone");
      break;
    case "provider_switched":
      if (fact.Kind === "llm" && fact.Instead) ring.show("no server");
      else if (fact.Kind === "llm") ring.hide("no server");
      break;
    case "hook_missed":
      line("", `The plugin ${fact.Plugin} is left out at ${fact.Point} for ${Math.round(fact.For / 1e9)} s: it took too long.`, true);
      break;
    case "update_changed":
      if (["downloading", "installing"].includes(fact.Phase)) ring.show("updating", {fraction: fact.Percent / 100});
      else ring.hide("updating");
      break;
    case "dropped":
      line("", fact + " events were missed.", true);
      break;
  }
  if (/fault|well|privacy|provider/.test(kind)) refresh().catch(() => { /* the banner tells it */ });
}

// forget bounds what is remembered of turns whose end was missed.
function forget() {
  if (said.size > mostLines) said.clear();
  if (heard.size > mostLines) heard.clear();
}

function timer(fact) {
  timers.delete(fact.ID);
  ringing.delete(fact.ID);
  if (fact.What === "ringing") {
    ringing.add(fact.ID);
    line("", (fact.Alarm ? "An alarm" : "A timer") + (fact.Name ? `, “${fact.Name}”,` : "") + " rings.", true);
  } else if (["set", "restored", "moved", "snoozed"].includes(fact.What) && !fact.Alarm && fact.Total > 0) {
    timers.set(fact.ID, {ends: performance.now() + Date.parse(fact.Ends) - Date.parse(fact.At), total: fact.Total / 1e6});
  }
  showTimers();
}

async function ended(record) {
  // What was typed wasn't heard: only its record tells it.
  if (record.heard && !heard.has(record.run) && !taken(record.heard)) line("You", record.heard, false, said.get(record.run) || null);
  heard.delete(record.run);
  // What plugins made of the whole answer is known only now.
  const spoken = said.get(record.run);
  if (spoken && record.answer) spoken.lastChild.textContent = record.answer;
  said.delete(record.run);
  forget();
  if (record.outcome === "failed") {
    ring.show("error", {kind: record.error});
    line("", "The turn failed: " + (failures[record.error] || "nobody knows why") + ".", true);
  } else if (record.outcome === "interrupted") {
    line("", "Interrupted.", true);
  }
  const list = byID("turns");
  const drawn = await waterfall(record);
  list.querySelector(".empty")?.remove();
  const newest = list.querySelector("details[data-newest]");
  if (newest) {
    newest.open = false;
    delete newest.dataset.newest;
  }
  drawn.open = true;
  drawn.dataset.newest = "";
  list.prepend(drawn);
  while (list.childElementCount > mostTurns) list.lastElementChild.remove();
}
