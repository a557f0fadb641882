// Schema changes: all of them; and one, with its steps, its pace, whom it waits for, and what to do.

import { ask, may, session } from "/page/ask.js";
import { address, button, clock, code, count, day, empty, link, make, pill, plural, section, soft, span, table } from "/page/dom.js";

const ENDED = ["succeeded", "failed", "cancelled"];
const TONES = { succeeded: "good", failed: "bad", cancelled: "warn", paused: "warn", "rolling back": "warn" };
const ENDED_SHOWN = 40;
const FINDINGS_SHOWN = 20;
const PACES = [0, 100, 300, 1000, 3000, 10000, 30000, 100000, 300000, 1000000];

const ended = (job) => ENDED.includes(job.status);

export async function read(detail) {
  return detail === null ? {} : { job: await ask(`/api/jobs/${encodeURIComponent(detail)}`) };
}

export function view(state, data, detail) {
  return detail === null ? all(state) : one(data.job);
}

function all(state) {
  const running = state.jobs.filter((job) => !ended(job));
  const done = state.jobs.filter(ended).reverse();
  const more = state.jobs_ended - Math.min(done.length, ENDED_SHOWN);
  return [
    make("h1", {}, "Schema changes"),
    section("running", "Under way", running.length ? running.map(short)
      : empty("No schema change is under way. Try ", 'leasehold ddl "CREATE INDEX … ON …"')),
    done.length ? section("ended", "Ended", table("jobs", "Jobs that have ended", ["job", "status", "statement", "table", "ended", ">took"],
      done.slice(0, ENDED_SHOWN).map((job) => ({ key: `job-${job.job}`, cells: [
        link(address("jobs", job.job), `job ${job.job}`), pill(job.status, TONES[job.status]), statement(job), link(address("tables", job.table), job.table),
        day(job.ended_us), span(job.age_ms)] }))), more > 0 ? empty(`… and ${count(more)} more: `, "leasehold jobs --all") : null) : null,
  ];
}

const statement = (job) => make("div", {}, code(job.sql), job.error ? make("p", { class: "blamed" }, job.error) : null);

function bar(job, tone) {
  const fill = make("i");
  fill.style.width = `${(job.fraction * 100).toFixed(1)}%`;
  return make("div", { class: `bar ${tone}`, role: "progressbar", "aria-label": `job ${job.job}`, "aria-valuemin": "0", "aria-valuemax": "100",
    "aria-valuenow": String(Math.round(job.fraction * 100)) }, fill);
}

function figures(job) {
  const found = [];
  if (job.rows) found.push(`${count(job.rows)}${job.rows_total && !ended(job) ? ` of about ${count(job.rows_total)}` : ""} rows`);
  if (job.rows_per_second) found.push(`${count(job.rows_per_second)} rows/s`);
  if (job.attempts > 1 && !ended(job)) found.push(`try ${job.attempts}`);
  const left = job.eta_s ?? job.ends_in_s;
  if (left !== null && !ended(job)) found.push(`about ${span(left * 1000)} left`);
  found.push(ended(job) ? `took ${span(job.age_ms)}` : `for ${span(job.age_ms)}`);
  return found.join(" · ");
}

// A job that is under way, in a few lines.
export function short(job) {
  const tone = TONES[job.status] || "";
  return make("div", { class: "job", "data-key": `job-${job.job}` },
    make("div", { class: "line" }, job.postponed ? pill("postponed", "warn") : pill(job.status, tone),
      link(address("jobs", job.job), `job ${job.job}`), make("code", { title: `${job.kind} on ${job.table}: ${job.subject}` }, job.sql),
      make("span", { class: "push" }, figures(job))),
    bar(job, tone),
    make("small", {}, `step ${job.step} of ${job.steps} → ${job.to}: ${job.doing}${way(job)}`),
    job.waits_for.map((reason) => make("p", { class: "waits" }, `waits: ${reason}`)));
}

// Whether it can still be taken back.
function way(job) {
  if (job.status === "rolling back") return "";
  if (job.can_cancel) return ` · can be cancelled before step ${job.point_of_no_return} is out`;
  return " · past its point of no return";
}

function one(job) {
  const tone = TONES[job.status] || "";
  return [
    make("p", { class: "back" }, link("/jobs", "← all schema changes")),
    make("h1", {}, `Job ${job.job}`),
    section("what", "What it does",
      make("p", {}, job.postponed ? pill("postponed", "warn") : pill(job.status, tone), " ", code(job.sql)),
      make("p", { class: "soft" }, `${job.kind} of ${job.subject}, on `, link(address("tables", job.table), job.table),
        ` · asked by ${job.asked_by} at ${day(job.created_us)} · ${figures(job)}`),
      bar(job, tone),
      ended(job) ? null : make("p", {}, `Step ${job.step} of ${job.steps} → ${job.to}: ${job.doing}${way(job)}`),
      job.error ? make("p", { class: "blamed" }, job.error) : null,
      job.spark_fails ? make("p", { class: "waits" }, `Spark tries its run again: ${job.spark_fails}`) : null,
      job.waits_for.map((reason) => make("p", { class: "waits" }, `waits: ${reason}`)),
      controls(job)),
    ended(job) ? null : pace(job),
    job.blockers.length ? blockers(job) : null,
    timeline(job),
    job.findings.length ? section("findings", "Rows that it blames", table("findings", "Rows that it blames", ["row", "what is wrong"],
      job.findings.slice(0, FINDINGS_SHOWN).map((each) => [code(each.key.join(", ")), each.words]))) : null,
  ];
}

