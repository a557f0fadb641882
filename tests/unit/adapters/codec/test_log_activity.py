"""What is counted of a log record is what the whole record says."""

from __future__ import annotations

import msgpack
import pytest

from leasehold.adapters.codec.log_activity import (
    KEY_CHARACTERS_MAX,
    LogActivity,
    read_activity,
)
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.ids import request_id
from leasehold.model.records.log import (
    Barrier,
    ChangeKind,
    Claim,
    Commit,
    Decisions,
    Disposition,
    Grant,
    JobWrite,
    Refusal,
    RowChange,
)

CODEC = MessagePackCodec()
ASKED_MS = 1_700_000_000_000
ID = request_id(ASKED_MS, b"r" * 10)


def change(table: int, key: int) -> RowChange:
    return RowChange(ChangeKind.INSERT, table, 1, (key,), {1: key}, {}, (0,))


def commit(took_ms: int, *changes: RowChange, attempt: int = 1, by: bytes = ID) -> Commit:
    return Commit(by, attempt, (ASKED_MS + took_ms) * 1_000, {1: 2}, changes, len(changes))


def refusal(disposition: Disposition, code: str, **detail: object) -> Refusal:
    return Refusal(ID, 1, disposition, code, "", detail, 9, -1, "requests", 3, "", None, None)


def decisions(commits: tuple[Commit, ...], *refusals: Refusal, **more: object) -> bytes:
    made = Decisions(4, b"inc", 7, b"digest", 100, commits, refusals, {"requests": 12}, 88, ())
    return CODEC.encode(made._replace(**more))  # type: ignore[arg-type]


def test_commits_are_counted_by_table_and_refusals_by_kind() -> None:
    data = decisions(
        (
            commit(3, change(1, 1), change(1, 2), change(2, 1)),
            commit(-9, change(1, 3), attempt=2),
            commit(3, by=b""),  # of nobody's request
        ),
        refusal(Disposition.CONFLICT, "40001", table="t", key=("x", b"\x01")),
        refusal(Disposition.FINAL, "23505", table="t", key=(7,)),
        refusal(Disposition.REPLAY, "40001"),
        grants=(Grant("r1", b"i", 5, 500),),
    )
    assert read_activity(data) == LogActivity(
        commits=3,
        retried=1,
        rows=4,
        tables={1: (2, 3), 2: (1, 1)},
        refused={"40001": 2, "23505": 1},
        dispositions={"conflict": 1, "final": 1, "replay": 1},
        conflicts=(("t", "x, \\x01"),),
        decided_ms=(3, 0),
        granted={"r1": 500},
    )


def test_a_large_commit_and_one_with_catalog_writes_are_counted() -> None:
    large = commit(1, change(1, 1))._replace(answer="x" * 2_000_000)
    catalog = commit(1)._replace(catalog=(JobWrite(7, {"status": "running"}),))
    found = read_activity(decisions((large, catalog)))
    assert found is not None
    assert (found.commits, found.tables) == (2, {1: (1, 1)})


def test_what_decides_nothing_counts_nothing() -> None:
    assert read_activity(CODEC.encode(Claim(4, b"inc", b"digest", "m1"))) is None
    assert read_activity(CODEC.encode(Barrier(b"b", -1))) is None
    beat = read_activity(decisions(()))
    assert beat is not None
    assert (beat.commits, beat.refused, beat.granted) == (0, {}, {})


def test_a_long_key_is_cut() -> None:
    refused = refusal(Disposition.CONFLICT, "40001", table="t", key=("x" * 10_000,))
    found = read_activity(decisions((), refused))
    assert found is not None
    ((_, key),) = found.conflicts
    assert len(key) == KEY_CHARACTERS_MAX


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"\xc1", b"hello", b"\x78\x01", msgpack.packb([2, 2])),
        *(msgpack.packb([1, 2, 3]), msgpack.packb([1, 2, *[None] * 10]), msgpack.packb({})),
        msgpack.packb([1, 2, 1, b"", 1, b"", 1, [[1]], [], {}, 0, []]),
        msgpack.packb([1, 2, 1, b"", 1, b"", 1, [], [[1, 2, 99, "", "", 0, 0, 0, 0, 0, 0, 0, 0]]]),
    ],
)
def test_what_is_no_record_is_said(data: bytes) -> None:
    with pytest.raises(LogStopped):
        read_activity(data)
