// How the database is, in one line. What is only not known at present is no fault: it is said as such.

import { count } from "/page/dom.js";

// What `leasehold status` says, and the changes that somebody holds up.
export function troubles(state) {
  const found = state.troubles.map((each) => [each.tone, sentence(each.words)]);
  for (const job of state.jobs) {
    if (job.status === "running" && job.waits_for.length && !job.postponed) {
      found.push(["warn", `Job ${job.job} on ${job.table} waits: ${job.waits_for[0]}`]);
    }
  }
  return found;
}

const sentence = (words) => `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;

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
