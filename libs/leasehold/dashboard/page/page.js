// Draws /api/state twice a second. Text only ever goes in as text nodes: names come from strangers.
"use strict";

const EVERY_MS = 500;
const TIMEOUT_MS = 4000;
const JOBS_SHOWN = 12;
const EVENTS_SHOWN = 14;
const FINDINGS_SHOWN = 5;
const ENDED = ["succeeded", "failed", "cancelled"];
const STATUS_TONE = { succeeded: "good", failed: "bad", cancelled: "warn", paused: "warn", "rolling back": "warn" };

const at = (id) => document.getElementById(id);
const count = (value) => Math.round(value).toLocaleString("en-US");
const tenth = (value) => (value >= 100 ? count(value) : (Math.round(value * 10) / 10).toLocaleString("en-US"));
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

function span(milliseconds) {
  if (milliseconds === null || milliseconds === undefined) return "–";
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d`;
}

const clock = (us) => (us > 0 ? new Date(us / 1000).toLocaleTimeString("en-GB") : "–");
const pill = (words, tone) => make("span", { class: `pill ${tone || ""}` }, words);
const empty = (words, code) => make("p", { class: "empty" }, words, code ? make("code", {}, code) : null);

// Heads that start with ">" are numbers.
function table(name, heads, rows) {
  const line = make("tr");
  for (const head of heads) {
    line.append(make("th", head.startsWith(">") ? { class: "number" } : {}, head.replace(/^>/, "")));
  }
  const body = make("tbody");
  for (const cells of rows) {
    const row = make("tr");
    cells.forEach((cell, n) => row.append(make("td", heads[n].startsWith(">") ? { class: "number" } : {}, cell)));
    body.append(row);
  }
  return make("table", { class: name }, make("thead", {}, line), body);
}

function tiles(state) {
  const { log, rates, ledger } = state;
  at("database").textContent = state.database;
  at("rate").textContent = tenth(rates.committed_per_second);
  const others = [];
  if (rates.refused_per_second) others.push(`${tenth(rates.refused_per_second)} refused / s`);
  if (rates.dead_lettered_per_second) others.push(`${tenth(rates.dead_lettered_per_second)} dead letters / s`);
  at("rates").textContent = others.join(" · ") || "over the last 5 s";
  at("lsn").textContent = count(log.lsn);
  const waiting = state.lanes.map((lane) => lane.waiting).reduce((a, b) => a + b, 0);
  at("offset").textContent = `log offset ${count(log.offset)}` + (waiting ? ` · ${count(waiting)} waiting` : "");
  at("master").textContent = log.master || "none";
  at("epoch").textContent = log.epoch ? `epoch ${log.epoch}` : "no epoch claimed yet";
  at("ledger").textContent = ledger.state;
  at("sessions").textContent = plural(ledger.sessions.length, "agent session");
  at("totals").textContent =
    `${count(rates.committed)} committed · ${count(rates.refused)} refused · ` +
    `${count(rates.dead_lettered)} dead-lettered since this page's server began to look`;
}

function chart(bars) {
  const most = Math.max(1, ...bars.map(([c, r, d]) => c + r + d));
  const svg = at("chart");
  const width = 240 / bars.length;
  const parts = [];
  bars.forEach(([committed, refused, dead], n) => {
    let y = 44;
    for (const [value, name] of [[committed, "committed"], [refused + dead, "refused"]]) {
      if (!value) continue;
      const height = Math.max(1, (value / most) * 42);
      y -= height;
      const part = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      part.setAttribute("class", name);
      part.setAttribute("x", (n * width + 0.4).toFixed(2));
      part.setAttribute("y", y.toFixed(2));
      part.setAttribute("width", (width - 0.8).toFixed(2));
      part.setAttribute("height", height.toFixed(2));
      parts.push(part);
    }
  });
  svg.replaceChildren(...parts);
}

