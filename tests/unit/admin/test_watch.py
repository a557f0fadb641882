"""Whoever looks at a database is told when not all of it has been read yet.

Goal: a state that is half read, or minutes old, is never shown as if it were the present one.
Method: a watch over topics that are read as slowly as the test says.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

import pytest

from leasehold.adapters.os.clock import unix_us
from leasehold.admin import shared_watch as looks_module
from leasehold.admin.shared_watch import SharedWatch
from leasehold.admin.view import ClusterView, Event
from leasehold.admin.watch import ClusterWatch
from leasehold.cli import looking as looking_module
from leasehold.cli.looking import looking
from leasehold.cli.output import Output
from leasehold.lease.replies import SnapshotReport
from leasehold.model.errors import BusUnavailable
from leasehold.model.records.acks import Ack
from leasehold.settings.client import ClientSettings

SETTINGS = cast(ClientSettings, None)  # not looked at
SOON_S = 20.0


class SlowTopics:
    """Gives out an acknowledgement at once; has more to read until `read_all` is set."""

    def __init__(self) -> None:
        self.read_all = threading.Event()
        self._given = False

    def events(self, timeout_s: float) -> list[Event]:
        if self._given:
            self.read_all.wait(timeout_s)
            return []
        self._given = True
        return [Ack("r1", b"i", "replicant", 5, 1, 5, 0, True, "", unix_us())]

    @property
    def not_read(self) -> Mapping[str, int]:
        return {} if self.read_all.is_set() else {"jobs": 7_000}

    def close(self) -> None:
        pass


class Ledger:
    def call(self, command: object) -> Any:
        return SnapshotReport("run", 1, True, True, (), ())

    def call_all(self, commands: Sequence[Any]) -> list[Any]:
        return [self.call(command) for command in commands]

    def close(self) -> None:
        pass


@contextmanager
def watch_of(topics: SlowTopics) -> Iterator[ClusterWatch]:
    with ClusterWatch(SETTINGS, source=topics, ledger=Ledger()) as watch:
        yield watch


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> SlowTopics:
    made = SlowTopics()
    monkeypatch.setattr(looking_module, "ClusterWatch", lambda _, brief: watch_of(made))
    for module in (looking_module, looks_module):
        monkeypatch.setattr(module, "FIRST_LOOK_S", 0.05)
    monkeypatch.setattr(looking_module, "WHOLE_LOOK_S", 0.1)
    monkeypatch.setattr(looking_module, "NOTE_EVERY_S", 0.05)
    return made


def test_a_command_that_could_not_read_all_says_so_and_shows_nothing(
    topics: SlowTopics, capsys: pytest.CaptureFixture[str]
) -> None:
    with (
        pytest.raises(BusUnavailable, match="topic jobs is still being read, about 7,000 records"),
        looking(SETTINGS, Output(as_json=False)),
    ):
        raise AssertionError("half of the jobs would be shown as all of them")
    assert "about 7,000 records are left …" in capsys.readouterr().err


def test_a_command_that_has_read_all_goes_on(
    topics: SlowTopics, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(looking_module, "WHOLE_LOOK_S", SOON_S)
    monkeypatch.setattr(Output, "note", lambda *_: topics.read_all.set())
    with looking(SETTINGS, Output(as_json=False)) as (_, view):
        assert not view.gaps(unix_us())
        assert list(view.nodes) == ["r1"]


def test_status_gets_what_there_is_with_its_gaps(topics: SlowTopics) -> None:
    with looking(SETTINGS, Output(as_json=False), whole=False) as (watch, _):
        assert watch.wait_for(lambda seen: bool(seen.nodes and seen.not_read), SOON_S)
        (gap,) = watch.view.gaps(unix_us())
    assert gap == "topic jobs is still being read, about 7,000 records are left"


def test_before_the_first_reading_nothing_is_known(topics: SlowTopics) -> None:
    class Unreached(SlowTopics):
        def events(self, timeout_s: float) -> list[Event]:
            self.read_all.wait(timeout_s)
            return [] if self.read_all.is_set() else self.events(timeout_s)

    unreached = Unreached()
    with watch_of(unreached) as watch:
        assert "topic versions is still being read" in watch.view.gaps(unix_us())
        unreached.read_all.set()
        assert watch.wait_for(lambda seen: not seen.gaps(unix_us()), SOON_S)


def test_sql_that_asks_too_early_is_refused(topics: SlowTopics) -> None:
    looks = SharedWatch(lambda: ClusterWatch(SETTINGS, source=topics, ledger=Ledger()))
    try:
        with pytest.raises(BusUnavailable, match="topic jobs is still being read"):
            looks.view()
        topics.read_all.set()
        found: ClusterView = looks.view(lambda seen: not seen.not_read)
        assert list(found.nodes) == ["r1"]
    finally:
        topics.read_all.set()
        looks.close()
