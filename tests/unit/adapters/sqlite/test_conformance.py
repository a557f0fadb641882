"""Goal: the SQLite store is the key-value form, whatever is done to it in whatever order.

Method: random sequences of operations under both versions in use, schema steps, backfill, outcome
collection, savepoints, roll-backs and crashes run in lockstep on the reference in memory and on two
SQLite stores, one fed with the rows a master has read, one as a follower. After each step what they
show is compared; after each commit checks must find nothing, with equal checksums.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from leasehold.model.keys import Key
from leasehold.model.records.log import ChangeKind
from tests.support.sqlite.flights_table import CARRIER, GATE, LOUNGE, NUMBER, PRICE, SEATS
from tests.support.sqlite.lockstep import Lockstep

KEYS = st.tuples(st.sampled_from(["AA", "UA", "é"]), st.integers(-1, 2))
VALUES = st.fixed_dictionaries(
    {},
    optional={
        CARRIER: st.sampled_from(["AA", "B6", None]),
        SEATS: st.one_of(st.none(), st.integers(0, 2), st.just(2**62)),
        PRICE: st.sampled_from([None, 0.5, 1.0, 1e300]),
        GATE: st.integers(0, 2),
        LOUNGE: st.sampled_from(["L1", None]),
    },
)
WRITE = st.tuples(
    st.just("write"),
    st.sampled_from([ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.UPDATE, ChangeKind.DELETE]),
    st.integers(0, 1),
    KEYS,
    VALUES,
)
STEP = st.one_of(
    WRITE,
    WRITE,
    WRITE,
    st.tuples(st.just("fill"), st.lists(KEYS, max_size=4)),
    st.tuples(st.just("fill"), st.lists(KEYS, min_size=1, max_size=8)),
    st.tuples(st.just("collect"), st.integers(0, 5)),
    st.tuples(st.just("remember"), st.integers(0, 3)),
    st.tuples(st.just("forget"), st.integers(0, 20), st.integers(1, 2)),
    *(
        st.tuples(st.just(name))
        for name in ("advance", "advance", "commit", "commit", "rollback", "crash", "truncate")
    ),
    *(st.tuples(st.just(name)) for name in ("savepoint", "release", "rollback_to")),
    st.tuples(st.just("undone"), st.lists(WRITE, min_size=1, max_size=3)),
)


def narrow(key: Key, *, wide_key: bool) -> Key:
    return key if wide_key else key[1:]


def perform(run: Lockstep, step: tuple[Any, ...]) -> None:
    wide = run.wide_key
    match step:
        case ("write", kind, which, key, values):
            version = run.usable(which)
            named = {
                e: v
                for e, v in values.items()
                if e in {c.element_id for c in version.by_name.values()}
                and e not in version.primary_key
            }
            assert NUMBER not in named
            run.write(kind, version, narrow(key, wide_key=wide), named)
        case ("undone", steps):
            run.savepoint()
            for inner in steps:
                perform(run, inner)
            run.rollback_to()
        case ("fill", keys):
            run.backfill_some(tuple(dict.fromkeys(narrow(key, wide_key=wide) for key in keys)))
        case ("collect", lsns):
            run.collect(lsns)
        case ("remember", number):
            run.remember(number)
        case ("forget", before_us, rows_max):
            run.forget(before_us, rows_max)
        case ("commit",):
            run.commit()
            run.compare_committed()
            run.remove_dead()
            run.begin()
        case ("rollback" | "crash" as name,):
            getattr(run, name)()
            run.begin()
        case ("release" | "rollback_to" as name,):
            if run.savepoints:
                getattr(run, name)()
        case ("advance" | "savepoint" | "truncate" as name,):
            getattr(run, name)()


RUNS: Final = {
    "wide_key": st.booleans(),
    "rows": st.lists(WRITE, max_size=6),
    # 4, 8: write-only
    "schema_steps": st.one_of(st.sampled_from([4, 8]), st.integers(0, 14)),
    "steps": st.lists(STEP, min_size=5, max_size=40),
}


@settings(max_examples=30, print_blob=True)
@given(**RUNS)
def test_stores_in_lockstep_show_the_same(
    wide_key: bool,
    rows: list[tuple[Any, ...]],
    schema_steps: int,
    steps: list[tuple[Any, ...]],
) -> None:
    compare_in_lockstep(wide_key, rows, schema_steps, steps)


@pytest.mark.long("two minutes and more: the same ten times as often")
@settings(max_examples=300, print_blob=True)
@given(**RUNS)
def test_stores_in_lockstep_show_the_same_in_many_runs(
    wide_key: bool,
    rows: list[tuple[Any, ...]],
    schema_steps: int,
    steps: list[tuple[Any, ...]],
) -> None:
    compare_in_lockstep(wide_key, rows, schema_steps, steps)


def compare_in_lockstep(
    wide_key: bool,
    rows: list[tuple[Any, ...]],
    schema_steps: int,
    steps: list[tuple[Any, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = Lockstep(Path(folder), wide_key=wide_key)
        try:
            for step in (*rows, *[("advance",)] * schema_steps, *steps):
                perform(run, step)
                run.compare()
            run.commit()
            run.compare_committed()
            event(f"reached version {run.newest()}")
        finally:
            run.close()


def test_a_whole_schema_change_reaches_its_last_version(tmp_path: Path) -> None:
    """The random sequences seldom walk to the end; this one does, with writes at each version."""
    run = Lockstep(tmp_path, wide_key=True)
    kinds = [ChangeKind.INSERT, ChangeKind.UPDATE, ChangeKind.DELETE]
    try:
        for number in range(2 * len(run.versions)):
            for which in (0, 1):
                for place, kind in enumerate(kinds):
                    version = run.usable(which)
                    values: dict[int, Any] = {SEATS: number % 3 if number % 2 else None}
                    if version.by_id.get(PRICE) in version.by_name.values():
                        values[PRICE] = number / 2
                    run.write(kind, version, ("UA", number + which * place), values)
            run.compare()
            run.commit()
            run.compare_committed()
            run.begin()
            run.advance()
        assert run.newest() == run.lowest() == len(run.versions)
        run.commit()
        run.compare_committed()
    finally:
        run.close()
