"""For how long a topic of acknowledgements reaches back, by the clocks of those who ask."""

from __future__ import annotations

import pytest

from leasehold.model.records.acks import Ack
from leasehold.replication.log import ack_history
from leasehold.replication.log.ack_history import AckHistory

MS = 1_000_000
LATE_MS = 100
MINUTES = 60_000


def said(node: str, asked_ms: int = 0, offset: int = 0, life: bytes = b"1") -> Ack:
    return Ack(node, life, "replicant", offset, 1, 1, asked_ms * MS, True, "", 0)


def history(*acks: Ack) -> AckHistory:
    gathered = AckHistory(LATE_MS)
    for each in acks:
        gathered.take(each)
    return gathered


def span_ms(*acks: Ack) -> float:
    return history(*acks).span_ns() / MS


def test_two_asks_of_one_incarnation_prove_the_time_between_them() -> None:
    """Less what two clocks may be wrong by, and what the first may have been on its way for."""
    assert span_ms(said("r1", 5_000), said("r1", 65_000)) == 60_000 * 0.98 - LATE_MS


def test_other_acknowledgements_prove_nothing() -> None:
    """Those without an ask, a farewell (-1), and asks of two lives, which count from two starts."""
    assert span_ms(said("m1"), said("m1", offset=9), said("r1", 5), said("r1", -1)) == 0
    assert span_ms(said("r1"), said("r1", 900_000)) == 0
    lives = [said("r1", 5_000), said("r1", 900_000, life=b"2"), said("r2", 800_000, life=b"1")]
    assert span_ms(*lives) == 0


def test_lives_that_follow_each_other_add_up() -> None:
    asks = [said("r1", 1_000), said("r1", 601_000), said("r1", 7, life=b"2")]
    asks.append(said("r1", 300_007, life=b"2"))
    assert span_ms(*asks) == 600_000 * 0.98 - LATE_MS + 300_000 * 0.98 - LATE_MS


def test_lives_beside_each_other_do_not_add_up() -> None:
    """Ten nodes that ask in turns for ten minutes prove ten minutes."""
    asks = [
        said(f"r{node}", 1_000_000 * node + minute * MINUTES)
        for minute in range(11)
        for node in range(10)
    ]
    assert 9 * MINUTES < span_ms(*asks) < 10 * MINUTES


def test_a_clock_that_goes_back_takes_nothing_away() -> None:
    asks = [said("r1", 1_000), said("r1", 61_000), said("r1", 2_000)]
    assert span_ms(*asks) == span_ms(*asks[:2])


def test_the_last_word_of_each_name_is_kept() -> None:
    gathered = history(said("r1", offset=9), said("m1", offset=5), said("r1", offset=7))
    assert {ack.node: ack.offset for ack in gathered.readers()} == {"r1": 7, "m1": 5}


def test_what_was_taken_before_a_hole_is_forgotten() -> None:
    gathered = history(said("r1", 5_000), said("r1", 65_000))
    gathered.begin_anew()
    assert (gathered.readers(), gathered.span_ns()) == ((), 0)
    gathered.take(said("r1", 90_000))
    assert gathered.span_ns() == 0


def test_more_names_than_are_remembered_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ack_history, "READERS_MAX", 2)
    asks = [said("r1", 1_000), said("r2", 1_000), said("r1", 61_000)]
    assert span_ms(*asks) > 0
    assert span_ms(*asks, said("r3")) == 0


def test_more_lives_than_are_remembered_prove_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ack_history, "INCARNATIONS_MAX", 1)
    asks = [said("r1", 1_000), said("r1", 61_000)]
    more = [said("r2", 1_000), said("r2", 901_000)]
    assert span_ms(*asks, *more) == span_ms(*asks)
