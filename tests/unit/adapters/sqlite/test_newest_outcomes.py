"""Goal: an id of which memory says that it is new is one without an outcome in the file.

Method: outcomes are put, rolled back, forgotten and asked for in random order, with ids that mostly
rise and now and then are old or far ahead, and with so few kept in memory that they are given up
all the time; after each step every id's answer is what a dictionary says."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from leasehold.adapters.sqlite import outcomes
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.ids import request_id
from leasehold.model.records.log import LogPosition
from leasehold.model.records.requests import Outcome


@pytest.mark.parametrize("seed", range(8))
def test_the_newest_ids_in_memory_say_what_the_file_says(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "NEWEST_KEPT", 5)
    rng = random.Random(seed)
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    known: dict[bytes, Outcome] = {}
    asked: list[bytes] = []
    store.begin()
    committed = dict(known)
    for lsn in range(1, 120):
        ahead_ms = rng.choice((0, 0, 0, 0, 0, -40, -7, 90))
        made = request_id(1_000 + lsn + ahead_ms, rng.randbytes(10))
        asked.append(made)
        if rng.random() < 0.1:
            known[made] = Outcome(1, 0, 0, 10**9, True, "LH002")
            store.put_untimely(made, known[made])
        elif rng.random() < 0.8:
            again = rng.choice(asked) if rng.random() < 0.2 else made
            if again in known and known[again].code:
                again = made  # of that one nothing else is ever put
            known[again] = Outcome(1, lsn, 1, lsn, True)
            store.put_outcome(again, known[again])
        match rng.choice(("commit", "rollback", "savepoint", "forget", "reopen", "", "", "")):
            case "commit":
                store.commit(LogPosition(lsn, lsn=lsn))
                committed = dict(known)
                store.begin()
            case "rollback":
                store.rollback()
                known = dict(committed)
                store.begin()
            case "savepoint":
                store.savepoint()
                store.put_outcome(made, Outcome(1, lsn, 7, lsn, True))
                store.rollback_to()
            case "forget":
                first = request_id(1_000 + lsn - 60, bytes(10))
                store.collect_outcomes((1_000 + lsn - 60) * 1_000, 3)
                old = sorted(each for each in known if not known[each].code)[:3]
                known = {
                    each: outcome
                    for each, outcome in known.items()
                    if each not in old or each >= first
                }
            case "reopen":
                store.commit(LogPosition(lsn, lsn=lsn))
                committed = dict(known)
                store.close()
                store = SqliteStore(tmp_path / "node.db", cache_mb=1)
                store.begin()
        for each in rng.sample(asked, min(len(asked), 10)):
            assert store.outcome(each) == known.get(each)
    store.rollback()
    store.close()


def test_a_new_id_is_not_looked_for_in_the_file(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "node.db", cache_mb=1)
    store.begin()
    store.put_outcome(request_id(1_000, bytes(10)), Outcome(1, 1, 1, 1, True))
    assert store.outcome(request_id(1_001, bytes(10))) is None
    statements: list[str] = []
    store._connection.trace_v2(0x01, lambda said: statements.append(said["sql"]))
    for number in range(3):
        store.put_outcome(request_id(1_002 + number, bytes(10)), Outcome(1, 2, 1, 2, True))
        assert store.outcome(request_id(1_002 + number, bytes(range(10)))) is None
    assert not [text for text in statements if text.startswith("SELECT")], statements
    assert len(statements) == 3, "what was put"
    store._connection.trace_v2(0)
    store.rollback()
    store.close()
