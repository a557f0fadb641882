"""An expression over a row in the form in which PostgreSQL shows one that it keeps: with the casts
that it makes by itself, and its parentheses. So who compares schemas finds equal what is equal.

What of an expression is not known here has no such form, and is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.sql.expressions.typed import read_constant
from leasehold.sql.functions.polymorphic import quote_literal
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of
from leasehold.values.enums import Enumeration
from leasehold.values.text_io import to_text
from leasehold.values.types import Type, parse_type, plain_type

_TEXT: Final = Type("text")
_BOOLEAN: Final = Type("boolean")
_NUMERIC: Final = Type("numeric")
_DOUBLE: Final = Type("double precision")
_WIDTHS: Final = {"smallint": 1, "integer": 2, "bigint": 3}
_FLOATS: Final = frozenset({"real", "double precision"})
_TEXTS: Final = frozenset({"text", "varchar"})
_DATES: Final = frozenset({"date", "timestamp", "timestamptz"})
_SHOWN_NAMES: Final = {
    "varchar": "character varying",
    "char": "bpchar",
    "timestamp": "timestamp without time zone",
    "timestamptz": "timestamp with time zone",
    "time": "time without time zone",
}
_AS_READ: Final = frozenset(
    {*_TEXTS, *_WIDTHS, "numeric", "boolean", "date", "timestamp", "time", "uuid", "char"}
)
"""Types whose constants are shown the same in every session."""
_COMPARED: Final = {"=": "=", "<>": "<>", "!=": "<>", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_LOW: Final = frozenset("+-")
_HIGH: Final = frozenset("*/%")
_OF_TEXT: Final = {
    **dict.fromkeys(("length", "char_length", "character_length", "octet_length"), "integer"),
    **dict.fromkeys(("lower", "upper", "btrim", "ltrim", "rtrim"), "text"),
}
"""Functions of texts alone, and what they give."""
_OVER_TEXT: Final = frozenset({"||", "~", "!~", "~*", "!~*", "~~", "!~~", "~~*", "!~~*"})
_INTEGER_MAX: Final = 2**31 - 1
_BIGINT_MAX: Final = 2**63 - 1


class _NoForm(Exception):
    """The expression has a part whose form is not known."""


class _Part(NamedTuple):
    """A part of an expression, in full parentheses (`full`) and in few (`short`). `kind` None: a
    constant of which only the text is known (`text`). `rank` says what it is to a part around it:
    atom, logic, test, among (a list), read (cast to or from a text) or operator; `sign`: of an
    operator, or the word of logic."""

    full: str
    short: str
    kind: Type | None
    rank: str = "atom"
    sign: str = ""
    text: str = ""


def show_expression(expression: str, table: Descriptor, *, short: bool) -> str | None:
    """Return an expression over a row of a table as PostgreSQL shows it by itself, None where that
    is not known. `short`: with the parentheses that it needs, else with all of them."""
    try:
        part = _Shower(table).show(expression_of(expression))
    except (_NoForm, Refused):
        return None
    if part.kind is None:
        return None
    return part.short if short else part.full


def _name_of(kind: Type) -> str:
    if kind.enum is not None:
        return kind.enum.quoted
    return _SHOWN_NAMES.get(kind.name, kind.name)


class _Shower:
    """Shows the expressions over one table."""

    def __init__(self, table: Descriptor) -> None:
        self._table = table
        self._by_node: dict[type, Callable[..., _Part]] = {
            tree.Constant: self._constant,
            tree.Name: self._name,
            tree.Binary: self._binary,
            tree.Unary: self._unary,
            tree.Logic: self._logic,
            tree.Test: self._test,
            tree.Distinct: self._distinct,
            tree.Between: self._between,
            tree.InList: self._in_list,
            tree.Like: self._like,
            tree.Call: self._call,
            tree.Cast: self._cast,
        }

    def show(self, node: tree.Node) -> _Part:
        """Return a part. Raises _NoForm."""
        shown = self._by_node.get(type(node))
        if shown is None:
            raise _NoForm
        return shown(node)

    # ------------------------------------------------------------ atoms

    def _constant(self, node: tree.Constant) -> _Part:
        match node.kind:
            case "string":
                return _Part("", "", None, text=node.text)
            case "true" | "false":
                return _atom(node.kind, _BOOLEAN)
            case "number":
                return _number(node.text)
        raise _NoForm

    def _name(self, node: tree.Name) -> _Part:
        if len(node.parts) != 1:
            raise _NoForm
        column = self._table.by_name.get(node.parts[0])
        if column is None:
            raise _NoForm
        return _atom(quoted(column.name), plain_type(column.type))

    def _cast(self, node: tree.Cast) -> _Part:
        target = node.target
        if target.modifiers or target.array:
            raise _NoForm
        kind = self._type(target.name)
        part = self.show(node.operand)
        if part.kind is None:
            return _literal(kind, part.text)
        if kind.name == "char" or part.kind.name == "char":
            raise _NoForm
        return part if part.kind == kind else _as_type(part, kind)

    def _type(self, name: str) -> Type:
        enums: list[Enumeration] = [
            column.type.enum for column in self._table.columns if column.type.enum is not None
        ]
        for enum in enums:
            if name in (enum.name, enum.kept_name):
                return Type("enum", enum=enum)
        return parse_type(name)

    def _call(self, node: tree.Call) -> _Part:
        plain = not (node.star or node.distinct or node.order or node.filter or node.over)
        parts = [self.show(argument) for argument in node.arguments]
        if not plain or not parts:
            raise _NoForm
        if node.name == "coalesce":
            kinds = {part.kind for part in parts if part.kind is not None}
            if {kind.name for kind in kinds} == _TEXTS:
                kinds = {_TEXT}
            if len(kinds) != 1:
                raise _NoForm
            (kind,) = kinds
            return _called("COALESCE", [_brought(part, kind) for part in parts], kind)
        result = _OF_TEXT.get(node.name)
        if result is None:
            raise _NoForm
        return _called(node.name, [_brought_to_text(part) for part in parts], Type(result))

    # ------------------------------------------------------------ operators

    def _binary(self, node: tree.Binary) -> _Part:
        left, right = self.show(node.left), self.show(node.right)
        sign = _COMPARED.get(node.sign)
        if sign is not None:
            return _operator(sign, *_comparable(left, right), _BOOLEAN)
        if node.sign in _LOW | _HIGH:
            left, right = _numbers(left, right)
            return _operator(node.sign, left, right, _wider(left, right))
        if node.sign in _OVER_TEXT:
            kind = _TEXT if node.sign == "||" else _BOOLEAN
            return _operator(node.sign, _brought_to_text(left), _brought_to_text(right), kind)
        raise _NoForm

    def _unary(self, node: tree.Unary) -> _Part:
        part = self.show(node.operand)
        negated = _read_number(node.operand)
        if node.sign == "-" and negated is not None:
            return _literal(_NUMERIC, f"-{negated}")
        if node.sign not in _LOW or part.kind is None or not _is_number(part.kind):
            raise _NoForm
        short = f"{node.sign} {_within(part, 'operator')}"
        return _Part(f"({node.sign} {part.full})", short, part.kind, "operator")

    def _like(self, node: tree.Like) -> _Part:
        if node.escape is not None:
            raise _NoForm
        sign = f"{'!' if node.negated else ''}~~{'*' if node.insensitive else ''}"
        left, right = self.show(node.operand), self.show(node.pattern)
        return _operator(sign, _brought_to_text(left), _brought_to_text(right), _BOOLEAN)

    def _distinct(self, node: tree.Distinct) -> _Part:
        left, right = _comparable(self.show(node.left), self.show(node.right))
        words = "IS DISTINCT FROM"
        short = f"{_within(left, 'test')} {words} {_within(right, 'test')}"
        made = _Part(f"({left.full} {words} {right.full})", short, _BOOLEAN, "test")
        return _joined("not", [made]) if node.negated else made

    def _test(self, node: tree.Test) -> _Part:
        part = self.show(node.operand)
        if part.kind is None:
            raise _NoForm
        words = f"IS {'NOT ' if node.negated else ''}{node.what.upper()}"
        return _Part(f"({part.full} {words})", f"{_within(part, 'test')} {words}", _BOOLEAN, "test")

    def _logic(self, node: tree.Logic) -> _Part:
        parts = [self.show(each) for each in node.parts]
        if any(part.kind != _BOOLEAN for part in parts):
            raise _NoForm
        return _joined(node.word, parts)

    def _between(self, node: tree.Between) -> _Part:
        if node.symmetric:
            raise _NoForm
        part = self.show(node.operand)
        low, high = self.show(node.low), self.show(node.high)
        signs = ("<", ">") if node.negated else (">=", "<=")
        tests = [
            _operator(sign, *_comparable(part, bound), _BOOLEAN)
            for sign, bound in zip(signs, (low, high), strict=True)
        ]
        return _joined("or" if node.negated else "and", tests)

    def _in_list(self, node: tree.InList) -> _Part:
        part = self.show(node.operand)
        items = [self.show(item) for item in node.items]
        constants = all(map(_is_constant, node.items))
        if part.kind is None or not constants:
            raise _NoForm
        if len(items) == 1:
            sign = "<>" if node.negated else "="
            return _operator(sign, *_comparable(part, items[0]), _BOOLEAN)
        kind = _common([part, *items])
        return _among(part, "<> ALL" if node.negated else "= ANY", _array(items, kind))


# ------------------------------------------------------------------ parts put together


def _atom(text: str, kind: Type) -> _Part:
    return _Part(text, text, kind)


def _called(name: str, parts: Sequence[_Part], kind: Type) -> _Part:
    full = ", ".join(part.full for part in parts)
    short = ", ".join(_within(part, "call") for part in parts)
    return _Part(f"{name}({full})", f"{name}({short})", kind)


def _operator(sign: str, left: _Part, right: _Part, kind: Type) -> _Part:
    short = (
        f"{_within(left, 'operator', sign, first=True)} {sign} {_within(right, 'operator', sign)}"
    )
    return _Part(f"({left.full} {sign} {right.full})", short, kind, "operator", sign)


def _joined(word: str, parts: Sequence[_Part]) -> _Part:
    shorts = [_within(part, "logic", word) for part in parts]
    if word == "not":
        full, short = f"(NOT {parts[0].full})", f"NOT {shorts[0]}"
    else:
        between = f" {word.upper()} "
        full, short = f"({between.join(part.full for part in parts)})", between.join(shorts)
    return _Part(full, short, _BOOLEAN, "logic", word)


def _array(items: Sequence[_Part], kind: Type) -> _Part:
    """Return an array; its kind is that of its elements."""
    listed = [_brought(item, kind) for item in items]
    full = ", ".join(item.full for item in listed)
    return _Part(f"ARRAY[{full}]", f"ARRAY[{', '.join(item.short for item in listed)}]", kind)


def _as_array(part: _Part, kind: Type) -> _Part:
    name = _name_of(kind)
    return _Part(f"({part.full})::{name}[]", f"{part.short}::{name}[]", kind)


def _among(part: _Part, words: str, array: _Part) -> _Part:
    """Return the test of a value against the elements of an array."""
    assert part.kind is not None, "looked at before"
    assert array.kind is not None, "an array of something"
    names = {part.kind.name, array.kind.name}
    if names <= _TEXTS:
        part = _brought(part, _TEXT)
        array = array if array.kind == _TEXT else _as_array(array, _TEXT)
    elif names <= _WIDTHS.keys():
        pass  # there is an operator for any two
    elif part.kind != array.kind:
        kind = _common([part, array])
        part = _brought(part, kind)
        array = array if array.kind == kind else _as_array(array, kind)
    return _Part(
        f"({part.full} {words} ({array.full}))",
        f"{_within(part, 'operator')} {words} ({array.short})",
        _BOOLEAN,
        "among",
    )


def _as_type(part: _Part, kind: Type) -> _Part:
    name = _name_of(kind)
    through_text = kind.name in _TEXTS or (part.kind is not None and part.kind.name in _TEXTS)
    rank = "read" if through_text and part.rank != "atom" else "atom"
    return _Part(f"({part.full})::{name}", f"{_within(part, 'cast')}::{name}", kind, rank)


def _within(part: _Part, around: str, sign: str = "", *, first: bool = False) -> str:
    """Return a part in few parentheses, as it stands within another one."""
    bare = part.rank == "atom"
    if around == "call":
        bare |= part.rank not in ("among", "read")
    elif around == "logic":
        inner = part.rank in ("operator", "test")
        either = part.sign in ("and", "not") and sign in ("and", "or")
        bare |= inner or (part.rank == "logic" and (either or part.sign == sign == "or"))
    elif around == "operator" and part.rank == "operator":
        bare |= _binds_tighter(part.sign, sign, first=first)
    return part.short if bare else f"({part.short})"


def _binds_tighter(inner: str, outer: str, *, first: bool) -> bool:
    if not {inner, outer} <= _LOW | _HIGH:
        return False
    if inner in _HIGH and outer in _LOW:
        return True
    return first and (inner in _HIGH) == (outer in _HIGH)


# ------------------------------------------------------------------ constants


def _is_constant(node: tree.Node) -> bool:
    if isinstance(node, tree.Unary | tree.Cast):
        return _is_constant(node.operand)
    return isinstance(node, tree.Constant)


def _read_number(node: tree.Node) -> str | None:
    """Return the number that a text is kept with as one of numeric, 1.5 as 1.5::numeric; None: it
    is none. A sign before it is the number's own, as it was written."""
    if not isinstance(node, tree.Cast) or not isinstance(node.operand, tree.Constant):
        return None
    number = node.operand
    return number.text if number.kind == "number" and node.target.name == "numeric" else None


