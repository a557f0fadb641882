// Tables: all of them; and one, with the elements of both living versions and who holds which.

import { ask } from "/page/ask.js";
import { address, clock, code, count, day, empty, link, make, pill, plural, section, soft, span, table } from "/page/dom.js";

const TONES = { public: "good", "write-only": "warn", "delete-only": "warn", absent: "plain" };
const KINDS = { columns: "column", indexes: "index", checks: "check", foreign_keys: "foreign key", locks: "lock" };
const EVENTS_SHOWN = 14;
const filter = { words: "" };

export async function read(detail) {
  return detail === null ? {} : { table: await ask(`/api/tables/${encodeURIComponent(detail)}`) };
}

export function view(state, data, detail) {
  return detail === null ? all(state) : one(state, data.table);
}

const elements = (told) => Object.entries(KINDS).flatMap(([name, kind]) => told[name].map((each) => ({ ...each, kind })));

function all(state) {
  const held = new Map(state.leases.map((lease) => [lease.table_id, lease]));
  const shown = state.tables.filter((each) => each.table.toLowerCase().includes(filter.words.toLowerCase()));
  const more = state.tables_there - state.tables.length;
  return [
    make("h1", {}, "Tables"),
    section("tables", `${plural(state.tables_there, "table")}`,
      make("p", { "data-key": "filter" }, make("label", {}, "Filter ", make("input", { type: "search", "data-own": true, "data-oninput": "filter", value: filter.words }))),
      !state.tables.length ? empty("No table yet. Try ", 'leasehold ddl "CREATE TABLE …"') : null,
      state.tables.length && !shown.length ? empty("No table has that in its name.") : null,
      shown.length ? table("tables", "Tables", ["table", ">version", "on their way", "held", ">row images, about", "feed"], shown.map((each) => row(state, each, held.get(each.table_id)))) : null,
      more > 0 ? empty(`… and ${count(more)} more: `, "leasehold versions") : null),
    section("events", "Version events", events(state)),
  ];
}

function row(state, each, lease) {
  const moving = elements(each).filter((element) => element.state !== "public");
  return { key: `table-${each.table_id}`, cells: [
    make("div", {}, link(address("tables", each.table), each.table), each.former_name ? soft(` until now ${each.former_name}`) : null, make("br"),
      make("small", {}, `${plural(each.columns.length, "column")}, ${plural(each.indexes.length, "index", "indexes")}`)),
    `v${each.version}`,
    moving.length ? make("div", {}, moving.slice(0, 6).flatMap((element) => [`${element.name} `, pill(element.state, TONES[element.state] || "warn"), " "])) : "–",
    versions(lease), count(each.rows_about), feed(state, each.table)] };
}

const versions = (lease) => (lease && lease.versions.length
  ? make("div", {}, lease.versions.map((one) => [pill(`v${one.version} × ${one.leases}`, one.old ? "warn" : "good"), " "]))
  : soft("nobody holds one"));

function feed(state, name) {
  const found = state.changefeed && state.changefeed.feeds.find((each) => [name, `public.${name}`].includes(each.table));
  return found ? pill(found.status, found.status === "running" ? "good" : "") : "–";
}

function events(state) {
  if (!state.versions.length) return empty("No version has been published yet.");
  return table("events", "Version events", ["time", "table", "what changed", ">LSN", "job"],
    state.versions.slice(0, EVENTS_SHOWN).map((event) => ({ key: `event-${event.table_id}-${event.version}`, cells: [
      clock(event.commit_us), link(address("tables", event.table), `${event.table} v${event.version}`),
      event.words.length > 4 && event.version === 1 ? `created with ${plural(event.words.length, "element")}` : event.words.join("; ") || "no element changed",
      count(event.lsn), event.job ? link(address("jobs", event.job), `job ${event.job}`) : "–"] })));
}

function one(state, told) {
  const { newest, before } = told;
  const running = state.jobs.filter((job) => job.table_id === newest.table_id && !["succeeded", "failed", "cancelled"].includes(job.status));
  return [
    make("p", { class: "back" }, link("/tables", "← all tables")),
    make("h1", {}, newest.table),
    section("what", "What it is",
      make("p", {}, `Version ${newest.version}, ${newest.state}, published at LSN ${count(newest.lsn)} (${day(newest.commit_us)}). Key: `, code(newest.primary_key.join(", ") || "none"),
        `. About ${count(newest.rows_about)} row images are kept.`),
      newest.former_name ? make("p", {}, `Until now it was called ${newest.former_name}.`) : null,
      make("p", {}, told.feed ? [`Feed ${told.feed.table}: `, pill(told.feed.status), ` ${told.feed.words}`] : soft("It has no feed.")),
      running.map((job) => make("p", {}, link(address("jobs", job.job), `Job ${job.job}`), ` changes it: `, code(job.sql), job.waits_for.length ? make("span", { class: "waits" }, ` waits: ${job.waits_for[0]}`) : null))),
    section("elements", told.before_lives ? "Elements in both living versions" : "Elements",
      told.trouble ? make("p", { class: "stale-note" }, `The version before can't be read now: ${told.trouble}`) : null,
      table("elements", "Elements", ["element", "kind", ...(before ? [`in v${before.version}${told.before_lives ? "" : " (nobody is on it)"}`] : []), `in v${newest.version}`, "definition"], both(newest, before))),
    section("holders", "Who holds which version", holders(told.leases)),
  ];
}

function both(newest, before) {
  const now = new Map(elements(newest).map((each) => [`${each.kind}-${each.id}`, each]));
  const then = new Map((before ? elements(before) : []).map((each) => [`${each.kind}-${each.id}`, each]));
  const state = (each) => (each ? pill(each.state, TONES[each.state] || "") : soft("not there"));
  return [...new Set([...then.keys(), ...now.keys()])].map((key) => {
    const each = now.get(key) || then.get(key);
    const changed = before && (now.get(key) || {}).state !== (then.get(key) || {}).state;
    return { key: `element-${key}`, cells: [changed ? make("b", {}, each.name) : each.name, each.kind, ...(before ? [state(then.get(key))] : []), state(now.get(key)), code(each.definition)] };
  });
}

export function holders(lease) {
  if (!lease || !lease.versions.length) return empty("Nobody holds a version: no agent reads this table now.");
  return lease.versions.map((version) => make("div", { class: "held", "data-key": `v${version.version}` },
    make("p", {}, pill(`v${version.version} × ${version.leases}`, version.old ? "warn" : "good"), version.old ? " an older version, held by " : " held by ",
      [...new Set(version.agents)].sort().slice(0, 24).join(", ") || "agents that the ledger did not name"),
    version.holders.slice(0, 12).map((each) => make("p", { class: "waits" }, `${each.agent} (${each.state})${each.old_ms === null ? "" : ` for ${span(each.old_ms)}`}`,
      each.work.slice(0, 3).map((work) => [" · ", code(work.sql || work.label || "unnamed work"), ` (${span(work.age_ms)})`])))));
}

export const actions = {
  filter: (field, { redraw }) => {
    filter.words = field.value;
    redraw();
  },
};
