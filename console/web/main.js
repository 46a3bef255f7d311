// The page: which part of it shows, whether the speaker can be reached, and the token.

import {byID, note} from "./dom.js";
import {follow, onTokenWanted} from "./api.js";
import * as now from "./now.js";
import * as chats from "./chats.js";
import * as plugins from "./plugins.js";
import * as timers from "./timers.js";
import * as models from "./models.js";

const parts = {now, chats, plugins, timers, models};
let shown = "";

function banner(text) {
  const b = byID("banner");
  if (b.textContent !== text) b.textContent = text;
  b.hidden = !text;
}

// show shows the part that the address names, as it is now.
async function show(focus) {
  if (location.hash === "#main") return; // the link that skips
  const wanted = location.hash.slice(2); // after "#/", which is the name of no element to scroll to
  shown = parts[wanted] ? wanted : "now";
  for (const name of Object.keys(parts)) {
    byID(name).hidden = name !== shown;
    const link = document.querySelector(`nav a[href="#/${name}"]`);
    if (name === shown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  scrollTo(0, 0);
  if (focus) byID("main").focus({preventScroll: true});
  if (shown !== "now") await reload(shown);
}

async function reload(name) {
  const part = parts[name];
  const body = document.querySelector(`#${name} .body`);
  try {
    await part.load(body);
  } catch (err) {
    if (body) body.textContent = err.message;
    else banner(err.message);
  }
}

function askForToken(wrong) {
  const login = byID("login"), form = byID("login-form"), token = byID("token");
  note(byID("login-note"), wrong, true);
  token.value = "";
  if (!login.open) login.showModal();
  return new Promise(done => {
    form.onsubmit = e => {
      e.preventDefault();
      login.close();
      done(token.value.trim());
    };
  });
}

onTokenWanted(askForToken);
byID("login").addEventListener("cancel", e => e.preventDefault()); // there is nothing to see without
now.start();
addEventListener("hashchange", () => show(true));
show(false);

follow((kind, fact) => {
  now.tell(kind, fact);
  if (kind === "timer_changed" && shown === "timers") reload("timers");
  if (kind === "provider_switched" && shown === "models") reload("models");
}, async up => {
  document.body.classList.toggle("away", !up);
  if (!up) {
    banner("The speaker can't be reached. Trying again…");
    return;
  }
  banner("");
  await reload("now");
  if (shown !== "now" && !document.querySelector(`#${shown} .body`).contains(document.activeElement)) await reload(shown);
  performance.mark("ready"); // all that is to see is there, and everything can be used
});
