"""Sequences: numbers that rise, of which none is given twice.

A sequence is a relation of one row that lies in the store and in the log like any other; the master
alone moves it, in the order of its log (`transaction/sequence_operations.py`). Whoever needs
numbers has it moved by as many, and what lies between is his (DESIGN.md).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from leasehold.model.errors import InvalidArgument, OutOfRange, SequenceExhausted
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.values.types import INTEGER_BITS, Type

ROW_KEY: Final[Key] = (0,)
LAST, COUNT, CALLED, EPOCH = 1, 2, 3, 4
"""Element ids of a sequence's columns: last_value, log_cnt (its key, always 0), is_called, and
`epoch`, which nobody is shown."""
BIGINT: Final = Type("bigint")


class Sequence(NamedTuple):
    """The options of a sequence. `type` bounds it where nothing else does. `cache`: as many numbers
    at least are taken at once. `cycles`: behind its last number comes its first one again.
    `begins`: the version that says so first goes on from there, None: from where it was."""

    type: str
    start: int
    increment: int
    least: int
    most: int
    cache: int = 1
    cycles: bool = False
    begins: int | None = None


class SequencePosition(NamedTuple):
    """The position of a sequence: the next number is `last`, or where that was `called` one step
    behind it. `epoch`: the LSN that has set it last; numbers taken under an earlier one are
    nobody's any more."""

    last: int
    called: bool
    epoch: int


class DrawnSequenceValues(NamedTuple):
    """The numbers that were drawn, `got` of them from `first` on, and where the sequence stands
    then."""

    first: int
    got: int
    after: SequencePosition


class Owner(NamedTuple):
    """The column with which a sequence goes. OWNED BY NONE: no column."""

    table: str = ""
    column: str = ""
    position: int = 1


class Options(NamedTuple):
    """The options as CREATE and ALTER SEQUENCE say them; None: not at all. `no_least`, `no_most`:
    NO MINVALUE, NO MAXVALUE. `restarts`: RESTART [WITH `restart`]."""

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
    no_least: bool = False
    no_most: bool = False
    restarts: bool = False
    restart: int | None = None


def limits_of(kind: str) -> tuple[int, int]:
    half = 1 << (INTEGER_BITS[kind] - 1)
    return -half, half - 1


def define_sequence(options: Options, kind: str = "bigint") -> Sequence:
    """Return a sequence as CREATE SEQUENCE says; `kind`: of the column that it is for. Raises
    InvalidArgument in PostgreSQL's words."""
    kind = options.type or kind
    lowest, highest = limits_of(kind)
    increment = _check_increment(options, 1)
    rises = increment > 0
    least = (1 if rises else lowest) if options.least is None else options.least
    most = (highest if rises else -1) if options.most is None else options.most
    start = (least if rises else most) if options.start is None else options.start
    return _check(Sequence(kind, start, increment, least, most), options)


def alter_sequence_options(before: Sequence, options: Options) -> Sequence:
    """Return the options as ALTER SEQUENCE leaves them: what is not said stays. Bounds that were
    its type's become those of another type; whether they hold where it stands only who has its row
    can tell (`bounds_held`).

    Raises InvalidArgument in PostgreSQL's words.
    """
    kind = options.type or before.type
    lowest, highest = limits_of(kind)
    were = limits_of(before.type)
    retyped = options.type is not None
    increment = _check_increment(options, before.increment)
    least, most = before.least, before.most
    if retyped and least == were[0]:
        least = lowest
    elif options.no_least:
        least = 1 if increment > 0 else lowest
    if retyped and most == were[1]:
        most = highest
    elif options.no_most:
        most = highest if increment > 0 else -1
    least = least if options.least is None else options.least
    most = most if options.most is None else options.most
    start = before.start if options.start is None else options.start
    made = before._replace(
        type=kind, start=start, increment=increment, least=least, most=most, begins=None
    )
    made = _check(made, options)
    if not options.restarts:
        return made
    begins = made.start if options.restart is None else options.restart
    return made._replace(begins=check_restart(made, begins, options.position))


def check_restart(sequence: Sequence, value: int, position: int = 1) -> int:
    """Raises InvalidArgument where it may not stand there."""
    if not sequence.least <= value <= sequence.most:
        word, bound = "greater than MAXVALUE", sequence.most
        if value < sequence.least:
            word, bound = "less than MINVALUE", sequence.least
        raise InvalidArgument(
            f"RESTART value ({value}) cannot be {word} ({bound})", position=position
        )
    return value


