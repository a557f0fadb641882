"""Goal: an orchestrator starts a process again whose loop hangs, and no other one; and it sends
users to one that serves them, and to no other one.

Method: a clock that is set by hand; what is answered on a port is asked by HTTP.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.health import Health
from leasehold.adapters.metrics.server import SCRAPES_AT_ONCE_MAX, MetricsServer
from leasehold.model.measures import Sample
from leasehold.model.time_units import NS_PER_S


class Clock:
    def __init__(self) -> None:
        self.ns = 1_000 * NS_PER_S

    def __call__(self) -> int:
        return self.ns

    def pass_s(self, seconds: float) -> None:
        self.ns += int(seconds * NS_PER_S)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    return Health(clock)


def test_one_that_starts_lives_however_long_it_takes_and_is_not_ready(
    health: Health, clock: Clock
) -> None:
    """It may copy a store of 100 GB first."""
    clock.pass_s(86_400)
    assert health.why_not_alive() == ""
    assert health.why_not_ready() == "it is starting"


def test_one_whose_loop_hangs_does_not_live_and_is_not_ready(health: Health, clock: Clock) -> None:
    health.watch(60)
    health.ready_when(lambda: "")
    for _ in range(10):
        clock.pass_s(59)
        assert (health.why_not_alive(), health.why_not_ready()) == ("", "")
        health.turned()
    clock.pass_s(61)
    assert health.why_not_alive() == "its loop has not turned for 61 s"
    assert health.why_not_ready() == "its loop has not turned for 61 s"
    health.turned()
    assert (health.why_not_alive(), health.why_not_ready()) == ("", "")


def test_one_that_hangs_in_its_first_turn_is_seen(health: Health, clock: Clock) -> None:
    health.watch(60)
    clock.pass_s(61)
    assert health.why_not_alive() == "its loop has not turned for 61 s"


def test_a_loop_that_has_not_begun_is_not_missed(health: Health, clock: Clock) -> None:
    """A node waits for Kafka before its first turn: a new process would do the same."""
    turned_ns = 0
    health.watch(60, lambda: turned_ns)
    clock.pass_s(3_600)
    assert health.why_not_alive() == ""
    turned_ns = clock()
    clock.pass_s(61)
    assert health.why_not_alive() == "its loop has not turned for 61 s"


def test_who_asks_whether_to_stop_turns(health: Health, clock: Clock) -> None:
    asked = health.turning(lambda: False)
    health.watch(60)
    clock.pass_s(61)
    assert asked() is False
    assert health.why_not_alive() == ""


def test_the_reason_is_that_of_now(health: Health) -> None:
    words = ["it reads the log"]
    health.ready_when(lambda: words[0])
    assert health.why_not_ready() == "it reads the log"
    words[0] = ""
    assert health.why_not_ready() == ""


# ---------------------------------------------------------------- by HTTP


@pytest.fixture
def exposition() -> Exposition:
    return Exposition()


@pytest.fixture
def server(exposition: Exposition) -> Iterator[MetricsServer]:
    made = MetricsServer(exposition, host="127.0.0.1", port=0)
    yield made
    made.close()


def ask(server: MetricsServer, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://{server.address}{path}", timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_the_answer_is_a_status_with_the_reason(
    server: MetricsServer, exposition: Exposition
) -> None:
    assert ask(server, "/livez") == (200, "it lives\n")
    assert ask(server, "/readyz") == (503, "it is starting\n")
    exposition.health.ready_when(lambda: "")
    assert ask(server, "/readyz") == (200, "it is ready\n")


def test_scrapes_that_hang_leave_the_process_alive(
    server: MetricsServer, exposition: Exposition
) -> None:
    """A probe that waited for scrapes would end a process that works."""
    release, begun = Event(), Event()

    def slow() -> list[Sample]:
        begun.set()
        release.wait(20)
        return []

    exposition.add("slow", slow)
    scrapes = [
        Thread(target=ask, args=(server, "/metrics"), daemon=True)
        for _ in range(SCRAPES_AT_ONCE_MAX)
    ]
    for each in scrapes:
        each.start()
    try:
        assert begun.wait(20)
        assert ask(server, "/livez") == (200, "it lives\n")
    finally:
        release.set()
        for each in scrapes:
            each.join(20)
