"""How many rows of a backfill go into a record: rounds beside users, large parts without them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.master.backfill_pacing import BackfillPace, BackfillSettings

SETTINGS = BackfillSettings(
    rows_max=10_000,
    behind_max=2,
    rows_beside_max=4_000,
    rows_beside_min=500,
    rate_beside_min=10_000,
    round_ms=20,
    round_factor=2,
    rest_percent=50,
    look_rounds=0,
)


@dataclass
class Rounds:
    """One record after the other, each with as many rows as may be."""

    pace: BackfillPace = field(default_factory=lambda: BackfillPace(SETTINGS))
    now_ns: int = 0
    offset: int = 0
    gentle: bool = False

    def send(self, *, users: bool = True, rows: int = -1, waiting: bool = True) -> int:
        """Append the next record, and read it back; → its rows."""
        taken = self.may_take(users=users) if rows < 0 else rows
        self.pace.appended(taken, self.now_ns, users=users, waiting=waiting)
        self.pace.end_rounds(lambda _: True, self.now_ns)
        if users and taken:
            assert self.may_take() == 0, "it is not even read back"
        self.offset += 1
        self.pace.read_back(self.offset)
        return taken

    def may_take(self, behind: int = 0, *, users: bool = True) -> int:
        return self.pace.rows(behind, self.now_ns, users=users, gentle=self.gentle)

    def rest(self) -> None:
        self.now_ns = max(self.now_ns, self.pace.rest_until_ns)

    def receive(self, took_ms: float, applied: int = -1) -> None:
        """`took_ms` later every coherent node has the log up to that offset, inclusively."""
        self.now_ns += int(took_ms * NS_PER_MS)
        through = self.offset if applied < 0 else applied
        self.pace.end_rounds(lambda offset: offset <= through, self.now_ns)

    def go(self, ms_per_row: float, times: int = 40) -> int:
        """Rounds of that cost, and 2 ms for the record; → rows of the last one."""
        rows = 0
        for _ in range(times):
            rows = self.send()
            self.receive(2 + rows * ms_per_row)
            self.rest()
        return rows


def test_alone_parts_are_large_and_nodes_may_be_behind() -> None:
    rounds = Rounds()
    for _ in range(5):
        assert rounds.send(users=False) == 10_000
    assert rounds.may_take(2, users=False) == 10_000
    assert rounds.may_take(3, users=False) == 0


def test_beside_users_the_next_part_waits_for_the_one_before() -> None:
    rounds = Rounds()
    assert rounds.send() == 500
    rounds.receive(5, applied=0)
    assert rounds.may_take() == 0
    assert rounds.may_take(users=False) == 10_000, "the users have gone"
    rounds.receive(5)
    rounds.rest()
    assert rounds.may_take() > 500, "10 ms of 20: it may be larger"


def test_users_who_come_wait_for_what_is_on_its_way_once() -> None:
    rounds = Rounds()
    rounds.send(users=False)
    rounds.send(users=False)
    rounds.receive(200, applied=1)
    assert rounds.may_take() == 0
    rounds.receive(200)
    assert rounds.may_take() == 500, "and nothing is learnt from it"


def test_parts_grow_and_shrink_to_what_a_round_may_take() -> None:
    rounds = Rounds()
    assert rounds.go(0.000_1) == 4_000, "never more than the maximum"
    for cost in (0.01, 0.02, 0.006):
        took_ms = 2 + rounds.go(cost) * cost
        assert 12 <= took_ms <= 26, "about 20 ms"
    assert rounds.go(1.0) == 500, "never less than the minimum"


def without(rounds: Rounds, took_ms: float, *, waiting: bool = False) -> None:
    for _ in range(100):
        rounds.send(rows=0, waiting=waiting)
        rounds.receive(took_ms)


def test_where_users_wait_longer_anyway_rounds_may_take_longer() -> None:
    rounds = Rounds()
    without(rounds, 40)
    assert 60 <= 2 + rounds.go(0.05) * 0.05 <= 105, "twice as long, not 20 ms"
    without(rounds, 5)
    assert 12 <= 2 + rounds.go(0.02) * 0.02 <= 26


def test_a_round_that_may_take_long_brings_enough_rows() -> None:
    rounds = Rounds()
    without(rounds, 100)
    # 200 ms and a rest of 100, at 10,000 rows/s.
    assert rounds.go(1.0) == 3_000, "though each takes three seconds"
    without(rounds, 1_000)
    assert rounds.go(1.0) == 4_000, "never more than the maximum"
    without(rounds, 5)
    assert rounds.go(1.0) == 500, "20 ms and 10: 300 are less than the minimum"


def test_a_round_that_had_rows_beside_it_tells_nothing_of_those_without() -> None:
    rounds = Rounds()
    without(rounds, 200, waiting=True)
    assert rounds.go(0.1) == 500, "the rows that wait may be why"
    rounds.send(rows=500)
    without(rounds, 200)  # the first of them follows that part
    rounds = Rounds()
    rounds.send(rows=0, waiting=False)
    rounds.send(rows=500)
    rounds.receive(200)
    assert rounds.go(0.1) == 500, "part of it was beside the rows"


def test_one_slow_round_does_not_take_it_all() -> None:
    rounds = Rounds()
    before = rounds.go(0.000_1)
    rounds.send()
    rounds.receive(5_000)
    rounds.rest()
    assert rounds.may_take() == before // 2


def test_a_small_part_says_nothing_of_large_ones() -> None:
    rounds = Rounds()
    rounds.send(rows=10)
    rounds.receive(3)
    rounds.rest()
    assert rounds.may_take() == 500


def test_behind_a_part_the_users_have_a_rest_of_half_of_what_it_took() -> None:
    rounds = Rounds()
    rounds.send()
    rounds.receive(10)
    assert rounds.may_take() == 0
    assert rounds.may_take(users=False) == 10_000, "for users, of whom there is none"
    rounds.now_ns += 5 * NS_PER_MS - 1
    assert rounds.may_take() == 0
    rounds.now_ns += 1
    assert rounds.may_take() == 625
    rounds.send()
    rounds.receive(5_000)
    assert rounds.pace.rest_until_ns == rounds.now_ns + 10 * NS_PER_MS, "half of 20 ms at most"


def test_a_gentle_job_takes_half_and_twice_the_rest_as_soon_as_it_is_said() -> None:
    rounds = Rounds()
    assert rounds.send() == 500
    rounds.gentle = True
    rounds.receive(10)
    rounds.rest()
    assert rounds.may_take() == 625 // 2
    assert rounds.may_take(users=False) == 10_000, "for users, of whom there is none"
    rounds.send()
    rounds.receive(10)
    assert rounds.pace.rest_until_ns == rounds.now_ns + 10 * NS_PER_MS
    rounds.rest()
    assert rounds.may_take() == 781 // 2, "it grows as ever"
    assert rounds.go(1.0) == 250
    rounds.gentle = False
    rounds.rest()
    assert rounds.may_take() == 500


LOOKING = replace(SETTINGS, look_rounds=4, look_every_ms=10_000, look_ms=500)


def test_a_master_that_comes_amid_a_backfill_looks_first_how_long_users_wait() -> None:
    """Goal: after a takeover the rows wait already. What users wait for without them is measured
    before any is taken, or a busy machine's rounds would all seem too long, and parts be the
    smallest for as long as the backfill lasts."""
    rounds = Rounds(BackfillPace(LOOKING))
    for _ in range(4):
        assert rounds.send() == 0
        rounds.receive(100)
    assert rounds.pace.rest_until_ns == rounds.now_ns, "a look that has seen enough is over"
    assert rounds.go(1.0, times=3) == 3_000, "200 ms and a rest of 100, at 10,000 rows/s"


def test_what_was_measured_before_the_backfill_is_no_look_again() -> None:
    rounds = Rounds(BackfillPace(LOOKING))
    for _ in range(4):
        rounds.send(rows=0, waiting=False)
        rounds.receive(100)
    assert rounds.may_take() == 500


def test_a_look_ends_where_users_write_seldom() -> None:
    rounds = Rounds(BackfillPace(LOOKING))
    assert rounds.send() == 0
    rounds.receive(100)
    rounds.now_ns = rounds.pace.rest_until_ns - 1
    assert rounds.may_take() == 0
    assert rounds.may_take(users=False) == 10_000, "for users, of whom there is none"
    rounds.now_ns += 1
    assert rounds.now_ns == 500 * NS_PER_MS
    assert rounds.may_take() == 500


def test_looks_follow_a_load_that_changes() -> None:
    """Goal: every ten seconds the rounds are measured anew, whatever waits; between two looks, no
    round tells anything of those without rows."""
    rounds = Rounds(BackfillPace(LOOKING))
    without(rounds, 40)
    assert 60 <= 2 + rounds.go(0.05) * 0.05 <= 105
    looks, looked = 0, False
    for _ in range(4_000):
        rows = rounds.send()
        rounds.receive(2 + rows * 0.02 if rows else 5)
        if rows:
            rounds.rest()
        looks += rows == 0 and not looked
        looked = rows == 0
    assert 12 <= 2 + rounds.go(0.02) * 0.02 <= 26, "5 ms without rows now: 20 ms"
    seconds = rounds.now_ns / 1_000 / NS_PER_MS
    assert seconds / 12 <= looks <= seconds / 10 + 1