def _check_increment(options: Options, otherwise: int) -> int:
    found = otherwise if options.increment is None else options.increment
    if not found:
        raise _invalid("INCREMENT must not be zero", options)
    return found


def _check(sequence: Sequence, options: Options) -> Sequence:
    """Return the sequence with the options that bound nothing else. Raises InvalidArgument."""
    kind, start, least, most = sequence.type, sequence.start, sequence.least, sequence.most
    lowest, highest = limits_of(kind)
    for word, value in (("MAXVALUE", most), ("MINVALUE", least)):
        if not lowest <= value <= highest:
            raise _invalid(
                f"{word} ({value}) is out of range for sequence data type {kind}", options
            )
    if least >= most:
        raise _invalid(f"MINVALUE ({least}) must be less than MAXVALUE ({most})", options)
    if start < least:
        raise _invalid(f"START value ({start}) cannot be less than MINVALUE ({least})", options)
    if start > most:
        raise _invalid(f"START value ({start}) cannot be greater than MAXVALUE ({most})", options)
    cache = sequence.cache if options.cache is None else options.cache
    if cache < 1:
        raise _invalid(f"CACHE ({cache}) must be greater than zero", options)
    cycles = sequence.cycles if options.cycles is None else options.cycles
    return sequence._replace(cache=cache, cycles=cycles)


def _invalid(words: str, options: Options) -> InvalidArgument:
    return InvalidArgument(words, position=options.position)


# ------------------------------------------------------------------ numbers


def first_position(sequence: Sequence, epoch: int) -> SequencePosition:
    return SequencePosition(sequence.start, False, epoch)


def take_numbers(
    sequence: Sequence, name: str, state: SequencePosition, count: int
) -> DrawnSequenceValues:
    """Return the next `count` numbers, or as many as are left before its bound. Raises
    SequenceExhausted (2200H) where none is, and it does not cycle."""
    assert count > 0, count
    step = sequence.increment
    first = state.last + step if state.called else state.last
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
    return DrawnSequenceValues(first, got, SequencePosition(last, True, state.epoch))


def move_position(
    sequence: Sequence, name: str, last: int, called: bool, epoch: int
) -> SequencePosition:
    """Return the position that setval or RESTART asks for. Raises OutOfRange."""
    if not sequence.least <= last <= sequence.most:
        raise OutOfRange(
            f"setval: value {last} is out of bounds for sequence {name!r}"
            f" ({sequence.least}..{sequence.most})",
            sequence=name,
        )
    return SequencePosition(last, called, epoch)


def continue_position(sequence: Sequence, before: SequencePosition, epoch: int) -> SequencePosition:
    """Return the position in the version that says `sequence`. ⚠ Under another epoch: what nodes
    have taken before was counted by the old increment, and may lie behind the new bounds. What was
    given meanwhile may lie there, too: then it has come to its end."""
    if sequence.begins is not None:
        return SequencePosition(sequence.begins, False, epoch)
    last = min(max(before.last, sequence.least), sequence.most)
    return SequencePosition(last, before.called or last != before.last, epoch)


# ------------------------------------------------------------------ its row, and wire form


def read_position(image: Image) -> SequencePosition:
    return SequencePosition(image[LAST], bool(image[CALLED]), image[EPOCH])


def position_image(state: SequencePosition) -> Image:
    return {
        LAST: state.last,
        COUNT: ROW_KEY[0],
        CALLED: int(state.called),
        EPOCH: state.epoch,
    }


def sequence_from_wire(body: Any) -> Sequence | None:
    return None if body is None else Sequence(*body)


def sequence_to_wire(sequence: Sequence) -> list[Any]:
    """Return the wire form. One that does not cycle is read by older nodes, too."""
    body = list(sequence)
    if sequence.begins is None:
        body.pop()
        if not sequence.cycles:
            body.pop()
    return body


# ------------------------------------------------------------------ columns that draw


class Numbering(NamedTuple):
    """The sequence (its id) that a column's default draws from. `owned`: that goes when the table
    does. `identity`: "a" for GENERATED ALWAYS, "d" for BY DEFAULT, "" for a plain default."""

    sequence: int
    owned: bool = False
    identity: str = ""
