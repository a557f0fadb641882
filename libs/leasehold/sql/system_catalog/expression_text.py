"""An expression over a row in the form in which PostgreSQL shows one that it keeps: with the casts
that it makes by itself, and its parentheses. So who compares schemas finds equal what is equal.

What of an expression is not known here has no such form, and is shown as it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple

from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.sql.expressions.number_text import kind_of_number
from leasehold.sql.expressions.typed import read_constant
from leasehold.sql.functions.polymorphic import quote_literal
from leasehold.sql.functions.registry import function_for, operator_for
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.kept import expression_of
from leasehold.sql.syntax.types import BLANK_PADDED
from leasehold.values.enums import Enumeration
from leasehold.values.text_io import to_text
from leasehold.values.types import Type, array_of, element_of, parse_type, plain_type

_TEXT: Final = Type("text")
_CHAR: Final = Type("char")
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
    {
        *(*_TEXTS, *_WIDTHS, "numeric", "boolean", "date", "timestamp", "time", "uuid", "char"),
        *("interval", "jsonb"),
    }
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
_OVER_JSON: Final = {
    **dict.fromkeys(("->", "#>")),
    **dict.fromkeys(("->>", "#>>"), _TEXT),
    **dict.fromkeys(("?", "@>", "<@"), _BOOLEAN),
}
"""Signs over json, and what they give; None: what they are over."""
_OF_LIST: Final = frozenset({"coalesce", "greatest", "least"})
_WORDS: Final = {
    "now": ("now()", Type("timestamptz")),
    "current_timestamp": ("CURRENT_TIMESTAMP", Type("timestamptz")),
    "current_date": ("CURRENT_DATE", Type("date")),
    "localtimestamp": ("LOCALTIMESTAMP", Type("timestamp")),
    "gen_random_uuid": ("gen_random_uuid()", Type("uuid")),
}
_FUNCTIONS: Final = {
    **{
        name: name
        for name in (
            *("abs", "ceil", "ceiling", "floor", "round", "trunc", "sqrt", "sign", "mod", "power"),
            *("md5", "replace", "substr", "lpad", "rpad", "split_part", "strpos", "reverse"),
            *("initcap", "repeat", "starts_with", "translate", "chr", "ascii", "to_hex"),
            *("date_trunc", "date_part", "age", "jsonb_typeof", "jsonb_array_length"),
        )
    },
    **{name: f'"{name}"' for name in ("left", "right")},
}
"""Functions by their names, and how these are written."""
_TIMES: Final = frozenset({"date", "timestamp", "timestamptz", "time", "interval"})
_PLAIN_ELEMENTS: Final = frozenset({"text", "varchar", "smallint", "integer", "bigint", "numeric"})
_OVER_TEXT: Final = frozenset({"||", "~", "!~", "~*", "!~*", "~~", "!~~", "~~*", "!~~*"})


class NoForm(Exception):
    """The expression has a part whose form is not known."""


class Part(NamedTuple):
    """A part of an expression, in full parentheses (`full`) and in few (`short`). `kind` None: a
    constant of which only the text is known (`text`), None of NULL. `rank` says what it is to a
    part around it: atom, logic, test, among (a list), read (cast to or from a text) or operator;
    `sign`: of an operator, or the word of logic; `column`: the name of the column that it is, if it
    is one."""

    full: str
    short: str
    kind: Type | None
    rank: str = "atom"
    sign: str = ""
    text: str | None = ""
    column: str = ""


def show_expression(expression: str, table: Descriptor, *, short: bool) -> str | None:
    """Return an expression over a row of a table as PostgreSQL shows it by itself, None where that
    is not known. `short`: with the parentheses that it needs, else with all of them."""
    try:
        part = _of_table(table).show(expression_of(expression))
        return text_of(part, short=short)
    except (NoForm, Refused):
        return None


def text_of(part: Part, *, short: bool) -> str:
    """Return the text of a whole expression. Raises NoForm for a constant without a type."""
    if part.kind is None:
        raise NoForm
    return without_spaces(part.short if short else part.full)


def without_spaces(text: str) -> str:
    """Return a text without the spaces that end the lines before CASE."""
    lines = text.split("\n")
    for number, line in enumerate(lines[1:]):
        if line.strip() == "CASE":
            lines[number] = lines[number].rstrip(" ")
    return "\n".join(lines)


def _name_of(kind: Type) -> str:
    if kind.enum is not None:
        return kind.enum.quoted
    return _SHOWN_NAMES.get(kind.name, kind.name)


def _of_table(table: Descriptor) -> Shower:
    """Return what shows expressions over one table."""

    def find(parts: tuple[str, ...]) -> Part:
        column = table.by_name.get(parts[-1]) if len(parts) == 1 else None
        if column is None:
            raise NoForm
        return atom(quoted(column.name), plain_type(column.type))

    return Shower(find, (column.type.enum for column in table.columns))


class Shower:
    """Shows expressions whose columns `find` knows. `enums`: the types that they may name."""

    def __init__(
        self, find: Callable[[tuple[str, ...]], Part], enums: Iterable[Enumeration | None] = ()
    ) -> None:
        self._find = find
        self._enums = [enum for enum in enums if enum is not None]
        self._by_node: dict[type, Callable[..., Part]] = {
            tree.Constant: self._constant,
            tree.Name: self._name,
            tree.Binary: self._binary,
            tree.Unary: self._unary,
            tree.Logic: self._logic,
            tree.Test: self._test,
            tree.Distinct: self._distinct,
            tree.Between: self._between,
            tree.InList: self._in_list,
            tree.OverArray: self._over_array,
            tree.ArrayOf: self._array_of,
            tree.Subscript: self._subscript,
            tree.Like: self._like,
            tree.Case: self._case,
            tree.Call: self._call,
            tree.Cast: self._cast,
        }

    def show(self, node: tree.Node) -> Part:
        """Return a part. Raises NoForm."""
        shown = self._by_node.get(type(node))
        if shown is None:
            raise NoForm
        return shown(node)

    # ------------------------------------------------------------ atoms

    def _constant(self, node: tree.Constant) -> Part:
        match node.kind:
            case "string":
                if "\n" in node.text:
                    raise NoForm  # lines end where CASE begins
                return Part("", "", None, text=node.text)
            case "null":
                return Part("NULL", "NULL", None, text=None)
            case "true" | "false":
                return atom(node.kind, _BOOLEAN)
            case "number":
                return _number(node.text)
        raise NoForm

    def _name(self, node: tree.Name) -> Part:
        return self._find(node.parts)

    def _cast(self, node: tree.Cast) -> Part:
        target = node.target
        if _is_blank_padded(node):
            return brought(self.show(node.operand), _CHAR)
        if target.modifiers:
            raise NoForm
        kind = self._type(target.name)
        part = self.show(node.operand)
        if target.array:
            return self._cast_to_array(part, kind)
        if part.kind is None:
            return brought(part, kind)
        if kind.name == "char" or part.kind.name == "char":
            raise NoForm
        return part if part.kind == kind else _as_type(part, kind)

    def _cast_to_array(self, part: Part, element: Type) -> Part:
        kind = array_of(element)
        if part.kind == kind:
            return part
        if part.kind is not None or part.text is None or element.name not in _PLAIN_ELEMENTS:
            raise NoForm
        shown = to_text(kind, read_constant(kind, part.text))
        return atom(f"{quote_literal(shown)}::{_name_of(element)}[]", kind)

    def _type(self, name: str) -> Type:
        for enum in self._enums:
            if name in (enum.name, enum.kept_name):
                return Type("enum", enum=enum)
        return parse_type(name)

    def _call(self, node: tree.Call) -> Part:
        plain = not (node.star or node.distinct or node.order or node.filter or node.over)
        if not plain:
            raise NoForm
        if node.name in _WORDS and not node.arguments:
            return atom(*_WORDS[node.name])
        parts = [self.show(argument) for argument in node.arguments]
        if node.name in _OF_LIST and parts:
            kind = common_kind(parts)
            return called(node.name.upper(), [brought(part, kind) for part in parts], kind)
        if node.name == "nullif" and len(parts) == 2:
            return called("NULLIF", _comparable(*parts), parts[0].kind or _TEXT)
        result = _OF_TEXT.get(node.name)
        if result is not None and parts:
            return called(node.name, [_brought_to_text(part) for part in parts], Type(result))
        name = _FUNCTIONS.get(node.name)
        if name is None:
            raise NoForm
        function = function_for(node.name, [part.kind for part in parts])
        if function.variadic or len(function.arguments) != len(parts):
            raise NoForm
        taken = [_taken(part, kind) for part, kind in zip(parts, function.arguments, strict=True)]
        return called(name, taken, function.result)

    # ------------------------------------------------------------ operators

    def _binary(self, node: tree.Binary) -> Part:
        left, right = self.show(node.left), self.show(node.right)
        sign = _COMPARED.get(node.sign)
        if sign is not None:
            return _operator(sign, *_comparable(left, right), _BOOLEAN)
        if node.sign in _OVER_JSON:
            return _over_json(node.sign, left, right)
        if node.sign in _LOW and any(_is_of_time(part.kind) for part in (left, right)):
            found = operator_for(node.sign, left.kind, right.kind)
            left, right = map(_taken, (left, right), found.arguments)
            return _operator(node.sign, left, right, found.result)
        if node.sign in _LOW | _HIGH:
            left, right = _numbers(left, right)
            return _operator(node.sign, left, right, _wider(left, right))
        if node.sign in _OVER_TEXT:
            kind = _TEXT if node.sign == "||" else _BOOLEAN
            return _operator(node.sign, _brought_to_text(left), _brought_to_text(right), kind)
        raise NoForm

    def _unary(self, node: tree.Unary) -> Part:
        part = self.show(node.operand)
        negated = _read_number(node.operand)
        if node.sign == "-" and negated is not None:
            return _literal(_NUMERIC, f"-{negated}")
        if node.sign not in _LOW or part.kind is None or not _is_number(part.kind):
            raise NoForm
        short = f"{node.sign} {_within(part, 'operator')}"
        return Part(f"({node.sign} {part.full})", short, part.kind, "operator")

    def _like(self, node: tree.Like) -> Part:
        if node.escape is not None:
            raise NoForm
        sign = f"{'!' if node.negated else ''}~~{'*' if node.insensitive else ''}"
        left, right = self.show(node.operand), self.show(node.pattern)
        return _operator(sign, _brought_to_text(left), _brought_to_text(right), _BOOLEAN)

    def _distinct(self, node: tree.Distinct) -> Part:
        left, right = _comparable(self.show(node.left), self.show(node.right))
        words = "IS DISTINCT FROM"
        short = f"{_within(left, 'test')} {words} {_within(right, 'test')}"
        made = Part(f"({left.full} {words} {right.full})", short, _BOOLEAN, "test")
        return _joined("not", [made]) if node.negated else made

    def _test(self, node: tree.Test) -> Part:
        part = self.show(node.operand)
        if part.kind is None:
            raise NoForm
        words = f"IS {'NOT ' if node.negated else ''}{node.what.upper()}"
        return Part(f"({part.full} {words})", f"{_within(part, 'test')} {words}", _BOOLEAN, "test")

    def _logic(self, node: tree.Logic) -> Part:
        parts = [self.show(each) for each in node.parts]
        if any(part.kind != _BOOLEAN for part in parts):
            raise NoForm
        return _joined(node.word, parts)

    def _between(self, node: tree.Between) -> Part:
        if node.symmetric:
            raise NoForm
        part = self.show(node.operand)
        low, high = self.show(node.low), self.show(node.high)
        signs = ("<", ">") if node.negated else (">=", "<=")
        tests = [
            _operator(sign, *_comparable(part, bound), _BOOLEAN)
            for sign, bound in zip(signs, (low, high), strict=True)
        ]
        return _joined("or" if node.negated else "and", tests)

    def _in_list(self, node: tree.InList) -> Part:
        part = self.show(node.operand)
        items = [self.show(item) for item in node.items]
        constants = all(map(_is_constant, node.items))
        if part.kind is None or not constants:
            raise NoForm
        if len(items) == 1:
            sign = "<>" if node.negated else "="
            return _operator(sign, *_comparable(part, items[0]), _BOOLEAN)
        said = {item.kind for item in items}
        # Where all are said to be texts of one type it was = ANY (ARRAY[…]), kept as a list.
        from_array = None not in said and len(said) == 1 and part.kind.name in _TEXTS
        kind = common_kind(items if from_array else [part, *items])
        return _among(part, "<> ALL" if node.negated else "= ANY", _array(items, kind))

    def _over_array(self, node: tree.OverArray) -> Part:
        sign = _COMPARED.get(node.sign)
        part, array = self.show(node.operand), self._elements(node.array)
        if sign is None or array.kind is None:
            raise NoForm
        if part.kind is None:
            part = brought(part, _TEXT if array.kind.name in _TEXTS else array.kind)
        return _among(part, f"{sign} {'ALL' if node.every else 'ANY'}", array)

    def _elements(self, node: tree.Node) -> Part:
        """Return an array whose kind is that of its elements."""
        if isinstance(node, tree.ArrayOf):
            items = [self.show(item) for item in node.items]
            return _array(items, common_kind(items))
        part = self.show(node)
        element = None if part.kind is None else element_of(part.kind)
        if element is None:
            raise NoForm
        return part._replace(kind=element)

    def _array_of(self, node: tree.ArrayOf) -> Part:
        made = self._elements(node)
        assert made.kind is not None, "of something"
        return made._replace(kind=array_of(made.kind))

    def _subscript(self, node: tree.Subscript) -> Part:
        if node.is_slice or node.low is None or not isinstance(node.array, tree.Name):
            raise NoForm
        array, place = self.show(node.array), self.show(node.low)
        element = None if array.kind is None else element_of(array.kind)
        if element is None or place.kind is None or not _is_integer(place.kind):
            raise NoForm
        full, short = f"{array.full}[{place.full}]", f"{array.short}[{place.short}]"
        return Part(full, short, element)

    def _case(self, node: tree.Case) -> Part:
        if node.subject is not None:
            raise NoForm
        tests = [self.show(when) for when, _ in node.branches]
        thens = [self.show(then) for _, then in node.branches]
        default = Part("NULL", "NULL", None, text=None)
        if node.default is not None:
            default = self.show(node.default)
        kind = common_kind([default, *thens])  # as PostgreSQL looks at them
        made = [brought(part, kind) for part in (*thens, default)]
        if any("\n" in part.full for part in (*tests, *made)):
            raise NoForm  # one in another one stands further in
        return Part(
            _case_text([part.full for part in tests], [part.full for part in made]),
            _case_text([part.short for part in tests], [part.short for part in made]),
            kind,
        )


# ------------------------------------------------------------------ parts put together


def atom(text: str, kind: Type) -> Part:
    return Part(text, text, kind)


def called(name: str, parts: Sequence[Part], kind: Type) -> Part:
    full = ", ".join(part.full for part in parts)
    short = ", ".join(_within(part, "call") for part in parts)
    return Part(f"{name}({full})", f"{name}({short})", kind)


def _operator(sign: str, left: Part, right: Part, kind: Type) -> Part:
    short = (
        f"{_within(left, 'operator', sign, first=True)} {sign} {_within(right, 'operator', sign)}"
    )
    return Part(f"({left.full} {sign} {right.full})", short, kind, "operator", sign)


def _joined(word: str, parts: Sequence[Part]) -> Part:
    shorts = [_within(part, "logic", word) for part in parts]
    if word == "not":
        full, short = f"(NOT {parts[0].full})", f"NOT {shorts[0]}"
    else:
        between = f" {word.upper()} "
        full, short = f"({between.join(part.full for part in parts)})", between.join(shorts)
    return Part(full, short, _BOOLEAN, "logic", word)


def _array(items: Sequence[Part], kind: Type) -> Part:
    """Return an array; its kind is that of its elements."""
    listed = [brought(item, kind) for item in items]
    full = ", ".join(item.full for item in listed)
    return Part(f"ARRAY[{full}]", f"ARRAY[{', '.join(item.short for item in listed)}]", kind)


def _as_array(part: Part, kind: Type) -> Part:
    name = _name_of(kind)
    return Part(f"({part.full})::{name}[]", f"{part.short}::{name}[]", kind)


def _among(part: Part, words: str, array: Part) -> Part:
    """Return the test of a value against the elements of an array."""
    assert part.kind is not None, "looked at before"
    assert array.kind is not None, "an array of something"
    names = {part.kind.name, array.kind.name}
    if names <= _TEXTS:
        part = brought(part, _TEXT)
        array = array if array.kind == _TEXT else _as_array(array, _TEXT)
    elif names <= _WIDTHS.keys():
        pass  # there is an operator for any two
    elif part.kind != array.kind:
        kind = common_kind([part, array])
        part = brought(part, kind)
        array = array if array.kind == kind else _as_array(array, kind)
    return Part(
        f"({part.full} {words} ({array.full}))",
        f"{_within(part, 'operator')} {words} ({array.short})",
        _BOOLEAN,
        "among",
    )


def _as_type(part: Part, kind: Type) -> Part:
    name = _name_of(kind)
    through_text = kind.name in _TEXTS or (part.kind is not None and part.kind.name in _TEXTS)
    rank = "read" if through_text and part.rank != "atom" else "atom"
    return Part(f"({part.full})::{name}", f"{_within(part, 'cast')}::{name}", kind, rank)


def _within(part: Part, around: str, sign: str = "", *, first: bool = False) -> str:
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


def _is_blank_padded(cast: tree.Cast) -> bool:
    """Return whether a constant is kept as one of character(n), n being its length, which is how a
    cast to bpchar without a length is kept."""
    target, constant = cast.target, cast.operand
    if target.name != BLANK_PADDED or target.array or not isinstance(constant, tree.Constant):
        return False
    length = max(len(constant.text.rstrip(" ")), 1)
    return constant.kind == "string" and target.modifiers == (length,)


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


def _number(text: str) -> Part:
    return _literal(kind_of_number(text), text)


def _literal(kind: Type, text: str) -> Part:
    """Return a constant of a type. Raises Refused for no value of it."""
    if kind.enum is not None:
        value = text
    elif kind.name in _AS_READ:
        value = to_text(kind, read_constant(kind, text))
    else:
        raise NoForm
    if kind.name == "boolean":
        return atom(value, kind)
    bare = kind.name == "integer" or (kind.name == "numeric" and "." in value)
    if bare and value[0].isdigit():
        return atom(value, kind)
    return atom(f"{quote_literal(value)}::{_name_of(kind)}", kind)


def brought(part: Part, kind: Type) -> Part:
    """Return a part as one of a type, to which PostgreSQL casts it by itself."""
    if part.kind is None and part.text is None:
        return atom(f"NULL::{_name_of(kind)}", kind)
    if part.kind is None:
        return _literal(kind, part.text or "")
    return part if part.kind == kind else _as_type(part, kind)


def _brought_to_text(part: Part) -> Part:
    if part.kind is not None and part.kind.name not in _TEXTS:
        raise NoForm
    return brought(part, _TEXT)


# ------------------------------------------------------------------ types


def _taken(part: Part, kind: Type) -> Part:
    """Return a part as an argument of a type, which it is of; or a text."""
    if part.kind is None or part.kind == plain_type(kind):
        return brought(part, plain_type(kind))
    if {part.kind.name, kind.name} <= _TEXTS:
        return brought(part, _TEXT)
    raise NoForm


def _is_of_time(kind: Type | None) -> bool:
    return kind is not None and kind.name in _TIMES


def _over_json(sign: str, left: Part, right: Part) -> Part:
    if left.kind is None or left.kind.name not in ("json", "jsonb"):
        raise NoForm
    if right.kind is None and right.text is not None:
        if sign in ("#>", "#>>"):
            kind = array_of(_TEXT)
            shown = to_text(kind, read_constant(kind, right.text))
            right = atom(f"{quote_literal(shown)}::text[]", kind)
        else:
            right = brought(right, left.kind if sign in ("@>", "<@") else _TEXT)
    elif right.kind is None or right.kind.name not in ("integer", "text"):
        raise NoForm
    result = _OVER_JSON[sign] or left.kind
    return _operator(sign, left, right, result)


def _case_text(tests: Sequence[str], thens: Sequence[str]) -> str:
    lines = [f"    WHEN {test} THEN {then}" for test, then in zip(tests, thens, strict=False)]
    return "\n".join(("", "CASE", *lines, f"    ELSE {thens[-1]}", "END"))


def _is_integer(kind: Type) -> bool:
    return kind.name in _WIDTHS


def _is_number(kind: Type) -> bool:
    return _is_integer(kind) or kind == _NUMERIC or kind.name in _FLOATS


def _comparable(left: Part, right: Part) -> tuple[Part, Part]:
    """Return two parts as an operator that compares takes them."""
    if left.kind is None or right.kind is None:
        other = left.kind or right.kind or _TEXT
        kind = _TEXT if other.name == "varchar" else other
        return brought(left, kind), brought(right, kind)
    if _is_number(left.kind) and _is_number(right.kind):
        return _numbers(left, right)
    names = {left.kind.name, right.kind.name}
    if names <= _TEXTS:
        return brought(left, _TEXT), brought(right, _TEXT)
    if left.kind == right.kind or names <= _DATES:
        return left, right
    raise NoForm


def _numbers(left: Part, right: Part) -> tuple[Part, Part]:
    """Return two numbers as an operator takes them: there is one for any two whole numbers, and for
    any two floating ones."""
    kinds = [part.kind for part in (left, right) if part.kind is not None]
    if not kinds or not all(map(_is_number, kinds)):
        raise NoForm
    if len(kinds) == 1:
        return brought(left, kinds[0]), brought(right, kinds[0])
    if all(map(_is_integer, kinds)):
        return left, right
    if not any(kind.name in _FLOATS for kind in kinds):
        return brought(left, _NUMERIC), brought(right, _NUMERIC)
    floats = (
        part if part.kind is not None and part.kind.name in _FLOATS else brought(part, _DOUBLE)
        for part in (left, right)
    )
    one, other = floats
    return one, other


def _wider(left: Part, right: Part) -> Type:
    """Return the type of what arithmetic makes of two numbers."""
    assert left.kind is not None, "brought to a number"
    assert right.kind is not None, "brought to a number"
    if _is_integer(left.kind) and _is_integer(right.kind):
        return max(left.kind, right.kind, key=lambda kind: _WIDTHS[kind.name])
    if left.kind == right.kind:
        return left.kind
    return _DOUBLE


def common_kind(parts: Sequence[Part]) -> Type:
    """Return the type to which the values of a list are brought."""
    kinds = [part.kind for part in parts if part.kind is not None] or [_TEXT]
    first = kinds[0]
    if all(kind == first for kind in kinds):
        return first
    if {kind.name for kind in kinds} <= _TEXTS:
        return first
    if not all(map(_is_number, kinds)):
        raise NoForm
    if all(map(_is_integer, kinds)):
        return max(kinds, key=lambda kind: _WIDTHS[kind.name])
    floats = [kind for kind in kinds if kind.name in _FLOATS]
    if not floats:
        return _NUMERIC
    return _DOUBLE if len({kind.name for kind in floats}) > 1 else floats[0]