function job(one) {
  const ended = ENDED.includes(one.status);
  const tone = STATUS_TONE[one.status] || "";
  const right = [];
  if (one.rows) right.push(`${count(one.rows)}${one.rows_total && !ended ? ` of about ${count(one.rows_total)}` : ""} rows`);
  if (one.rows_per_second) right.push(`${count(one.rows_per_second)} rows/s`);
  if (one.attempts > 1 && !ended) right.push(`try ${one.attempts}`);
  const left = one.eta_s ?? one.ends_in_s;
  if (left !== null && !ended) right.push(`about ${span(left * 1000)} left`);
  right.push(ended ? `took ${span(one.age_ms)}` : `for ${span(one.age_ms)}`);
  const fill = make("i");
  fill.style.width = `${(one.fraction * 100).toFixed(1)}%`;
  const words = ended ? one.error : `step ${one.step} of ${one.steps} → ${one.to}: ${one.doing}${way(one)}`;
  const blamed = ended ? one.findings : [];
  return make("div", { class: "job" },
    make("div", { class: "line" }, one.postponed ? pill("postponed", "warn") : pill(one.status, tone),
      make("span", {}, `job ${one.job}`),
      make("code", { title: `${one.kind} on ${one.table}: ${one.subject}` }, one.sql),
      make("span", { class: "push" }, right.join(" · "))),
    ended && one.status === "succeeded" ? null : make("div", { class: `bar ${tone}` }, fill),
    words ? make("small", {}, words) : null,
    ...blamed.slice(0, FINDINGS_SHOWN).map((each) =>
      make("p", { class: "blamed" }, `row ${each.key.join(", ")}: ${each.words}`)),
    blamed.length > FINDINGS_SHOWN
      ? make("p", { class: "blamed" }, `… ${count(blamed.length)} are kept (leasehold jobs --json)`) : null,
    ...one.waits_for.map((reason) => make("p", { class: "waits" }, `waits: ${reason}`)));
}

// Whether it can still be taken back.
function way(one) {
  if (one.status === "rolling back") return "";
  if (one.can_cancel) return ` · can be cancelled before step ${one.point_of_no_return} is out`;
  return " · past its point of no return";
}

function jobs(list, endedInAll) {
  if (!list.length) return [empty("No schema change yet. Try ", 'leasehold ddl "CREATE INDEX … ON …"')];
  const running = list.filter((one) => !ENDED.includes(one.status));
  const ended = list.filter((one) => ENDED.includes(one.status)).reverse();
  const shown = [...running, ...ended].slice(0, JOBS_SHOWN).map(job);
  const more = running.length + endedInAll - shown.length;
  if (more > 0) shown.push(empty(`… and ${count(more)} more (leasehold jobs --all)`));
  return shown;
}

function nodes(state) {
  if (!state.nodes.length) return empty("No node has been heard of in the last hour. Start one: ", "make up");
  const tones = { coherent: "good", follows: "plain", incoherent: "warn", silent: "bad" };
  return table("nodes", ["node", "role", "coherency", ">since", ">lag", ">LSN", ">last heard"],
    state.nodes.map((node) => [
      make("div", {}, node.node, node.holds ? make("span", { class: "soft" }, ` holds only ${node.holds}`) : null),
      node.role,
      pill(node.coherency, tones[node.coherency]),
      span(node.for_ms),
      node.lag_records ? `${plural(node.lag_records, "record")}` : "–",
      count(node.lsn),
      `${span(node.age_ms)} ago`,
    ]));
}

function holders(version) {
  const names = [...new Set(version.agents)].sort();
  const shown = names.slice(0, 8).join(", ") + (names.length > 8 ? ` and ${names.length - 8} more` : "");
  return make("div", {}, pill(`v${version.version} × ${version.leases}`, version.old ? "warn" : "good"),
    ` ${shown}`, version.old ? make("span", { class: "soft" }, " on the older version") : null,
    ...version.holders.slice(0, 3).map(holder));
}

// Why an agent is still on an older version.
function holder(one) {
  const words = one.work.slice(0, 2).map((each) => `${each.label || each.sql || "unnamed work"} (${span(each.age_ms)})`);
  const others = one.users === null ? 0 : one.users - words.length;
  if (others > 0) words.push(plural(others, "user"));
  const since = one.old_ms === null ? "" : ` for ${span(one.old_ms)}`;
  return make("div", {}, make("small", { class: "together" },
    `${one.agent} ${since} · ${one.state}${words.length ? ` · ${words.join(", ")}` : ""}`));
}

