"""An expression over one row, e.g. `seats - 1`, compiled once to a closure over its image.

Also the text of an expression as a descriptor keeps it: which columns it names, and the same text
with one of them renamed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.errors import (
    InternalFailure,
    InvalidObject,
    Refused,
    TooLong,
    UnknownTable,
    WrongType,
)
from leasehold.model.records.events import Image
from leasehold.sql.expressions.closures import Compute
from leasehold.sql.expressions.compiler import Compiler, argument, check_functions
from leasehold.sql.expressions.typed import (
    ZoneUse,
    asking_zone,
    assign,
    computed_in,
    convert,
    noting_meaning,
)
from leasehold.sql.functions.enums import FAMILIES as LABEL_FUNCTIONS
from leasehold.sql.functions.function import BOOLEAN, TEXT, Function
from leasehold.sql.syntax.enum_names import FindEnum, no_enums
from leasehold.sql.syntax.kept import (
    EXPRESSION_BYTES_MAX,
    begin_of,
    expression_of,
    nodes_of,
    words_of,
)
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.scanning import Token
from leasehold.sql.syntax.tree import Call, Cast, Constant, Name, Node, Query, TypeName
from leasehold.sql.syntax.types import is_built_in, type_of
from leasehold.sql.syntax.words import is_word
from leasehold.values.enums import Enumeration
from leasehold.values.storage import to_storage
from leasehold.values.types import TEXT_BYTES_MAX, Type, parse_type

_KEPT_MAX: Final = 4_096

_CALLS_DEEP: Final = 4_000
"""Calls within calls. An expression of 100 levels over JSON of 500 takes 1,200 at most; a node or a
program around it some hundred more. Of Python's own 1,000 one node would have enough left where
another one has not, and they would hold different entries."""
sys.setrecursionlimit(max(sys.getrecursionlimit(), _CALLS_DEEP))

_CONDITION: Final = -1  # where a target's element id stands among what is kept

_kept: dict[tuple[int, int, int, str, tuple[str, ...], str], tuple[Descriptor, Compute]] = {}


def compile_expression(
    text: str,
    descriptor: Descriptor,
    target: Column | None = None,
    *,
    kept: bool = True,
    types: tuple[str, ...] = (),
    zone: str = "",
) -> Callable[[Image], Any]:
    """A function from a row's image to the storage value of `text` under `descriptor`; `kept` is
    False for the text of a request, in which 1.5 is a numeric (`with_exact_numbers`). `types`: of
    $1, $2 …, whose values the image has to have, too (`arguments`). `zone`: the session's time zone
    in which it was said, "" = UTC.

    With `target` the value is what is stored in that column: range, length and rounding are those
    of PostgreSQL's assignment, and a value of another type is refused here already.

    Raises SyntaxInvalid, UnknownColumn, UndefinedParameter, WrongType, FeatureNotSupported and
    OutOfRange (limits) when compiling; the function raises leaves of Refused alone (`make_total`):
    DivisionByZero, OutOfRange, InvalidText, TooLong, and InternalFailure for a defect.
    """

    def compiled() -> Compute:
        known = [argument_type(name) for name in types]
        compiler = Compiler(
            descriptor.column,
            descriptor.name,
            kept=kept,
            types=known,
            find_enum=enums_of(descriptor, target),
        )
        made = compiler.part(_tree(text))
        if target is None:
            return made.compute if made.kind else convert(made, TEXT)
        return assign(made, target.written_type)

    use = target.element_id if target else 0
    return _remembered(text, descriptor, use if kept else ~use - 1, compiled, types, zone)


def _kept_compiler(descriptor: Descriptor) -> Compiler:
    find = enums_of(descriptor)
    return Compiler(descriptor.column, descriptor.name, kept=True, find_enum=find)


def enums_of(descriptor: Descriptor, target: Column | None = None) -> FindEnum:
    """Return what finds the enum types that an expression over a row may name: those of the columns
    of its table, by their own names, and by those that texts have that are kept."""

    def find(name: str) -> Enumeration | None:
        columns = descriptor.columns if target is None else (*descriptor.columns, target)
        known = [c.type.enum for c in columns if c.type.enum is not None]
        fitting = [each for each in known if each.kept_name == name]
        fitting = fitting or [each for each in known if each.name == name]
        return max(fitting, key=lambda each: len(each.labels), default=None)

    return find


def name_enums_for_good(text: str, find: FindEnum) -> str:
    """Return an expression as it is kept: an enum type that it names may be called otherwise later,
    and stands in it by its number."""
    if len(text.encode()) > EXPRESSION_BYTES_MAX:
        return text  # nobody keeps it
    names = [
        node
        for node in nodes_of(expression_of(text))
        if isinstance(node, TypeName) and not is_built_in(node.name)
    ]
    if not names:
        return text
    tokens, places = _places_in(text)
    edits: list[tuple[int, int, str]] = []
    for node in names:
        enum = find(node.name)
        if enum is None or not enum.type_id:
            continue
        first = last = places[node.at - 1]
        while last + 1 < len(tokens) and tokens[last + 1].word == ".":
            last += 2
        edits.append((tokens[first].begin, tokens[last].end, f'"{enum.kept_name}"'))
    return _replaced(text, edits)


def says_constant(text: str | Node | Query, word: str) -> bool:
    """Return whether a quoted constant of an expression, or within a tree, is that very word."""
    nodes = nodes_of(_tree(text) if isinstance(text, str) else text)
    return any(isinstance(n, Constant) and n.kind == "string" and n.text == word for n in nodes)


def tells_labels(text: str) -> bool:
    """Return whether an expression calls a function that gives labels of its type."""
    return any(isinstance(n, Call) and n.name in LABEL_FUNCTIONS for n in nodes_of(_tree(text)))


def arguments(types: Sequence[str], values: Sequence[Any]) -> Image:
    """The values of $1, $2 …, outside ones, as a row's image has them beside its columns. Raises
    what the types raise."""
    return {
        argument(number): _to_argument(name)(value)
        for number, (name, value) in enumerate(zip(types, values, strict=True), 1)
    }


@lru_cache(maxsize=256)
def _to_argument(name: str) -> Callable[[Any], Any]:
    return to_storage(argument_type(name))


@lru_cache(maxsize=256)
def argument_type(name: str) -> Type:
    """Raises FeatureNotSupported, InvalidArgument."""
    return parse_type(name)


def compile_condition(
    text: str, descriptor: Descriptor, zone: str = ""
) -> Callable[[Image], int | None]:
    """A constraint's condition as a function from a row's image: 1, 0 or None (unknown). `zone`: as
    of `compile_expression`.

    Raises what `compile_expression` raises, then and when called, and WrongType for a text that is
    not a boolean.
    """

    def compiled() -> Compute:
        made = _kept_compiler(descriptor).part(_tree(text))
        if made.kind is not None and made.kind != BOOLEAN:
            raise WrongType(f"the condition is of type {made.kind}, not boolean")
        return convert(made, BOOLEAN)

    return _remembered(text, descriptor, _CONDITION, compiled, zone=zone)


def means_the_same(text: str, one: Descriptor, other: Descriptor, zone: str = "") -> bool:
    """Whether a condition of two descriptors, in which its columns have types of the same stored
    form, comes to the same for every row that is one of both: it is computed by the very same
    functions. `a > 5` is, for a smallint as for a bigint; `a + 1 > 5` is not, since the one sum is
    out of range where the other one isn't."""
    met = []
    for descriptor in (one, other):
        with computed_in(zone), noting_meaning() as found:
            _kept_compiler(descriptor).part(_tree(text))
        met.append(found)
    return met[0] == met[1]


