"""Types, columns, indexes and constraints written as PostgreSQL writes them for its clients."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import zip_longest
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Check, Column, ForeignKey, Index, OnChange
from leasehold.values.declared import BY_NAME, DECLARED, ENUM, NUMBERS, VARIABLE, Modifier
from leasehold.values.oids import WireType, oid_of, size_of, type_of_oid
from leasehold.values.text_io import to_text
from leasehold.values.types import TIMED, Type, element_of

WRITTEN: Final[Mapping[str, str]] = {each.name: each.written for each in DECLARED if each.written}
"""Types that PostgreSQL writes in words of its own."""
PG_NAMES: Final[Mapping[str, str]] = {each.name: each.pg_name for each in DECLARED if each.pg_name}
"""typname of types that are called otherwise here."""
_PLAIN: Final = re.compile(r"[a-z_][a-z0-9_$]*")
_ALONE: Final = re.compile(
    r"""-?[0-9.]+ | case\ .*\ end
    | (?:'(?:[^']|'')*' | [\w$]+ | "[^"]+" | \w+\([^()]*\))
      (?:::(?:[\w ]+|"[^"]+")(?:\.(?:\w+|"[^"]+"))?(?:\([0-9, ]+\))?(?:\[\])?)?""",
    re.VERBOSE | re.DOTALL,
)
"""A constant, a column, a call, any of them with a cast; CASE."""
_PLAIN_NUMBER: Final = re.compile(r"-?[0-9]{1,100}(?:\.[0-9]{1,100})?")
_PARENTHESES: Final = re.compile(
    r"""[()]|[eE]'(?:[^'\\]|\\.|'')*+'|'(?:[^']|'')*+'|"(?:[^"]|"")*+\""""
)
"""One, or a text or a name in quotes."""
_INT4: Final = 1 << 31
_INT8: Final = 1 << 63
_WORDS: Final = frozenset(
    {"current_timestamp", "current_date", "localtimestamp", "localtime", "current_time"}
)
_RESERVED: Final = frozenset(
    {
        *("all", "analyse", "analyze", "and", "any", "array", "as", "asc", "asymmetric"),
        *("authorization", "between", "bigint", "binary", "bit", "boolean", "both", "case"),
        *("cast", "char", "character", "check", "coalesce", "collate", "collation"),
        *("column", "concurrently", "constraint", "create", "cross", "current_catalog"),
        *("current_date", "current_role", "current_schema", "current_time"),
        *("current_timestamp", "current_user", "dec", "decimal", "default", "deferrable"),
        *("desc", "distinct", "do", "else", "end", "except", "exists", "extract", "false"),
        *("fetch", "float", "for", "foreign", "freeze", "from", "full", "grant"),
        *("greatest", "group", "grouping", "having", "ilike", "in", "initially", "inner"),
        *("inout", "int", "integer", "intersect", "interval", "into", "is", "isnull"),
        *("join", "lateral", "leading", "least", "left", "like", "limit", "localtime"),
        *("localtimestamp", "national", "natural", "nchar", "none", "normalize", "not"),
        *("notnull", "null", "nullif", "numeric", "offset", "on", "only", "or", "order"),
        *("out", "outer", "overlaps", "overlay", "placing", "position", "precision"),
        *("primary", "real", "references", "returning", "right", "row", "select"),
        *("session_user", "setof", "similar", "smallint", "some", "substring", "symmetric"),
        *("table", "tablesample", "then", "time", "timestamp", "to", "trailing", "treat"),
        *("trim", "true", "union", "unique", "user", "using", "values", "varchar"),
        *("variadic", "verbose", "when", "where", "window", "with", "xmlattributes"),
        *("xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlnamespaces", "xmlparse"),
        *("xmlpi", "xmlroot", "xmlserialize", "xmltable"),
    }
)
"""PostgreSQL's words that are not free for every use: it shows a name that is one in quotes."""
_HEADER: Final = 4


def columns_of(table: Descriptor) -> list[Column]:
    """Return the columns that a query may name, in the order of their numbers (attnum)."""
    return list(table.by_name.values())


def quoted_relation(table: Descriptor) -> str:
    """Return how a text names a relation, as it is shown, behind its schema unless that is
    public."""
    return f"{quoted(table.schema)}.{quoted(table.name)}" if table.schema else quoted(table.name)


def quoted(name: str) -> str:
    if _PLAIN.fullmatch(name) and name not in _RESERVED:
        return name
    return '"' + name.replace('"', '""') + '"'


def format_type(oid: int | None, modifier: int | None) -> str | None:
    """Return a type as PostgreSQL writes it, `character varying(5)`, `numeric(10,2)` or
    `integer[]`; ??? for what nobody knows."""
    if oid is None:
        return None
    kind = type_of_oid(oid)
    if kind is None:
        return "???" if oid else "-"
    element = element_of(kind)
    if element is not None:
        return _with_modifier(element.name, modifier) + "[]"
    return _with_modifier(kind.name, modifier)


