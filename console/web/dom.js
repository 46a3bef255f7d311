// Making elements. Text from elsewhere only ever becomes text nodes and attributes that can't run: there is no markup.

// el makes an element. attrs whose name begins with "on" are listeners, other than strings are properties; children are
// nodes or text, and what is null, undefined or false is left out.
export function el(tag, attrs = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (typeof value === "string") node.setAttribute(name, value);
    else node[name] = value;
  }
  add(node, children);
  return node;
}

const svgSpace = "http://www.w3.org/2000/svg";

// svg makes an element of a drawing.
export function svg(tag, attrs = {}, ...children) {
  const node = document.createElementNS(svgSpace, tag);
  for (const [name, value] of Object.entries(attrs)) node.setAttribute(name, value);
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

export const byID = id => document.getElementById(id);

let lastID = 0;

// field is a control with its label, and what it does below.
export function field(label, control, help) {
  if (!control.id) control.id = "f" + ++lastID;
  const parts = [el("label", {for: control.id}, label), control];
  if (help) {
    const id = control.id + "-help";
    control.setAttribute("aria-describedby", id);
    parts.push(el("p", {id, class: "quiet"}, help));
  }
  return el("div", {class: "field"}, parts);
}

// check is a check box with its label behind it.
export function check(label, box, help) {
  const parts = [el("label", {class: "check"}, box, " ", label)];
  if (help) {
    box.id ||= "f" + ++lastID;
    const id = box.id + "-help";
    box.setAttribute("aria-describedby", id);
    parts.push(el("p", {id, class: "quiet"}, help));
  }
  return el("div", {class: "field"}, parts);
}

// note shows in node how something went.
export function note(node, text, bad = false) {
  node.textContent = text;
  node.classList.toggle("bad", bad);
}

// doing does something that may fail, with its button out of use as long as it lasts, and shows how it went.
export async function doing(button, where, what, done = "") {
  button.disabled = true;
  note(where, "");
  try {
    await what();
    note(where, done);
  } catch (err) {
    note(where, err.message, true);
  } finally {
    button.disabled = false;
  }
}

// ms writes milliseconds.
export function ms(n) {
  if (n >= 10000) return (n / 1000).toFixed(1) + " s";
  return (n < 10 ? n.toFixed(1) : n.toFixed(0)) + " ms";
}
