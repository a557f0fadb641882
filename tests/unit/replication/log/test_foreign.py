"""What stands in the log and does not follow is passed over where the chain goes on without it, and
stops a reader where it does not (L1, L2, L4).

Method: a log with a term and some records; one record that does not follow, of each kind, then the
one that does. Times are made up.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Claim, LogPosition, LogRecord, Unreadable
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.admission import Verdict, admit
from leasehold.replication.log.foreign import REMEMBERED_MAX, WAIT_MS, WARN_MS, ForeignRecords
from tests.support.replication.made_records import M1, M2, claim, decisions

CODEC = MessagePackCodec()
WAIT_NS = WAIT_MS * NS_PER_MS


class Reader:
    """Reads one record after the other, from bytes."""

    def __init__(self, position: LogPosition | None = None) -> None:
        self.position = position or LogPosition()
        self.foreign = ForeignRecords()
        self.now_ns = 0

    def read(self, data: bytes) -> Verdict:
        verdict, self.position = self.foreign.judge(
            admit,
            self.position,
            self.position.offset,
            CODEC.read_log(data),
            CODEC.digest(data),
            self.now_ns,
        )
        return verdict

    def record(self, record: LogRecord) -> Verdict:
        return self.read(CODEC.encode(record))


@pytest.fixture
def reader() -> Reader:
    made = Reader()
    made.record(claim(made.position, M1))
    for at_us in (10, 11, 12):
        made.record(decisions(made.position, commits=(at_us,)))
    return made


def changed(data: bytes, **fields: Any) -> bytes:
    """The bytes of a record with some of its fields, by place, as they are given."""
    found = list(msgpack.unpackb(data, use_list=False, strict_map_key=False))
    for place, value in fields.items():
        found[int(place[1:])] = value
    packed: bytes = msgpack.packb(found)
    return packed


Make = Callable[[LogPosition], bytes]
NEXT: Make = lambda at: CODEC.encode(decisions(at, commits=(at.commit_us + 1,)))  # noqa: E731

IN_DOUBT: dict[str, Make] = {
    "a record is missing": lambda at: CODEC.encode(decisions(at)._replace(sequence=9)),
    "another before it": lambda at: CODEC.encode(decisions(at)._replace(previous=b"p" * 16)),
    "another LSN": lambda at: CODEC.encode(decisions(at)._replace(first_lsn=77)),
    "a time before": lambda at: CODEC.encode(decisions(at, commits=(3,))),
    "a term to come": lambda at: CODEC.encode(decisions(at, epoch=9)),
    "the next term": lambda at: CODEC.encode(decisions(at, epoch=2)),
    "a claim too many": lambda at: CODEC.encode(claim(at, M2)._replace(epoch=7)),
    "of a newer release": lambda at: changed(NEXT(at), _0=2, _5=b"p" * 16),
}
PASSED_OVER: dict[str, Make] = {
    "nothing": lambda _: b"",
    "one byte": lambda _: b"\0",
    "bytes": lambda _: b"\x93\x01\x02garbage",
    "half a record": lambda at: NEXT(at)[:-5],
    "zlib of nothing": lambda _: b"\x78\x9cnothing",
    "no log record": lambda _: msgpack.packb((1, 10, "node", b"", "", 1, 1, 1, 1, True, "", 1)),
    "an older release's end": lambda _: msgpack.packb((1, 2, 1)),
    "the place of one that was read": lambda at: CODEC.encode(
        decisions(at)._replace(sequence=at.sequence)
    ),
    "an earlier place": lambda at: CODEC.encode(decisions(at)._replace(sequence=1)),
    "numbers that are none": lambda at: changed(NEXT(at), _2="1"),
    "a place that is none": lambda at: changed(NEXT(at), _4=(1, 2)),
    "a digest that is none": lambda at: changed(NEXT(at), _5={}),
    "offsets that are none": lambda at: changed(NEXT(at), _9=7),
}
SKIPPED: dict[str, Make] = {
    "a term before": lambda at: CODEC.encode(decisions(at, epoch=0)),
    "another process": lambda at: CODEC.encode(decisions(at, incarnation=b"other")),
    "a claim that is late": lambda at: CODEC.encode(claim(at, M2)._replace(epoch=1)),
    "a claim of one who has not read all": lambda at: CODEC.encode(
        Claim(at.epoch + 1, M2, b"p" * 16, "m2")
    ),
}


@pytest.mark.parametrize("kind", [*IN_DOUBT, *PASSED_OVER, *SKIPPED])
def test_l2_the_chain_goes_on_without_it(reader: Reader, kind: str) -> None:
    """Nothing of it counts, the reader goes on, and what it has does not change."""
    make = {**IN_DOUBT, **PASSED_OVER, **SKIPPED}[kind]
    before = reader.position
    for times in (1, 2):
        verdict = reader.read(make(before))
        assert verdict is (Verdict.SKIP if kind in SKIPPED else Verdict.FOREIGN)
        assert reader.position == before._replace(offset=before.offset + times)
        assert reader.foreign.count == (0 if kind in SKIPPED else times)
        assert reader.foreign.in_doubt == (times if kind in IN_DOUBT else 0)
    reader.now_ns = 10 * WAIT_NS
    reader.foreign.check(reader.now_ns)
    assert not reader.foreign.breaks
    assert reader.read(NEXT(reader.position)) is Verdict.APPLY
    assert reader.foreign.in_doubt == 0
    assert reader.record(claim(reader.position, M2)) is Verdict.CLAIMED


def lost(reader: Reader, records: int) -> Reader:
    """Another reader, which has read so many records more."""
    ahead = Reader(reader.position)
    for _ in range(records):
        ahead.read(NEXT(ahead.position))
    return ahead


@pytest.mark.parametrize("missing", [1, 2])
def test_l2_a_chain_that_this_reader_has_not_stops_it(reader: Reader, missing: int) -> None:
    ahead = lost(reader, missing)
    before = reader.position
    for number in range(3):
        data = NEXT(ahead.position)
        assert reader.read(data) is Verdict.FOREIGN
        ahead.read(data)
        assert reader.foreign.breaks == (number > 0), "one record alone tells nothing"
    reader.foreign.check(WAIT_NS - 1)
    with pytest.raises(LogStopped, match=r"L2: .*the broker has lost"):
        reader.foreign.check(WAIT_NS)
    assert reader.position == before._replace(offset=before.offset + 3), "nothing of it was applied"


@pytest.mark.parametrize("late", [True, False], ids=["skipped", "too many"])
def test_l1_a_term_that_this_reader_has_missed_stops_it(reader: Reader, late: bool) -> None:
    """A Claim that did not count here, and records behind it."""
    ahead = lost(reader, 1)
    if not late:
        ahead.record(claim(ahead.position, M2))
    bid = claim(ahead.position, M2)
    assert reader.record(bid) is (Verdict.SKIP if late else Verdict.FOREIGN)
    ahead.record(bid)
    reader.read(NEXT(ahead.position))
    assert reader.foreign.breaks
    with pytest.raises(LogStopped, match=r"L1: .*missed a Claim"):
        reader.foreign.check(WAIT_NS)


def test_l2_a_chain_beside_the_own_one_stops_nobody(reader: Reader) -> None:
    """Somebody's two masters write to one topic: the own one's records follow."""
    other = lost(reader, 1)
    for _ in range(5):
        for _ in range(2):
            data = NEXT(other.position)
            reader.read(data)
            other.read(data)
        seen = [reader.foreign.breaks, reader.read(NEXT(reader.position)), reader.foreign.breaks]
        assert seen == [True, Verdict.APPLY, False]
        reader.now_ns += WAIT_NS
        reader.foreign.check(reader.now_ns)


@pytest.mark.parametrize(
    "make",
    [
        lambda at: changed(NEXT(at), _0=2),
        lambda at: msgpack.packb((*msgpack.unpackb(NEXT(at), strict_map_key=False), *[1] * 20)),
        lambda at: msgpack.packb((*msgpack.unpackb(CODEC.encode(claim(at, M2))), 5)),
    ],
    ids=["another format", "more fields", "a claim with more fields"],
)
def test_what_follows_and_cant_be_read_stops_at_once(reader: Reader, make: Make) -> None:
    """A newer release is master: whoever passes over its records goes another way."""
    with pytest.raises(LogStopped, match="install that release"):
        reader.read(make(reader.position))


def test_what_is_remembered_has_a_limit(reader: Reader) -> None:
    for number in range(REMEMBERED_MAX + 50):
        reader.record(decisions(reader.position)._replace(previous=b"%16d" % number, sequence=99))
    assert len(reader.foreign._places) == REMEMBERED_MAX
    assert not reader.foreign.breaks


def test_one_line_a_minute_says_it(reader: Reader) -> None:
    assert reader.foreign.warning(0) == ""
    reader.read(b"\0")
    words = reader.foreign.warning(5)
    assert "passed over 1 records" in words
    assert "at offset 4" in words
    for _ in range(3):
        reader.read(b"\0")
    assert reader.foreign.warning(6) == ""
    assert "passed over 3 records" in reader.foreign.warning(5 + WARN_MS * NS_PER_MS)
    assert reader.foreign.warning(10 * WARN_MS * NS_PER_MS) == ""


def test_what_a_record_still_shows_of_itself(reader: Reader) -> None:
    at = reader.position
    shown = CODEC.read_log(changed(NEXT(at), _0=2))
    assert isinstance(shown, Unreadable)
    assert shown[1:] == (at.epoch, at.incarnation, at.sequence + 1, at.digest)
    for data in (b"", b"\0", changed(NEXT(at), _0=2, _4="x"), changed(NEXT(at), _1=10)):
        assert CODEC.read_log(data)[2:] == (b"", -1, b"")
