"""Spark says of facts in files what `find_suspects` says of them in memory, on random facts."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.pipeline.facts import (
    BROKEN,
    FINDINGS_MAX,
    TRUNCATION,
    ConstraintGroups,
    Fact,
    find_suspects,
)
from spark_streaming.fact_files import FactFile

UNIQUE, OTHER_UNIQUE, CHECK, REFERENCE = 9, 12, 10, 11
WANTED = ConstraintGroups((UNIQUE, OTHER_UNIQUE), (REFERENCE,), (CHECK,))
SIDES = (
    (UNIQUE, False),
    (OTHER_UNIQUE, False),
    (CHECK, False),
    (REFERENCE, False),
    (REFERENCE, True),
)
PARTITIONS = 2
HANDED_OVER_MAX = (0, 6, 100_000)
"""All rows and values exactly; some of either; only what shares a hash."""
SEEDS = range(6)
DEADLINE_S = 240


def random_facts(seed: int) -> Iterator[Fact]:
    """Images of few rows, in any order of their places; a table is emptied now and then."""
    dice = random.Random(seed)
    rows = dice.choice((30, 200))
    values = dice.choice((10, 100))
    often = dice.choice((0, 0.01))
    for element, parent in SIDES:
        for place in range(dice.choice((50, 200))):
            number = dice.randrange(rows)
            partition, row = number % PARTITIONS, b"row %d" % number
            value: bytes | None = b"value %d" % dice.randrange(values)
            if element == CHECK:
                value = BROKEN
            if dice.random() < 0.2 or (element == CHECK and dice.random() < 0.8):
                value = None
            if dice.random() < often:
                row, value = TRUNCATION, None
            yield Fact(element, parent, partition, row, place, value)


def write(folder: Path, facts: list[Fact], seed: int) -> None:
    folder.mkdir()
    shuffled = random.Random(seed).sample(facts, len(facts))
    for number in range(2):
        with FactFile(str(folder), number) as file:
            file.add(shuffled[number::2])


@pytest.mark.long(
    "a minute of a Spark of its own; test_spark_validation meets each kind of finding"
)
def test_spark_and_memory_find_the_same(tmp_path: Path) -> None:
    cases, expected = [], []
    for seed in SEEDS:
        facts = list(random_facts(seed))
        place = tmp_path / f"facts-{seed}"
        write(place, facts, seed)
        found = [[element, row.hex()] for element, row in find_suspects(facts, WANTED)]
        assert found, seed
        for handed_over_max in HANDED_OVER_MAX:
            most = 7 if handed_over_max == 6 else FINDINGS_MAX
            cases.append((str(place), handed_over_max, most, *WANTED))
            expected.append([len(found), found[:most]])
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.postgres.compare_facts", str(tmp_path / "spark")],
        input="".join(json.dumps(case) + "\n" for case in cases),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    for case, answer, wanted in zip(cases, answers, expected, strict=True):
        assert answer == wanted, case
