"""Goal: whatever clocks and idle times do, an id is applied at most once (L5, R1), commit times
rise (L9), and who has the right time is served once the clocks are right.

Method: nodes over one log whose time is made by hand, first by stories, then at random.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from leasehold.model.records.log import Commit, Refusal
from leasehold.replication import outcomes
from leasehold.replication.log import clock
from leasehold.replication.master import batch
from tests.support.replication.clock_world import DAY_MS, HOUR_MS, MINUTE_MS, Hosts, taken

TABLE = {"sql": "create table t (id bigint primary key, a bigint, made timestamptz default now())"}
ADD: dict[str, Any] = {
    "table": "t",
    "op": "update",
    "key": {"id": 1},
    "values": {"a": {"expr": "a + 1"}},
}


def insert(key: int, **values: Any) -> dict[str, Any]:
    return {"table": "t", "op": "insert", "key": {"id": key}, "values": values}


@pytest.fixture
def hosts() -> Hosts:
    made = Hosts()
    made.ask(TABLE)
    assert taken(made.last(made.ask(insert(1, a=0))))
    return made


def value(hosts: Hosts, key: int = 1, column: int = 2) -> Any:
    node = hosts.nodes[hosts.master]
    row = node._store.row(node.catalog.newest(1), (key,))
    assert row is not None
    return row.values[column]


# ---------------------------------------------------------------- idle times


def test_l5_after_an_idle_weekend_an_id_is_remembered(hosts: Hosts) -> None:
    """Monday's first commits are remembered as long as any: nothing is forgotten by a time that the
    log has yet to catch up with."""
    hosts.passes(60 * HOUR_MS, records=20)
    first = hosts.ask(ADD)
    for _ in range(70):
        assert taken(hosts.last(hosts.ask(ADD)))
    hosts.passes(60_000, records=300)
    hosts.ask(ADD, first)
    assert len(hosts.decided[first]) == 1, "applied twice"
    assert value(hosts) == 71


def test_l9_idle_hours_pass_at_once(hosts: Hosts) -> None:
    """The first commit after them has the time of the clock, and so have its defaults."""
    hosts.passes(10 * HOUR_MS, records=5)
    number = hosts.ask(insert(2))
    committed = hosts.last(number)
    assert isinstance(committed, Commit)
    now_us = hosts.clock_ms() * 1_000
    assert now_us - committed.commit_us < 10_000
    assert now_us - value(hosts, 2, 3) < 10_000


def test_l9_a_master_that_takes_over_after_idle_hours_has_its_clocks_time(hosts: Hosts) -> None:
    hosts.ms += 60 * HOUR_MS  # nobody is master
    hosts.take_over("m2")
    committed = hosts.last(hosts.ask(insert(2)))
    assert isinstance(committed, Commit)
    assert hosts.clock_ms() * 1_000 - committed.commit_us < 10_000


def test_l5_nights_without_a_master_do_not_let_what_is_remembered_grow(hosts: Hosts) -> None:
    """Eight hours a day, for two weeks: no more is remembered than of a day or two."""
    kept = []
    for day in range(14):
        for _ in range(40):
            hosts.passes(8 * HOUR_MS // 40, records=4)
            hosts.ask(ADD)
        kept.append(len(hosts.stores["m1"].contents.outcomes))
        hosts.ms += 16 * HOUR_MS
        hosts.take_over(("m1", "m2")[day % 2])
    assert max(kept[7:]) <= 3 * 40, kept


# ---------------------------------------------------------------- clocks that are wrong


@pytest.mark.parametrize("takes_over", [False, True], ids=["", "and another master"])
def test_l5_clocks_that_were_ahead_for_hours_stop_nobody(hosts: Hosts, takes_over: bool) -> None:
    """All of them by 30 days, for twelve hours with hundreds of commits; then they are right."""
    hosts.set_clocks(30 * DAY_MS)
    for _ in range(200):
        hosts.passes(12 * HOUR_MS // 200)
        assert taken(hosts.last(hosts.ask(ADD, hosts.made_id(hosts.clock_ms("m1")))))
    hosts.set_clocks(0)
    if takes_over:
        hosts.take_over("m2")
    assert taken(hosts.last(hosts.ask(ADD)))


def test_l5_terms_under_one_wrong_clock_move_no_horizon(hosts: Hosts) -> None:
    """An id of earlier today is taken behind them: nothing was forgotten."""
    hosts.off_ms["m1"] = 45 * HOUR_MS
    for _ in range(8):
        hosts.take_over("m1")
        hosts.ask(ADD)
    hosts.set_clocks(0)
    hosts.take_over("m2")
    late = hosts.made_id(hosts.clock_ms() - 20 * HOUR_MS)
    assert taken(hosts.last(hosts.ask(ADD, late)))


def test_l5_a_master_whose_clock_is_ahead_takes_the_requests_of_others(hosts: Hosts) -> None:
    """And of one that took office with it."""
    hosts.off_ms["m1"] = hosts.off_ms["m2"] = 30 * DAY_MS
    assert taken(hosts.last(hosts.ask(ADD)))
    hosts.take_over("m2")
    assert taken(hosts.last(hosts.ask(ADD)))
    hosts.off_ms["m2"] = 0
    assert taken(hosts.last(hosts.ask(ADD)))


def test_l5_a_master_whose_clock_is_behind_takes_the_requests_of_others(hosts: Hosts) -> None:
    """By the log's time it knows how late it is at least."""
    hosts.set_clocks(-2 * HOUR_MS)
    hosts.take_over("m2")
    assert taken(hosts.last(hosts.ask(ADD)))
    hosts.passes(3 * HOUR_MS, records=3)
    assert taken(hosts.last(hosts.ask(ADD)))


