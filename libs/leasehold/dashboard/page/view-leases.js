// Leases: who holds which version of which table, and the sessions of agents.

import { address, count, empty, link, make, pill, plural, section, soft, span, table } from "/page/dom.js";
import { holders } from "/page/view-tables.js";

const SESSIONS_SHOWN = 200;

export function view(state) {
  const held = state.leases.filter((lease) => lease.versions.length);
  const old = held.filter((lease) => lease.versions.some((version) => version.old));
  return [
    make("h1", {}, "Leases"),
    section("old", "On older versions", old.length ? old.map((lease) => make("div", { "data-key": `old-${lease.table_id}` }, make("h3", {}, link(address("tables", lease.table), lease.table)), holders(lease)))
      : empty("Nobody is on an older version: no schema change waits for anybody.")),
    section("held", "By table", held.length ? table("leases", "Leases by table", ["table", ">newest", ">lowest that counts", "held", "by"], held.map((lease) => ({ key: `lease-${lease.table_id}`, cells: [
      link(address("tables", lease.table), lease.table), `v${lease.current}`, `v${lease.min_version}`,
      make("div", {}, lease.versions.map((version) => [pill(`v${version.version} × ${version.leases}`, version.old ? "warn" : "good"), " "])),
      [...new Set(lease.versions.flatMap((version) => version.agents))].sort().slice(0, 12).join(", ") || soft("not named")] }))) : empty("Nobody holds a lease: no agent reads a table now.")),
    section("sessions", plural(state.ledger.sessions.length, "session of an agent", "sessions of agents"), state.ledger.sessions.length
      ? table("sessions", "Sessions of agents", ["agent", ">session", ">leases", ">renewals", ">renewed", "state"], state.ledger.sessions.slice(0, SESSIONS_SHOWN).map((each) => ({ key: `session-${each.session}`, cells: [
        each.agent, String(each.session), count(each.leases), count(each.renewals), each.renewed_ms === null ? "–" : `${span(each.renewed_ms)} ago`, each.expiring ? pill("renewals refused", "warn") : pill("alive", "good")] })))
      : empty("No agent has a session.")),
  ];
}