def type_name(kind: WireType) -> str:
    """Return typname of a type, _int4 of an array."""
    element = element_of(kind)
    name = (element or kind).name
    called = PG_NAMES.get(name, name) if kind.enum is None else kind.enum.bare_name
    return f"{'_' if element else ''}{called}"


def is_type(oid: int) -> bool:
    return type_of_oid(oid) is not None


def storage_of(kind: WireType) -> str:
    """Return what PostgreSQL would do with long values: p plain, m main, x extended."""
    if size_of(kind) != VARIABLE:
        return "p"
    return "m" if kind.name in ("numeric", "inet", "cidr") else "x"


def alignment_of(kind: WireType) -> str:
    if kind.enum is not None:
        return ENUM.alignment
    if kind.name in BY_NAME:
        return BY_NAME[kind.name].alignment
    element = BY_NAME[kind.name.removesuffix("[]")]
    return "d" if element.alignment == "d" else "i"


def type_text(kind: WireType) -> str:
    """Return a type without a modifier."""
    if kind.enum is not None:
        return str(kind)
    return str(format_type(oid_of(kind), None))


def default_text(column: Column) -> str | None:
    """Return what stands behind DEFAULT as it was written, or a generated column's expression;
    None: neither."""
    return column.default_text or default_meaning(column)


def default_meaning(column: Column) -> str | None:
    """Return the same, of a constant by its value alone, so that equal ones are said alike."""
    if column.generated and column.derived is not None:
        return column.derived.expression
    if column.default_expression:
        said = column.default_expression
        return said.upper() if said in _WORDS else said
    if column.default is None:
        return None
    return literal(column.type, column.default)


def number_text(column: Column) -> str:
    """Return how a number is shown that is a column's default, "" where it has none."""
    if column.default is None or column.type.name not in NUMBERS:
        return column.default_text
    return column.default_text or literal(column.type, column.default)


def shown_default(column: Column) -> str | None:
    """Return the default as the catalog has it, where an identity column has none."""
    return None if column.identity else default_text(column)


def literal(kind: Type, value: Any) -> str:
    """Return a constant as PostgreSQL shows one that was said as plainly as can be: a number that
    it would read as an integer or a numeric is of that type, whatever the column's is."""
    text = to_text(kind, value)
    if kind.name in NUMBERS and _PLAIN_NUMBER.fullmatch(text):
        whole = "." not in text
        if whole and -_INT4 <= int(text) < _INT4:
            kind = Type("integer")
        else:
            kind = Type("bigint" if whole and -_INT8 <= int(text) < _INT8 else "numeric")
        if not text.startswith("-") and (kind.name == "integer" or not whole):
            return text
    elif kind.name == "boolean":
        return text
    written = "bpchar" if kind.name == "char" else type_text(kind)
    return "'" + text.replace("'", "''") + "'::" + written


def index_text(
    table: Descriptor,
    index: Index | None,
    name: str,
    *,
    pretty: bool = False,
    show: Callable[[str], str | None] = lambda _: None,
) -> str:
    """Return CREATE INDEX …; `index` None: of the primary key. `pretty`: without what can be left
    out. `show` gives the form of an expression, None where it stands as it was said."""
    unique = "UNIQUE " if index is None or index.unique else ""
    orders = () if index is None else index.orders
    parts = zip_longest(index_keys(table, index, show), orders, fillvalue="")
    keys = ", ".join(f"{key} {order}".rstrip() for key, order in parts)
    schema = f"{quoted(table.schema)}." if table.schema else "" if pretty else "public."
    text = (
        f"CREATE {unique}INDEX {quoted(name)} ON {schema}{quoted(table.name)} USING btree ({keys})"
    )
    text += _included_text(table, index)
    if index is None:
        return text
    if index.equal_nulls:
        text += " NULLS NOT DISTINCT"
    if index.predicate:
        said = index.predicate if pretty else parenthesize(index.predicate)
        text += f" WHERE {show(index.predicate) or said}"
    return text


def index_keys(
    table: Descriptor, index: Index | None, show: Callable[[str], str | None] = lambda _: None
) -> list[str]:
    """Return columns and expressions in the order of the key."""
    if index is None:
        return _names(table, table.primary_key)
    expressions = iter(index.expressions)
    return [
        _expression(next(expressions), show) if one == EXPRESSION else quoted(table.by_id[one].name)
        for one in index.columns
    ]


def index_parts(
    table: Descriptor, index: Index | None, show: Callable[[str], str | None] = lambda _: None
) -> list[str]:
    """Return the key's parts, and what is stored beside it."""
    return index_keys(table, index, show) + _names(table, included_of(table, index))


