"""What a connection does with each message, by its phase: the one transition table.

Everything that decides whether a message is taken, skipped or refused stands in TABLE, and what an
error of it leads to in AFTER_ERROR; the code of `conversation.py` runs what is to be taken and then
names the outcome, from which AFTER gives the next phase. Rules, as PostgreSQL has them:

1. After an error in the extended protocol all messages are skipped up to Sync, simple Query too.
2. An error in a simple Query skips nothing, nor does one of Sync itself: one ReadyForQuery follows.
3. Data of a COPY that has failed may still be on its way: outside a COPY it is dropped.
4. During COPY, Sync and Flush mean nothing; any other message ends the connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Phase(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    READY = "takes statements"
    SKIPPING = "skips to Sync"
    COPYING_SIMPLE = "takes rows of a COPY that a simple Query has begun"
    COPYING_EXTENDED = "takes rows of a COPY that an Execute has begun"
    CLOSED = "says and takes nothing any more"


class Action(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    SIMPLE = "run a simple Query"
    EXTENDED = "run a message of the extended protocol"
    SYNC = "end the batch, or the skipping"
    DROP = "take no notice"
    COPY_SIMPLE = "take a part of COPY; behind its end the simple Query goes on"
    COPY_EXTENDED = "take a part of COPY, which ends its Execute"
    BREAK_COPY = "an error inside COPY that ends the connection"
    END = "the client leaves"
    REFUSE = "an error that ends the connection"


class Outcome(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    DONE = "answered"
    FAILED = "an error was answered, and what follows is skipped"
    FAILED_READY = "an error was answered, and ReadyForQuery said"
    COPY_BEGINS_SIMPLE = "rows are awaited, in a simple Query"
    COPY_BEGINS_EXTENDED = "rows are awaited, in the extended protocol"
    ENDED = "the connection ends"


class Behind(Enum):
    """How far behind a client is that does not read its answers; None instead: not far."""

    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    SLOW = "what it is waited for is put aside"
    STANDING = "nothing is held for it any more"


_QUERY: Final = frozenset(b"QF")  # F: a call of a function, which is refused by an error
_EXTENDED: Final = frozenset(b"PBDECH")
_SYNC: Final = frozenset(b"S")
_COPY: Final = frozenset(b"dcf")
_END: Final = frozenset(b"X")
_PROOF: Final = frozenset(b"p")


def _row(*parts: tuple[frozenset[int], Action]) -> Mapping[int, Action]:
    return {kind: action for kinds, action in parts for kind in kinds}


def _copying(action: Action) -> Mapping[int, Action]:
    return _row(
        (_QUERY | _EXTENDED, Action.BREAK_COPY),
        (_COPY, action),
        (_SYNC | frozenset(b"H"), Action.DROP),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    )


TABLE: Final[Mapping[Phase, Mapping[int, Action]]] = {
    Phase.READY: _row(
        (_QUERY, Action.SIMPLE),
        (_EXTENDED, Action.EXTENDED),
        (_SYNC, Action.SYNC),
        (_COPY, Action.DROP),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    ),
    Phase.SKIPPING: _row(
        (_QUERY | _EXTENDED | _COPY, Action.DROP),
        (_SYNC, Action.SYNC),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    ),
    Phase.COPYING_SIMPLE: _copying(Action.COPY_SIMPLE),
    Phase.COPYING_EXTENDED: _copying(Action.COPY_EXTENDED),
    Phase.CLOSED: {},
}
AFTER: Final[Mapping[Outcome, Phase]] = {
    Outcome.DONE: Phase.READY,
    Outcome.FAILED: Phase.SKIPPING,
    Outcome.FAILED_READY: Phase.READY,
    Outcome.COPY_BEGINS_SIMPLE: Phase.COPYING_SIMPLE,
    Outcome.COPY_BEGINS_EXTENDED: Phase.COPYING_EXTENDED,
    Outcome.ENDED: Phase.CLOSED,
}
AFTER_ERROR: Final[Mapping[Action, Outcome]] = {
    Action.SIMPLE: Outcome.FAILED_READY,
    Action.EXTENDED: Outcome.FAILED,
    Action.SYNC: Outcome.FAILED_READY,
    Action.COPY_SIMPLE: Outcome.FAILED_READY,
    Action.COPY_EXTENDED: Outcome.FAILED,
}
"""What an error leads to that the client gets as the answer."""
