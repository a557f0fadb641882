// The overview: what is written, how long it takes, what is refused, who is coherent, what needs you.

import { ask } from "/page/ask.js";
import { lines, strips } from "/page/charts.js";
import { count, empty, make, plural, section, span, tenth } from "/page/dom.js";
import { troubles } from "/page/health.js";
import { short } from "/page/view-jobs.js";

const RANGES = { "5m": [300, 1, "5 minutes"], "15m": [900, 1, "15 minutes"], "6h": [21600, 60, "6 hours"], "24h": [86400, 60, "24 hours"] };
const CODES_SHOWN = 4;
const JOBS_SHOWN = 3;

const range = () => RANGES[new URLSearchParams(location.search).get("range")] || RANGES["5m"];

export async function read(detail, before) {
  return counted(before, range());
}

// What was counted, and only what is new of it: windows are kept from one look to the next.
export async function counted(before, [length, step]) {
  const same = before.step === step && before.windows ? before.windows : [];
  const known = same.length > 2 ? same[same.length - 3].from_s : 0;
  const told = await ask(`/api/activity?window=${step}&after=${known}`);
  const fresh = new Map(told.windows.map((one) => [one.from_s, one]));
  const kept = same.filter((one) => !fresh.has(one.from_s) && one.from_s > told.newest_s - 86400);
  const windows = [...kept, ...fresh.values()].sort((a, b) => a.from_s - b.from_s);
  return { ...told, windows, step, length };
}

export const partly = true;

export function within(data) {
  const now = Date.now() / 1000;
  const until = data.windows.length && now - data.newest_s > 3600 ? data.newest_s : now;
  const times = { from: until - data.length, until, step: data.step };
  return [times, data.windows.filter((one) => one.from_s >= times.from - data.step)];
}

export function view(state, data) {
  const found = troubles(state);
  const running = state.jobs.filter((job) => !["succeeded", "failed", "cancelled"].includes(job.status));
  return [
    make("h1", {}, "Overview"),
    tiles(state),
    found.length ? section("look-at", "To look at", make("ul", { class: "troubles" },
      found.slice(0, 12).map(([tone, words]) => make("li", { class: tone }, words)))) : null,
    running.length ? section("running", "Schema changes under way", running.slice(0, JOBS_SHOWN).map(short)) : null,
    data.windows ? series(data) : null,
  ];
}

function tiles(state) {
  const { log, rates } = state;
  const waiting = state.lanes.map((one) => one.waiting).reduce((a, b) => a + b, 0);
  const coherent = state.nodes.filter((node) => node.coherency === "coherent").length;
  const tile = (name, value, words) => make("div", { class: "tile", "data-key": name },
    make("span", { class: "name" }, name), make("b", {}, value), make("small", {}, words));
  return make("section", { class: "tiles", "aria-label": "At present" },
    tile("commits / s", tenth(rates.committed_per_second), rates.refused_per_second ? `${tenth(rates.refused_per_second)} refused / s` : "over the last 5 s"),
    tile("LSN", count(log.lsn), `log offset ${count(log.offset)}${waiting ? ` · ${count(waiting)} waiting` : ""}`),
    tile("master", log.master || "none", log.epoch ? `epoch ${log.epoch}` : "no epoch claimed yet"),
    tile("coherent nodes", `${coherent} of ${state.nodes.length}`, plural(state.tables_there, "table")),
    tile("lease ledger", state.ledger.state, plural(state.ledger.sessions.length, "agent session")),
    tile("dead letters", count(rates.dead_lettered), "since this dashboard looks"));
}

export function ranges(path) {
  const chosen = new URLSearchParams(location.search).get("range") || "5m";
  return make("p", { class: "ranges" }, Object.entries(RANGES).map(([name, [, , words]]) =>
    make("a", { href: `${path}?range=${name}`, "data-view": true, "aria-current": name === chosen ? "true" : null }, words)));
}

// What is said where there is nothing to draw, or it is old.
export function noSeries(data) {
  if (!data.on) return empty("Nothing is counted here: this dashboard was started without its counts.");
  if (!data.windows.length) return empty(data.trouble ? `Nothing is counted yet: ${data.trouble}` : "Nothing is counted yet: the first window is shown once it is over.");
  if (data.stale) {
    const ago = span(Date.now() - 1000 * data.newest_s);
    return make("p", { class: "stale-note" }, `The newest window is ${ago} old${data.trouble ? `: ${data.trouble}` : ""}. Nothing newer has been counted; it says nothing about the database.`);
  }
  return null;
}

function series(data) {
  const [times, windows] = within(data);
  const each = data.step === 1 ? 1 : 60;
  const rate = (value) => value / each;
  const names = [...new Set(windows.flatMap((one) => one.coherent))].sort();
  return section("series", "In the course of time", ranges("/"), noSeries(data), windows.length ? make("div", { class: "charts" },
    part("Writes per second", lines({ name: "writes", label: "Commits and refusals per second", windows, times, stacked: true, series: [
      { name: "committed", tone: "t1", of: (one) => rate(one.commits) },
      { name: "refused", tone: "t3", of: (one) => rate(sum(Object.values(one.refused))) }] })),
    part("From request to decision, in ms", lines({ name: "decided", label: "Milliseconds from a request's id to its place in the log", windows, times, series: [
      { name: "p50", tone: "t1", of: (one) => one.decided_ms.p50 }, { name: "p95", tone: "t2", of: (one) => one.decided_ms.p95 },
      { name: "p99", tone: "t3", of: (one) => one.decided_ms.p99 }] })),
    part("Refusals by kind, per second", refusals(windows, times, rate)),
    part("Who was coherent", names.length ? strips({ name: "coherency", label: "Coherent nodes by time", windows, times, names, of: (one) => one.coherent }) : empty("No node held a coherency lease in this time."))) : null);
}

const part = (title, drawn) => make("div", { class: "part", "data-key": title }, make("h3", {}, title), drawn);
const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);

export function refusals(windows, times, rate) {
  const totals = {};
  for (const one of windows) for (const [code, number] of Object.entries(one.refused)) totals[code] = (totals[code] || 0) + number;
  const codes = Object.keys(totals).sort((a, b) => totals[b] - totals[a]);
  if (!codes.length) return empty("Nothing was refused in this time.");
  const shown = codes.slice(0, CODES_SHOWN);
  const all = shown.map((code, n) => ({ name: `${code} (${count(totals[code])})`, tone: `t${n + 1}`, of: (one) => rate(one.refused[code] || 0) }));
  if (codes.length > shown.length) {
    all.push({ name: "others", tone: "t5", of: (one) => rate(sum(Object.entries(one.refused).filter(([code]) => !shown.includes(code)).map(([, number]) => number))) });
  }
  return lines({ name: "refusals", label: "Refusals per second by SQLSTATE", windows, times, stacked: true, series: all });
}
