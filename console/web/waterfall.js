// The waterfall of a turn: when it reached its stages, and what each call of a hook took, of how much it may.

import {el, ms} from "./dom.js";

const budgets = fetch("budgets.json").then(r => r.json()).catch(() => ({}));

const stages = [
  ["voiced_ms", "last word"], ["endpoint_ms", "end of utterance"], ["recognised_ms", "recognised"],
  ["first_word_ms", "model's first word"], ["first_sound_ms", "first sound"], ["end_ms", "end"],
];

// waterfall is an element for the record of a turn.
export async function waterfall(record) {
  const most = await budgets;
  const calls = (record.hooks || []).filter(c => c.outcome !== "no match"); // a voice command that was not said
  const total = Math.max(record.stages.end_ms, ...calls.map(c => c.began_ms + c.took_ms), 1);
  const rows = [];
  let last = 0;
  for (const [key, name] of stages) {
    const reached = record.stages[key];
    if (!reached) continue;
    rows.push(row(name, last, reached, total, ms(reached), "stage"));
    last = Math.max(last, reached);
  }
  for (const c of calls) rows.push(hookRow(c, total, most[c.point] ?? most[""]));
  const outcome = record.outcome.replaceAll("_", " ") + (record.error ? ": " + record.error : "");
  const when = new Date(record.began).toLocaleTimeString();
  return el("details", {class: "turn " + record.outcome, open: false},
    el("summary", {}, el("span", {class: "when"}, when), " ", el("span", {class: "outcome"}, outcome), " ",
      el("span", {class: "quiet"}, ms(record.stages.end_ms) + hooksInShort(calls, most))),
    el("table", {class: "waterfall"},
      el("caption", {class: "unseen"}, "Stages and hooks of the turn at " + when),
      el("thead", {class: "unseen"}, el("tr", {}, ["What", "When", "Time"].map(t => el("th", {scope: "col"}, t)))),
      el("tbody", {}, rows)),
    use(record));
}

function hooksInShort(calls, most) {
  if (!calls.length) return "";
  const late = calls.filter(c => c.outcome === "missed" || c.took_ms > (most[c.point] ?? most[""])).length;
  const bad = calls.filter(c => c.outcome === "failed").length;
  return `, ${calls.length} hook${calls.length > 1 ? "s" : ""}` + (late ? `, ${late} too late` : "") + (bad ? `, ${bad} failed` : "");
}

function hookRow(call, total, budget) {
  const usual = call.outcome === "committed";
  const over = call.outcome === "missed" || call.took_ms > budget;
  const kind = over ? "hook over" : usual ? "hook" : "hook other";
  const part = el("i");
  part.style.width = Math.min(100 * call.took_ms / budget, 100) + "%";
  const time = [ms(call.took_ms), budget ? ` of ${budget} ms` : "", budget ? el("span", {class: "share", "aria-hidden": "true"}, part) : null];
  return row([el("b", {}, call.plugin || "–"), " " + call.point + (usual ? "" : ": " + call.outcome)], call.began_ms, call.began_ms + call.took_ms, total, time, kind, call.error);
}

function row(name, from, to, total, time, kind, error) {
  const bar = el("i", {class: "bar " + kind});
  bar.style.left = 100 * from / total + "%";
  bar.style.width = Math.max(100 * (to - from) / total, 0.4) + "%";
  return el("tr", {class: kind}, el("th", {scope: "row"}, name, error ? el("span", {class: "note bad"}, error) : null),
    el("td", {class: "track", "aria-hidden": "true"}, el("span", {class: "lane"}, bar)), el("td", {class: "time"}, time));
}

function use(record) {
  const m = record.model;
  const parts = [];
  if (m && m.requests && m.input) parts.push(`The model: ${m.requests} request${m.requests > 1 ? "s" : ""}, ${m.input} tokens in, ${m.output} out.`);
  if (m && m.error) parts.push("The model failed: " + m.error + ".");
  if (record.gaps) parts.push(`${record.gaps} hole${record.gaps > 1 ? "s" : ""} in the speech.`);
  return parts.length ? el("p", {class: "quiet"}, parts.join(" ")) : null;
}