def depends_on_labels(text: str, descriptor: Descriptor) -> bool:
    """Whether an expression gives something else once a label of an enum type is called otherwise:
    other functions than for a type that differs in nothing but its own name go through it."""
    enums = [column.type.enum for column in descriptor.columns]
    if not any(enums):
        return False
    columns = tuple(
        c
        if c.type.enum is None
        else replace(
            c, type=replace(c.type, enum=replace(c.type.enum, name=f"{c.type.enum.name}'"))
        )
        for c in descriptor.columns
    )
    return not means_the_same(text, descriptor, replace(descriptor, columns=columns))


def refuse_labels(text: str, descriptor: Descriptor) -> None:
    """Raises InvalidObject (42P17) for an expression of a generated column or of an index that
    gives the text of a label, or asks for labels: they get other names, and come, without any row
    being touched."""
    if depends_on_labels(text, descriptor):
        raise InvalidObject(
            "the expression of a generated column or of an index must depend on the row alone, and"
            " the labels of an enum type may be called otherwise later: compare its values, as in"
            " m > 'label'"
        )


def find_cast_of(text: str, column: str, find: FindEnum = no_enums) -> Type | None:
    """Return the type to which an expression casts a column, and does nothing else; None: it is
    something else. Raises what the type raises."""
    tree = _tree(text)
    if not isinstance(tree, Cast) or not isinstance(tree.operand, Name):
        return None
    if tree.operand.parts != (column,):
        return None
    return type_of(tree.target, find, in_query=False)


