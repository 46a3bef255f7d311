// The LED ring, drawn from the events as the speaker's own ring is (docs/ring.md): of all that holds, what is highest on
// the ladder shows. What only the speaker knows, such as a button that is down or how loud a voice is, isn't here.

import {svg} from "./dom.js";

const leds = 12;

const white = [200, 200, 200], cyan = [0, 170, 255], green = [0, 230, 120], amber = [255, 140, 0], red = [255, 0, 0],
  orange = [255, 70, 0], yellow = [240, 200, 0], blue = [20, 60, 255], violet = [170, 0, 255];

const scale = (c, x) => c.map(v => v * Math.min(Math.max(x, 0), 1));
const plus = (a, b) => a.map((v, i) => Math.min(v + b[i], 255));
const dark = () => Array.from({length: leds}, () => [0, 0, 0]);
const filled = c => Array.from({length: leds}, () => c);
const wave = (t, period) => 0.5 - 0.5 * Math.cos(2 * Math.PI * t / period);
const arc = (c, fraction) => dark().map((_, i) => scale(c, Math.min(Math.max(fraction, 0), 1) * leds - i));
const pair = (c, at) => dark().map((d, i) => i % (leds / 2) === at % (leds / 2) ? c : d);

function comet(c, t, period, from = 0) {
  const head = (t / period + from) % 1;
  return dark().map((_, i) => {
    const x = 1 - 3 * ((head - i / leds + 1) % 1);
    return x > 0 ? scale(c, x * x) : [0, 0, 0];
  });
}

const errors = {recognizer: [yellow, 1], model: [orange, 2], voice: [amber, 3], microphone: [red, 2], locked: [violet, 2], "no chat": [violet, 2]};

// The ladder, from the top. Each rung has what it tells, whether it shows while the microphone is muted, how long it
// lasts at most, how long it moves (0: not at all), and how it looks t ms after it began.
const ladder = [
  {name: "updating", tells: "It updates itself: don't unplug it", muted: true, most: 600000, moves: Infinity,
    draw: (t, a) => arc(scale(blue, 0.5), a.fraction).map((c, i) => plus(c, comet(scale(white, 0.5), t, 3000)[i]))},
  {name: "volume", tells: "How loud it is", muted: true, most: 1500, moves: 0,
    draw: (_, a) => a.silent ? dark().map((c, i) => i ? c : scale(orange, 0.4)) : arc(white, a.fraction)},
  {name: "timer ringing", tells: "A timer or an alarm rings", muted: true, most: 960000, moves: Infinity,
    draw: t => filled(scale(amber, 0.1 + 0.9 * wave(t, 500)))},
  {name: "waking", tells: "It heard its wake word", most: 400, moves: 300,
    draw: t => dark().map((c, i) => Math.min(i, leds - i) / leds * 2 <= t / 250 ? scale(cyan, 0.8) : c)},
  {name: "listening", tells: "It listens: speak", most: 60000, moves: 0, draw: () => filled(scale(cyan, 0.6))},
  {name: "follow-up", tells: "It still listens, in case there is more", most: 60000, moves: Infinity,
    draw: t => filled(scale(cyan, 0.15 + 0.15 * wave(t, 2000)))},
  {name: "thinking", tells: "It works on the answer", muted: true, most: 300000, moves: Infinity,
    draw: t => comet(cyan, t, 1200).map((c, i) => plus(c, comet(white, t, 1200, 0.5)[i]))},
  {name: "speaking", tells: "It speaks", muted: true, most: 900000, moves: 0, draw: () => filled(scale(green, 0.7))},
  {name: "error", tells: "The turn failed", muted: true, most: 3000, moves: 1300, draw: (t, a) => {
    const [c, blinks] = errors[a.kind] || [orange, 1];
    if (t >= blinks * 400) return dark().map((d, i) => i % 2 ? d : scale(c, 0.5));
    return t % 400 < 200 ? filled(c) : dark();
  }},
  {name: "no microphone", tells: "Nothing can be heard", moves: 5000,
    draw: t => t >= 5000 || t % 1000 < 500 ? pair(scale(red, 0.5), 3) : dark()},
  {name: "no server", tells: "The model's server can't be reached", moves: 3000,
    draw: t => dark().map((c, i) => i === leds / 2 ? scale(orange, t < 3000 ? 0.5 + 0.5 * wave(t, 1000) : 0.5) : c)},
  {name: "private chat", tells: "What is said is kept in a private chat", moves: 0, draw: () => pair(scale(violet, 0.4), 0)},
  {name: "timer running", tells: "A timer runs", moves: 0, every: 1000, draw: (t, a) => arc(scale(amber, 0.35), (a.left - t) / a.total)},
  {name: "idle", tells: "It waits for its wake word", moves: 0, draw: dark},
];
const rungs = Object.fromEntries(ladder.map(r => [r.name, r]));

