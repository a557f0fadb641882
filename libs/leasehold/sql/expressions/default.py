"""DEFAULT's expression: a constant is computed once; what changes from call to call is kept as text
and computed by the master, for each row at the moment that it decides on."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, NamedTuple

from leasehold.catalog.elements import Column, CommitContext
from leasehold.catalog.schema_names import PUBLIC
from leasehold.model.errors import FeatureNotSupported, InvalidObject, OutOfRange
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.sql.expressions.compiler import DECIDED, NOW, SEED, Compiler
from leasehold.sql.expressions.expression import make_total, with_exact_numbers
from leasehold.sql.expressions.number_text import show_number
from leasehold.sql.expressions.plain_words import with_plain_words
from leasehold.sql.expressions.typed import Typed, asking_zone, assign, computed_in
from leasehold.sql.functions.function import Function
from leasehold.sql.syntax.enum_names import FindEnum, no_enums
from leasehold.sql.syntax.kept import EXPRESSION_BYTES_MAX, nodes_of, read_expression
from leasehold.sql.syntax.source import TEXT_BYTES_MAX
from leasehold.sql.syntax.tree import Call, Node
from leasehold.sql.syntax.words import VOLATILE
from leasehold.values.time_zone import UTC, zone_at
from leasehold.values.types import Type

_ALSO_CALLED: Final = {
    f"{schema}{name}()": "gen_random_uuid()"
    for schema in ("", f"{PUBLIC}.", "extensions.")  # where dumps have what extensions made
    for name in ("uuid_generate_v4", "gen_random_uuid")
}
"""Defaults that are kept in another way to say the same, which every release knows."""
_RANDOM: Final = frozenset({"gen_random_uuid", "random"})
_PROBE: Final = CommitContext(0, b"")

Evaluate = Callable[[CommitContext, int, int, Key], Any]


class Default(NamedTuple):
    """The default of a column: `value` is a storage value, None for no constant; `expression` is
    the text of what is computed for each row, "" for none; `text`: how a number was written, ""
    where it is shown by its value."""

    value: Any = None
    expression: str = ""
    text: str = ""


def default_of_text(
    text: str, kind: Type, zone: str = "", find_enum: FindEnum = no_enums
) -> Default:
    """What DEFAULT `text` is in a column of `kind`; nothing for NULL. `zone`: of the session that
    says it, in which a constant without one is read, for good. `find_enum`: see `Compiler`; that of
    the column is known anyway.

    Raises FeatureNotSupported for what can't be a default, WrongType for one of another type,
    SyntaxInvalid, DivisionByZero, InvalidText, OutOfRange and TooLong as the expression and the
    type say; positions count in `text`.
    """
    text = with_plain_words(_ALSO_CALLED.get(text, text))
    with computed_in(zone), asking_zone() as asked:
        made, decided = _read(text, _with_own(kind, find_enum))
        compute = assign(made, kind)
        if not decided:
            value = compute({})
            return Default(value, text=show_number(_tree(text), kind, value))
    if asked.constants:
        raise FeatureNotSupported(
            f"{asked.constants[0]!r:.80} in a default that changes from call to call is read in"
            f" UTC, and not in the session's time zone, {zone}: say its offset"
        )
    text = with_exact_numbers(text)
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        raise OutOfRange(f"the expression has more than {EXPRESSION_BYTES_MAX} bytes")
    # Whether there is a value at all is seen now, not when a row is written.
    if compile_default(text, kind)(_PROBE, 0, 0, ()) is None:
        raise FeatureNotSupported(f"the default {text!r:.80} is always NULL: leave it out")
    return Default(None, text)


def check_default(text: str, find_enum: FindEnum = no_enums) -> None:
    """Refuses what no column could have as its default; raises what `default_of_text` raises."""
    _read(with_plain_words(_ALSO_CALLED.get(text, text)), find_enum)


def _with_own(kind: Type, find: FindEnum) -> FindEnum:
    """Return what finds the enum type of a column, too, by the name that texts have that are
    kept."""
    own = kind.enum
    if own is None:
        return find
    return lambda name: own if name in (own.name, own.kept_name) else find(name)


@lru_cache(maxsize=1_024)
def compile_default(text: str, kind: Type, zone: str = "") -> Evaluate:
    """A function from (context, table id, element id, the row's primary key) to the storage value:
    the same for the same arguments, everywhere; random values differ by each of them. `zone`: the
    time zone of whoever asks for it, "" = UTC; a constant in it is of nobody's."""
    with computed_in(zone, constants=""):
        compute = make_total(text, assign(_read(text, _with_own(kind, no_enums))[0], kind))

    def evaluate(context: CommitContext, table_id: int, element_id: int, key: Key) -> Any:
        position = repr((table_id, element_id, tuple(key))).encode()
        seed = blake2b(position, key=context.seed[:64], digest_size=32).digest()
        row: Image = {NOW: context.now_us, SEED: seed}
        return compute(row)

    return evaluate


@lru_cache(maxsize=1_024)
def decided_default(text: str, kind: Type) -> Function:
    """A default that is the same in each row of a statement, as a function for queries: in the time
    zone of the session whose statement it is."""

    def compute(at: CommitContext) -> Any:
        zone = zone_at(at)
        evaluate = compile_default(text, kind, "" if zone is UTC else zone.key)
        return evaluate(at, 0, 0, ())

    return Function("default", (), kind, compute, volatility="stable")


@lru_cache(maxsize=1_024)
def is_random(text: str) -> bool:
    """Return whether each row gets another value."""
    return any(call.name in _RANDOM for call in _calls(_tree(text)))


def draws_number(text: str) -> bool:
    """Return whether a default has random(), which releases before it do not know in one."""
    return "random" in text and any(call.name == "random" for call in _calls(_tree(text)))


def _read(text: str, find_enum: FindEnum = no_enums) -> tuple[Typed, bool]:
    """The compiled expression, and whether it changes from call to call."""
    tree = _tree(text)
    decided = False
    for call in _calls(tree):
        if call.name in DECIDED:
            decided = True
        elif call.name in VOLATILE:
            raise FeatureNotSupported(
                f"{call.name!r:.40} can't be in a default; a constant can, and of what changes from"
                f" call to call {', '.join(sorted(DECIDED))}",
                position=call.at,
            )
    compiler = Compiler(_no_column, "", decides=True, kept=decided, find_enum=find_enum)
    return compiler.part(tree), decided


def refuse_changing(text: str) -> None:
    """Raises InvalidObject for an expression that changes from call to call."""
    for call in _calls(_tree(text)):
        if call.name in VOLATILE:
            raise InvalidObject(
                f"{call.name!r:.40} gives another value each time: the expression of a generated"
                " column or of an index must depend on the row alone",
                position=call.at,
            )


def _tree(text: str) -> Node:
    """A constant may be as long as a statement: it is not kept as a text."""
    return read_expression(text, TEXT_BYTES_MAX)


def _calls(tree: Node) -> list[Call]:
    return [node for node in nodes_of(tree) if isinstance(node, Call)]


def _no_column(name: str) -> Column:
    raise FeatureNotSupported(
        f"a default is the same for every row: the column {name!r:.80} can't be used in it"
    )
