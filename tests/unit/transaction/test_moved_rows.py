"""Goal: what became of a row is told right after any writes and any ways back. Method: the same
told by rows that carry their marks with them."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from leasehold.transaction.moved_rows import RowFates

STEPS = 60


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_followed(seed: int) -> None:
    random, fates = Random(seed), RowFates()
    made = iter(range(10_000))
    table: dict[Any, int] = {(n,): next(made) for n in range(6)}  # which row has a key
    seen: list[tuple[int, Any, int]] = []  # place, key, row
    saved: list[tuple[int, dict[Any, int]]] = []
    gone = moved = 0
    for place in range(1, STEPS):
        seen += [(place - 1, key, row) for key, row in table.items()]
        match random.choice(["move", "move", "delete", "insert", "empty", "save", "back"]):
            case "move":
                left = random.sample(sorted(table), min(3, len(table)))
                free = [(n,) for n in range(9) if (n,) not in table or (n,) in left]
                pairs = list(zip(left, random.sample(free, len(left)), strict=True))
                fates.became(place, 7, pairs)
                rows = [table.pop(key) for key, _ in pairs]
                table |= {to: row for (_, to), row in zip(pairs, rows, strict=True)}
            case "delete" if table:
                key = random.choice(sorted(table))
                fates.became(place, 7, [(key, None)])
                del table[key]
            case "insert":
                table.setdefault((random.randrange(9),), next(made))
            case "empty" if random.random() < 0.2:
                fates.emptied(place, [7])
                table.clear()
            case "save":
                saved.append((place, dict(table)))
            case "back" if saved:
                back, table = saved[random.randrange(len(saved))]
                table = dict(table)
                saved = [(at, rows) for at, rows in saved if at <= back]
                fates.back_to(back)
                seen = [each for each in seen if each[0] <= back]
        now = {row: key for key, row in table.items()}
        for since, key, row in seen:
            assert fates.now(7, key, since) == now.get(row), (place, since, key)
            gone += row not in now
            moved += now.get(row, key) != key
        assert fates.now(8, (1,), 0) == (1,), "another table's"
    assert gone + moved
