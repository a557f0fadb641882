"""Goal: what is written is what is read, and what can't be read stops with a reason.

Method: every record class with generated contents, and bytes broken in chosen ways.
"""

from __future__ import annotations

import contextlib
import json
import tracemalloc
import zlib
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leasehold.adapters.codec.log_header import read_header
from leasehold.adapters.codec.record_shape import CLASS_BY_TAG, TAG_BY_CLASS
from leasehold.adapters.codec.records import FORMAT, MessagePackCodec, restore_row_key, row_key
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.keys import IntKeys
from leasehold.model.records.acks import Ack, NodeReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import (
    Attempt,
    Backfill,
    Barrier,
    ChangeKind,
    Claim,
    Commit,
    Decisions,
    Disposition,
    Grant,
    JobWrite,
    LogPosition,
    MinVersion,
    Refusal,
    RowChange,
)
from leasehold.model.records.requests import Outcome, Result, ResultBatch
from tests.support.codec.records import ANY_RECORD, BODY, PLAIN, record

CODEC = MessagePackCodec()
SLOW = settings(suppress_health_check=[HealthCheck.too_slow])


def types_of(value: Any) -> Any:
    """Equality of NamedTuples and enums says nothing of their classes; this does."""
    if isinstance(value, tuple):
        return (type(value), *map(types_of, value))
    return type(value)


@SLOW
@given(ANY_RECORD)
def test_every_record_comes_back_with_its_classes(sent: Any) -> None:
    found = CODEC.decode(CODEC.encode(sent))
    assert found == sent
    assert types_of(found) == types_of(sent)


@SLOW
@given(st.one_of(record(Claim), record(Decisions), record(Barrier)))
def test_every_log_record_comes_back_from_the_log(sent: Any) -> None:
    found = CODEC.decode_log(CODEC.encode(sent))
    assert found == sent
    assert types_of(found) == types_of(sent)


@SLOW
@given(record(Decisions))
def test_a_joined_record_has_the_bytes_of_the_whole(sent: Decisions) -> None:
    commits = [CODEC.pack_commit(commit) for commit in sent.commits]
    refusals = [CODEC.pack_refusal(refusal) for refusal in sent.refusals]
    header = sent._replace(commits=(), refusals=())
    assert CODEC.join_decisions(header, commits, refusals) == CODEC.encode(sent)


@pytest.mark.parametrize("count", [0, 15, 16, 70_000])
def test_a_joined_record_may_hold_any_number(count: int) -> None:
    commit = Commit(b"i" * 16, 1, 1, {}, (), 0)
    whole = Decisions(1, b"x", 1, b"", 1, (commit,) * count, (), {}, 0, ())
    parts = [CODEC.pack_commit(commit)] * count
    assert CODEC.join_decisions(whole._replace(commits=()), parts, []) == CODEC.encode(whole)


def test_a_decisions_record_in_full() -> None:
    change = RowChange(ChangeKind.UPDATE, 104, 2, (7, "a"), {1: 7, 2: None}, {0: 5 << 20}, (0,))
    refusal = Refusal(
        b"i" * 16, 2, Disposition.CONFLICT, "40001", "words", {"key": (1,)}, 9, 3,
        "requests", 11, "application/json", b"{}", None,
    )  # fmt: skip
    commit = Commit(
        b"j" * 16, 1, 5, {104: 2}, (change,), 1,
        catalog=(JobWrite(7, {"steps": ((1, 2, True),)}), MinVersion(104, 2)), answer={"job": 7},
    )  # fmt: skip
    sent = Decisions(
        3, b"inc", 4, b"digest", 100, (commit,), (refusal,), {"requests": 12}, 8,
        (Grant("r1", b"x", 1, 500),), 7, 8, 9,
    )  # fmt: skip
    found = CODEC.decode_log(CODEC.encode(sent))
    assert found == sent
    assert types_of(found) == types_of(sent)


def test_which_topics_the_queues_are_takes_room_only_where_it_is_news() -> None:
    """All other records have the bytes that older releases read."""
    plain = Decisions(4, b"inc", 7, b"digest", 101, (), (), {"requests": 1}, 0, ())
    news = plain._replace(queue_topics={"requests": "id"})
    for sent, fields in ((plain, 10), (news, 14)):
        data = CODEC.encode(sent)
        assert data == CODEC.join_decisions(sent, [], [])
        assert len(msgpack.unpackb(data)) == fields + 2
        assert CODEC.decode_log(data) == sent


