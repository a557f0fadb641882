// Conflicts: requests that met another row than they had seen, by what became of them and by row.

import { lines } from "/page/charts.js";
import { address, code, count, empty, link, make, section, soft, span, table } from "/page/dom.js";
import { counted, noSeries, ranges, refusals, within } from "/page/view-overview.js";

const RANGES = { "5m": [300, 1], "15m": [900, 1], "6h": [21600, 60], "24h": [86400, 60] };
const TABLES_SHOWN = 20;

export async function read(detail, before) {
  return counted(before, RANGES[new URLSearchParams(location.search).get("range")] || RANGES["5m"]);
}

export function view(state, data) {
  const [times, windows] = within(data);
  const each = data.step === 1 ? 1 : 60;
  const rate = (value) => (value || 0) / each;
  const names = new Map(state.tables.map((one) => [one.table_id, one.table]));
  const name = (id) => (names.has(id) ? link(address("tables", names.get(id)), names.get(id)) : `table ${id}`);
  return [
    make("h1", {}, "Conflicts"),
    section("course", "In the course of time", ranges("/conflicts"), noSeries(data), windows.length ? make("div", { class: "charts" },
      make("div", { class: "part" }, make("h3", {}, "What became of refused requests, per second"), lines({ name: "outcomes", label: "Refused requests per second by what became of them", windows, times, stacked: true, series: [
        { name: "to be replayed", tone: "t1", of: (one) => rate(one.dispositions.replay) }, { name: "for Spark to retry", tone: "t2", of: (one) => rate(one.dispositions.conflict) },
        { name: "final", tone: "t3", of: (one) => rate(one.dispositions.final) }, { name: "dead letters", tone: "t4", of: (one) => rate(one.dispositions.dead_letter) }] })),
      make("div", { class: "part" }, make("h3", {}, "Commits at a later attempt, per second"), lines({ name: "retried", label: "Commits per second that had been refused before", windows, times, stacked: true, series: [{ name: "retried", tone: "t1", of: (one) => rate(one.retried) }] })),
      make("div", { class: "part" }, make("h3", {}, "By SQLSTATE, per second"), refusals(windows, times, rate))) : null),
    section("hot", "Hot rows, last hour", data.hot.length ? table("hot", "Rows that refuse requests most", ["table", "row", ">requests refused"], data.hot.map((row) => ({ key: `hot-${row.table}-${row.key}`, cells: [
      link(address("tables", row.table), row.table), code(row.key), row.at_most_over ? `${count(row.refusals)} (at most ${count(row.at_most_over)} too many)` : count(row.refusals)] })))
      : empty("No row has refused a request with a verify error in this hour.")),
    section("written", "Most written tables", written(windows, name)),
    section("steps", "Phases of schema changes, last hour", steps(data)),
  ];
}

function written(windows, name) {
  const totals = new Map();
  for (const one of windows) {
    for (const [id, [commits, rows]] of Object.entries(one.tables)) {
      const held = totals.get(id) || [0, 0];
      totals.set(id, [held[0] + commits, held[1] + rows]);
    }
  }
  const ranked = [...totals].sort((a, b) => b[1][0] - a[1][0]).slice(0, TABLES_SHOWN);
  if (!ranked.length) return empty("Nothing was written in this time.");
  return table("written", "Most written tables", ["table", ">commits", ">rows"], ranked.map(([id, [commits, rows]]) => ({ key: `written-${id}`, cells: [id === "others" ? soft("all others") : name(Number(id)), count(commits), count(rows)] })));
}

function steps(data) {
  const totals = new Map();
  for (const one of data.steps) {
    for (const [phase, told] of Object.entries(one.phases)) {
      const held = totals.get(phase) || [0, 0, 0];
      totals.set(phase, [held[0] + told.count, held[1] + told.count * told.mean_ms, Math.max(held[2], told.longest_ms)]);
    }
  }
  if (!totals.size) return empty("No phase of a schema change has ended in this hour.");
  return table("phases", "Phases", ["phase", ">ended", ">mean", ">longest"], [...totals].map(([phase, [number, total, longest]]) => [phase, count(number), span(total / number), span(longest)]));
}
