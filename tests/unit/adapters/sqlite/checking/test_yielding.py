"""Long work beside users' short work: when it pauses and for how long, by clocks set by hand."""

from __future__ import annotations

from pathlib import Path
from threading import Event, get_native_id
from types import SimpleNamespace

import pytest

from leasehold.adapters.sqlite.checking import yielding
from leasehold.adapters.sqlite.checking.yielding import (
    LOAD,
    PAUSED_IN_ALL_MAX_NS,
    PAUSES_MAX,
    TASKS,
    WAITS_REPAID,
    WANTED_REPAID,
    WORK_NS,
    GivesWay,
    ProcessorWaits,
    Users,
    pause_by_need_ns,
    pause_ns,
    processors_wanted,
)

MS = 1_000_000
REST = 3


class Closing(Event):
    """Waiting for it takes no time; notes for how long it would have been."""

    def __init__(self) -> None:
        super().__init__()
        self.waits_ns: list[int] = []

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waits_ns.append(round(timeout * 1e9))
        return self.is_set()


class Thread:
    """A thread's clocks, and what it does while somebody waits, or nobody."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worked_ns = self.clock_ns = self.wanted = 0
        monkeypatch.setattr(yielding, "processors_wanted", lambda: self.wanted)
        monkeypatch.setattr(yielding, "thread_time_ns", lambda: self.worked_ns)
        monkeypatch.setattr(yielding, "monotonic_ns", lambda: self.clock_ns)
        self.users, self.closing = Users(), Closing()
        self.gives_way = GivesWay(self.users, self.closing, REST)

    def works(self, worked_ns: int, waited_ns: int = 0) -> int:
        """→ the pause it makes then."""
        self.worked_ns += worked_ns
        self.clock_ns += worked_ns + waited_ns
        before = len(self.closing.waits_ns)
        assert self.gives_way() is self.closing.is_set()
        return sum(self.closing.waits_ns[before:])


@pytest.fixture
def thread(monkeypatch: pytest.MonkeyPatch) -> Thread:
    return Thread(monkeypatch)


def test_it_pauses_for_longer_than_it_waited_and_a_tenth_of_the_time_is_work() -> None:
    assert pause_ns(2 * MS, 2 * MS) == 0, "there was a processor at once"
    assert pause_ns(2 * MS, 3 * MS) == WAITS_REPAID * MS
    assert pause_ns(2 * MS, 500 * MS) == 2 * MS * PAUSES_MAX
    assert pause_ns(2 * MS, 1 * MS) == 0, "clocks of different grain"


def test_it_pauses_for_each_who_wants_a_processor() -> None:
    assert pause_ns(2 * MS, 2 * MS, wanted=1) == 2 * MS * WANTED_REPAID
    assert pause_ns(2 * MS, 3 * MS, wanted=2) == 4 * MS * WANTED_REPAID + WAITS_REPAID * MS
    assert pause_ns(2 * MS, 2 * MS, wanted=100) == 2 * MS * PAUSES_MAX


@pytest.mark.parametrize(
    ("text", "there", "wanted"),
    [
        ("0.84 2.10 2.89 3/180 20893\n", 2, 2),
        ("0.84 2.10 2.89 2/180 20893\n", 2, 1),
        ("0.84 2.10 2.89 1/180 20893\n", 2, 0),
        ("0.84 2.10 2.89 1/180 20893\n", 64, 0),
        ("0.84 2.10 2.89 1/180 20893\n", 1, 1),
        ("", 1, 0),
        ("0.84 2.10 2.89 many/180", 1, 0),
    ],
)
def test_one_processor_is_to_stay_idle(tmp_path: Path, text: str, there: int, wanted: int) -> None:
    load = tmp_path / "loadavg"
    load.write_text(text)
    assert processors_wanted(load, there) == wanted


def test_where_the_kernel_tells_nothing_nobody_wants_any(tmp_path: Path) -> None:
    assert processors_wanted(tmp_path / "none", 1) == 0


@pytest.mark.skipif(not LOAD.exists(), reason="this kernel does not tell")
def test_here_this_thread_is_one_of_those_that_run() -> None:
    assert processors_wanted(there=1) >= 1


def test_beside_users_it_pauses_for_others_though_it_never_waited(thread: Thread) -> None:
    thread.wanted = 2
    assert thread.works(WORK_NS) == 0, "nobody is beside it"
    thread.users.beside = True
    assert thread.works(WORK_NS) == 2 * WANTED_REPAID * WORK_NS
    thread.wanted = 0
    assert thread.works(WORK_NS) == 0


def test_a_gentle_pace_is_at_most_half_also_where_nobody_waits(thread: Thread) -> None:
    thread.users.gentle = True
    assert thread.works(WORK_NS) == 0, "nobody is beside it"
    thread.users.beside = True
    assert thread.works(WORK_NS) == WORK_NS
    thread.wanted = 2
    assert thread.works(WORK_NS) == (2 * 2 * WANTED_REPAID + 1) * WORK_NS
    assert pause_ns(2 * MS, 500 * MS, gentle=True) == 2 * MS * (2 * PAUSES_MAX + 1)


def test_while_nobody_waits_it_works_on(thread: Thread) -> None:
    assert thread.works(10 * WORK_NS, waited_ns=WORK_NS) == 0


def test_beside_users_it_repays_what_it_waited_since_the_last_pause(thread: Thread) -> None:
    thread.works(10 * WORK_NS, waited_ns=100 * WORK_NS)  # before anybody came
    thread.users.beside = True
    assert thread.works(WORK_NS) == 0
    assert thread.works(WORK_NS // 2, waited_ns=MS) == 0, "too short a piece of work"
    assert thread.works(WORK_NS // 2, waited_ns=MS) == WAITS_REPAID * 2 * MS
    assert thread.works(WORK_NS, waited_ns=MS) == WAITS_REPAID * MS
    thread.users.beside = False
    assert thread.works(WORK_NS, waited_ns=MS) == 0


def test_what_has_paused_for_long_works_on(thread: Thread) -> None:
    thread.users.beside = True
    pauses_ns = [thread.works(WORK_NS, waited_ns=WORK_NS * PAUSES_MAX) for _ in range(2_000)]
    assert sum(pauses_ns) == PAUSED_IN_ALL_MAX_NS
    assert pauses_ns[0] == WORK_NS * PAUSES_MAX
    assert pauses_ns[-1] == 0


def test_what_closes_ends_the_statement(thread: Thread) -> None:
    assert thread.works(WORK_NS) == 0
    thread.closing.set()
    thread.works(1)


# ------------------------------------------------------------------ by need


def test_by_need_it_pauses_for_what_who_applies_the_log_has_waited() -> None:
    assert pause_by_need_ns(2 * MS, 0, REST) == REST * 2 * MS, "it had one whenever it wanted"
    assert pause_by_need_ns(2 * MS, 3 * MS, REST) == WAITS_REPAID * 3 * MS
    assert pause_by_need_ns(2 * MS, 500 * MS, REST) == 2 * MS * PAUSES_MAX
    assert pause_by_need_ns(2 * MS, 0, 0, gentle=True) == 2 * MS
    assert pause_by_need_ns(2 * MS, 3 * MS, REST, gentle=True) == (2 * WAITS_REPAID * 3 + 2) * MS


def test_the_kernel_tells_how_long_a_thread_has_waited(tmp_path: Path) -> None:
    told = tmp_path / "7" / "schedstat"
    told.parent.mkdir()
    told.write_text("900 100 3\n")
    waits = ProcessorWaits(7, tmp_path)
    told.write_text("950 130 4\n")
    assert waits.take_ns() == 30
    assert waits.take_ns() == 0
    told.write_text("")
    assert waits.take_ns() is None
    assert ProcessorWaits(8, tmp_path).take_ns() is None


@pytest.mark.skipif(not TASKS.exists(), reason="this kernel does not tell")
def test_here_the_kernel_tells() -> None:
    assert ProcessorWaits(get_native_id()).take_ns() is not None


def test_a_piece_of_work_goes_by_need_as_soon_as_it_is_known_whose(
    thread: Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = SimpleNamespace(take_ns=lambda: WORK_NS // 4)
    monkeypatch.setattr(yielding, "ProcessorWaits", lambda thread_id: waits)
    thread.gives_way = GivesWay(thread.users, thread.closing, REST)
    thread.users.beside, thread.wanted = True, 3
    assert thread.works(WORK_NS) == 3 * WANTED_REPAID * WORK_NS
    thread.users.thread_id = 5
    assert thread.works(WORK_NS) == WORK_NS * REST