def asks_session_zone(
    text: str,
    descriptor: Descriptor,
    target: Column | None,
    types: tuple[str, ...] = (),
    zone: str = "",
) -> ZoneUse:
    """What of an expression (as of `compile_expression`) would be another value in a session of
    another time zone than UTC; constants: in one of `zone`."""
    known = [argument_type(name) for name in types]
    with computed_in(zone), asking_zone() as asked:
        find = enums_of(descriptor, target)
        compiler = Compiler(descriptor.column, descriptor.name, types=known, find_enum=find)
        made = compiler.part(_tree(text))
        if target is not None:
            assign(made, target.written_type)
    return asked


def zone_kept(text: str, descriptor: Descriptor, zone: str, target: Column | None = None) -> str:
    """What is kept with an expression that is said in a session of `zone`: that where it makes a
    difference, else ""."""
    return zone if zone and asks_session_zone(text, descriptor, target, zone=zone) else ""


def refuse_session_zone(
    text: str, descriptor: Descriptor, target: Column | None = None, zone: str = ""
) -> ZoneUse:
    """Raises InvalidObject (42P17) for an expression of a generated column or of an index that
    depends on the session's time zone. Those that were kept before there was one are in UTC. →
    what of it is a constant that means another moment in `zone`."""
    asked = asks_session_zone(text, descriptor, target, zone=zone)
    if asked.functions:
        raise InvalidObject(
            "the expression of a generated column or of an index must depend on the row alone, and"
            f" {_in_words(asked.functions[0])} depends on the session's time zone: say AT TIME ZONE"
            " 'UTC' (or another one)"
        )
    return asked


def _in_words(function: Function) -> str:
    kinds = [str(kind) for kind in function.arguments]
    if function.name == "cast":
        return f"a cast of {kinds[0]} to {function.result}"
    if function.name.isidentifier():
        return str(function)
    return f" {function.name} ".join(kinds)


def type_of_expression(text: str, descriptor: Descriptor) -> Type:
    """What `compile_expression` without a target gives. Raises what that raises."""
    compile_expression(text, descriptor)  # a refusal is placed there
    return _kept_compiler(descriptor).part(_tree(text)).kind or TEXT


def _remembered(
    text: str,
    descriptor: Descriptor,
    use: int,
    compiled: Callable[[], Compute],
    types: tuple[str, ...] = (),
    zone: str = "",
) -> Compute:
    name = (descriptor.table_id, descriptor.version, use, text, types, zone)
    found = _kept.get(name)
    if found is not None and found[0] is descriptor:
        return found[1]
    try:
        with computed_in(zone):
            made = make_total(text, make_total(text, compiled)())
    except Refused as error:
        if "position" in error.detail:
            raise
        raise with_position(error, begin_of(_tree(text))) from error
    if len(_kept) >= _KEPT_MAX:
        _kept.clear()
    _kept[name] = (descriptor, made)
    return made