def _number(text: str) -> _Part:
    number = Decimal(text)
    is_whole = not set(text) & set(".eE")
    if not is_whole or abs(number) > _BIGINT_MAX:
        return _literal(_NUMERIC, text)
    return _literal(Type("integer" if abs(number) <= _INTEGER_MAX else "bigint"), text)


def _literal(kind: Type, text: str) -> _Part:
    """Return a constant of a type. Raises Refused for no value of it."""
    if kind.enum is not None:
        value = text
    elif kind.name in _AS_READ:
        value = to_text(kind, read_constant(kind, text))
    else:
        raise _NoForm
    if kind.name == "boolean":
        return _atom(value, kind)
    bare = kind.name == "integer" or (kind.name == "numeric" and "." in value)
    if bare and value[0].isdigit():
        return _atom(value, kind)
    return _atom(f"{quote_literal(value)}::{_name_of(kind)}", kind)


def _brought(part: _Part, kind: Type) -> _Part:
    """Return a part as one of a type, to which PostgreSQL casts it by itself."""
    if part.kind is None:
        return _literal(kind, part.text)
    return part if part.kind == kind else _as_type(part, kind)


def _brought_to_text(part: _Part) -> _Part:
    if part.kind is not None and part.kind.name not in _TEXTS:
        raise _NoForm
    return _brought(part, _TEXT)