def test_l5_an_id_that_is_ahead_stays_refused_for_a_day(hosts: Hosts) -> None:
    """Whoever was told so may have sent the change under another id. But ids of times to come,
    which the horizon never passes, don't gather."""
    number = hosts.ask(ADD, hosts.made_id(hosts.clock_ms() + 90_000))
    refused = hosts.last(number)
    assert isinstance(refused, Refusal)
    assert refused.code == "LH002"
    far = hosts.ask(ADD, hosts.made_id(hosts.clock_ms() + 3_000 * DAY_MS))
    hosts.ms += 2 * MINUTE_MS
    hosts.take_over("m2")
    hosts.ask(ADD, number)
    assert hosts.decided[number] == [refused], "the same answer again"
    assert taken(hosts.last(hosts.ask(ADD)))
    for hour in range(30):
        remembered = [hosts.outcome(each) is not None for each in (number, far)]
        assert remembered == ([True, True] if hour < 20 else remembered)
        hosts.passes(HOUR_MS)
        hosts.passes(1_000, records=70)
    hosts.check_nodes()
    assert remembered == [False, False]


def test_l9_a_step_of_the_clock_is_followed_when_it_has_stood_a_while(hosts: Hosts) -> None:
    """Until then commits go by the time that passes; the log says so at both ends."""
    hosts.set_clocks(3 * DAY_MS)

    def off_ms() -> int:
        committed = hosts.last(hosts.ask(ADD))
        assert isinstance(committed, Commit)
        return committed.commit_us // 1_000 - hosts.clock_ms()

    assert abs(off_ms()) < 10
    hosts.passes(14 * MINUTE_MS, records=3)
    assert abs(off_ms()) < 10
    hosts.passes(2 * MINUTE_MS)
    assert abs(off_ms() - 3 * DAY_MS) < 10
    assert [notice.begins for notice in hosts.notices] == [True, False]
    assert "forward by 3 days" in hosts.notices[0].words
    assert "leasehold clock" in hosts.notices[1].words


def test_l9_a_clock_that_comes_back_ends_the_warning(hosts: Hosts) -> None:
    hosts.set_clocks(-3 * HOUR_MS)
    assert taken(hosts.last(hosts.ask(ADD))), "by the time that passes it is not ahead"
    hosts.set_clocks(0)
    assert taken(hosts.last(hosts.ask(ADD)))
    assert [notice.begins for notice in hosts.notices] == [True, False]
    assert "back by 3 hours" in hosts.notices[0].words


# ---------------------------------------------------------------- at random