def make_total(text: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Return `compute`, the compiled `text`, with each error that is no Refused as InternalFailure,
    and a value that is longer than a row may have refused (22001).

    ⚠ Nodes compute what is kept (index entries, generated columns, conditions) while they apply the
    log. A defect of one function would end each of them there, at every start; as a refusal it is a
    row without an entry, the same on all nodes. Being out of memory says something of this node
    alone, which must not go on with another result than the others. How deep Python may call is
    the same for all of them (`_CALLS_DEEP`), wherever they are called from.
    """

    def computed(*given: Any) -> Any:
        try:
            value = compute(*given)
            if (type(value) is str or type(value) is bytes) and len(value) > TEXT_BYTES_MAX:
                raise TooLong(f"the value would have more than {TEXT_BYTES_MAX} characters")
            return value
        except (Refused, MemoryError):
            raise
        except Exception as error:
            kind = type(error).__name__
            raise InternalFailure(
                f"computing {text!r:.200} failed inside ({kind}: {str(error)[:200]}); please report"
                " it with the expression",
                expression=text,
            ) from error

    return computed


@lru_cache(maxsize=1_024)
def _tree(text: str) -> Node:
    tree = expression_of(text)
    check_functions(tree)
    return tree


# ------------------------------------------------------------------ the text itself


def with_exact_numbers(text: str) -> str:
    """An expression as it is kept: 1.5 becomes 1.5::numeric. Texts from before there was numeric
    lack that, and mean doubles."""
    tokens = words_of(text)
    edits = [
        (token.end, token.end, "::numeric")
        for token, after in zip(tokens, (*tokens[1:], None), strict=True)
        if token.is_inexact and (after is None or after.word != "::")
    ]
    return _replaced(text, edits)


def columns_of_expression(text: str) -> frozenset[str]:
    """The names of the columns that an expression mentions. Raises SyntaxInvalid, OutOfRange."""
    return frozenset(column.parts[-1] for column in _columns(text))


def column_positions(text: str) -> dict[str, int]:
    """The columns that an expression mentions, and where each stands first: characters from 1."""
    found: dict[str, int] = {}
    for mention in _mentions(text):
        found.setdefault(mention.column.parts[-1], mention.begin_character + 1)
    return found


def column_of_expression(text: str) -> str | None:
    """The column's name where an expression is nothing but a column, as (a) is."""
    tree = _tree(text)
    return tree.parts[-1] if isinstance(tree, Name) else None


def rename_column_in(text: str, old: str, new: str) -> str:
    """Return `text` with every mention of column `old` now naming `new`; nothing else is touched.

    Raises OutOfRange when the text would grow above EXPRESSION_BYTES_MAX.
    """
    name = written_name(new)
    mentions = [mention for mention in _mentions(text) if mention.column.parts[-1] == old]
    return _edited(text, [(mention.name.begin, mention.name.end, name) for mention in mentions])


def without_table(text: str, table: str) -> str:
    """Return the text without its table's name, `t.a > 1` as `a > 1`: kept so, an expression
    survives its table's new name.

    Raises UnknownTable when another table is named.
    """
    edits: list[tuple[int, int, str]] = []
    for mention in _mentions(text):
        if mention.table is None:
            continue
        qualifier = mention.column.parts[0]
        if qualifier != table:
            raise UnknownTable(
                f"an expression of table {table!r:.80} can't name table {qualifier!r:.80}: it is"
                " over columns of its own row alone",
                position=mention.column.at,
            )
        edits.append((mention.table.begin, mention.name.begin, ""))
    return _edited(text, edits)


@lru_cache(maxsize=1_024)
def written_name(name: str) -> str:
    """A column's name as an expression spells it: in quotes where the bare word would read
    otherwise, as PostgreSQL's quote_ident has it."""
    tokens = words_of(name) if is_word(name) else []
    bare = len(tokens) == 1 and tokens[0].is_plain and tokens[0].word == name
    return name if bare else '"' + name.replace('"', '""') + '"'


class _Mention(NamedTuple):
    """A mention of a column; `table` is the first token of what stands before its point."""

    column: Name
    name: Token
    table: Token | None
    begin_character: int


def _places_in(text: str) -> tuple[list[Token], dict[int, int]]:
    """Return the tokens of a text, and their numbers by the character that each begins with."""
    places: dict[int, int] = {}
    tokens = words_of(text)
    position = done = 0
    encoded = text.encode()
    for number, token in enumerate(tokens):
        position += len(encoded[done : token.begin].decode())
        done = token.begin
        places[position] = number
    return tokens, places


def _mentions(text: str) -> list[_Mention]:
    columns = _columns(text)
    if not columns:
        return []
    tokens, places = _places_in(text)
    starts = {number: position for position, number in places.items()}
    found: list[_Mention] = []
    for column in columns:
        first = last = places[column.at - 1]
        while last + 1 < len(tokens) and tokens[last + 1].word == ".":
            last += 2
        table = tokens[first] if last > first else None
        found.append(_Mention(column, tokens[last], table, starts[last]))
    return found


def _columns(text: str) -> list[Name]:
    return [node for node in nodes_of(_tree(text)) if isinstance(node, Name)]


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    edited = _replaced(text, edits)
    _tree(edited)  # limits hold for what was made, too
    return edited


def _replaced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return the text with `edits` made: each says from and to which byte, and what is to stand
    there."""
    encoded = text.encode()
    for begin, end, spelled in sorted(edits, reverse=True):
        encoded = encoded[:begin] + spelled.encode() + encoded[end:]
    return encoded.decode()
