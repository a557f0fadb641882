// Which view an address shows, when it is drawn, and what keys and buttons do.

import { ask, know, may, send, session } from "/page/ask.js";
import { count, empty, link, make, patch, span } from "/page/dom.js";
import { gaps, health } from "/page/health.js";
import * as conflicts from "/page/view-conflicts.js";
import * as jobs from "/page/view-jobs.js";
import * as leases from "/page/view-leases.js";
import * as letters from "/page/view-letters.js";
import * as nodes from "/page/view-nodes.js";
import * as overview from "/page/view-overview.js";
import * as sql from "/page/view-sql.js";
import * as tables from "/page/view-tables.js";

const EVERY_MS = 500;
const VIEWS = [
  ["/", "Overview", overview], ["/tables", "Tables", tables], ["/jobs", "Jobs", jobs], ["/nodes", "Nodes", nodes],
  ["/leases", "Leases", leases], ["/dead-letters", "Dead letters", letters], ["/conflicts", "Conflicts", conflicts],
  ["/sql", "SQL", sql],
];

const at = (id) => document.getElementById(id);
const page = { state: null, read_ms: 0, failed: null, view: null, detail: null, data: {}, error: null, number: 0 };

// ------------------------------------------------------------ addresses

function found(path) {
  const [, first, second] = path.split("/");
  const place = VIEWS.findIndex(([each]) => each === `/${first}`);
  return [VIEWS[Math.max(0, place)], second ? decodeURIComponent(second) : null];
}

function show() {
  const [view, detail] = found(location.pathname);
  if (page.view !== view || page.detail !== detail) {
    page.data = {};
    page.error = null;
    at("view").replaceChildren(empty("Loading …"));
  }
  Object.assign(page, { view, detail, number: page.number + 1 });
  document.title = `${detail ? `${detail} · ` : ""}${view[1]} · Leasehold${page.state ? ` ${page.state.database}` : ""}`;
  at("nav").replaceChildren(...VIEWS.map(([address, words], n) => make("li", {},
    make("a", { href: address, "data-view": true, "aria-current": address === view[0] ? "page" : null, title: `key ${n + 1}` }, words))));
  read();
}

function go(address) {
  history.pushState(null, "", address);
  show();
  at("view").focus({ preventScroll: true });
  scrollTo(0, 0);
}

// ------------------------------------------------------------ reading and drawing

let reading = false;
let again = false;

async function read() {
  if (reading) {
    again = true;
    return;
  }
  reading = true;
  const { view, detail, number } = page;
  try {
    const [state, data] = await Promise.all([ask("/api/state"),
      view[2].read ? view[2].read(detail, page.data).catch((error) => ({ error })) : {}]);
    Object.assign(page, { state, read_ms: Date.now(), failed: null });
    know(state);
    if (number === page.number) {
      page.error = data.error || null;
      if (!data.error) page.data = data;
    }
  } catch (error) {
    page.failed = error;
  }
  reading = false;
  redraw();
  if (again) {
    again = false;
    read();
  }
}

export function redraw() {
  const { state, view, detail, data, error } = page;
  const ago = span(Date.now() - page.read_ms);
  const failed = page.failed ? { ago: page.read_ms ? ago : "no time", why: page.failed.message } : null;
  head(state, failed ? ago : null);
  const said = gaps(state, failed);
  at("banner").hidden = !said.length;
  at("banner").textContent = said.join("\n");
  document.body.classList.toggle("stale", Boolean(failed) || Boolean(state && state.unreachable.kafka));
  if (!state) return;
  const wanted = make("main", { id: "view", tabindex: "-1" },
    error && !Object.keys(data).length && !view[2].partly ? make("h1", {}, detail || view[1]) : null,
    error ? make("section", { class: "error", role: "alert" }, make("h2", {}, "This can't be shown"), make("p", {}, error.message)) : null,
    error && !Object.keys(data).length && view[2].read && !view[2].partly ? null : view[2].view(state, data, detail));
  patch(at("view"), wanted);
}

function head(state, stale) {
  const [words, tone] = state ? health(state, stale) : ["no connection to the dashboard's server", "wait"];
  if (at("health").textContent !== words) at("health").textContent = words;
  at("health").dataset.tone = tone;
  if (!state) return;
  at("database").textContent = state.database;
  patch(at("who"), make("div", { id: "who" }, who(state)));
}

function who(state) {
  const parts = [];
  if (session.user) {
    parts.push(make("span", {}, `SQL as ${session.user}`), " ",
      make("button", { type: "button", "data-do": "sign-out" }, "Sign out"));
  } else if (session.there) parts.push(make("button", { type: "button", "data-do": "sign-in" }, "Sign in for SQL"));
  if (state.user !== null) {
    parts.push(make("form", { method: "post", action: "/log-out" }, make("span", {}, state.user), " ",
      make("button", { type: "submit" }, "Log out")));
  }
  return parts;
}

// ------------------------------------------------------------ what users do

