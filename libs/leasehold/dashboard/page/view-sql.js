// SQL in the user's name: reads only, unless he says otherwise.

import { may, send, session } from "/page/ask.js";
import { code, count, empty, make, pill, section, soft, span, table } from "/page/dom.js";

const console_ = { told: null, running: false, error: null };

export function view() {
  return [
    make("h1", {}, "SQL"),
    make("section", { "data-key": "ask", "aria-label": "Statement" }, may() ? asking() : make("div", {},
      empty(session.there ? "Statements run in your name: sign in first." : "No SQL node is named: set LEASEHOLD_SQL_HOST and LEASEHOLD_SQL_PORT of the dashboard."),
      session.there ? make("div", { class: "buttons" }, make("button", { type: "button", "data-do": "sign-in", class: "main" }, "Sign in for SQL")) : null)),
    console_.running ? make("section", { "data-key": "running" }, make("p", {}, pill("running"), " at most one minute; ", make("button", { type: "button", "data-do": "cancel" }, "Cancel"))) : null,
    console_.error ? make("section", { class: "error", role: "alert", "data-key": "error" }, make("h2", {}, "It was not run"), make("p", {}, console_.error)) : null,
    console_.told ? answer(console_.told) : null,
  ];
}

function asking() {
  return make("div", { "data-key": "asking" },
    make("label", { for: "sql-text" }, `Statement, as ${session.user} on node ${session.node}`),
    make("textarea", { id: "sql-text", rows: "6", spellcheck: "false", "data-own": true }, new URLSearchParams(location.search).get("q") || ""),
    make("div", { class: "buttons" }, make("button", { type: "button", "data-do": "run", class: "main", title: "Ctrl Enter" }, "Run"),
      make("label", { class: "check" }, make("input", { type: "checkbox", id: "sql-writes", "data-own": true }), " may write"),
      soft("Without the tick it runs read-only. At most 1,000 rows are shown.")));
}

function answer(told) {
  const parts = told.results.map((result, n) => make("section", { "data-key": `result-${n}`, "aria-label": `Result ${n + 1}` },
    result.columns.length ? table("result", `Result ${n + 1}`, result.columns.map((text) => ({ text })), result.rows.map((row) => row.map((value) => (value === null ? soft("NULL") : value)))) : null,
    make("p", { class: "soft" }, `${result.tag || "ended"}${result.cut ? ` · cut: ${count(result.rows.length)} rows are shown` : ""}`)));
  if (told.error) {
    const { error } = told;
    parts.push(make("section", { class: "error", role: "alert", "data-key": "refused" }, make("h2", {}, `Refused with ${error.sqlstate}`), make("p", {}, error.message),
      error.detail ? make("p", {}, error.detail) : null, error.hint ? make("p", {}, `Hint: ${error.hint}`) : null, error.position ? make("p", {}, "At character ", code(error.position)) : null));
  }
  const notes = told.notices.map((notice) => make("p", {}, `${notice.severity || "NOTICE"}: ${notice.message}`));
  return [...parts, make("section", { "data-key": "notes" }, notes, told.rolled_back ? make("p", { class: "waits" }, "The transaction was left open, so it was rolled back.") : null, make("p", { class: "soft" }, `Took ${span(told.took_ms)}.`))];
}

async function run(context) {
  const field = document.getElementById("sql-text");
  if (!field || console_.running || !field.value.trim()) return;
  Object.assign(console_, { running: true, error: null, told: null });
  context.redraw();
  try {
    console_.told = await send("/api/sql/run", { sql: field.value, writes: document.getElementById("sql-writes").checked });
  } catch (error) {
    console_.error = error.message;
  }
  console_.running = false;
  context.read();
}

export const actions = {
  run: (fields, context) => run(context),
  cancel: async (fields, { say }) => {
    try {
      const told = await send("/api/sql/cancel", {}, 15000);
      say(told.cancelled ? "It is asked to end." : "Nothing ran any more.");
    } catch (error) {
      say(error.message, "bad");
    }
  },
};

export function keydown(event, context) {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return false;
  event.preventDefault();
  run(context);
  return true;
}
