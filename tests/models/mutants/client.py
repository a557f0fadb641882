"""Each ⚠ rule of numbers that nodes draw from sequences, and what breaks it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from leasehold.replica.sequences.node_blocks import Found, NodeSequenceValues
from leasehold.replica.sequences.session_values import DrawnSequenceValues
from tests.models.mutants.breaking import Breaks

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class SequenceValueRules:
    epochs_are_looked_at: bool = True  # T8: what was taken before a setval is nobody's any more
    drawn_is_drawn_again: bool = True  # T2: a number that was told stays


def broken(rules: Any) -> AbstractContextManager[None]:
    return BREAKS.broken_in(rules)


@BREAKS("epochs_are_looked_at", NodeSequenceValues, "_holds")
def _give_what_is_left(_kept: Any, _numbers: NodeSequenceValues, block: Any, _found: Found) -> bool:
    return bool(block.left)


@BREAKS("drawn_is_drawn_again", DrawnSequenceValues, "take_over")
def _draw_others(_kept: Any, _drawn: DrawnSequenceValues, _before: DrawnSequenceValues) -> None:
    pass