function say(words, tone) {
  at("said").className = tone || "";
  at("said").textContent = words;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => at("said").replaceChildren(), 12000);
}

function signIn() {
  at("sign-in-said").textContent = "";
  at("sign-in-user").value = session.login || session.default_user;
  at("sign-in-user").readOnly = session.login !== null;
  at("sign-in-password").value = "";
  at("sign-in").showModal();
}

async function signInNow(event) {
  event.preventDefault();
  at("sign-in-said").textContent = "asking the node …";
  try {
    Object.assign(session, await send("/api/sql/sign-in",
      { user: at("sign-in-user").value, password: at("sign-in-password").value }, 60000));
    at("sign-in").close();
    say(`You are signed in as ${session.user}.`, "good");
    read();
  } catch (error) {
    at("sign-in-said").textContent = error.message;
  }
  at("sign-in-password").value = "";
}

function confirmed(title, words, yes) {
  return new Promise((resolve) => {
    at("confirm-title").textContent = title;
    at("confirm-words").textContent = words;
    at("confirm-yes").textContent = yes;
    const dialog = at("confirm");
    at("confirm-yes").onclick = () => dialog.close("yes");
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
    dialog.returnValue = "";
    dialog.showModal();
  });
}

// The fields of an action that are asked about before it is done.
const QUESTIONS = {
  cancel_job: (fields) => ["Cancel this job?", `Job ${fields.job} is rolled back; the table becomes as it was before.`, "Cancel the job"],
  end_session: (fields) => ["End this session?", `Session ${fields.pid} loses its connection; its transaction is rolled back.`, "End the session"],
  refuse_blockers: (fields) => ["Release the blockers?", `Whoever holds an older version for longer than a second has its lease refused, for job ${fields.job}: it lets go when its session ends.`, "Release them"],
  resubmit: (fields) => ["Submit it again?", `The request of dead letter ${fields.letter} is submitted under a new id, in your name.`, "Submit"],
};

let doing = Promise.resolve();

async function act(action, fields) {
  if (!may()) {
    signIn();
    return;
  }
  const question = QUESTIONS[action];
  if (question && !(await confirmed(...question(fields)))) return;
  const asked = action === "refuse_blockers"
    ? { action: "set_job", job: fields.job, setting: "cancel_blockers_after_ms", value: 1000 } : { action, ...fields };
  // One after the other: a connection does one thing at a time.
  const before = doing;
  let done;
  doing = new Promise((resolve) => {
    done = resolve;
  });
  await before;
  try {
    const told = await send("/api/act", asked);
    say(told.done ? `Done: ${told.statement}` : `There was nothing to do: ${told.statement}`, told.done ? "good" : "warn");
  } catch (error) {
    say(error.message, "bad");
  }
  done();
  read();
}

const OWN = {
  "sign-in": signIn,
  "sign-out": async () => {
    try {
      await send("/api/sql/sign-out");
      say("You are signed out.");
    } catch (error) {
      say(error.message, "bad");
    }
    read();
  },
};

const context = { act, say, redraw, signIn, read, go };

document.addEventListener("click", (event) => {
  const anchor = event.target.closest("a[data-view]");
  if (anchor && event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
    event.preventDefault();
    go(anchor.getAttribute("href"));
    return;
  }
  if (event.target.closest("[data-close]")) {
    event.target.closest("dialog").close("");
    return;
  }
  const pressed = event.target.closest("[data-do]");
  if (!pressed || pressed.disabled) return;
  const name = pressed.dataset.do;
  const fields = JSON.parse(pressed.dataset.fields || "{}");
  const handle = (page.view[2].actions || {})[name] || OWN[name];
  if (handle) handle(fields, context);
  else act(name, fields);
});

for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => {
    const name = event.target.dataset && event.target.dataset[`on${kind}`];
    if (name && page.view[2].actions[name]) page.view[2].actions[name](event.target, context);
  });
}

document.addEventListener("keydown", (event) => {
  if (page.view[2].keydown && page.view[2].keydown(event, context)) return;
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) return;
  const place = Number(event.key);
  if (place >= 1 && place <= VIEWS.length) go(VIEWS[place - 1][0]);
  else if (event.key === "/") {
    const field = document.querySelector("#view input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
    }
  } else if (event.key === "?") keys();
});

function keys() {
  const all = [...VIEWS.map(([, words], n) => [String(n + 1), words]), ["/", "Filter, where a page has one"],
    ["Ctrl Enter", "Run, on the page SQL"], ["?", "These keys"], ["Esc", "Close a dialog"]];
  at("keys-list").replaceChildren(...all.flatMap(([key, words]) => [make("dt", {}, make("kbd", {}, key)), make("dd", {}, words)]));
  at("keys").showModal();
}

at("sign-in-form").addEventListener("submit", signInNow);
addEventListener("popstate", show);

async function turn() {
  if (!reading) await read();
  setTimeout(turn, document.hidden ? 8 * EVERY_MS : EVERY_MS);
}

show();
turn();
