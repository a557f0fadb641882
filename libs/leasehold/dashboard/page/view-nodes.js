// Nodes: how each is and since when, its disk, who copies stores; and the parts beside them.

import { bytes, count, empty, make, pill, plural, section, soft, span, table } from "/page/dom.js";

const TONES = { coherent: "good", follows: "plain", incoherent: "warn", silent: "bad" };

export function view(state) {
  return [
    make("h1", {}, "Nodes"),
    section("nodes", plural(state.nodes.length, "node"), state.nodes.length ? nodes(state) : empty("No node has been heard of in the last hour. Start one: ", "make up")),
    section("disks", "Releases and disks", state.disks.length ? disks(state) : empty("No node has told of its disk yet.")),
    state.copies.length ? section("copies", "Copies of stores", table("copies", "Copies", ["taken by", "from", "state", ">behind"], state.copies.map((copy) => [
      copy.node || "a node of an earlier release", copy.source, copy.under_way ? pill("under way") : pill(`the log is kept for ${span(copy.kept_ms)}`, "plain"), plural(copy.lag_records, "record")]))) : null,
    section("beside", "Beside them", beside(state)),
  ];
}

function nodes(state) {
  return table("nodes", "Nodes", ["node", "role", "coherency", ">since", ">behind", ">LSN", ">last heard", "for clients"], state.nodes.map((node) => ({ key: `node-${node.node}`, cells: [
    make("div", {}, node.node, node.holds ? soft(` holds only ${node.holds}`) : null), node.role, pill(node.coherency, TONES[node.coherency]), span(node.for_ms),
    node.lag_records ? plural(node.lag_records, "record") : "–", count(node.lsn), `${span(node.age_ms)} ago`,
    make("div", {}, node.serves ? soft(`snapshots on ${node.serves}`) : "–", node.open ? make("p", { class: "waits" }, node.open) : null,
      node.foreign_records ? make("p", { class: "waits" }, `passed over ${plural(node.foreign_records, "record")} of nobody's`) : null)] })));
}

function disks(state) {
  return table("disks", "Disks", ["node", "release", "room", ">free", ">of", ">store", ">WAL"], state.disks.map((disk) => ({ key: `disk-${disk.node}`, cells: [
    disk.node, disk.release, pill(disk.room, disk.room === "enough" ? "good" : "bad"), bytes(disk.free_bytes), bytes(disk.disk_bytes), bytes(disk.store_bytes), bytes(disk.wal_bytes)] })));
}

function beside(state) {
  const { ledger, spark, changefeed } = state;
  const rows = [["lease ledger", pill(ledger.state, ledger.state === "ready" ? "good" : "warn"), ledger.age_ms === null ? "never" : `${span(ledger.age_ms)} ago`, `epoch ${ledger.epoch}, ${plural(ledger.sessions.length, "session")}`]];
  rows.push(changefeed ? ["changefeed", pill(changefeed.silent ? "silent" : "at work", changefeed.silent ? "warn" : "good"), `${span(changefeed.heard_ms)} ago`, `LSN ${count(changefeed.lsn)}, ${plural(changefeed.lag_records, "record")} behind`]
    : ["changefeed", pill("not heard of", "plain"), "never", "–"]);
  rows.push(spark ? ["Spark", pill(spark.silent ? "silent" : "at work", spark.silent ? "warn" : "good"), `${span(spark.heard_ms)} ago`, spark.trouble || "–"]
    : ["Spark", pill("not heard of", "plain"), "never", "–"]);
  for (const lane of state.lanes) rows.push([`queue ${lane.lane}`, lane.waiting === null ? pill("not known", "plain") : pill(lane.waiting ? `${count(lane.waiting)} waiting` : "empty", lane.waiting ? "" : "good"), "–", `offset ${count(lane.offset)}`]);
  return table("beside", "Parts beside the nodes", ["part", "state", "last heard", "more"], rows);
}
