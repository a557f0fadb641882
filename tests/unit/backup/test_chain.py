"""Goal: the backups that a restore takes are those that reach its target, and none that it needs is
ever removed.

Method: chains of made-up manifests; each rule over a table of cases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.backup.chain import (
    Target,
    chain_of,
    made_after,
    newest,
    plan_restore,
    to_remove,
    usable_chains,
)
from leasehold.backup.manifest import Kind, Manifest, Place, StoredObject
from leasehold.model.errors import BackupDamaged, ConfigurationError


def made(name: str, at: int, end: int, parent: Manifest | None = None) -> Manifest:
    """A backup that was made at second `at`, up to LSN `end` (its time is 10 × the LSN)."""
    place = Place(2 * end, end, 10 * end)
    return Manifest(
        id=name,
        kind=Kind.FULL if parent is None else Kind.LOG,
        parent="" if parent is None else parent.id,
        root=name if parent is None else parent.root,
        database="d",
        source="r1",
        program="p",
        made_us=at,
        begin=place if parent is None else parent.end,
        end=place,
        private=StoredObject("private", 0, 0, ""),
    )


A = made("a", 1, 100)
A1 = made("a1", 2, 110, A)
A2 = made("a2", 3, 120, A1)
B = made("b", 4, 120)
B1 = made("b1", 5, 130, B)
B2 = made("b2", 6, 140, B1)
ALL = (A, A1, A2, B, B1, B2)


def ids(target: Target, there: tuple[Manifest, ...] = ALL, backup: str | None = None) -> str:
    plan = plan_restore(there, target, backup)
    assert plan.last is (plan.full, *plan.increments)[-1]
    return " ".join(each.id for each in (plan.full, *plan.increments))


def test_a_plan_takes_the_nearest_full_backup_and_as_few_increments_as_will_do() -> None:
    cases = {
        Target(): "b b1 b2",
        Target(lsn=100): "a",
        Target(lsn=101): "a a1",
        Target(lsn=110): "a a1",
        Target(lsn=119): "a a1 a2",
        Target(lsn=120): "b",
        Target(lsn=121): "b b1",
        Target(lsn=140): "b b1 b2",
        Target(time_us=1000): "a",
        Target(time_us=1101): "a a1 a2",
        Target(time_us=1399): "b b1 b2",
    }
    found = {target: ids(target) for target in cases}
    assert found == cases


def test_a_target_that_no_backup_reaches_is_refused_with_what_there_is() -> None:
    for target in (Target(lsn=99), Target(lsn=141), Target(time_us=999), Target(time_us=1401)):
        with pytest.raises(ConfigurationError, match="there is LSN 100 to 120, LSN 120 to 140"):
            ids(target)
    with pytest.raises(ConfigurationError, match=r"no whole backup$"):
        ids(Target(), ())
    with pytest.raises(ConfigurationError, match="no whole backup 'c'"):
        ids(Target(), ALL, "c")
    assert ids(Target(), ALL, "a1") == "a a1"
    with pytest.raises(ConfigurationError, match=r"there is LSN 100 to 110$"):
        ids(Target(lsn=115), ALL, "a1")


def test_a_chain_with_a_hole_is_no_chain() -> None:
    without = (A, A2, B, B1)
    assert [chain[-1].id for chain in usable_chains(without)] == ["a", "b", "b1"]
    with pytest.raises(BackupDamaged, match="a2 goes on from a1, which is not there"):
        chain_of(A2, {each.id: each for each in without})
    moved = replace(A1, begin=Place(0, 90, 0))
    with pytest.raises(BackupDamaged, match="a1 does not begin where a ends"):
        chain_of(moved, {"a": A, "a1": moved})
    with pytest.raises(ConfigurationError):
        ids(Target(lsn=115), without)
    around = replace(A1, parent="a1", begin=A1.end)
    with pytest.raises(BackupDamaged, match="does not begin where"):
        chain_of(around, {"a1": around})


def test_an_increment_goes_on_from_the_newest_whole_backup() -> None:
    assert newest(ALL) is B2
    assert newest((*ALL[:4], B2)) is B
    assert newest(()) is None
    assert made_after(None, 7) == 7
    assert made_after(B2, 9) == 9
    assert made_after(B2, 2) == 7  # a clock that was set back


def test_retention_keeps_full_backups_with_what_rests_on_them() -> None:
    gone = {keep: [each.id for each in to_remove(ALL, keep)] for keep in (1, 2, 3)}
    assert gone == {1: ["a2", "a1", "a"], 2: [], 3: []}
    # Wherever it is broken off, what is left is whole.
    left = list(ALL)
    for each in to_remove(ALL, 1):
        left.remove(each)
        assert len(usable_chains(left)) == len(left)
