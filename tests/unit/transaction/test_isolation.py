"""The table of levels says of each what the design says."""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported, MalformedRequest
from leasehold.transaction.isolation import ISOLATION, Level, chosen, isolation_of


def test_the_table_is_the_designs() -> None:
    table = {
        level: (i.one_snapshot, i.own_writes, i.verifies_reads, i.replays, i.any_time)
        for level, i in ISOLATION.items()
    }
    assert table == {
        Level.DEFAULT: (False, False, False, True, False),
        Level.READ_COMMITTED: (False, True, False, True, False),
        Level.SNAPSHOT: (True, True, False, False, True),
        Level.SERIALIZABLE: (True, True, True, True, False),
        Level.LINEARIZABLE: (True, True, True, True, False),
    }


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("READ COMMITTED", Level.READ_COMMITTED),
        ("read  uncommitted", Level.READ_COMMITTED),
        ("Repeatable Read", Level.SNAPSHOT),
        ("read_committed", Level.READ_COMMITTED),
        ("serializable", Level.SERIALIZABLE),
        ("linearizable", Level.LINEARIZABLE),
        ("default", Level.DEFAULT),
    ],
)
def test_levels_are_known_by_postgresqls_names_too(said: str, level: Level) -> None:
    assert isolation_of(said).level is level


def test_an_unknown_level_is_refused_with_those_there_are() -> None:
    with pytest.raises(MalformedRequest, match="known are default, read committed"):
        isolation_of("dirty")


def test_only_a_snapshot_reads_as_of_a_time() -> None:
    assert chosen(None, past=True).level is Level.SNAPSHOT
    assert chosen("snapshot", past=True).level is Level.SNAPSHOT
    assert chosen(None, past=False).level is Level.READ_COMMITTED
    for level in set(Level) - {Level.SNAPSHOT}:
        with pytest.raises(FeatureNotSupported, match="AS OF"):
            chosen(level, past=True)