def test_l10_what_masters_say_of_a_message_travels_where_they_say_something() -> None:
    """Else a record has the bytes of a release that knew no such field, so that one reads it."""
    said = (Attempt("backfill", 3, 7, 1), Attempt("requests", 12, 0, 2))
    silent = Decisions(3, b"inc", 4, b"digest", 100, (), (), {"requests": 12}, 8, ())
    sent = silent._replace(attempts=said)
    position = LogPosition(5, 3, attempts=said)
    assert CODEC.decode_log(CODEC.encode(sent)) == sent
    assert CODEC.join_decisions(sent, [], []) == CODEC.encode(sent)
    assert CODEC.decode(CODEC.encode(position)) == position
    for told, fields in ((silent, 10), (position._replace(attempts=()), 10)):
        older = msgpack.packb((FORMAT, TAG_BY_CLASS[type(told)], *told[:fields]))
        assert CODEC.encode(told) == older
        assert CODEC.decode(older) == told
    assert CODEC.join_decisions(silent, [], []) == CODEC.encode(silent)


def test_a_feature_level_takes_room_only_where_there_is_one() -> None:
    """Until a database has one, records have the bytes that release 0.1.0 reads: whose processes
    then are the ones beside this."""
    plain = Decisions(4, b"inc", 7, b"digest", 101, (), (), {"requests": 1}, 0, ())
    report = NodeReport("m1", "0.9", "enough", 1, 2, 3, 4, 5, 6)
    position = LogPosition(5, 3)
    for sent, fields in ((plain, 10), (report, 9), (position, 10)):
        older = msgpack.packb((FORMAT, TAG_BY_CLASS[type(sent)], *sent[:fields]))
        assert CODEC.encode(sent) == older
        told = sent._replace(feature_level=9)
        assert len(msgpack.unpackb(CODEC.encode(told))) == len(type(told)._fields) + 2
        assert CODEC.encode(sent) != CODEC.encode(told)
    leveled = plain._replace(feature_level=9)
    assert CODEC.decode_log(CODEC.encode(leveled)) == leveled
    assert CODEC.join_decisions(leveled, [], []) == CODEC.encode(leveled)
    for each in (report, position):
        assert CODEC.decode(CODEC.encode(each._replace(feature_level=9))).feature_level == 9


def test_read_only_mappings_travel_as_maps() -> None:
    position = LogPosition(decided_through=MappingProxyType({"requests": 4}))
    assert CODEC.decode(CODEC.encode(position)).decided_through == {"requests": 4}


def test_fields_appended_later_take_their_defaults_when_an_older_writer_left_them_out() -> None:
    older = msgpack.packb((FORMAT, TAG_BY_CLASS[Barrier], b"id"))
    assert CODEC.decode_log(older) == Barrier(b"id", None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no log record"),
        (b"\xc1", "no log record"),
        (b"\x80", "format and tag"),
        (msgpack.packb((FORMAT + 1, 3, b"id", None)), f"reads wire format {FORMAT + 1} is needed"),
        (msgpack.packb((FORMAT, 99, b"id")), "tag 99"),
        (msgpack.packb((FORMAT, {}, b"id")), "no log record"),
        (msgpack.packb((FORMAT, TAG_BY_CLASS[Claim], 1)), "1 fields"),
        (msgpack.packb((FORMAT, TAG_BY_CLASS[Claim], "1", b"", b"", "n")), "Claim.epoch"),
        (msgpack.packb((FORMAT, TAG_BY_CLASS[Barrier], b"id", None, "", None, 1)), "5 fields"),
        (CODEC.encode(Barrier(b"id"))[:-1], "no log record"),
        (CODEC.encode(Barrier(b"id")) + b"x", "no log record"),
        (CODEC.encode(Ack("n", b"", "master", 0, 0, 0, 0, False, "", 0)), "tag 10"),
    ],
)
def test_what_is_no_log_record_stops_the_reader_with_a_reason(data: bytes, words: str) -> None:
    with pytest.raises(LogStopped, match=words):
        CODEC.decode_log(data)


def test_a_change_of_no_known_kind_stops_the_reader() -> None:
    change = RowChange(9, 1, 1, (1,), {}, {}, ())  # type: ignore[arg-type]
    sent = Decisions(1, b"", 1, b"", 1, (Commit(b"", 1, 1, {}, (change,), 1),), (), {}, 0, ())
    with pytest.raises(LogStopped):
        CODEC.decode_log(CODEC.encode(sent))


