"""Sequences: numbers that rise, of which none is given twice.

A sequence is a relation of one row that lies in the store and in the log like any other; the master
alone moves it, in the order of its log (`transaction/numbers.py`). Whoever needs numbers has it
moved by as many, and what lies between is his (DESIGN.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from leasehold.model.errors import InvalidArgument, OutOfRange, SequenceExhausted
from leasehold.model.records import Image, Key
from leasehold.schema.types import INTEGER_BITS, Type

ROW_KEY: Final[Key] = (0,)
LAST, COUNT, CALLED, EPOCH = 1, 2, 3, 4
"""Element ids of a sequence's columns: last_value, log_cnt (its key, always 0), is_called, and
`epoch`, which nobody is shown."""
BIGINT: Final = Type("bigint")


class Sequence(NamedTuple):
    """`type` bounds it where nothing else does. `cache`: as many numbers at least are taken at
    once. `cycles`: behind its last number comes its first one again."""

    type: str
    start: int
    increment: int
    least: int
    most: int
    cache: int = 1
    cycles: bool = False


class Standing(NamedTuple):
    """The next number is `last`, or where that was `called` one step behind it. `epoch`: the LSN
    that has set it last; numbers taken under an earlier one are nobody's any more."""

    last: int
    called: bool
    epoch: int


class Taken(NamedTuple):
    """`got` numbers from `first` on, and where the sequence stands then."""

    first: int
    got: int
    after: Standing


class Owner(NamedTuple):
    """Of a sequence: a column with which it goes. OWNED BY NONE: no column."""

    table: str = ""
    column: str = ""
    position: int = 1


class Options(NamedTuple):
    """As CREATE SEQUENCE says them; None: not at all."""

    type: str | None = None
    start: int | None = None
    increment: int | None = None
    least: int | None = None
    most: int | None = None
    cache: int | None = None
    cycles: bool | None = None
    name: str | None = None  # of an identity column's sequence
    position: int = 1
    owner: Owner | None = None


def limits_of(kind: str) -> tuple[int, int]:
    half = 1 << (INTEGER_BITS[kind] - 1)
    return -half, half - 1


def defined(options: Options, kind: str = "bigint") -> Sequence:
    """`kind`: of the column that it is for. Raises InvalidArgument in PostgreSQL's words."""
    kind = options.type or kind
    lowest, highest = limits_of(kind)
    increment = 1 if options.increment is None else options.increment
    if not increment:
        raise _invalid("INCREMENT must not be zero", options)
    rises = increment > 0
    least = (1 if rises else lowest) if options.least is None else options.least
    most = (highest if rises else -1) if options.most is None else options.most
    for word, value in (("MAXVALUE", most), ("MINVALUE", least)):
        if not lowest <= value <= highest:
            raise _invalid(
                f"{word} ({value}) is out of range for sequence data type {kind}", options
            )
    if least >= most:
        raise _invalid(f"MINVALUE ({least}) must be less than MAXVALUE ({most})", options)
    start = (least if rises else most) if options.start is None else options.start
    if start < least:
        raise _invalid(f"START value ({start}) cannot be less than MINVALUE ({least})", options)
    if start > most:
        raise _invalid(f"START value ({start}) cannot be greater than MAXVALUE ({most})", options)
    cache = 1 if options.cache is None else options.cache
    if cache < 1:
        raise _invalid(f"CACHE ({cache}) must be greater than zero", options)
    return Sequence(kind, start, increment, least, most, cache, bool(options.cycles))


def _invalid(words: str, options: Options) -> InvalidArgument:
    return InvalidArgument(words, position=options.position)


# ------------------------------------------------------------------ numbers


def fresh(sequence: Sequence, epoch: int) -> Standing:
    return Standing(sequence.start, False, epoch)


def taken(sequence: Sequence, name: str, standing: Standing, count: int) -> Taken:
    """The next `count` numbers, or as many as are left before its bound. Raises SequenceExhausted
    (2200H) where none is, and it does not cycle."""
    assert count > 0, count
    step = sequence.increment
    first = standing.last + step if standing.called else standing.last
    bound = sequence.most if step > 0 else sequence.least
    left = (bound - first) // step + 1
    if left <= 0 and sequence.cycles:
        first = sequence.least if step > 0 else sequence.most
        left = (bound - first) // step + 1
    if left <= 0:
        word = "maximum" if step > 0 else "minimum"
        raise SequenceExhausted(
            f"nextval: reached {word} value of sequence {name!r} ({bound})", sequence=name
        )
    got = min(count, left)
    last = first + step * (got - 1)
    assert sequence.least <= last <= sequence.most, "it is moved inside of its bounds"
    return Taken(first, got, Standing(last, True, standing.epoch))


def moved_to(sequence: Sequence, name: str, last: int, called: bool, epoch: int) -> Standing:
    """By setval or RESTART. Raises OutOfRange."""
    if not sequence.least <= last <= sequence.most:
        raise OutOfRange(
            f"setval: value {last} is out of bounds for sequence {name!r}"
            f" ({sequence.least}..{sequence.most})",
            sequence=name,
        )
    return Standing(last, called, epoch)


# ------------------------------------------------------------------ its row, and wire form


def standing_of(image: Image) -> Standing:
    return Standing(image[LAST], bool(image[CALLED]), image[EPOCH])


def image_of(standing: Standing) -> Image:
    return {
        LAST: standing.last,
        COUNT: ROW_KEY[0],
        CALLED: int(standing.called),
        EPOCH: standing.epoch,
    }


def sequence_from_wire(body: Any) -> Sequence | None:
    return None if body is None else Sequence(*body)


def sequence_to_wire(sequence: Sequence) -> list[Any]:
    """One that does not cycle is read by older nodes, too."""
    return list(sequence) if sequence.cycles else list(sequence)[:-1]


# ------------------------------------------------------------------ columns that draw


class Numbering(NamedTuple):
    """Of a column whose default is a number of `sequence` (its id). `owned`: that goes when the
    table does. `identity`: "a" for GENERATED ALWAYS, "d" for BY DEFAULT, "" for a plain default."""

    sequence: int
    owned: bool = False
    identity: str = ""


def numbering_from_wire(body: Mapping[str, Any]) -> Numbering | None:
    found = body.get("numbering")
    return None if found is None else Numbering(*found)
