"""Which of a master's own records count as read back once the broker has acknowledged them, and
when the log is fetched meanwhile (L1, L4; `replication/fast_path/own_appends.py`)."""

from __future__ import annotations

from leasehold.replication.fast_path.own_appends import OwnAppends, OwnAppendsSettings
from tests.models.mutants.replication import OwnAppendsRules, broken

MS = 1_000_000
SETTINGS = OwnAppendsSettings(silence_ms=50, row_min=4, pause_ms=1_000, pause_ms_max=4_000)


class Log:
    """A log that a master reads from offset 10 on, under a clock in ms; `taken`: offsets that were
    given to it, in order, by either way."""

    def __init__(self, settings: OwnAppendsSettings = SETTINGS) -> None:
        self.own = OwnAppends(settings)
        self.ms = 1_000
        self.next = 10
        self.taken: list[int] = []

    def landed(self, offset: int) -> None:
        if self.own.landed(offset, self.next, self.ms * MS):
            self._take(offset)

    def fetched(self, offset: int) -> None:
        if self.own.is_new(offset):
            self._take(offset)

    def _take(self, offset: int) -> None:
        self.taken.append(offset)
        self.next = offset + 1

    def row(self, count: int, apart_ms: int = 5) -> None:
        for _ in range(count):
            self.ms += apart_ms
            self.landed(self.next)

    def tick(self, *, master: bool = True) -> bool:
        self.own.tick(self.ms * MS, master=master)
        return self.own.fetches


def test_what_has_landed_at_the_next_offset_is_taken_and_not_once_more_when_it_is_fetched() -> None:
    log = Log()
    log.landed(10)
    log.fetched(10)
    log.fetched(11)
    log.landed(11)
    log.landed(12)
    assert log.taken == [10, 11, 12]


def test_what_stands_behind_something_else_is_left_to_be_fetched() -> None:
    log = Log()
    log.landed(11)
    assert not log.taken
    log.fetched(10)
    log.fetched(11)
    assert log.taken == [10, 11]


def test_without_the_rule_the_other_record_is_never_seen() -> None:
    log = Log()
    with broken(OwnAppendsRules(next_only=False)):
        log.landed(11)
    log.fetched(10)
    assert log.taken == [11]


def test_what_was_read_before_this_process_is_read_again() -> None:
    """A candidate looks for answers that its predecessor may owe (L7)."""
    log = Log()
    log.fetched(3)
    assert log.taken == [3]


def test_the_log_is_not_fetched_after_a_row_and_is_after_a_silence() -> None:
    log = Log()
    log.row(3)
    assert log.tick()
    assert log.own.due_ns() is None
    log.row(1)
    assert not log.tick()
    assert log.own.due_ns() == (log.ms + 50) * MS
    log.ms += 49
    assert not log.tick()
    log.ms += 1
    assert log.tick()
    log.row(3)
    assert log.tick(), "a row begins anew"
    log.row(1)
    assert not log.tick(), "a silence is no fault"


def test_records_that_are_far_apart_are_no_row() -> None:
    log = Log()
    log.row(20, apart_ms=51)
    assert log.tick()
    assert log.taken == [*range(10, 30)]


def test_who_is_no_master_any_more_fetches() -> None:
    log = Log()
    log.row(4)
    assert not log.tick()
    assert log.tick(master=False)


def test_something_else_in_the_log_is_a_fault_and_the_pause_doubles() -> None:
    log = Log()
    for pause_ms in (1_000, 2_000, 4_000, 4_000):
        log.row(4)
        assert not log.tick()
        log.landed(log.next + 1)
        assert log.tick(), "a barrier stands before it"
        log.fetched(log.next)
        log.fetched(log.next)
        begin = log.ms
        while log.tick():
            log.row(1, apart_ms=10)
        assert pause_ms <= log.ms - begin <= pause_ms + 10


def test_a_record_that_landed_nobody_knows_where_is_fetched() -> None:
    """What a broker says of a batch that it had before, and no longer remembers."""
    log = Log()
    log.row(4)
    log.landed(-1)
    assert log.tick()
    log.fetched(log.next)
    assert log.taken == [*range(10, 15)]


def test_off_nothing_is_taken() -> None:
    log = Log(OwnAppendsSettings(on=False))
    log.row(20)
    assert log.tick()
    assert not log.taken
