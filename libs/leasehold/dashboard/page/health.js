// How the database is, in one line. What is only not known at present is no fault: it is said as such.

import { count, plural, span } from "/page/dom.js";

export const SILENT_MASTER_MS = 3000;

export function troubles(state) {
  const found = [];
  if (!state.log.master) found.push(["warn", "There is no master yet: nothing can be written. Start one: make up."]);
  else if (state.log.master_silent_ms > SILENT_MASTER_MS) {
    found.push(["bad", `The master ${state.log.master} has written nothing for ${span(state.log.master_silent_ms)}: a standby takes over, or start one.`]);
  }
  for (const node of state.nodes) {
    if (node.coherency === "silent") found.push(["warn", `Node ${node.node} has not been heard of for ${span(node.age_ms)}: see its log, and whether it runs.`]);
    if (node.coherency === "incoherent") found.push(["warn", `Node ${node.node} is not coherent for ${span(node.for_ms)}: it is ${plural(node.lag_records, "record")} behind, and serves no current reads.`]);
  }
  for (const disk of state.disks) {
    if (disk.room !== "enough") found.push(["bad", `The disk of node ${disk.node} has too little room (${disk.room}).`]);
  }
  if (state.ledger.state !== "ready") found.push(["warn", `The lease ledger is ${state.ledger.state}: schema changes wait.`]);
  if (state.spark && state.spark.silent) found.push(["warn", `Spark has been silent for ${span(state.spark.heard_ms)}: backfills and retries wait.`]);
  if (state.spark && state.spark.trouble) found.push(["warn", `Spark's retry stream does not run: ${state.spark.trouble}`]);
  if (state.changefeed && state.changefeed.silent) found.push(["warn", `The changefeed has been silent for ${span(state.changefeed.heard_ms)}: subscribers hear of nothing new.`]);
  for (const job of state.jobs) {
    if (job.status === "running" && job.waits_for.length && !job.postponed) {
      found.push(["warn", `Job ${job.job} on ${job.table} waits: ${job.waits_for[0]}`]);
    }
  }
  return found;
}

export function health(state, stale) {
  if (stale) return [`as of ${stale} ago`, "wait"];
  if (state.unreachable.kafka) return ["no connection to Kafka", "wait"];
  if (state.gaps.length) return ["not all is known yet", "wait"];
  const found = troubles(state);
  if (!found.length) return ["all is well", "good"];
  const tone = found.some(([each]) => each === "bad") ? "bad" : "warn";
  return [found.length === 1 ? "one thing to look at" : `${count(found.length)} things to look at`, tone];
}

// Sentences on what is shown although it is old, or can't be whole.
export function gaps(state, failed) {
  const found = [];
  if (failed) found.push(`Shown is what was known ${failed.ago} ago: the dashboard's server does not answer (${failed.why}).`);
  for (const [what, why] of Object.entries(state ? state.unreachable : {})) {
    found.push(`Shown is what was last known: the dashboard has no connection to ${what === "kafka" ? "Kafka" : "the lease ledger"} (${why}).`);
  }
  for (const gap of state ? state.gaps : []) found.push(`Not all is known: ${gap}. What is shown is incomplete.`);
  return found;
}
