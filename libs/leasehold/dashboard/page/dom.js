// Elements, and how a new picture of a page takes the place of the old one. Text only ever goes in as
// text nodes: names come from strangers.

export function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === null || value === undefined) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(2)) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
  return element;
}

export function draw(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children.flat(2)) if (child !== null && child !== undefined) element.append(child);
  return element;
}

// Changes `old` into `wanted` in place, so that focus, selections and what is being typed stay. What
// stands under a `data-key` stays itself wherever it moves; what has `data-own` is left alone.
export function patch(old, wanted) {
  if (old.nodeType !== wanted.nodeType || old.nodeName !== wanted.nodeName || keyOf(old) !== keyOf(wanted)) {
    old.replaceWith(wanted);
    return wanted;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== wanted.data) old.data = wanted.data;
    return old;
  }
  if (old.nodeType !== Node.ELEMENT_NODE || old.hasAttribute("data-own")) return old;
  for (const { name } of [...old.attributes]) {
    if (name !== "style" && !wanted.hasAttribute(name) && !(name === "open" && old.nodeName === "DETAILS")) old.removeAttribute(name);
  }
  for (const { name, value } of [...wanted.attributes]) {
    // A style is set by its properties: as an attribute the content security policy forbids it.
    if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  patchStyle(old, wanted);
  patchChildren(old, [...wanted.childNodes]);
  return old;
}

const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") : null);

function patchStyle(old, wanted) {
  for (const name of ["width", "left"]) {
    if (old.style && old.style[name] !== wanted.style[name]) old.style[name] = wanted.style[name];
  }
}

function patchChildren(old, wanted) {
  const byKey = new Map();
  for (const child of old.childNodes) if (keyOf(child)) byKey.set(keyOf(child), child);
  let at = old.firstChild;
  for (const child of wanted) {
    const key = keyOf(child);
    const same = key ? byKey.get(key) : at && !keyOf(at) ? at : null;
    if (!same) {
      old.insertBefore(child, at);
      continue;
    }
    if (same !== at) old.insertBefore(same, at);
    const made = patch(same, child);
    at = made.nextSibling;
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

// ------------------------------------------------------------ numbers and times

export const count = (value) => Math.round(value).toLocaleString("en-US");
export const tenth = (value) =>
  value >= 100 ? count(value) : (Math.round(value * 10) / 10).toLocaleString("en-US");
export const plural = (number, word, words) => `${count(number)} ${number === 1 ? word : words || `${word}s`}`;

export function span(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  while (value >= 1024 && at < units.length - 1) {
    value /= 1024;
    at += 1;
  }
  return `${at ? value.toFixed(1) : value} ${units[at]}`;
}

export const clock = (us) => (us > 0 ? new Date(us / 1000).toLocaleTimeString("en-GB") : "–");
export const day = (us) => (us > 0 ? new Date(us / 1000).toLocaleString("en-GB") : "–");

// ------------------------------------------------------------ common parts

export const pill = (words, tone) => make("span", { class: `pill ${tone || ""}` }, words);
export const soft = (...words) => make("span", { class: "soft" }, ...words);
export const code = (words) => make("code", {}, words);
export const empty = (words, command) => make("p", { class: "empty" }, words, command ? code(command) : null);
export const link = (address, words, key) => make("a", { href: address, "data-view": true, "data-key": key }, words);
export const address = (...parts) => parts.map((part) => `/${encodeURIComponent(part)}`).join("");

export function section(name, title, ...children) {
  return make("section", { "data-key": name, "aria-labelledby": `${name}-title` },
    make("h2", { id: `${name}-title` }, title), ...children);
}

// Heads that start with ">" are numbers; { text } is a head as it is. A row is its cells, or { key, cells }.
export function table(name, label, titles, rows) {
  const heads = titles.map((title) => (typeof title === "string" ? { text: title.replace(/^>/, ""), number: title.startsWith(">") } : title));
  const line = make("tr");
  for (const head of heads) line.append(make("th", { scope: "col", class: head.number ? "number" : null }, head.text));
  const body = make("tbody");
  for (const row of rows) {
    const cells = row.cells || row;
    const drawn = make("tr", { "data-key": row.key });
    cells.forEach((cell, n) => drawn.append(make("td",
      { class: heads[n].number ? "number" : null, "data-head": heads[n].text }, cell)));
    body.append(drawn);
  }
  return make("div", { class: "scroll", role: "region", "aria-label": `${label}: table`, tabindex: "0" },
    make("table", { class: name }, make("thead", {}, line), body));
}

export function button(words, action, fields, more) {
  return make("button", { type: "button", "data-do": action, "data-fields": JSON.stringify(fields || {}),
    "data-key": `${action}-${JSON.stringify(fields || {})}`, ...more }, words);
}
