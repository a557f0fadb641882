"""pgoutput's messages as operations: what comes twice, in parts, or without a value that is large.

Method: messages made by the protocol's description, applied to rows in a dictionary.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from leasehold.pgwire.wire_errors import ProtocolViolation
from leasehold.transfer import stream
from leasehold.transfer.changes import Changes, SchemaChanged
from leasehold.transfer.pgoutput import Update, lsn_of_text, lsn_text, read_message
from leasehold.transfer.schema_plan import PlannedColumn, PlannedTable
from leasehold.transfer.stream import Gathered, Gathering, StreamPlace

TABLE = PlannedTable(
    "t",
    [PlannedColumn(n, k, n) for n, k in (("v", "text"), ("id", "integer"), ("ok", "boolean"))],
    ("id",),
    ("integer",),
    (),
    {},
    False,
    0,
    0,
)
LARGE = object()


def begin(lsn: int) -> bytes:
    return b"B" + struct.pack("!QqI", lsn, 0, 7)


def commit(lsn: int) -> bytes:
    return b"C" + struct.pack("!BQQq", 0, lsn, lsn + 8, 0)


def relation(*columns: str, name: str = "t") -> bytes:
    told = b"".join(
        bytes([column == "id"]) + column.encode() + b"\0" + struct.pack("!II", 25, 0)
        for column in columns
    )
    return (
        b"R" + struct.pack("!I", 1) + b"public\0" + name.encode() + b"\0d"
        + struct.pack("!H", len(columns)) + told
    )  # fmt: skip


def row(*values: object) -> bytes:
    made = struct.pack("!H", len(values))
    for value in values:
        if value is None or value is LARGE:
            made += b"n" if value is None else b"u"
        else:
            text = str(value).encode()
            made += b"t" + struct.pack("!I", len(text)) + text
    return made


def change(kind: bytes, *parts: bytes) -> bytes:
    return kind + struct.pack("!I", 1) + b"".join(parts)


RELATION = relation("id", "v", "ok")


def insert(*values: object) -> bytes:
    return change(b"I", b"N", row(*values))


def update(*values: object, old: bytes = b"") -> bytes:
    return change(b"U", old, b"N", row(*values))


def delete(key: int) -> bytes:
    return change(b"D", b"K", row(key, None, None))


def gather(messages: Iterable[bytes], place: StreamPlace | None = None) -> list[Gathered]:
    return list(Gathering(Changes([TABLE], "public"), place or StreamPlace(0)).gather(messages))


def apply(rows: dict[int, dict[str, Any]], gathered: Iterable[Gathered]) -> None:
    """As the master would: an update of a row that is not there does nothing."""
    for each in gathered:
        if each.sql:
            rows.clear()
        for operation in each.operations:
            (key,) = operation["key"]
            match operation["op"]:
                case "upsert":
                    rows[key] = dict(operation["values"])
                case "update":
                    if key in rows:
                        rows[key] |= operation["values"]
                case "delete":
                    rows.pop(key, None)


STORY = [
    begin(100), RELATION, insert(1, "a", "t"), insert(2, "b", "f"), commit(100),
    begin(200), update(1, LARGE, "f"), update(3, "c", None, old=b"K" + row(2, None, None)),
    commit(200),
    begin(300), delete(3), insert(4, "d", "t"), update(4, "e", "t"), commit(300),
]  # fmt: skip
AT_END = {1: {"v": "a", "ok": False}, 4: {"v": "e", "ok": True}}


def test_changes_become_rows() -> None:
    rows: dict[int, dict[str, Any]] = {}
    (gathered,) = gather(STORY)
    apply(rows, [gathered])
    assert rows == AT_END
    assert gathered.place == StreamPlace(308)


@pytest.mark.parametrize("stands", range(len(STORY)))
def test_what_was_applied_already_may_come_again(stands: int) -> None:
    """Goal: rows that were copied at any later point of the stream come right by its end."""
    rows: dict[int, dict[str, Any]] = {}
    apply(rows, gather(STORY[:stands]))
    apply(rows, gather(STORY))
    assert rows == AT_END


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
def test_a_stream_goes_on_from_each_place(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: also from within a transaction that was applied in parts; nothing is left out, and
    nothing comes twice."""
    monkeypatch.setattr(stream, "GATHERED_CHANGES", at_once)
    parts = gather(STORY)
    for cut_off in range(len(parts)):
        place = parts[cut_off].place
        rest = gather(STORY, StreamPlace.read(place.to_text()))
        told = [*parts[: cut_off + 1], *rest]
        assert [o for each in told for o in each.operations] == [
            o for each in parts for o in each.operations
        ]
        assert not rest or rest[-1].place == StreamPlace(308)


def test_a_truncate_stands_before_what_comes_behind_it() -> None:
    emptied = b"T" + struct.pack("!IBI", 1, 0, 1)
    told = gather([begin(9), RELATION, insert(1, "a", None), emptied, insert(2, "b", None)])
    assert [(each.sql, len(each.operations)) for each in told] == [
        ("", 1),
        ('TRUNCATE "t"', 0),
        ("", 1),
    ]


def test_a_large_value_under_another_key_is_read_again() -> None:
    """Goal: the row may have been copied under neither key."""
    moved = update(9, LARGE, "t", old=b"K" + row(1, None, None))
    (told,) = gather([begin(9), RELATION, moved])
    assert told.reread is not None
    assert told.reread.key == ("9",)
    assert [each["op"] for each in told.operations] == ["delete"]


def test_the_whole_old_row_has_what_the_new_one_does_not_say() -> None:
    full = update(9, LARGE, "t", old=b"O" + row(1, "large", "t"))
    (told,) = gather([begin(9), RELATION, full])
    assert told.operations[-1] == {
        "table": "t", "op": "upsert", "key": [9], "values": {"v": "large", "ok": True}
    }  # fmt: skip


@pytest.mark.parametrize("told", [relation("id", "v"), relation("id", "v", "ok", name="other")])
def test_a_schema_that_has_changed_ends_it(told: bytes) -> None:
    with pytest.raises(SchemaChanged):
        gather([begin(1), told])


def cuts(messages: Sequence[bytes]) -> Iterable[bytes]:
    for message in messages:
        for end in range(len(message)):
            yield message[:end]


@pytest.mark.parametrize("message", [*STORY[:4], STORY[6], STORY[9]])
def test_a_message_that_is_cut_off_is_none(message: bytes) -> None:
    for cut in cuts([message]):
        with pytest.raises(ProtocolViolation):
            read_message(cut)


def test_kinds_are_told_apart() -> None:
    assert read_message(update(1, LARGE, None)) == Update(
        1,
        None,
        ["1", read_message(update(1, LARGE, None)).new[1], None],  # type: ignore[union-attr]
    )
    with pytest.raises(ProtocolViolation, match="not known"):
        read_message(b"Z")
    assert lsn_text(lsn_of_text("16/B374D848")) == "16/B374D848"
