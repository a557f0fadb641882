"""What a connection does with each message, by its phase: the one transition table.

Everything that decides whether a message is taken, skipped or refused stands in TABLE; the code of
`conversation.py` runs what is to be taken and then names the outcome, from which AFTER gives the
next phase. Rules, as PostgreSQL has them:

1. After an error in the extended protocol all messages are skipped up to Sync, simple Query too.
2. An error in a simple Query skips nothing: one ReadyForQuery follows.
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
    COPYING = "takes rows of COPY"
    CLOSED = "says and takes nothing any more"


class Action(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    RUN = "run it"
    DROP = "take no notice"
    RESUME = "end of skipping"
    COPY = "a part of COPY"
    BREAK_COPY = "an error inside COPY that ends the connection"
    END = "the client leaves"
    REFUSE = "an error that ends the connection"


class Outcome(Enum):
    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    DONE = "answered"
    FAILED = "an error was answered, in the extended protocol"
    FAILED_SIMPLE = "an error was answered, in a simple Query"
    COPY_BEGINS = "rows are awaited"
    ENDED = "the connection ends"


class Behind(Enum):
    """How far a client is that does not read what it is told; None instead: not far."""

    __hash__ = object.__hash__  # members are one each; by name it would be computed each time

    SLOW = "what it is waited for is put aside"
    STANDING = "nothing is held for it any more"


_QUERY: Final = frozenset(b"Q")
_EXTENDED: Final = frozenset(b"PBDEC")
_BATCH: Final = frozenset(b"SH")
_COPY: Final = frozenset(b"dcf")
_CALL: Final = frozenset(b"F")
_END: Final = frozenset(b"X")
_PROOF: Final = frozenset(b"p")


def _row(*parts: tuple[frozenset[int], Action]) -> Mapping[int, Action]:
    return {kind: action for kinds, action in parts for kind in kinds}


TABLE: Final[Mapping[Phase, Mapping[int, Action]]] = {
    Phase.READY: _row(
        (_QUERY | _EXTENDED | _BATCH | _CALL, Action.RUN),
        (_COPY, Action.DROP),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    ),
    Phase.SKIPPING: _row(
        (_QUERY | _EXTENDED | frozenset(b"H") | _COPY | _CALL, Action.DROP),
        (frozenset(b"S"), Action.RESUME),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    ),
    Phase.COPYING: _row(
        (_COPY, Action.COPY),
        (_BATCH, Action.DROP),
        (_QUERY | _EXTENDED | _CALL, Action.BREAK_COPY),
        (_END, Action.END),
        (_PROOF, Action.REFUSE),
    ),
    Phase.CLOSED: {},
}
AFTER: Final[Mapping[Outcome, Phase]] = {
    Outcome.DONE: Phase.READY,
    Outcome.FAILED: Phase.SKIPPING,
    Outcome.FAILED_SIMPLE: Phase.READY,
    Outcome.COPY_BEGINS: Phase.COPYING,
    Outcome.ENDED: Phase.CLOSED,
}
