"""What must hold when everything is healed, answered and caught up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgpack

from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.in_process.bus import Message
from leasehold.in_process.cluster import MemoryCluster
from leasehold.model.keys import Key
from leasehold.model.records.events import RowImage, RowsTruncated, VersionEvent
from leasehold.model.records.requests import DeadLetter
from leasehold.rows.filled_by_key import complete_image
from tests.simulation.harm import demand
from tests.simulation.menu import demand_ended_well
from tests.support.memory_store.check import check_contents
from tests.support.memory_store.store import MemoryStore

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

CODEC: Final = MessagePackCodec()


def demand_end(sim: Simulation) -> None:
    reference = sim.reference
    true = reference.store
    for name in sim.cluster.nodes:
        store = sim.stores.get(name)
        _demand_equal(sim, name, store, true)
        for descriptor in reference.catalog.tables():
            if not store.part.stores(descriptor.table_id):
                continue
            report = check_contents(store.contents, b"", descriptor.table_id, ())
            demand(not report.findings, "d ⊨ S", f"{name}: {report.findings[:3]}")
    for job in reference.catalog.jobs.values():
        demand_ended_well(job, reference.position.epoch)
    snapshot = true.open_snapshot()
    for workload in sim.workloads:
        workload.check(snapshot, "at the end")
        workload.check_end(snapshot)
    _demand_outcomes(sim)
    _demand_feed(sim, true)


def _demand_equal(sim: Simulation, name: str, store: MemoryStore, true: MemoryStore) -> None:
    mine, theirs = store.contents, true.contents
    part = store.part
    if not part.is_whole:
        theirs = true.narrowed(part).contents
    for what in ("exists", "pairs", "entries", "descriptors", "min_versions", "jobs"):
        a, b = getattr(mine, what), getattr(theirs, what)
        if what == "jobs":  # as written: a tuple and a list are one thing
            a, b = _as_written(a), _as_written(b)
        if what == "pairs":
            # Of a job that turned back: how far each node was stays its own, and nobody reads it.
            apart = sim.reference.filled_apart - sim.reference.public
            a, b = _without(a, apart), _without(b, apart)
        demand(a == b, "L6", f"{name} differs in {what}: {_difference(a, b)}")
    demand(mine.ledger_run == theirs.ledger_run, "L6", f"{name} differs in the ledger's run")
    for kept, true_kept in ((mine.outcomes, theirs.outcomes), (mine.untimely, theirs.untimely)):
        a, b = _as_written(kept), _as_written(true_kept)
        demand(a == b, "L5", f"{name} remembers others: {_difference(a, b)}")


def _without(
    pairs: Mapping[tuple[int, Key], dict[int, Any]], apart: set[tuple[int, int]]
) -> dict[tuple[int, Key], dict[int, Any]]:
    """Return pairs of rows, without those of some columns. (Who deletes a row and knows no such
    column leaves its pair.)"""
    if not apart:
        return dict(pairs)
    left = {
        (table, key): {e: value for e, value in row.items() if (table, e) not in apart}
        for (table, key), row in pairs.items()
    }
    return {row: pairs for row, pairs in left.items() if pairs}


def read_dead_letters(cluster: MemoryCluster) -> list[DeadLetter]:
    messages = cluster.bus.read(cluster.topics.dead_letter.name)
    return [CODEC.decode_as(DeadLetter, m.value) for m in messages if m.value is not None]


def _demand_outcomes(sim: Simulation) -> None:
    """R1: submitted = committed + refused + dead-lettered, each once."""
    letters = read_dead_letters(sim.cluster)
    dead = [letter.request_id for letter in letters if letter.request_id]
    demand(len(dead) == len(set(dead)), "R1", "a request is dead-lettered twice")
    unread = sim.reference.refused_unread
    for workload in sim.workloads:
        for asked in workload.client.asked.values():
            outcome = sim.reference.outcome(asked.id)
            if outcome is None and asked.body in unread:
                continue
            settled = outcome is not None and (outcome.lsn or outcome.final)
            demand(bool(settled), "R1", f"{asked.fields} ended as {outcome}")
            assert outcome is not None, "demanded"
            demand(
                outcome.dead_lettered == (asked.id in dead),
                "R1",
                f"{asked.fields} ended as {outcome}, dead-lettered: {asked.id in dead}",
            )


def _demand_feed(sim: Simulation, true: MemoryStore) -> None:
    topics, bus = sim.cluster.topics, sim.cluster.bus
    # A backfill by images is told under its own LSN, and is no write of the row in a store.
    filled = {
        (backfill.table_id, key): lsn
        for lsn, commit in sim.reference.every
        for backfill in commit.backfills
        if backfill.images
        for key in backfill.keys
    }
    for descriptor in sim.reference.catalog.tables():
        if descriptor.sequence is not None:
            continue  # of one nothing is told
        table = descriptor.table_id
        topic = topics.rows(table)
        images: dict[Key, RowImage] = {}
        for partition in range(topic.partitions):
            images |= _followed(bus.read(topic.name, partition))
        held = true.contents
        keys = {key for t, key in held.exists if t == table}
        demand(images.keys() == keys, "changefeed", f"rows of {descriptor.name} differ")
        for key in keys:
            row, image = held.row(table, key), images[key]
            assert row is not None, "it exists"
            dead = held.dead_elements(table)
            told = complete_image(descriptor, image.version, image.values)
            pairs = {e: v for e, v in told.items() if v is not None and e not in dead}
            demand(
                (dict(image.genids), image.lsn, pairs)
                == (row.genids, max(row.lsn, filled.get((table, key), 0)), row.values),
                "changefeed",
                f"{descriptor.name} {key}: {image}, the store has {row}",
            )
        published = [
            sim.codec.decode_as(VersionEvent, m.value).version
            for m in bus.read(topics.versions_history.name)
            if m.key == b"%d" % table and m.value is not None
        ]
        # One with another key goes on from its former table's numbers, which may be collected.
        first = published[0] if descriptor.former else 1
        dense = list(range(first, descriptor.version + 1))
        demand(published == dense, "D2", f"{descriptor.name}: versions {published}")


def _followed(messages: Iterable[Message]) -> dict[Key, RowImage]:
    """The rows that a reader of one partition has in the end."""
    images: dict[Key, RowImage] = {}
    for message in messages:
        key = restore_row_key(message.key)
        if not key:
            assert message.value is not None, "the truncation is told"
            lsn = CODEC.decode_as(RowsTruncated, message.value).lsn
            demand(all(i.lsn < lsn for i in images.values()), "changefeed", "truncated too late")
            images.clear()
        elif message.value is None:
            images.pop(key, None)
        else:
            images[key] = CODEC.decode_as(RowImage, message.value)
    return images


def _as_written(bodies: dict[Any, Any]) -> dict[Any, Any]:
    return {key: msgpack.packb(body) for key, body in bodies.items()}


def _difference(a: object, b: object) -> str:
    if isinstance(a, dict) and isinstance(b, dict):
        keys = [k for k in {**a, **b} if a.get(k) != b.get(k)]
        return "; ".join(f"{k}: {a.get(k)} / {b.get(k)}" for k in keys[:3])
    if isinstance(a, set) and isinstance(b, set):
        return f"only here {list(a - b)[:3]}, only there {list(b - a)[:3]}"
    return f"{a} / {b}"