function controls(job) {
  const id = { job: job.job };
  const buttons = [];
  if (job.status === "running") buttons.push(button("Pause", "pause_job", id));
  if (job.status === "paused") buttons.push(button("Resume", "resume_job", id));
  if (!ended(job)) {
    buttons.push(job.postponed || job.settings.postpone ? button("Complete", "complete_job", id)
      : button("Postpone", "postpone_job", id, { title: "do all its work, then wait before the point of no return" }));
    buttons.push(button("Cancel", "cancel_job", id, { disabled: !job.can_cancel, class: "danger" }));
  }
  if (job.status === "failed" && !job.dismissed) buttons.push(button("Dismiss", "dismiss_job", id, { title: "you know of it" }));
  if (!buttons.length) return null;
  return make("div", { class: "buttons" }, buttons, may() ? null : soft(session.there ? " You are asked to sign in first." : " Nobody can act here: no SQL node is named."));
}

function pace(job) {
  const now = job.settings.rows_per_second || 0;
  const place = PACES.findIndex((each, n) => n > 0 && each >= now);
  const words = (value) => (value ? `${count(value)} rows per second` : "as fast as it goes");
  return section("pace", "Pace",
    make("label", { for: "pace-slider" }, "How fast rows are filled: ", make("output", { id: "pace-words", for: "pace-slider", "data-own": true }, words(now))),
    make("input", { id: "pace-slider", type: "range", min: "0", max: String(PACES.length - 1), step: "1", "data-own": true,
      value: String(now ? Math.max(1, place) : 0), "data-oninput": "sayPace", "data-onchange": "setPace", "data-job": String(job.job), "aria-describedby": "pace-now" }),
    make("p", { class: "soft", id: "pace-now" }, `At present: ${words(now)}${job.settings.gentle ? ", gentle to users" : ""}.`),
    make("div", { class: "buttons" }, job.settings.gentle
      ? button("As fast as it goes beside users", "set_job", { job: job.job, setting: "gentle", value: 0 })
      : button("Be gentle: users feel half of it", "set_job", { job: job.job, setting: "gentle", value: 1 })));
}

const paceWords = (value) => (value ? `${count(value)} rows per second` : "as fast as it goes");

function blockers(job) {
  return section("blockers", "Who holds an older version",
    table("blockers", "Blockers", ["agent", "table", "state", ">on it for", "at which work", "what to do"],
      job.blockers.map((each) => ({ key: `${each.session}-${each.table}-${each.version}`, cells: [
        `${each.agent}`, `${each.table} v${each.version}`, pill(each.state, each.state === "running" ? "" : "warn"), span(each.old_ms ?? each.held_ms),
        make("div", {}, each.work.length ? each.work.map((work) => make("div", {}, code(work.sql || work.label || "unnamed work"), soft(` ${work.sql && work.label ? `${work.label}, ` : ""}for ${span(work.age_ms)}`)))
          : soft(each.users ? plural(each.users, "user") : "it has not said")),
        endings(each)] }))),
    make("div", { class: "buttons" }, button("Release them all", "refuse_blockers", { job: job.job }),
      soft(job.settings.cancel_blockers_after_ms ? ` Released after ${span(job.settings.cancel_blockers_after_ms)} already.` : " Until then this job waits for them.")));
}

// A session of the node that we are connected to can be ended; of another node, on that one.
function endings(blocker) {
  const found = [];
  for (const work of blocker.work) {
    const session_of = /^SQL session (-?\d+) of /.exec(work.label || "");
    if (!session_of) continue;
    if (session.node === blocker.agent) found.push(button(`End session ${session_of[1]}`, "end_session", { pid: Number(session_of[1]) }));
    else found.push(soft(session.node ? `session ${session_of[1]}: end it on node ${blocker.agent}` : `SQL session ${session_of[1]}`));
  }
  return make("div", {}, found.length ? found : soft("end its work"));
}

function timeline(job) {
  if (!job.timeline.length) return null;
  const longest = Math.max(1, ...job.timeline.map((each) => each.took_ms));
  return section("timeline", "Steps", make("ol", { class: "timeline" }, job.timeline.map((each) => {
    const fill = make("i");
    fill.style.width = `${((each.took_ms / longest) * 100).toFixed(1)}%`;
    return make("li", { class: each.open ? "open" : null, "data-key": `${each.step}-${each.phase}-${each.begun_us}` },
      make("span", { class: "step" }, `${each.step} → ${each.to || "end"}`), make("span", { class: "phase" }, each.phase),
      make("span", { class: "track", "aria-hidden": "true" }, fill),
      make("span", { class: "took" }, each.open ? `for ${span(each.took_ms)}` : span(each.took_ms)), make("span", { class: "soft" }, clock(each.begun_us)));
  })), make("p", { class: "soft" }, `The point of no return is step ${job.point_of_no_return}.`));
}

export const actions = {
  sayPace: (slider) => {
    document.getElementById("pace-words").textContent = paceWords(PACES[Number(slider.value)]);
  },
  setPace: (slider, { act }) => act("set_job", { job: Number(slider.dataset.job), setting: "rows_per_second", value: PACES[Number(slider.value)] }),
};
