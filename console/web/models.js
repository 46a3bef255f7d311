// The engines that think, hear and speak.

import {el} from "./dom.js";
import {get} from "./api.js";

const work = {llm: "Thinks", stt: "Hears", tts: "Speaks"};

export async function load(body) {
  const list = await get("/api/models");
  body.replaceChildren(...Object.entries(work).map(([kind, title]) => el("section", {class: "card"}, el("h2", {}, title),
    el("ul", {class: "plain"}, list.filter(m => m.kind === kind).map(model)))));
}

function model(m) {
  const reached = m.reached === null ? "not wanted yet" : m.reached ? (m.address ? "reached" : "in the speaker") : "can't be reached";
  const about = [m.model, m.address, m.active ? "at work" : "waits", reached].filter(Boolean).join(" · ");
  return el("li", {class: "model" + (m.active ? " active" : "") + (m.reached === false ? " away" : "")},
    el("b", {}, m.name), el("p", {class: "quiet"}, about));
}