// Ring draws on an svg element, and says in text what it shows.
export class Ring {
  #claims = new Map([["idle", {since: 0, ends: Infinity, args: {}}]]);
  #muted = false;
  #lights = [];
  #node;
  #text;
  #frame = 0;
  #timer = 0;
  #still = matchMedia("(prefers-reduced-motion: reduce)");

  constructor(node, text) {
    this.#node = node;
    this.#text = text;
    node.append(svg("circle", {r: "46", class: "rim"}));
    for (let i = 0; i < leds; i++) {
      const angle = 2 * Math.PI * i / leds;
      const light = svg("circle", {cx: (46 * Math.sin(angle)).toFixed(2), cy: (-46 * Math.cos(angle)).toFixed(2), r: "6.5"});
      this.#lights.push(light);
      node.append(light);
    }
    this.#draw();
  }

  show(name, args = {}, least = 0) {
    const now = performance.now();
    const held = this.#claims.get(name);
    const since = held && held.ends > now && name !== "timer running" ? held.since : now;
    this.#claims.set(name, {since, ends: now + (least || rungs[name].most || Infinity), args});
    this.#draw();
  }

  hide(...names) {
    for (const name of names) this.#claims.delete(name);
    this.#draw();
  }

  mute(muted) {
    this.#muted = muted;
    this.#draw();
  }

  // state shows what a turn is at.
  state(to) {
    const turn = {listening: "listening", follow_up: "follow-up", thinking: "thinking", speaking: "speaking"};
    for (const name of Object.values(turn)) if (name !== turn[to]) this.#claims.delete(name);
    if (to !== "listening" && to !== "follow_up") this.#claims.delete("waking");
    if (turn[to]) this.show(turn[to]);
    else this.#draw();
  }

  #draw() {
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
    const now = performance.now();
    const rung = ladder.find(r => {
      const c = this.#claims.get(r.name);
      if (c && c.ends <= now) this.#claims.delete(r.name);
      return c && c.ends > now;
    });
    const {since, ends, args} = this.#claims.get(rung.name);
    const t = now - since;
    let colors = !this.#muted || rung.muted ? rung.draw(this.#still.matches ? Math.max(t, rung.moves < Infinity ? rung.moves : 600) : t, args) : dark();
    if (this.#muted) colors = colors.map((c, i) => !rung.muted || i % 4 === 0 ? scale(red, 0.45) : c);
    colors.forEach((c, i) => {
      const text = `rgb(${c.map(Math.round).join(" ")})`;
      if (this.#lights[i].getAttribute("fill") !== text) this.#lights[i].setAttribute("fill", text);
    });
    const tells = this.#muted ? "The microphone is muted" + (rung.muted ? "; " + rung.tells.charAt(0).toLowerCase() + rung.tells.slice(1) : "") : rung.tells;
    if (this.#text.textContent !== tells) {
      this.#text.textContent = tells;
      this.#node.setAttribute("aria-label", "The ring: " + tells);
    }
    if (t < rung.moves && !this.#still.matches) this.#frame = requestAnimationFrame(() => this.#draw());
    else if (ends < Infinity || rung.every) this.#timer = setTimeout(() => this.#draw(), Math.min(ends - now + 1, rung.every || Infinity));
  }
}