def included_of(table: Descriptor, index: Index | None) -> tuple[int, ...]:
    """Return the columns that stand beside an index's keys; `index` None: of the primary key."""
    if index is None:
        return tuple(column.element_id for column in table.included_columns)
    return index.included


def _included_text(table: Descriptor, index: Index | None) -> str:
    included = ", ".join(_names(table, included_of(table, index)))
    return f" INCLUDE ({included})" if included else ""


def index_names(table: Descriptor, index: Index | None) -> list[str]:
    """Return what an index's columns are called: an expression as its function, else expr; none
    comes twice."""
    texts = iter(() if index is None else index.expressions)
    keys = table.primary_key if index is None else index.columns
    names: list[str] = []
    for one in (*keys, *included_of(table, index)):
        stem = _function_of(next(texts)) if one == EXPRESSION else table.by_id[one].name
        name, more = stem, 0
        while name in names:
            more += 1
            name = f"{stem}{more}"
        names.append(name)
    return names


def parenthesize(expression: str) -> str:
    """Return an expression as PostgreSQL shows it by itself: operators in parentheses, once."""
    expression = without_parentheses(expression)
    return expression if _ALONE.fullmatch(expression) else f"({expression})"


def without_parentheses(expression: str) -> str:
    """Return an expression without those that stand around all of it."""
    while expression.startswith("(") and _closing(expression) == len(expression) - 1:
        expression = expression[1:-1].strip()
    return expression


def _closing(expression: str) -> int:
    """Return where the parenthesis is closed that an expression begins with. Quotes hide what is
    within them."""
    depth = 0
    for found in _PARENTHESES.finditer(expression):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if not depth:
            return found.start()
    return -1


def _function_of(expression: str) -> str:
    call = re.fullmatch(r"(\w+)\([^()]*\)", expression)
    return "expr" if call is None else call[1]


def check_text(check: Check) -> str:
    return f"CHECK ({without_parentheses(check.expression)})"


def unique_text(table: Descriptor, index: Index) -> str:
    nulls = " NULLS NOT DISTINCT" if index.equal_nulls else ""
    text = f"UNIQUE{nulls} ({', '.join(index_keys(table, index))})"
    return text + _included_text(table, index) + _deferral_text(index.deferrable)


def _deferral_text(initially: str) -> str:
    """What is said of a constraint that is deferrable, INITIALLY what it is; "" = it is not."""
    if not initially:
        return ""
    return " DEFERRABLE INITIALLY DEFERRED" if initially == "deferred" else " DEFERRABLE"


def primary_key_text(table: Descriptor) -> str:
    return f"PRIMARY KEY ({', '.join(_names(table, table.primary_key))})" + _included_text(
        table, None
    )


def foreign_key_text(
    table: Descriptor, key: ForeignKey, parent: Descriptor, named: str = ""
) -> str:
    """Return what stands behind a foreign key's name. `named`: how the parent is, "" = behind its
    schema unless that is public."""
    columns = ", ".join(_names(table, key.columns))
    referred = ", ".join(_names(parent, key.parent_columns))
    said = " MATCH FULL" if key.full else ""
    said += "".join(
        f" {event} {action.upper()}"
        for event, action in (("ON UPDATE", key.on_update), ("ON DELETE", key.on_delete))
        if action is not OnChange.NO_ACTION
    )
    if key.delete_sets:
        said += f" ({', '.join(_names(table, key.delete_sets))})"
    said += _deferral_text(key.deferral)
    return (
        f"FOREIGN KEY ({columns}) REFERENCES {named or quoted_relation(parent)}({referred}){said}"
    )


def _names(table: Descriptor, element_ids: Iterable[int]) -> list[str]:
    return [quoted(table.by_id[one].name) for one in element_ids]


def _expression(text: str, show: Callable[[str], str | None]) -> str:
    """A call stands as it is, anything else in parentheses."""
    shown = show(text) or text
    return shown if is_call(shown) else f"({shown})"


def is_call(text: str) -> bool:
    """Return whether an expression is a call of a function, and no more."""
    begun = re.match(r'(?:\w+|"[^"]+")\(', text)
    return (
        begun is not None and begun.end() - 1 + _closing(text[begun.end() - 1 :]) == len(text) - 1
    )


def _with_modifier(name: str, modifier: int | None) -> str:
    written = WRITTEN.get(name, name)
    if name in TIMED and modifier is not None and modifier >= 0:
        modifier &= 0xFFFF  # above that stand an interval's fields
        first, *rest = written.split(" ", 1)
        return " ".join((f"{first}({modifier})", *rest))
    if modifier is None or modifier < _HEADER:
        return written
    size = modifier - _HEADER
    if name == "numeric":
        scale = ((size & 0x7FF) ^ 1024) - 1024
        return f"{written}({size >> 16},{scale})"
    return f"{written}({size})" if BY_NAME[name].modifier is Modifier.CHARACTERS else written
