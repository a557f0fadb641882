"""Goal: what INSERT, UPDATE and DELETE find, compute and give back is what PostgreSQL's would;
later statements of a transaction see it. Method: write sets on a store, without a cluster around
them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import Refused
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.model.records.requests import OperationKind
from leasehold.replica.reads import Reads
from leasehold.replica.write_set import WriteSet
from tests.support.sql.asked import FLIGHTS, Asked, filled


@pytest.fixture
def tx(tmp_path: Path) -> Iterator[WriteSet]:
    store = filled(tmp_path)
    reads = Reads(store, lambda: True, None, lambda: None)
    yield WriteSet(reads)
    reads.close()
    store.close()


CHANGES: list[tuple[str, int, list[tuple[Any, ...]]]] = [
    (
        "INSERT INTO bookings VALUES (3, '1A', 'Joe'), (3, '1B', NULL) RETURNING seat",
        2,
        [("1A",), ("1B",)],
    ),
    ("INSERT INTO bookings (seat, flight) VALUES ('9Z', 4) RETURNING *", 1, [(4, "9Z", None)]),
    (
        "INSERT INTO bookings SELECT id, 'X' FROM flights WHERE id > 3 RETURNING 1 + flight",
        2,
        [(5,), (6,)],
    ),
    ("INSERT INTO bookings VALUES (1, '1A', 'x') ON CONFLICT DO NOTHING RETURNING 1", 0, []),
    ("INSERT INTO bookings VALUES (7, '1A', 'Bob') ON CONFLICT (name) DO NOTHING", 0, []),
    (
        (
            "INSERT INTO bookings AS b VALUES (1, '1A', 'Zoe') ON CONFLICT (seat, flight)"
            " DO UPDATE SET name = excluded.name || b.name RETURNING name"
        ),
        1,
        [("ZoeAnn",)],
    ),
    (
        (
            "INSERT INTO bookings VALUES (1, '1A', 'Zoe') ON CONFLICT (flight, seat)"
            " DO UPDATE SET name = 'q' WHERE bookings.name <> 'Ann'"
        ),
        0,
        [],
    ),
    (
        "UPDATE flights SET seats = seats + 1, open = DEFAULT WHERE id < 3 RETURNING id, seats",
        2,
        [(1, 11), (2, 21)],
    ),
    (
        "UPDATE flights SET (seats, carrier) = (1, lower(carrier)) WHERE id = 3 RETURNING carrier",
        1,
        [("ba",)],
    ),
    (
        (
            "UPDATE flights SET carrier = name FROM bookings b WHERE flight = id AND seat = '9F'"
            " RETURNING flights.carrier, b.seat"
        ),
        1,
        [("Bob", "9F")],
    ),
    ("UPDATE flights SET seats = 1 FROM bookings WHERE flight = id RETURNING id", 2, [(1,), (2,)]),
    (
        (
            "UPDATE flights SET (seats, carrier) = (SELECT flight + 70, name FROM bookings"
            " WHERE flight = id ORDER BY seat LIMIT 1) WHERE id < 3 RETURNING seats, carrier"
        ),
        2,
        [(71, "Ann"), (72, "Bob")],
    ),
    (
        (
            "UPDATE flights SET (seats, price, open) = (SELECT 1, 2.50, true WHERE false)"
            " WHERE id = 1 RETURNING seats, price, open"
        ),
        1,
        [(None, None, None)],
    ),
    (
        (
            "INSERT INTO bookings VALUES (1, '1A', 'Zoe') ON CONFLICT (flight, seat) DO UPDATE"
            " SET (name) = (SELECT excluded.name || bookings.name) RETURNING name"
        ),
        1,
        [("ZoeAnn",)],
    ),
    (
        (
            "INSERT INTO bookings VALUES (1, '1A', 'Zoe') ON CONFLICT (flight, seat) DO UPDATE"
            " SET (name, seat) = (SELECT excluded.name || b.name, bookings.seat || '!'"
            " FROM bookings b WHERE b.flight = 2) RETURNING *"
        ),
        1,
        [(1, "1A!", "ZoeBob")],
    ),
    (  # Two rows taken apart, over a third table.
        (
            "UPDATE flights f SET (seats, price) = (SELECT count(*), max(flight) FROM bookings"
            " WHERE flight = f.id), (carrier, open) = (SELECT b.name || f.carrier, f.id = 2)"
            " FROM bookings b WHERE b.flight = f.id AND b.seat IN ('1A', '9F')"
            " RETURNING seats, price, carrier, open"
        ),
        2,
        [(2, Decimal(1), "AnnAA", False), (1, Decimal(2), "Bobaa", True)],
    ),
    (  # What is random is so once for each row that is changed.
        (
            "UPDATE flights SET (seats, price) = (SELECT n, n FROM"
            " (SELECT (random() * 100000)::integer + flights.id * 0 AS n) s)"
            " WHERE id < 3 RETURNING seats = price"
        ),
        2,
        [(True,), (True,)],
    ),
    ("UPDATE flights SET id = id WHERE id = 1", 1, []),
    ("DELETE FROM bookings WHERE name IS NULL RETURNING *", 1, [(1, "1B", None)]),
    (
        "DELETE FROM bookings USING flights WHERE id = flight AND id = 2 RETURNING seat, carrier",
        1,
        [("9F", "aa")],
    ),
    ("DELETE FROM bookings", 4, []),
    ("WITH w AS (SELECT 2 AS x) DELETE FROM bookings USING w WHERE flight = x", 1, []),
    ("WITH w AS (SELECT 5 AS x) INSERT INTO bookings SELECT x, 'a' FROM w", 1, []),
    (
        (
            "WITH w AS (SELECT 5 AS x) UPDATE flights SET seats = (SELECT x FROM w)"
            " WHERE id IN (TABLE w) RETURNING seats"
        ),
        1,
        [(5,)],
    ),
]
REFUSED = [
    ("INSERT INTO bookings VALUES (NULL, 'a', 'b')", "23502"),
    ("INSERT INTO bookings VALUES (1, '1A', 'b')", "23505"),
    ("INSERT INTO bookings VALUES (8, 'a', 'b'), (8, 'a', 'c')", "23505"),
    ("UPDATE flights SET carrier = NULL", "23502"),
    ("UPDATE flights SET id = 77", "23505"),
    ("UPDATE flights SET id = NULL", "23502"),
    ("UPDATE flights SET nope = 1", "42703"),
    ("UPDATE flights SET secret = 'x'", "42703"),
    ("UPDATE flights SET seats = 'x'", "22P02"),
    ("UPDATE flights SET seats = true", "42804"),
    ("UPDATE flights SET seats = 1, seats = 2", "42601"),
    ("UPDATE flights SET seats = 3000000000", "22003"),
    ("UPDATE flights SET (seats, carrier) = (SELECT 1)", "42601"),
    ("UPDATE flights SET (seats, carrier) = (SELECT 'x', 'y')", "42804"),
    ("UPDATE flights SET (seats, carrier) = (SELECT flight, seat FROM bookings)", "21000"),
    ("INSERT INTO bookings VALUES (1, 'a', 'b', 'c')", "42601"),
    ("INSERT INTO bookings (flight, seat) VALUES (1)", "42601"),
    ("INSERT INTO bookings (flight, flight) VALUES (1, 2)", "42701"),
    ("INSERT INTO bookings VALUES (1, '1A', 'b') ON CONFLICT (seat) DO NOTHING", "42P10"),
    (
        (
            "INSERT INTO bookings VALUES (8, 'a', 'b'), (8, 'a', 'c') ON CONFLICT (flight, seat)"
            " DO UPDATE SET name = 'x'"
        ),
        "21000",
    ),
]


@pytest.mark.parametrize(("text", "count", "rows"), CHANGES, ids=[c[0][:60] for c in CHANGES])
def test_changes(tx: WriteSet, text: str, count: int, rows: list[tuple[Any, ...]]) -> None:
    done = tx.execute(text)
    assert (done.rowcount, done.rows) == (count, rows)
    assert len(tx.pending.operations) == count


@pytest.mark.parametrize(("text", "code"), REFUSED, ids=[text[:60] for text, _ in REFUSED])
def test_refusals(tx: WriteSet, text: str, code: str) -> None:
    with pytest.raises(Refused) as caught:
        tx.execute(text)
    assert caught.value.sqlstate == code
    assert not tx.pending.operations


def test_the_only_row_of_a_query_is_computed_once(asked: Asked) -> None:
    """However many columns it sets."""
    said = "UPDATE flights SET (seats, carrier, price) = (SELECT 1, name, 2 FROM bookings LIMIT 1)"
    assert asked.prepared(said).emitted.text.count("t2 AS") == 1


def test_a_change_names_the_genid_that_was_seen(tx: WriteSet) -> None:
    tx.execute("UPDATE flights SET seats = seats + $1 WHERE id = $2", [5, 1])
    (operation,) = tx.pending.operations
    assert operation.kind is OperationKind.UPDATE
    assert (operation.table, operation.key, operation.values) == ("flights", (1,), {"seats": 15})
    assert operation.expect
    assert operation.schema_version == 1


class ThenChanged:
    """Between the statement's snapshot and the next one somebody writes to flight 1."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self._snapshots = 0

    def __call__(self) -> bool:
        self._snapshots += 1
        if self._snapshots == 4:
            lsn = self._store.position().lsn + 1
            image = {1: 1, 2: "AA", 3: 99}
            before = {0: genid(1, 0)}
            self._store.begin()
            change = RowChange(ChangeKind.UPDATE, 1, 1, (1,), image, before, (0,))
            self._store.change(FLIGHTS, change, lsn, 0, None)
            self._store.commit(LogPosition(4, lsn=lsn))
        return True


