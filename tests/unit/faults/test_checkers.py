"""Goal: each checker lets a good history pass, and finds each harm that it is there for.

Method: histories by hand, a good one and variants that are bad in one place.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.faults.checkers.activity import judge_activity
from tests.faults.checkers.appends import judge_appends
from tests.faults.checkers.bank import judge_bank
from tests.faults.checkers.feed import Change, judge_end, judge_life
from tests.faults.checkers.members import judge_members
from tests.faults.checkers.outcomes import judge_outcomes
from tests.faults.checkers.registers import judge_registers
from tests.faults.checkers.versions import Use, judge_versions
from tests.faults.workload.history import Op, Told, read_ops

LEVELS = ("default", "read committed", "snapshot", "serializable", "linearizable")


def op(kind: str, begun: int, ended: int, told: Told = Told.YES, **value: Any) -> Op:
    return Op("client", begun, kind, begun, ended, told, "", value)


# ---------------------------------------------------------------- list-append


def append(
    begun: int, ended: int, steps: str, level: str = "serializable", told: Told = Told.YES
) -> Op:
    """Steps like `a0:1` (append 1 to list 0) and `r0:1,2` (list 0 was read so)."""
    made: list[list[Any]] = []
    for step in steps.split():
        key, _, values = step[1:].partition(":")
        numbers = [int(v) for v in values.split(",") if v]
        if step[0] == "a":
            made.append(["append", int(key), numbers[0]])
        else:
            made.append(["read", int(key), numbers])
    return op("append", begun, ended, told, level=level, steps=made)


GOOD = [append(1, 2, "a0:1 a1:2"), append(3, 4, "r0:1 a0:3"), append(5, 6, "r0:1,3 r1:2")]
GOOD_END = {0: (1, 3), 1: (2,)}


@pytest.mark.parametrize("level", LEVELS)
def test_a_serial_history_of_appends_passes(level: str) -> None:
    ops = [one._replace(value={**one.value, "level": level}) for one in GOOD]
    assert judge_appends(ops, GOOD_END) == []


BAD_APPENDS: dict[str, tuple[list[Op], dict[int, tuple[int, ...]], str]] = {
    "a lost append": (GOOD, {0: (1,), 1: (2,)}, "lost update"),
    "an append done twice": (GOOD, {0: (1, 3, 3), 1: (2,)}, "lost update"),
    "a value out of nowhere": (GOOD, {0: (1, 3), 1: (2, 9)}, "nobody appended"),
    "one that was refused and is there": (
        [*GOOD, append(7, 8, "a1:4", told=Told.NO)],
        {0: (1, 3), 1: (2, 4)},
        "G1a",
    ),
    "a read of half a transaction": (
        [append(1, 2, "a0:1 a0:2"), append(1, 4, "r0:1")],
        {0: (1, 2)},
        "G1b",
    ),
    "an outdated read": (
        [append(1, 2, "a0:1"), append(3, 4, "r0:")],
        {0: (1,)},
        "without [1], acknowledged",
    ),
    "write skew": (
        [append(1, 5, "r0: a1:1"), append(2, 6, "r1: a0:2")],
        {0: (2,), 1: (1,)},
        "G2-item",
    ),
}


@pytest.mark.parametrize("why", BAD_APPENDS)
def test_bad_appends_are_found(why: str) -> None:
    ops, final, words = BAD_APPENDS[why]
    found = judge_appends(ops, final)
    assert any(words in each for each in found), found


def test_what_a_level_allows_is_let_pass_and_no_more() -> None:
    skew = [append(1, 5, "r0: a1:1", "snapshot"), append(2, 6, "r1: a0:2", "snapshot")]
    assert judge_appends(skew, {0: (2,), 1: (1,)}) == []
    torn = [
        append(1, 9, "a0:1 a1:2", "snapshot"),
        append(2, 8, "r0:1 r1:", "snapshot"),
    ]
    assert "G-single" in judge_appends(torn, {0: (1,), 1: (2,)})[0]
    committed = [one._replace(value={**one.value, "level": "read committed"}) for one in torn]
    assert judge_appends(committed, {0: (1,), 1: (2,)}) == []


def test_an_unknown_append_may_be_there_or_not() -> None:
    ops = [*GOOD, append(7, 0, "a1:4", told=Told.UNKNOWN)]
    assert judge_appends(ops, GOOD_END) == []
    assert judge_appends(ops, {0: (1, 3), 1: (2, 4)}) == []


def test_real_time_counts_between_readers_at_linearizable() -> None:
    """The write was not acknowledged, so no other level promises anything."""
    steps = [(1, 9, "a0:1"), (2, 3, "r0:1"), (4, 5, "r0:")]
    for level, words in (("linearizable", "outdated read"), ("serializable", "")):
        found = judge_appends([append(*step, level) for step in steps], {0: (1,)})
        assert (words in found[0]) if words else found == []


# ---------------------------------------------------------------- registers


def test_registers_that_an_order_explains_pass() -> None:
    ops = [
        op("write", 1, 4, key=0, value=1),
        op("read", 2, 3, key=0, value=1),
        op("write", 5, 0, Told.UNKNOWN, key=0, value=2),
        op("read", 6, 7, key=0, value=1),
        op("read", 8, 9, key=0, value=2),
        op("write", 8, 9, Told.NO, key=0, value=3),
    ]
    assert judge_registers(ops) == []


BAD_REGISTERS = {
    "outdated": [op("write", 1, 2, key=0, value=1), op("read", 3, 4, key=0, value=0)],
    "back in time": [
        op("write", 1, 9, key=0, value=1),
        op("read", 2, 3, key=0, value=1),
        op("read", 4, 5, key=0, value=0),
    ],
    "refused and read": [
        op("write", 1, 2, Told.NO, key=0, value=1),
        op("read", 3, 4, key=0, value=1),
    ],
    "from the future": [op("read", 1, 2, key=0, value=1), op("write", 3, 4, key=0, value=1)],
}


@pytest.mark.parametrize("why", BAD_REGISTERS)
def test_bad_registers_are_found(why: str) -> None:
    (found,) = judge_registers(BAD_REGISTERS[why])
    assert found.startswith("register 0: no order explains")


def draw_history(rng: random.Random) -> list[Op]:
    """Return a short history of one register, right or wrong."""
    ops = []
    for value in range(1, rng.randint(2, 6)):
        begun = rng.randrange(12)
        ended = begun + rng.randint(1, 6)
        if rng.random() < 0.5:
            told = rng.choice((Told.YES, Told.YES, Told.UNKNOWN))
            ops.append(
                op("write", begun, ended if told is Told.YES else 0, told, key=0, value=value)
            )
        else:
            ops.append(op("read", begun, ended, key=0, value=rng.randrange(value + 1)))
    return sorted(ops, key=lambda each: each.begun_ns)


def has_an_order(ops: list[Op]) -> bool:
    """Say whether one of all orders, with or without each write of unknown outcome, explains it."""
    sure = [each for each in ops if each.told is Told.YES]
    unsure = [each for each in ops if each.told is Told.UNKNOWN]
    for count in range(len(unsure) + 1):
        for with_these in itertools.combinations(unsure, count):
            for order in itertools.permutations([*sure, *with_these]):
                if _explains(order):
                    return True
    return False


def _explains(order: Sequence[Op]) -> bool:
    stands, latest_begin = 0, 0
    for each in order:
        latest_begin = max(latest_begin, each.begun_ns)
        if each.told is Told.YES and each.ended_ns < latest_begin:
            return False
        if each.kind == "write":
            stands = each.value["value"]
        elif each.value["value"] != stands:
            return False
    return True


def test_registers_are_judged_as_by_looking_at_all_orders() -> None:
    verdicts: Counter[bool] = Counter()
    for seed in range(1_500):
        ops = draw_history(random.Random(seed))
        verdict = judge_registers(ops) == []
        assert verdict == has_an_order(ops), (seed, ops)
        verdicts[verdict] += 1
    assert min(verdicts.values()) > 200, verdicts


# ---------------------------------------------------------------- bank, set


def test_a_bank_whose_transfers_add_up_passes() -> None:
    ops = [
        op("transfer", 1, 2, payer=0, payee=1, amount=30),
        op("transfer", 3, 4, Told.NO, payer=0, payee=1, amount=90),
        op("total", 5, 6, balances=[70, 130]),
    ]
    assert judge_bank(ops, {0: 100, 1: 100}, {0: 70, 1: 130}) == []
    ops.append(op("transfer", 7, 0, Told.UNKNOWN, payer=0, payee=1, amount=5))
    assert judge_bank(ops, {0: 100, 1: 100}, {0: 65, 1: 135}) == []


BAD_BANKS = {
    "a torn read": ([op("total", 1, 2, balances=[70, 100])], {0: 100, 1: 100}, "total of 170"),
    "money below 0 seen": ([op("total", 1, 2, balances=[-5, 205])], {0: 100, 1: 100}, "of -5"),
    "money gone": ([], {0: 100, 1: 90}, "the total is 190"),
    "money below 0": ([], {0: -1, 1: 201}, "a balance is -1"),
    "a transfer undone": (
        [op("transfer", 1, 2, payer=0, payee=1, amount=30)],
        {0: 100, 1: 100},
        "add up to",
    ),
}


@pytest.mark.parametrize("why", BAD_BANKS)
def test_bad_banks_are_found(why: str) -> None:
    ops, final, words = BAD_BANKS[why]
    found = judge_bank(ops, {0: 100, 1: 100}, final)
    assert any(words in each for each in found), found


INSERTS = [
    op("insert", 1, 2, tag="a", number=1),
    op("insert", 3, 4, Told.NO, tag="b", number=None),
    op("insert", 5, 0, Told.UNKNOWN, tag="c", number=None),
]


def test_a_set_with_all_that_was_acknowledged_passes() -> None:
    assert judge_members(INSERTS, {"r1": [(1, "a")], "r2": [(1, "a")]}) == []
    assert judge_members(INSERTS, {"r1": [(1, "a"), (2, "c")]}) == []


BAD_SETS = {
    "lost": ([], "lost, though acknowledged"),
    "refused": ([(1, "a"), (2, "b")], "there, though refused"),
    "doubled": ([(1, "a"), (2, "c"), (3, "c")], "there twice"),
    "strange": ([(1, "a"), (2, "z")], "nobody inserted"),
    "renumbered": ([(7, "a")], "was told number 1 and has 7"),
}


@pytest.mark.parametrize("why", BAD_SETS)
def test_bad_sets_are_found_on_any_node(why: str) -> None:
    rows, words = BAD_SETS[why]
    found = judge_members(INSERTS, {"r1": [(1, "a")], "e1": rows})
    assert len(found) == 1
    assert words in found[0]
    assert found[0].endswith("on e1")


def test_a_number_given_twice_is_found() -> None:
    ops = [*INSERTS, op("insert", 7, 8, tag="d", number=1)]
    assert "numbers given twice: [1]" in judge_members(ops, {})[0]


# ---------------------------------------------------------------- feed


def change(lsn: int, key: int = 0, n: int | None = 1, **more: Any) -> Change:
    fields = {"version": 3, "made_under": 3, "columns": ("id", "n"), **more}
    values = None if n is None else {"id": key, "n": n}
    return Change("t", (key,), values, lsn, **fields)


def test_a_feed_in_order_that_ends_as_the_store_passes() -> None:
    life = [change(1), change(2, key=1), change(4, n=2), change(0, key=1, n=None), change(9, key=1)]
    assert judge_life(life) == []
    final = {"t": {(0,): {"n": 2}, (1,): {"n": 1}}}
    assert judge_end(life, final, {"t": [1, 2, 4]}) == []


BAD_LIVES = {
    "twice": ([change(1), change(1)], "came twice"),
    "out of order": ([change(2), change(1)], "came after 2"),
    "other columns": ([change(1, columns=("id", "n", "c"))], "version 3 has"),
    "two versions off": ([change(1, made_under=5)], "read under 3, made 5"),
}


@pytest.mark.parametrize("why", BAD_LIVES)
def test_bad_lives_of_a_follower_are_found(why: str) -> None:
    changes, words = BAD_LIVES[why]
    (found,) = judge_life(changes)
    assert words in found


def test_a_feed_that_lacks_something_is_found() -> None:
    final = {"t": {(0,): {"n": 2}}}
    assert "the feed has" in judge_end([change(1)], final, {})[0]
    assert "the feed has None" in judge_end([], final, {})[0]
    assert "the store None" in judge_end([change(1)], {"t": {}}, {})[0]
    assert "never fed" in judge_end([change(1, n=2)], final, {"t": [1, 5]})[0]


# ---------------------------------------------------------------- versions, outcomes, files


def test_two_neighbouring_versions_are_no_harm_and_a_third_one_is() -> None:
    good = [Use(1, "a", 7, 1), Use(2, "b", 7, 2), Use(3, "a", 7, 1), Use(4, "a", 8, 9)]
    assert judge_versions(good) == []
    assert judge_versions([*good, Use(5, "b", 7, 3)]) == []
    (found,) = judge_versions([*good, Use(5, "b", 7, 3), Use(6_000_000, "a", 7, 1)])
    assert "a used version 1 of table 7" in found


def test_another_answer_to_the_same_id_is_found() -> None:
    told = {"x": [{"lsn": 5}]}
    assert judge_outcomes(told, {"x": {"lsn": 5}}) == []
    assert "was told" in judge_outcomes(told, {"x": {"lsn": 6}})[0]
    assert "no outcome" in judge_outcomes(told, {})[0]
    both = {"x": [{"lsn": 5}], "y": [{"lsn": 5}]}
    assert "one LSN" in judge_outcomes(both, {"x": {"lsn": 5}, "y": {"lsn": 5}})[0]


def test_files_give_each_operation_once_and_leave_out_half_a_line() -> None:
    begun = op("write", 5, 0, Told.UNKNOWN, key=0, value=1)
    ended = begun._replace(ended_ns=9, told=Told.YES)
    other = op("read", 3, 4, key=0, value=0)
    text = begun.line() + ended.line() + other.line()[:10] + "\n" + other.line() + begun.line()[:12]
    assert read_ops([text]) == [other, ended]


# ---------------------------------------------------------------- activity


def told(from_s: int, commits: int, window_s: int = 1) -> dict[str, Any]:
    tables = {"7": [commits, commits], "8": [90, 90]}
    return {"what": "writes", "window_s": window_s, "from_s": from_s, "tables": tables}


def test_windows_that_count_each_commit_once_pass() -> None:
    """A window that was told again counts as it was told last."""
    steps = {"what": "steps", "window_s": 60, "from_s": 0, "phases": {}}
    windows = [told(1, 2), told(2, 3), told(1, 4), told(0, 7, window_s=60), steps]
    assert judge_activity(windows, 7, 7, exact=True) == []


@pytest.mark.parametrize(
    ("commits", "exact", "wrong"), [(8, False, 1), (6, True, 1), (6, False, 0)]
)
def test_commits_that_were_not_counted_or_twice_are_found(
    commits: int, exact: bool, wrong: int
) -> None:
    found = judge_activity([told(1, 4), told(2, 3)], 7, commits, exact=exact)
    assert len(found) == wrong
