"""Goal: a log that an older master has written is applied as it was, and what that one has
forgotten is never decided again.

Method: records in the older form, byte by byte, behind them this program's masters.
"""

from __future__ import annotations

from typing import Final

import msgpack
import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.ids import request_id
from leasehold.model.records.log import Claim, Commit, Decisions, LogPosition
from leasehold.model.records.requests import Outcome
from leasehold.replication.log.clock import first_id_horizon
from leasehold.replication.outcomes import OutcomeSettings
from tests.support.replication.clock_world import HOUR_MS, MINUTE_MS, WALL_MS, Hosts, taken

CODEC: Final = MessagePackCodec()
HOUR_US: Final = HOUR_MS * 1_000
INCARNATION: Final = b"an older"
OLDER_FIELDS: Final = 12  # with its format and its tag
CREATE: Final = {"sql": "create table t (id bigint primary key)"}


class OlderLog:
    """Written by a master of the older form, which remembered by the time of the commit."""

    def __init__(self) -> None:
        claim = CODEC.encode(Claim(1, INCARNATION, b"", "m0"))
        self.log = [claim]
        self._sequence = self.lsn = 0
        self.commit_us = WALL_MS * 1_000

    def record(self, *commits: Commit) -> None:
        self._sequence += 1
        previous = CODEC.digest(self.log[-1])
        record = Decisions(
            1, INCARNATION, self._sequence, previous, self.lsn + 1, commits, (), {}, 0, ()
        )
        fields = msgpack.unpackb(CODEC.encode(record), use_list=False, strict_map_key=False)
        self.log.append(msgpack.packb(fields[:OLDER_FIELDS]))
        self.lsn += len(commits)

    def commit(self, at_ms: int, number: bytes = b"") -> None:
        """At that time by the clock, at most an hour after the one before by the log's time."""
        self.commit_us = max(
            self.commit_us + 1, min((WALL_MS + at_ms) * 1_000, self.commit_us + HOUR_US)
        )
        self.record(Commit(number, 1, self.commit_us, {}, (), 0))


def made_id(at_ms: int) -> bytes:
    return request_id(WALL_MS + at_ms, at_ms.to_bytes(10, "big"))


def test_l5_what_an_older_master_forgot_when_it_was_fresh_is_refused() -> None:
    """Sixty idle hours, then a commit every 100 ms, each an hour further by the log's time: the
    first ones are forgotten within seconds."""
    older = OlderLog()
    older.commit(1, made_id(1))
    monday_ms = 60 * HOUR_MS
    ids = [made_id(monday_ms + 100 * n) for n in range(70)]
    for n, number in enumerate(ids):
        older.commit(monday_ms + 100 * n, number)
    for _ in range(64):
        older.record()
    hosts = Hosts(log=tuple(older.log), ms=monday_ms + 30_000)
    forgotten = [number for number in ids if hosts.outcome(number) is None]
    assert len(forgotten) > 30, "as the older program has it"
    hosts.ask(CREATE)
    for number in ids:
        hosts.ask({"sql": "create table u (id bigint primary key)"}, number)
    committed = [one for n in ids for one in hosts.decided[n] if isinstance(one, Commit)]
    assert len(committed) == len(ids), "each once, in the older log"
    hosts.ms += 3 * MINUTE_MS
    assert taken(hosts.last(hosts.ask({"sql": "create table v (id bigint primary key)"})))
    hosts.check_nodes()


def test_l5_of_a_log_that_was_never_idle_for_long_nothing_late_is_refused() -> None:
    """Two days with a commit every 40 minutes; then a request that was made twenty hours ago."""
    older = OlderLog()
    for at_ms in range(0, 48 * HOUR_MS, 40 * MINUTE_MS):
        older.commit(at_ms, made_id(at_ms))
    for _ in range(64):
        older.record()
    hosts = Hosts(log=tuple(older.log), ms=48 * HOUR_MS)
    late = hosts.ask(CREATE, made_id(28 * HOUR_MS + 5))
    assert taken(hosts.last(late))
    expired = hosts.ask(CREATE, made_id(22 * HOUR_MS + 5))
    assert not taken(hosts.last(expired))
    hosts.check_nodes()


SETTINGS: Final = OutcomeSettings()
WALL_US: Final = WALL_MS * 1_000
AHEAD_US: Final = 120_000_000


def decided(*at: tuple[int, int]) -> list[Outcome]:
    return [Outcome(1, lsn, 1, WALL_US + hours * HOUR_US, True) for lsn, hours in at]


@pytest.mark.parametrize(
    ("remembered", "newest", "expected_us"),
    [
        (decided((5, 1), (6, 2), (7, 4)), (7, 4), 4 * HOUR_US + AHEAD_US),
        (decided((5, 1), (6, 3), (7, 4)), (7, 4), 3 * HOUR_US + AHEAD_US),
        # Two that were not with them, an hour each: all may have lagged.
        (decided((5, 1), (8, 4), (9, 4)), (9, 4), 4 * HOUR_US + AHEAD_US),
        (decided((5, 1), (8, 3), (9, 4)), (9, 4), 3 * HOUR_US + AHEAD_US),
        (decided((5, 1)), (6, 1), HOUR_US + AHEAD_US),
    ],
)
def test_l5_the_first_horizon_lies_above_a_commit_that_did_not_lag(
    remembered: list[Outcome], newest: tuple[int, int], expected_us: int
) -> None:
    lsn, hours = newest
    position = LogPosition(lsn=lsn, commit_us=WALL_US + hours * HOUR_US)
    now_us = WALL_US + 100 * HOUR_US
    assert first_id_horizon(position, remembered, now_us, SETTINGS) == WALL_US + expected_us


@pytest.mark.parametrize("remembered", [[], decided((6, 1)), decided((5, 0), (6, 1))])
def test_l5_where_nothing_tells_all_ids_of_before_are_refused(remembered: list[Outcome]) -> None:
    position = LogPosition(lsn=6, commit_us=WALL_US + HOUR_US)
    now_us = WALL_US + 100 * HOUR_US
    assert first_id_horizon(position, remembered, now_us, SETTINGS) == now_us + AHEAD_US


def test_l5_a_new_log_takes_ids_of_a_day() -> None:
    assert first_id_horizon(LogPosition(), [], WALL_US, SETTINGS) == WALL_US - 24 * HOUR_US