@SLOW
@given(st.one_of(st.binary(), BODY.map(lambda body: msgpack.packb((FORMAT, 2, body)))))
def test_foreign_bytes_raise_nothing_but_the_named_errors(data: bytes) -> None:
    for decode, error in ((CODEC.decode_log, LogStopped), (CODEC.decode, MalformedRequest)):
        with contextlib.suppress(error):
            decode(data)


@SLOW
@given(st.sampled_from(sorted(CLASS_BY_TAG)), st.lists(BODY, max_size=14))
def test_foreign_fields_never_pass_for_a_record(tag: int, fields: list[Any]) -> None:
    data = msgpack.packb((FORMAT, tag, *fields))
    try:
        found = CODEC.decode(data)
    except MalformedRequest:
        return
    assert type(found) is CLASS_BY_TAG[tag]


def test_true_is_no_number_of_an_enumeration() -> None:
    fields = list(Refusal(b"", 1, Disposition.FINAL, "", "", {}, 0, -1, "", 0, "", None, None))
    fields[2] = True  # equal to 1 in Python, yet nothing that a master writes
    sent = Decisions(1, b"", 1, b"", 1, (), (tuple(fields),), {}, 0, ())  # type: ignore[arg-type]
    with pytest.raises(LogStopped, match=r"Refusal\.disposition"):
        CODEC.decode_log(CODEC.encode(sent))


@pytest.mark.parametrize("keys", [[[1], 2], [5], {}, None, "12345678", b"1234567"])
def test_a_chunk_whose_keys_are_none_is_refused(keys: Any) -> None:
    sent = CODEC.encode(Chunk(1, 1, 1, 1, 6, ((1, "a"),)))
    assert CODEC.decode(sent).keys == ((1, "a"),)
    fields = [*msgpack.unpackb(sent)[:-1], keys]
    with pytest.raises(MalformedRequest, match="keys"):
        CODEC.decode(msgpack.packb(fields))


def test_keys_of_one_integer_travel_as_their_numbers() -> None:
    numbers = [0, -1, 2**63 - 1, -(2**63), 258]
    keys = IntKeys(numbers)
    sent = CODEC.encode(Chunk(1, 1, 1, 1, 6, keys))
    assert sent.endswith(b"\x02\x01" + bytes(6)), "least byte first, whatever the machine"
    assert CODEC.decode(sent).keys == keys == tuple((n,) for n in numbers)
    assert type(CODEC.decode(sent).keys) is IntKeys
    backfill = Commit(
        b"", 1, 1, {}, (), 5, backfills=(Backfill(1, 1, 6, keys), Backfill(1, 1, 6, ((1,),)))
    )
    record = Decisions(1, b"", 1, b"", 1, (backfill,), (), {}, 0, ())
    (commit,) = CODEC.decode_log(CODEC.encode(record)).commits  # type: ignore[union-attr]
    assert commit == backfill
    assert [type(each.keys) for each in commit.backfills] == [IntKeys, tuple]


@pytest.mark.parametrize(
    "fields",
    [
        (1, 1, 6, [5]),
        (1, 1, 6, [[1]], 5),
        (1, 1, 6, [[1]], [5]),
        (1, 1, 6, [[1]], [{}], [[1]]),
        (1, 1, 6, [[1]], [{}], {}),
        (1, 1, 6, [[1]], [{}], [{}], 0),
        (1, 1, 6),
    ],
)
def test_a_fill_of_another_shape_stops_the_reader(fields: Any) -> None:
    commit = Commit(b"", 1, 1, {}, (), 1, backfills=(fields,))
    with pytest.raises(LogStopped):
        CODEC.decode_log(CODEC.encode(Decisions(1, b"", 1, b"", 1, (commit,), (), {}, 0, ())))


def test_a_fill_by_image_comes_back() -> None:
    backfill = Backfill(1, 1, 6, ((1,), (2,)), ({1: 1, 6: "a"}, {1: 2}), ({0: 9}, {}))
    commit = Commit(b"", 1, 1, {}, (), 2, backfills=(backfill,))
    sent = Decisions(1, b"", 1, b"", 1, (commit,), (), {}, 0, ())
    assert CODEC.decode_log(CODEC.encode(sent)) == sent
    assert types_of(CODEC.decode_log(CODEC.encode(sent))) == types_of(sent)


