"""Statements on a local store: what makes a read safe is looked at inside its snapshot (C2, D3).

Goal: the interleaving of races P9: a statement pins a version, its thread sleeps, the store moves
on by two versions, the statement reads. Method: a real store; the catalog is written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.states import State
from leasehold.lease.agent.held_leases import FOREVER_NS, HeldLeases
from leasehold.lease.commands import Lease
from leasehold.model.errors import (
    InvalidText,
    MalformedRequest,
    NotCoherent,
    StaleVersion,
    UnknownColumn,
    UnknownTable,
)
from leasehold.model.records.log import ChangeKind, Grant, LogPosition, RowChange
from leasehold.node.kafka_node import KafkaNode
from leasehold.replica.reads import Reads, public_index
from leasehold.replica.replica import Replica
from leasehold.replica.serving_node import ServingNode
from leasehold.replication.coherency import CoherencyLease
from leasehold.settings.client import ClientSettings
from leasehold.values.types import Type

ME = b"incarnation"
T = Descriptor(
    1,
    "t",
    1,
    (Column(1, "id", Type("bigint"), nullable=False), Column(2, "a", Type("integer"))),
    (1,),
    next_element_id=3,
)


def put_version(store: SqliteStore, descriptor: Descriptor, min_version: int) -> None:
    store.begin()
    store.prepare(descriptor)
    store.put_descriptor(1, descriptor.version, descriptor.to_wire())
    store.put_min_version(1, min_version)
    store.commit(store.position())


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "store.db")
    put_version(made, T, 1)
    made.begin()
    made.change(T, RowChange(ChangeKind.INSERT, 1, 1, (7,), {1: 7, 2: 70}, {}, (0,)), 1, 0, None)
    made.commit(LogPosition(offset=1, lsn=1))
    yield made
    made.close()


def coherent() -> CoherencyLease:
    lease = CoherencyLease("r1", ME)
    lease.granted(Grant("r1", ME, lease.ask(boottime_ns()), 3_600_000))
    return lease


def reads(store: SqliteStore, lease: CoherencyLease | None = None) -> Reads:
    held = lease or coherent()
    return Reads(store, lambda: held.holds(boottime_ns()), None, lambda: None)


def test_d3_a_pinned_version_below_the_snapshots_min_version_is_refused(
    store: SqliteStore,
) -> None:
    statement = reads(store)
    pinned = statement.pin("t")
    assert pinned.version == 1
    put_version(store, replace(T, version=2), 1)
    assert statement.row(pinned, (7,)) is not None, "two adjacent versions are in use"
    put_version(store, replace(T, version=3), 2)
    with pytest.raises(StaleVersion, match="lowest is 2"):
        statement.row(pinned, (7,))
    with pytest.raises(StaleVersion):
        list(statement.scan(pinned, None, None, 10))


def test_d8_a_transaction_stays_with_the_version_it_pinned(store: SqliteStore) -> None:
    statement = reads(store)
    assert statement.pin("t").version == 1
    put_version(store, replace(T, version=2), 1)
    assert statement.pin("t").version == 1
    assert statement.used() == {"t": 1}
    assert reads(store).pin("t").version == 2


def test_c2_without_a_valid_lease_nothing_is_read(store: SqliteStore) -> None:
    statement = reads(store, CoherencyLease("r1", ME))
    with pytest.raises(NotCoherent):
        statement.pin("t")
    lease = coherent()
    statement = reads(store, lease)
    pinned = statement.pin("t")
    lease.give_up()
    with pytest.raises(NotCoherent):
        statement.row(pinned, (7,))


def test_a_table_that_is_not_there_is_named(store: SqliteStore) -> None:
    with pytest.raises(UnknownTable, match="nope"):
        reads(store).pin("nope")


def test_d4_a_transaction_that_pins_a_version_is_known_by_its_label(store: SqliteStore) -> None:
    leases = HeldLeases(FOREVER_NS)
    left: list[int] = []
    leases.put_first(leases.add(Lease(1, 1)))
    statement = Reads(store, lambda: True, leases, lambda: left.append(1), "transaction book")
    statement.pin("t")
    leases.put_first(leases.add(Lease(1, 2)))
    (use,) = leases.find_blockers(1, 2, boottime_ns(), limit=5)
    assert (use.version, use.label) == (1, "transaction book")
    assert left == []
    statement.close()
    assert left == [1], "its agent is told that the last user has left"


def test_d8_what_was_used_before_a_block_began_is_leased_and_keeps_its_version(
    store: SqliteStore,
) -> None:
    leases = HeldLeases(FOREVER_NS)
    leases.put_first(leases.add(Lease(1, 1)))
    statement = reads(store)
    pinned = statement.pin("t")
    statement.become_block(Reads(store, lambda: True, leases, lambda: None, "transaction book"))
    leases.put_first(leases.add(Lease(1, 2)))
    assert [use.label for use in leases.find_blockers(1, 2, boottime_ns(), limit=5)] == [
        "transaction book"
    ]
    put_version(store, replace(T, version=2), 1)
    assert statement.pin("t") is pinned
    statement.close()
    assert not leases.find_blockers(1, 2, boottime_ns(), limit=5)


def test_d3_a_version_that_was_used_before_a_block_began_may_be_too_old_for_it(
    store: SqliteStore,
) -> None:
    leases = HeldLeases(FOREVER_NS)
    statement = reads(store)
    pinned = statement.pin("t")
    leases.put_first(leases.add(Lease(1, 3)))
    put_version(store, replace(T, version=3), 2)
    statement.become_block(Reads(store, lambda: True, leases, lambda: None, "transaction book"))
    with pytest.raises(StaleVersion, match="lowest is 2"):
        statement.row(pinned, (7,))
    statement.close()


def test_values_of_an_index_are_those_of_its_expressions(store: SqliteStore) -> None:
    index = Index(3, "i", (0, 2), expressions=("(a > 5)",), mentioned=(2,))
    table = replace(T, indexes=(index,))
    statement = reads(store)
    assert statement.index_key(table, index, (True, 7)) == (1, 7)
    assert statement.index_key(table, index, (None,)) == (None,)
    assert statement.index_key(table, index, ()) == ()
    with pytest.raises(InvalidText):
        statement.index_key(table, index, ("yes", 7))
    with pytest.raises(MalformedRequest, match="has 2 parts; 3 values"):
        statement.index_key(table, index, (True, 7, 8))


def test_an_index_is_looked_for_in_tables_that_may_be_read() -> None:
    """Two tables have the name and its indexes while the primary key changes."""
    index = Index(5, "t_a", (2,))
    column = Column(1, "id", Type("bigint"), False)
    left = Descriptor(1, "t", 7, (column,), (1,), (index,), state=State.DELETE_ONLY)
    taken = replace(left, table_id=2, state=State.PUBLIC, former=1)
    for name in ("t_a", "t.t_a"):
        assert public_index((left, taken), name) == (taken, index)
    with pytest.raises(UnknownColumn, match="'t_a' does not exist"):
        public_index((left,), "t_a")


class FakeKafkaNode:
    """What a ServingNode looks at while it waits."""

    error: Exception | None = None

    def __init__(self) -> None:
        self.node = self.lease = self
        self.followers: tuple[object, ...] = ()
        self.held = False
        self.asked = 0
        self.on_tick: Callable[[], None] = lambda: None

    def holds(self, now_ns: int) -> bool:
        self.asked += 1
        return self.held


def test_c2_a_read_waits_for_coherence_as_it_is_asked_to(store: SqliteStore) -> None:
    """At once NotCoherent without a time; with one it reads as soon as the lease is there."""
    node = FakeKafkaNode()
    serving = ServingNode(cast(KafkaNode, node), store, ClientSettings.read({}))
    with pytest.raises(NotCoherent):
        serving.single_read().snapshot()
    assert node.asked == 1, "it did not look again"
    with pytest.raises(NotCoherent):
        serving.single_read(0.001).snapshot()

    def read() -> None:
        with serving.single_read(60.0).snapshot() as snapshot:
            assert snapshot.newest("t").name == "t"

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read)
        node.held = True
        node.on_tick()  # as the node's thread does once it has taken a step
        reading.result()
    node.held, node.error = False, NotCoherent("stopped")
    with pytest.raises(NotCoherent, match="stopped"):
        serving.single_read(60.0).snapshot()


def test_c2_a_row_by_its_key_is_read_only_under_a_valid_lease(store: SqliteStore) -> None:
    node = FakeKafkaNode()
    replica = Replica.__new__(Replica)
    replica.store = store
    replica.serving = ServingNode(cast(KafkaNode, node), store, ClientSettings.read({}))
    for _ in range(2):
        with pytest.raises(NotCoherent):
            replica.get("t", 7)
        node.held = True
        for key in (7, (7,), {"id": 7}):  # the first reads the catalog
            assert replica.get("t", key) == {"id": 7, "a": 70}
        assert replica.get("t", 8) is None
        node.held = False
    node.held = True
    with pytest.raises(InvalidText):
        replica.get("t", "seven")
    with pytest.raises(UnknownTable):
        replica.get("u", 7)
    by_name = replace(T, version=2, columns=(T.columns[0],))
    put_version(store, by_name, 1)
    assert replica.get("t", 7) == {"id": 7}
