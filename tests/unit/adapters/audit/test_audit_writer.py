"""The audit log of a process: what is written, where, and what becomes of it when it can't be."""

from __future__ import annotations

import json
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.adapters.audit.file import OLD_FILES, AuditFile
from leasehold.adapters.audit.lines import LINE_BYTES_MAX, decode_line, encode_line
from leasehold.adapters.audit.repeats import KEPT_MAX, TOGETHER_NS, Repeats
from leasehold.adapters.audit.writer import AuditWriter
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import AuditUnavailable, ConfigurationError

LOG_IN = AuditEvent(Audited.LOG_IN, user="ann", role="ann", address="10.0.0.7")
WAIT_S = 10.0
TEXT = st.text(max_size=400)


class Place:
    """A place that can be told to fail; it says when something was written."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.fails = ""
        self.waits = False
        self.why = ""
        self.closed = False
        self.changed = threading.Condition()

    def write(self, lines: Sequence[bytes]) -> None:
        with self.changed:
            self.changed.notify_all()
            if self.fails:
                raise OSError(self.fails)
            self.lines += lines

    def poll(self) -> int:
        return 0

    def close(self) -> None:
        self.closed = True

    def wait_for(self, lines: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: len(self.lines) >= lines, WAIT_S)


def test_an_event_is_a_line_with_time_and_node() -> None:
    line = encode_line(LOG_IN, "r1", 1_700_000_000_123_456)
    assert json.loads(line) == {
        "time": "2023-11-14T22:13:20.123456Z",
        "node": "r1",
        "kind": "log-in",
        "outcome": "ok",
        "user": "ann",
        "role": "ann",
        "address": "10.0.0.7",
    }


@given(TEXT, TEXT, TEXT)
def test_what_a_stranger_sends_is_one_short_line(user: str, address: str, words: str) -> None:
    event = AuditEvent(Audited.FAILED_LOG_IN, "28P01", user, address=address, words=words)
    line = encode_line(event, "r1", 0)
    assert len(line) < LINE_BYTES_MAX
    assert line.isascii()
    assert line.decode().isprintable()
    assert decode_line(line) is not None


@given(st.binary(max_size=100))
def test_lines_that_are_none_are_passed_over(data: bytes) -> None:
    assert decode_line(data) is None or b"kind" in data


def test_a_file_is_its_user_s_alone_and_begins_anew_when_it_is_full(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    file = AuditFile(path, 1_000)
    for number in range(500):
        file.write([b"%0100d" % number])
    file.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 1 + OLD_FILES
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert all(each.stat().st_size <= 1_000 for each in files)
    assert path.read_bytes().endswith(b"499\n")
    assert (tmp_path / "audit.log.1").read_bytes().splitlines()[-1] < path.read_bytes()


def test_a_file_goes_on_where_it_was_and_where_somebody_took_it_away(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    for word in (b"one", b"two"):
        file = AuditFile(path, 1_000)
        file.write([word])
    assert path.read_bytes() == b"one\ntwo\n"
    path.unlink()
    file.write([b"three"])
    assert path.read_bytes() == b"three\n"


def test_a_file_that_can_t_be_made_is_told_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        AuditFile(tmp_path / "nowhere" / "audit.log", 1_000)


def test_events_go_to_every_place_in_their_order() -> None:
    places = Place(), Place()
    writer = AuditWriter("r1", places)
    for number in range(100):
        writer.record(LOG_IN._replace(user=f"u{number}"))
    writer.close()
    for place in places:
        users = [json.loads(line)["user"] for line in place.lines]
        assert users == [f"u{number}" for number in range(100)]
        assert place.closed


def test_what_is_lost_is_counted_and_written_down_when_it_works_again() -> None:
    """Nobody waits, and nobody is refused, for as long as that is not asked for."""
    place = Place()
    place.fails = "no space left"
    writer = AuditWriter("r1", (place,))
    with place.changed:
        writer.record(LOG_IN)
        assert place.changed.wait(WAIT_S)
    writer.record(LOG_IN)
    with place.changed:
        place.fails = ""
    writer.record(LOG_IN._replace(user="bob"))
    place.wait_for(2)
    writer.close()
    lost = [event for event in map(json.loads, place.lines) if event["kind"] == "lost"]
    assert 1 <= sum(event.get("times", 1) for event in lost) <= 2


def test_a_full_queue_loses_events_and_holds_nobody_up() -> None:
    place = Place()
    writer = AuditWriter("r1", (place,), queued_max=10)
    with place.changed:  # the thread can't go on
        for _ in range(1_000):
            writer.record(LOG_IN)
    writer.close()
    events = [json.loads(line) for line in place.lines]
    told = sum(1 for event in events if event["kind"] == "log-in")
    lost = sum(event.get("times", 1) for event in events if event["kind"] == "lost")
    assert told + lost == 1_000
    assert lost > 0


def test_where_none_may_be_lost_nothing_happens_while_it_fails() -> None:
    """Each refusal is a try: once a line can be written again, all goes on."""
    place = Place()
    place.fails = "no space left"
    writer = AuditWriter("r1", (place,), required=True)
    with place.changed:
        writer.record(LOG_IN)
        assert place.changed.wait(WAIT_S)
    for _ in range(1_000_000):
        if writer.why:
            break
    with pytest.raises(AuditUnavailable, match="no space left"):
        writer.record(LOG_IN)
    with place.changed:
        place.fails = ""
    with pytest.raises(AuditUnavailable):
        writer.record(LOG_IN)
    place.wait_for(2)
    for _ in range(10_000_000):
        if not writer.why:
            break
    writer.record(LOG_IN)
    writer.close()


def test_refusals_that_come_again_and_again_are_two_lines() -> None:
    repeats, refusal = Repeats(), AuditEvent(Audited.REFUSED, "42501", "eve", words="t")
    assert repeats.take(refusal, 0) == [refusal]
    for number in range(1, 1_000):
        assert repeats.take(refusal, number) == []
    assert repeats.take(LOG_IN, 1_000) == [LOG_IN]
    assert repeats.due(TOGETHER_NS - 1) == []
    assert repeats.due(TOGETHER_NS) == [refusal._replace(times=999)]
    assert len(repeats) == 0


def test_no_number_of_users_makes_it_grow() -> None:
    repeats = Repeats()
    written = 0
    for number in range(3 * KEPT_MAX):
        event = AuditEvent(Audited.FAILED_LOG_IN, "28P01", f"u{number}")
        written += len(repeats.take(event, number))
        repeats.take(event, number)
    assert len(repeats) == KEPT_MAX
    assert written + len(repeats.due(0, all_of_them=True)) == 6 * KEPT_MAX
