// The API of the speaker: requests, and the events as they happen.

const tokenKey = "bellbird-token";

let askForToken = async () => null;

// onTokenWanted has f asked for a token when one is needed. It is told what was wrong with the last.
export function onTokenWanted(f) { askForToken = f; }

// A Refusal is an answer that isn't what was asked for.
export class Refusal extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

// Unreachable is thrown when there is no answer at all.
export class Unreachable extends Error {
  constructor() { super("The speaker can't be reached."); }
}

let asking = null; // while the user is asked for a token, everybody waits for the same answer

async function send(method, path, body, signal) {
  for (;;) {
    const token = sessionStorage.getItem(tokenKey);
    const headers = {};
    if (token) headers.Authorization = "Bearer " + token;
    if (method !== "GET") headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, {method, headers, body: body === undefined ? undefined : JSON.stringify(body), signal, cache: "no-store"});
    } catch (err) {
      if (signal?.aborted) throw err;
      throw new Unreachable();
    }
    if (response.ok) return response;
    let text = response.statusText || "status " + response.status;
    try {
      text = (await response.json()).error || text;
    } catch { /* something on the way answered */ }
    if (response.status !== 401 && response.status !== 429) throw new Refusal(response.status, text);
    if (sessionStorage.getItem(tokenKey) !== token) continue; // somebody has entered another in the meantime
    asking ||= askForToken(token ? text : "").then(fresh => sessionStorage.setItem(tokenKey, fresh)).finally(() => { asking = null; });
    await asking;
  }
}

let skew = 0; // the speaker's clock less the browser's, in ms
let known = false; // from an event, which tells it better than an answer

// now is the time by the speaker's clock.
export const now = () => Date.now() + skew;

// request asks for something, and returns what the answer says, or null.
export async function request(method, path, body) {
  const response = await send(method, path, body);
  const date = Date.parse(response.headers.get("Date"));
  if (date && !known && Math.abs(date - now()) > 5000) skew = date - Date.now();
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

export const get = path => request("GET", path);
export const put = (path, body) => request("PUT", path, body);
export const post = (path, body = {}) => request("POST", path, body);
export const remove = path => request("DELETE", path);

// at is a path with names of any characters in it.
export const at = (strings, ...names) => String.raw({raw: strings}, ...names.map(encodeURIComponent));

const kinds = [
  "state_changed", "woke", "near_miss", "heard", "said", "turn_ended", "timer_changed", "volume_changed", "mute_changed", "privacy_changed",
  "provider_switched", "microphone_fault", "microphone_well", "loudspeaker_fault", "loudspeaker_well", "body_fault", "body_well",
  "hook_missed", "update_changed",
];

const silence = 40000; // ms: it says something every 15 seconds, so the connection is dead

// follow calls told with the kind and the fields of each event, for ever, and connected with whether it is connected. It
// asks again, the longer the less often, when the connection is lost. A browser's EventSource can't send a token.
export async function follow(told, connected) {
  for (let wait = 500; ; wait = Math.min(2 * wait, 8000)) {
    const control = new AbortController();
    let timer;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => control.abort(), silence);
    };
    try {
      alive();
      const response = await send("GET", "/api/events?" + kinds.map(k => "kind=" + k).join("&"), undefined, control.signal);
      wait = 500;
      connected(true);
      await read(response.body, alive, told);
    } catch (err) {
      if (err instanceof TypeError && !control.signal.aborted) console.debug(err);
    }
    clearTimeout(timer);
    connected(false);
    await new Promise(next => setTimeout(next, wait));
  }
}

// read reads server-sent events (WHATWG HTML, section 9.2) until there are no more.
async function read(body, alive, told) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    alive();
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0;) {
      const block = rest.slice(0, end);
      rest = rest.slice(end + 2);
      let kind = "", data = "";
      for (const line of block.split("\n")) {
        if (line.startsWith("event: ")) kind = line.slice(7);
        if (line.startsWith("data: ")) data += line.slice(6);
      }
      if (!kind) continue;
      const fact = JSON.parse(data);
      const time = Date.parse(fact.At);
      if (time > 0) {
        known = true;
        skew = time - Date.now();
      }
      told(kind, fact);
    }
  }
}
