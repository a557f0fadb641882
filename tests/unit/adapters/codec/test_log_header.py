"""The head of a log record read alone says what the whole record says."""

from __future__ import annotations

import msgpack
import pytest

from leasehold.adapters.codec.log_header import LogHeader, read_header
from leasehold.adapters.codec.records import ZIPPED_ABOVE_BYTES, MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import (
    Attempt,
    Barrier,
    Claim,
    Commit,
    Decisions,
    Disposition,
    Grant,
    Refusal,
)

CODEC = MessagePackCodec()


def commit(at_us: int) -> Commit:
    return Commit(b"r" * 16, 1, at_us, {1: 2}, (), 1)


def refusal(disposition: Disposition) -> Refusal:
    return Refusal(b"", 1, disposition, "40001", "", {}, 9, -1, "requests", 3, "", b"x", None)


def test_the_head_of_decisions() -> None:
    grants = (Grant("r1", b"i", 5, 500),)
    refusals = tuple(map(refusal, (Disposition.FINAL, Disposition.DEAD_LETTER)))
    record = Decisions(
        4, b"inc", 7, b"digest", 100, (commit(1), commit(2), commit(3)), refusals,
        {"requests": 12}, 88, grants, 31, 32, 33,
    )  # fmt: skip
    header = LogHeader(4, 7, 102, 3, 3, 2, 1, {"requests": 12}, 88, grants, 31, 32, 33)
    assert read_header(CODEC.encode(record)) == header
    said = record._replace(attempts=(Attempt("requests", 12, 0, 1),))
    assert read_header(CODEC.encode(said)) == header


def test_the_head_of_an_older_masters_record_has_no_times() -> None:
    record = Decisions(4, b"inc", 7, b"digest", 100, (commit(1),), (), {"requests": 12}, 88, ())
    data = CODEC.encode(record)
    assert len(msgpack.unpackb(data, use_list=False, strict_map_key=False)) == 2 + 10
    assert read_header(data) == LogHeader(4, 7, 100, 1, 1, 0, 0, {"requests": 12}, 88, ())
    assert CODEC.decode_log(data) == record


def test_the_head_of_a_large_commit_that_travels_behind_zlib() -> None:
    large = commit(1)._replace(answer="x" * (ZIPPED_ABOVE_BYTES + 1))
    data = CODEC.encode(Decisions(4, b"inc", 7, b"digest", 100, (large,), (), {}, 0, ()))
    assert len(data) < ZIPPED_ABOVE_BYTES
    head = read_header(data)
    assert isinstance(head, LogHeader)
    assert (head.lsn, head.commits) == (100, 1)


def test_a_heartbeat_decides_nothing() -> None:
    head = read_header(CODEC.encode(Decisions(4, b"", 7, b"", 101, (), (), {}, 0, ())))
    assert isinstance(head, LogHeader)
    assert (head.lsn, head.commit_us, head.commits) == (100, 0, 0)


def test_claims_are_whole_and_barriers_nothing() -> None:
    claim = Claim(4, b"inc", b"digest", "m1")
    assert read_header(CODEC.encode(claim)) == claim
    assert read_header(CODEC.encode(Barrier(b"b", -1))) is None


@pytest.mark.parametrize(
    "data", [b"", b"\xc1", b"\x93\x01", b"hello", b"\x92\x63\x01", b"\x78\x01"]
)
def test_what_is_no_record_is_told(data: bytes) -> None:
    with pytest.raises(LogStopped):
        read_header(data)