OUTCOME: tuple[Any, ...] = (1, 9, 1, 5, True, "", "", {}, False, None)


@pytest.mark.parametrize("place", range(9))
def test_an_outcome_with_a_field_of_another_type_is_refused(place: int) -> None:
    outcome = (*OUTCOME[:place], 1.5, *OUTCOME[place + 1 :])
    data = msgpack.packb((FORMAT, TAG_BY_CLASS[ResultBatch], [(b"id", 3, outcome)]))
    with pytest.raises(MalformedRequest, match=Outcome._fields[place]):
        CODEC.decode(data)


@pytest.mark.parametrize(
    "result", [(1, 3, OUTCOME), (b"id", "3", OUTCOME), (b"id", 3), (b"id", 3, 4)]
)
def test_a_result_that_is_none_is_refused(result: Any) -> None:
    with pytest.raises(MalformedRequest):
        CODEC.decode(msgpack.packb((FORMAT, TAG_BY_CLASS[ResultBatch], [result])))


def test_an_outcome_of_an_older_writer_takes_the_defaults_of_what_it_did_not_know() -> None:
    data = msgpack.packb((FORMAT, TAG_BY_CLASS[ResultBatch], [(b"id", 3, OUTCOME[:5])]))
    assert CODEC.decode(data) == ResultBatch((Result(b"id", 3, Outcome(1, 9, 1, 5, True)),))


def test_a_record_of_another_class_is_refused() -> None:
    with pytest.raises(MalformedRequest, match="expected Ack, found Barrier"):
        CODEC.decode_as(Ack, CODEC.encode(Barrier(b"id")))


@given(st.lists(PLAIN, min_size=1, max_size=4))
def test_row_keys_come_back(key: list[Any]) -> None:
    assert restore_row_key(row_key(key)) == tuple(key)


@pytest.mark.parametrize("data", [b"", b"\x01", b"\xc1", b"\x92\x01"])
def test_what_is_no_row_key_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedRequest):
        restore_row_key(data)


def zipped_zeros(megabytes: int) -> bytes:
    packer, block = zlib.compressobj(9), bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


def most_bytes(decode: Callable[[bytes], Any], data: bytes, error: type[Exception]) -> int:
    """Memory that reading takes, which is to end in that error."""
    tracemalloc.start()
    with pytest.raises(error):
        decode(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return most


def test_nothing_but_records_of_the_log_is_unpacked() -> None:
    """200 kB on any other topic must not become 200 MB of whoever reads them."""
    assert most_bytes(CODEC.decode, zipped_zeros(200), MalformedRequest) < 1_000_000
    ack = CODEC.encode(Ack("n", b"", "standby", 1, 1, 1, 0, False, "", 1))
    with pytest.raises(MalformedRequest):
        CODEC.decode(zlib.compress(ack))


def test_a_record_of_the_log_unpacks_to_so_much_and_no_more() -> None:
    record = zipped_zeros(200)
    assert most_bytes(CODEC.decode_log, record, LogStopped) < 150_000_000
    assert most_bytes(read_header, record, LogStopped) < 150_000_000
    with pytest.raises(LogStopped, match="not all of"):
        CODEC.decode_log(record[:1_000])


def test_a_digest_tells_records_apart() -> None:
    one, other = CODEC.encode(Barrier(b"a")), CODEC.encode(Barrier(b"b"))
    assert CODEC.digest(one) != CODEC.digest(other)
    assert len(CODEC.digest(one)) == 16


@pytest.mark.parametrize("table_id", [-1, -(1 << 63) - 1, 1 << 63])
def test_a_version_event_of_no_table_is_malformed(table_id: int) -> None:
    """Its id names a topic: whoever took it would fail where that is asked for."""
    event = VersionEvent(table_id, "t", 1, 9, 9, {}, 0, "")
    body = {"format": 1, "table": "t", "table_id": table_id, "former_name": None, "lsn": 9}
    public = {**body, "commit_us": 9, "elements": [], "version": 1, "job": None}
    told = [json.dumps(public).encode()]
    if table_id >= -(1 << 63):
        told.append(CODEC.encode(event))
    for data in told:
        with pytest.raises(MalformedRequest, match="no id"):
            CODEC.decode_as(VersionEvent, data)
