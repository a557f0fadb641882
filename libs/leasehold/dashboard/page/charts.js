// Charts in SVG, of a width of 600 units; whatever is said by a line is said in words beside it, too.

import { draw, make, tenth } from "/page/dom.js";

const WIDTH = 600;
const HEIGHT = 120;
const LEFT = 44;
const BOTTOM = 16;
const TOP = 6;

const timeOf = (from) => new Date(from * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });

function niceTop(most) {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 2, 5, 10].map((step) => step * power).find((top) => top >= most) || 10 * power;
}

// `windows`: what was counted, oldest first; `times`: { from, until, step } in seconds; `series`:
// [{ name, tone, of: window → number | null }]. Windows that are missing are gaps, not zeros.
export function lines({ name, label, windows, times, series, stacked }) {
  const totals = windows.map((one) => series.map((each) => each.of(one)));
  const most = Math.max(0, ...totals.map((values) =>
    stacked ? values.reduce((a, b) => a + (b || 0), 0) : Math.max(0, ...values.map((value) => value || 0))));
  const top = niceTop(most);
  const x = (from) => LEFT + ((from - times.from) / Math.max(1, times.until - times.from)) * (WIDTH - LEFT);
  const y = (value) => TOP + (1 - value / top) * (HEIGHT - TOP - BOTTOM);
  const parts = [...axes(top, times, x, y)];
  if (stacked) parts.push(...bars(windows, totals, series, times, x, y));
  else series.forEach((each, n) => parts.push(...curve(windows, totals, n, each, times, x, y)));
  return chart(name, label, parts, series.map((each, n) => {
    const last = totals.length ? totals[totals.length - 1][n] : null;
    return [each, last === null || last === undefined ? "–" : tenth(last)];
  }));
}

function axes(top, times, x, y) {
  const parts = [];
  for (const value of [0, top / 2, top]) {
    parts.push(draw("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(value), y2: y(value) }));
    parts.push(draw("text", { class: "axis", x: LEFT - 6, y: y(value) + 3, "text-anchor": "end" }, tenth(value)));
  }
  for (const share of [0, 0.5, 1]) {
    const from = times.from + share * (times.until - times.from);
    const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
    parts.push(draw("text", { class: "axis", x: x(from), y: HEIGHT - 2, "text-anchor": anchor }, timeOf(from)));
  }
  return parts;
}

function bars(windows, totals, series, times, x, y) {
  const width = Math.max(0.8, ((WIDTH - LEFT) / ((times.until - times.from) / times.step)) * 0.86);
  const parts = [];
  windows.forEach((one, n) => {
    let below = 0;
    series.forEach((each, at) => {
      const value = totals[n][at] || 0;
      if (!value) return;
      parts.push(draw("rect", { class: each.tone, x: x(one.from_s).toFixed(1), width: width.toFixed(2),
        y: y(below + value).toFixed(1), height: Math.max(0.8, y(below) - y(below + value)).toFixed(1) }));
      below += value;
    });
  });
  return parts;
}

function curve(windows, totals, n, series, times, x, y) {
  const parts = [];
  let points = [];
  const end = () => {
    if (points.length) parts.push(draw("polyline", { class: `line ${series.tone}`, points: points.join(" ") }));
    points = [];
  };
  let before = null;
  windows.forEach((one, at) => {
    const value = totals[at][n];
    if (value === null || value === undefined || (before !== null && one.from_s - before > 3 * times.step)) end();
    if (value !== null && value !== undefined) {
      points.push(`${x(one.from_s).toFixed(1)},${y(Math.min(value, 1e12)).toFixed(1)}`);
      before = one.from_s;
    }
  });
  end();
  return parts;
}

function chart(name, label, parts, legend) {
  const words = legend.map(([each, value]) => `${each.name} ${value}`).join(", ");
  return make("figure", { "data-key": name },
    draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${label}. Now: ${words || "nothing"}.` },
      ...parts),
    make("figcaption", {}, make("ul", { class: "legend" }, legend.map(([each, value]) =>
      make("li", {}, make("i", { class: `key ${each.tone}`, "aria-hidden": "true" }), `${each.name} `, make("b", {}, value))))));
}

// A row for each name, filled where it was among those that `of` gives for a window.
export function strips({ name, label, windows, times, names, of }) {
  const x = (from) => ((from - times.from) / Math.max(1, times.until - times.from)) * WIDTH;
  return make("div", { class: "strips", "data-key": name, role: "group", "aria-label": label }, names.map((each) => {
    const runs = []; // of windows that follow each other and are the same: one piece, without seams
    let missing = 0;
    for (const one of windows) {
      const has = of(one).includes(each);
      missing += has ? 0 : 1;
      const last = runs[runs.length - 1];
      if (last && last.has === has && one.from_s - last.last_s <= times.step) last.last_s = one.from_s;
      else runs.push({ has, first_s: one.from_s, last_s: one.from_s });
    }
    const parts = runs.map((run) => draw("rect", { class: run.has ? "has" : "lacks", x: x(run.first_s).toFixed(1), y: 0,
      width: Math.max(1, x(run.last_s + times.step) - x(run.first_s)).toFixed(1), height: 10 }));
    const words = missing ? `not for ${missing * times.step} s of what is shown` : "all the time";
    return make("div", { "data-key": `strip-${each}` }, make("span", { class: "who" }, each),
      draw("svg", { viewBox: `0 0 ${WIDTH} 10`, preserveAspectRatio: "none", role: "img", "aria-label": `${each}: coherent ${words}` }, ...parts),
      make("span", { class: "soft" }, words));
  }));
}