# ------------------------------------------------------------------ types


def _is_integer(kind: Type) -> bool:
    return kind.name in _WIDTHS


def _is_number(kind: Type) -> bool:
    return _is_integer(kind) or kind == _NUMERIC or kind.name in _FLOATS


def _comparable(left: _Part, right: _Part) -> tuple[_Part, _Part]:
    """Return two parts as an operator that compares takes them."""
    if left.kind is None or right.kind is None:
        other = left.kind or right.kind or _TEXT
        kind = _TEXT if other.name == "varchar" else other
        return _brought(left, kind), _brought(right, kind)
    if _is_number(left.kind) and _is_number(right.kind):
        return _numbers(left, right)
    names = {left.kind.name, right.kind.name}
    if names <= _TEXTS:
        return _brought(left, _TEXT), _brought(right, _TEXT)
    if left.kind == right.kind or names <= _DATES:
        return left, right
    raise _NoForm


def _numbers(left: _Part, right: _Part) -> tuple[_Part, _Part]:
    """Return two numbers as an operator takes them: there is one for any two whole numbers, and for
    any two floating ones."""
    kinds = [part.kind for part in (left, right) if part.kind is not None]
    if not kinds or not all(map(_is_number, kinds)):
        raise _NoForm
    if len(kinds) == 1:
        return _brought(left, kinds[0]), _brought(right, kinds[0])
    if all(map(_is_integer, kinds)):
        return left, right
    if not any(kind.name in _FLOATS for kind in kinds):
        return _brought(left, _NUMERIC), _brought(right, _NUMERIC)
    floats = (
        part if part.kind is not None and part.kind.name in _FLOATS else _brought(part, _DOUBLE)
        for part in (left, right)
    )
    one, other = floats
    return one, other


def _wider(left: _Part, right: _Part) -> Type:
    """Return the type of what arithmetic makes of two numbers."""
    assert left.kind is not None, "brought to a number"
    assert right.kind is not None, "brought to a number"
    if _is_integer(left.kind) and _is_integer(right.kind):
        return max(left.kind, right.kind, key=lambda kind: _WIDTHS[kind.name])
    if left.kind == right.kind:
        return left.kind
    return _DOUBLE


def _common(parts: Sequence[_Part]) -> Type:
    """Return the type to which the values of a list are brought."""
    kinds = [part.kind for part in parts if part.kind is not None]
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if {kind.name for kind in kinds} <= _TEXTS:
        return _TEXT
    if not all(map(_is_number, kinds)):
        raise _NoForm
    if all(map(_is_integer, kinds)):
        return max(kinds, key=lambda kind: _WIDTHS[kind.name])
    floats = [kind for kind in kinds if kind.name in _FLOATS]
    if not floats:
        return _NUMERIC
    return _DOUBLE if len({kind.name for kind in floats}) > 1 else floats[0]