def test_a_row_that_changes_meanwhile_is_named_as_it_was_found(tmp_path: Path) -> None:
    store = filled(tmp_path)
    reads = Reads(store, ThenChanged(store), None, lambda: None)
    tx = WriteSet(reads)
    tx.execute("UPDATE flights SET seats = seats + 1 WHERE id = 1")
    (operation,) = tx.pending.operations
    assert operation.values == {"seats": 11}
    assert operation.expect == genid(1, 0)  # so the master refuses it: 11 was made of 10
    reads.close()
    store.close()


def test_own_writes_are_seen(tx: WriteSet) -> None:
    tx.execute("UPDATE flights SET carrier = 'XX' WHERE id = 4")
    tx.execute("DELETE FROM flights WHERE id = 1")
    tx.execute("INSERT INTO flights (id, carrier, price) VALUES (77, 'XX', 1.50)")
    found = tx.execute(
        "SELECT id, carrier, price FROM flights WHERE carrier = 'XX' ORDER BY id"
    ).rows
    assert [(i, c, str(p)) for i, c, p in found] == [(4, "XX", "7.125"), (77, "XX", "1.50")]
    assert tx.execute("SELECT count(*) FROM flights").rows == [(5,)]
    assert tx.execute("UPDATE flights SET seats = 9 WHERE id IN (4, 77) RETURNING id").rows == [
        (4,),
        (77,),
    ]
    assert tx.execute("DELETE FROM flights WHERE id = 77").rowcount == 1
    assert tx.execute("SELECT id FROM flights WHERE seats = 9").rows == [(4,)]
    kinds = [operation.kind.name for operation in tx.pending.operations]
    assert kinds == ["UPDATE", "DELETE", "INSERT", "UPDATE", "UPDATE", "DELETE"]


def test_an_index_serves_beside_own_rows(tx: WriteSet) -> None:
    tx.execute("UPDATE flights SET carrier = 'LH' WHERE id = 1")
    tx.execute("UPDATE flights SET carrier = 'XX' WHERE id = 4")
    text = "SELECT id FROM flights, bookings WHERE seat = '1A' AND carrier = 'LH'"
    assert sorted(tx.execute(text).rows) == [(1,), (5,)]
    plan = "\n".join(line for (line,) in tx.execute(f"EXPLAIN {text}").rows)
    assert "Index Search using by_carrier on flights (k0=?)" in plan
    assert "SCAN m" not in plan


def test_a_query_alone_writes_nothing(tx: WriteSet) -> None:
    assert tx.execute("SELECT count(*) FROM flights").rows == [(5,)]
    assert tx.execute("EXPLAIN DELETE FROM flights WHERE carrier = 'LH'").rows[0] == (
        "Index Search using by_carrier on flights (k0=?)",
    )
    assert not tx.pending.operations