class Run:
    """One random history; the assertions are made on the way."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.hosts = Hosts(("m1", "m2", "m3"))
        self.hosts.ask(TABLE)
        self.hosts.ask(insert(1, a=0))
        self.ids: list[bytes] = []
        self.fault_ms = 0
        self.wrong_terms = 0
        self.refused_when_right = 0

    def run(self, steps: int) -> Run:
        for _ in range(steps):
            what = self.rng.choice(
                ("ask", "ask", "ask", "again", "again", "pass", "pass", "clock", "heal", "takes")
            )
            getattr(self, f"_{what}")()
        self._heal()
        self.hosts.check_nodes()
        self._check_log()
        return self

    def _wrong(self) -> bool:
        return any(self.hosts.off_ms.values())

    def _ask(self) -> None:
        """By a producer whose clock is right, or as wrong as some host's."""
        clock_ms = self.hosts.clock_ms(self.rng.choice(("", "", *self.hosts.off_ms)))
        late_ms = self.rng.choice((0, 0, 0, 50_000, -50_000, HOUR_MS, 30 * HOUR_MS))
        self.ids.append(self.hosts.ask(ADD, self.hosts.made_id(clock_ms - late_ms)))

    def _again(self) -> None:
        if self.ids:
            recent = self.rng.random() < 0.5
            self.hosts.ask(ADD, self.rng.choice(self.ids[-10:] if recent else self.ids))

    def _pass(self) -> None:
        ms = self.rng.choice((5_000, 10 * MINUTE_MS, 20 * MINUTE_MS, 5 * HOUR_MS, 26 * HOUR_MS))
        if self._wrong():
            if self.fault_ms + ms > 3 * DAY_MS:
                return self._heal()
            self.fault_ms += ms
        elif self.rng.random() < 0.2:
            ms *= 3
        if self.rng.random() < 0.3:
            self.hosts.ms += ms  # nobody is master
            return self._takes()
        self.hosts.passes(ms, records=self.rng.randrange(1, 5))
        return None

    def _clock(self) -> None:
        days = self.rng.choice((0.002, 0.04, 1, 8, 60)) * self.rng.uniform(0.5, 1)
        off_ms = int(days * DAY_MS * self.rng.choice((1, 1, -1)))
        if self.rng.random() < 0.5:
            self.hosts.set_clocks(off_ms)
        else:
            self.hosts.off_ms[self.rng.choice(list(self.hosts.off_ms))] = off_ms

    def _takes(self) -> None:
        name = self.rng.choice(list(self.hosts.off_ms))
        self.wrong_terms += self._wrong()
        self.hosts.take_over(name)

    def _heal(self) -> None:
        """A fresh id by the right time is taken as soon as the clocks are right; at the latest when
        somebody has the log's time set back, should they have been wrong for days, or for several
        terms."""
        hosts = self.hosts
        hosts.set_clocks(0)
        hosts.passes(16 * MINUTE_MS, records=3)
        number = hosts.ask(ADD)
        if not taken(hosts.last(number)):
            assert self.wrong_terms > 2, hosts.last(number)
            self.refused_when_right += 1
            hosts.ask({"clock": "reset"})
            number = hosts.ask(ADD)
            assert taken(hosts.last(number)), hosts.last(number)
        self.fault_ms = self.wrong_terms = 0
        self.ids.append(number)

    def _check_log(self) -> None:
        for number, decided in self.hosts.decided.items():
            commits = [each for each in decided if isinstance(each, Commit)]
            assert len(commits) <= 1, f"R1: {number.hex()} was applied {len(commits)} times"
        time_us = 0
        for record in self.hosts.records:
            time_us = record.reset_us or time_us
            for commit in record.commits:
                assert commit.commit_us > time_us, "L9"
                time_us = commit.commit_us
            assert record.closed_us >= time_us
            time_us = record.closed_us


@pytest.mark.parametrize("seed", range(40))
def test_l5_l9_r1_clocks_and_idle_times_at_random(seed: int) -> None:
    Run(seed).run(150)


def test_l5_random_histories_do_what_they_are_for() -> None:
    """They meet expired ids, forgotten outcomes, repeats, and resets are rare."""
    runs = [Run(seed).run(150) for seed in range(100, 110)]
    decided = [one for run in runs for some in run.hosts.decided.values() for one in some]
    codes = {each.code for each in decided if isinstance(each, Refusal)}
    assert codes == {"LH001", "LH002"}
    forgotten = [
        number
        for run in runs
        for number in run.ids
        if isinstance(run.hosts.last(number), Commit) and run.hosts.outcome(number) is None
    ]
    assert len(forgotten) > 50
    assert sum(run.refused_when_right for run in runs) < 10


def _run_all(seeds: range) -> None:
    for seed in seeds:
        Run(seed).run(150)


def test_l5_off_what_is_forgotten_can_be_applied_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harm when ids are judged by something else than what they are forgotten by."""
    judged = outcomes.check_age

    def leniently(number: bytes, id_horizon_us: int, now_us: int, settings: Any) -> None:
        judged(number, id_horizon_us - 12 * HOUR_MS * 1_000, now_us, settings)

    monkeypatch.setattr(batch, "check_age", leniently)
    monkeypatch.setattr(Run, "_heal", lambda run: run.hosts.set_clocks(0))
    with pytest.raises(AssertionError, match="R1"):
        _run_all(range(40))


def test_l5_off_a_horizon_that_follows_the_clock_stops_writes(
    monkeypatch: pytest.MonkeyPatch, hosts: Hosts
) -> None:
    """The harm when it goes on as fast as a clock jumps."""
    monkeypatch.setattr(clock, "HORIZON_GAIN", 1e-12)
    monkeypatch.setattr(clock, "STEP_HELD_NS", 0)
    hosts.set_clocks(30 * DAY_MS)
    hosts.passes(1_000)
    hosts.set_clocks(0)
    assert not taken(hosts.last(hosts.ask(ADD)))
