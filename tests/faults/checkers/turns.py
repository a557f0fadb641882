"""Judges turns that were taken under an exclusive advisory lock: each is one more than all that
were there, so no two have one number, unless two held the lock at once (D10). PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

SHOWN_MAX: Final = 5


def judge_turns(final: Mapping[str, Iterable[tuple[int, int]]]) -> list[str]:
    """Return what contradicts; `final`: (id, turn) of each row that a node shows in the end."""
    found = []
    for node, rows in final.items():
        taken = Counter(turn for _, turn in rows)
        twice = sorted(turn for turn, count in taken.items() if count > 1)
        if twice:
            found.append(f"turns: taken twice under one lock, on {node}: {twice[:SHOWN_MAX]}")
    return found