function tables(state) {
  if (!state.tables.length) return empty("No table yet. Try ", 'leasehold ddl "CREATE TABLE …"');
  const leases = new Map(state.leases.map((lease) => [lease.table_id, lease]));
  const more = state.tables_there - state.tables.length;
  const shown = table("tables", ["table", ">version", "elements on their way", "leases", ">row images kept"],
    state.tables.map((one) => {
      const elements = [...one.columns, ...one.indexes, ...one.checks, ...one.foreign_keys, ...one.locks];
      const moving = elements.filter((element) => element.state !== "public");
      const lease = leases.get(one.table_id);
      const held = lease ? lease.versions : [];
      return [
        make("div", {}, one.table, one.former_name ? make("small", {}, ` until now ${one.former_name}`) : null, make("br"),
          make("small", {}, `${plural(one.columns.length, "column")}, ${one.indexes.length} ${one.indexes.length === 1 ? "index" : "indexes"}`)),
        `v${one.version}`,
        moving.length ? make("div", {}, ...moving.flatMap((element) => [`${element.name} `, pill(element.state, "warn"), " "])) : "–",
        held.length ? make("div", {}, ...held.map(holders)) : make("span", { class: "soft" }, "nobody holds one"),
        count(one.rows_about),
      ];
    }));
  return make("div", {}, shown, more > 0 ? empty(`… and ${count(more)} more (leasehold versions)`) : null);
}

function events(state) {
  if (!state.versions.length) return empty("No version has been published yet.");
  return table("events", ["time", "table", "what changed", ">LSN", ">job"],
    state.versions.slice(0, EVENTS_SHOWN).map((event) => [
      clock(event.commit_us), make("span", { class: "together" }, `${event.table} v${event.version}`),
      event.words.length > 4 && event.version === 1
        ? `created with ${plural(event.words.length, "element")}` : event.words.join("; ") || "no element changed",
      count(event.lsn), event.job ? String(event.job) : "–",
    ]));
}

function health(state) {
  const away = Object.keys(state.unreachable);
  if (away.includes("kafka")) return ["no connection to Kafka", "bad"];
  if (state.gaps.length) return ["not all is known", "warn"];
  if (!state.log.master) return ["no master yet", "warn"];
  if (state.log.master_silent_ms > 3000) return ["the master is silent", "bad"];
  const poor = state.nodes.filter((node) => ["incoherent", "silent"].includes(node.coherency));
  if (poor.length) return [`${plural(poor.length, "node")} not coherent`, "warn"];
  if (state.ledger.state !== "ready") return [`the lease ledger is ${state.ledger.state}`, "warn"];
  if (state.spark && state.spark.silent) return ["Spark is silent", "warn"];
  if (state.changefeed && state.changefeed.silent) return ["the changefeed is silent", "warn"];
  return ["all is well", "good"];
}

function banner(words) {
  at("banner").hidden = !words;
  at("banner").textContent = words;
}

function draw(state) {
  at("log-out").hidden = state.user === null;
  at("user").textContent = state.user ?? "";
  const [words, tone] = health(state);
  at("health").textContent = words;
  at("health").dataset.tone = tone;
  document.body.classList.toggle("away", "kafka" in state.unreachable);
  banner(Object.entries(state.unreachable)
    .map(([what, why]) => `No connection to ${what === "kafka" ? "Kafka" : "the lease ledger"}: ${why}`)
    .concat(state.gaps.map((gap) => `Not all is known: ${gap}. What is shown here is incomplete.`)).join("\n"));
  tiles(state);
  chart(state.rates.last_minute);
  at("jobs").replaceChildren(...jobs(state.jobs, state.jobs_ended));
  at("nodes").replaceChildren(nodes(state));
  at("tables").replaceChildren(tables(state));
  at("events").replaceChildren(events(state));
}

async function look() {
  try {
    const answer = await fetch("/api/state", { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT_MS) });
    if (answer.status === 401) {
      location.assign("/log-in");
      return;
    }
    if (!answer.ok) throw new Error(`it answered ${answer.status}`);
    draw(await answer.json());
  } catch (error) {
    at("health").textContent = "no connection to the dashboard's server";
    at("health").dataset.tone = "bad";
    document.body.classList.add("away");
    banner(`This page shows what was last known. The dashboard's server does not answer: ${error.message}`);
  }
  setTimeout(look, document.hidden ? 4 * EVERY_MS : EVERY_MS);
}

look();
