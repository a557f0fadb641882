"""Functions that tell of the catalog: texts of definitions, names, what is visible.

They are computed of the catalog that the statement sees; what is nobody's gives NULL, as in
PostgreSQL. Comments, triggers, rules, policies and partitions do not exist.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import WrongObject
from leasehold.sql.functions.function import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    NUMERIC,
    TEXT,
    Function,
)
from leasehold.sql.functions.system.session import system_of
from leasehold.values.arrays import elements_of, stored_form
from leasehold.values.catalog_types import NAME, OID, REGCLASS
from leasehold.values.letters import ascii_lower
from leasehold.values.numeric import EXACT, decimal_of, text_of
from leasehold.values.types import Type, array_of

if TYPE_CHECKING:  # it lists these functions
    from leasehold.sql.system_catalog.rows import SystemCatalog

_UTF8: Final = 6
_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_HALF_OF_LARGEST: Final = Decimal(1 << 10 * (len(_UNITS) - 1) - 1)
_WHOLE_BY_INT: Final = 40
"""Digits of a size up to which it is shown in whichever unit it takes."""

Tell = Callable[..., Any]


def _told(
    name: str, arguments: tuple[Type, ...], result: Type, tell: Tell, *, strict: bool = True
) -> Function:
    """Return a function whose `tell` takes the catalog and the arguments."""

    def compute(context: CommitContext, *values: Any) -> Any:
        return tell(system_of(context).catalog, *values)

    return Function(name, arguments, result, compute, strict, "stable")


def _fixed(name: str, arguments: tuple[Type, ...], result: Type, value: Any) -> Function:
    """The same for whatever it is asked."""
    return Function(name, arguments, result, lambda *_: value, volatility="stable")


# ------------------------------------------------------------------ definitions


def _index_column(catalog: SystemCatalog, oid: int, column: int, pretty: int) -> str | None:
    return catalog.index_text(oid, column, pretty=bool(pretty))


def _expression(catalog: SystemCatalog, text: str, relation: int, pretty: int = 0) -> str:
    """Expressions stand in the catalog as their texts."""
    return catalog.expression(text, relation, pretty=bool(pretty))


def _view(catalog: SystemCatalog, oid: int, pretty: int = 0) -> str | None:
    return catalog.view_text(oid, pretty=bool(pretty))


def _wrapped_view(catalog: SystemCatalog, oid: int, _columns: int) -> str | None:
    """Return it with few parentheses, which who says how wide lines may be asks for."""
    return catalog.view_text(oid, pretty=True)


def _definition(catalog: SystemCatalog, oid: int, pretty: int = 0) -> str | None:
    return catalog.definition(oid, pretty=bool(pretty))


_DEFINITIONS: Final = (
    _told(
        "format_type",
        (OID, INTEGER),
        TEXT,
        lambda catalog, oid, modifier: catalog.format_type(oid, modifier),
        strict=False,
    ),
    _told("pg_get_indexdef", (OID,), TEXT, lambda catalog, oid: catalog.index_text(oid)),
    _told("pg_get_indexdef", (OID, INTEGER, BOOLEAN), TEXT, _index_column),
    _told("pg_get_constraintdef", (OID,), TEXT, _definition),
    _told("pg_get_constraintdef", (OID, BOOLEAN), TEXT, _definition),
    _told("pg_get_expr", (TEXT, OID), TEXT, _expression),
    _told("pg_get_expr", (TEXT, OID, BOOLEAN), TEXT, _expression),
    *(
        _fixed(name, (OID, *more), TEXT, None)
        for name in ("pg_get_triggerdef", "pg_get_ruledef")
        for more in ((), (BOOLEAN,))
    ),
    _told("pg_get_viewdef", (OID,), TEXT, _view),
    _told("pg_get_viewdef", (OID, BOOLEAN), TEXT, _view),
    _told("pg_get_viewdef", (OID, INTEGER), TEXT, _wrapped_view),
    *(
        _fixed(name, (OID,), TEXT, None)
        for name in (
            *("pg_get_functiondef", "pg_get_function_result", "pg_get_function_arguments"),
            *("pg_get_function_identity_arguments", "pg_get_function_sqlbody", "pg_get_partkeydef"),
            *("pg_get_partition_constraintdef", "pg_get_statisticsobjdef"),
            *("pg_get_statisticsobjdef_columns", "pg_tablespace_location"),
        )
    ),
    _told("obj_description", (OID,), TEXT, lambda catalog, oid: catalog.described(oid)),
    _told(
        "obj_description",
        (OID, NAME),
        TEXT,
        lambda catalog, oid, name: catalog.described(oid, 0, name),
    ),
    _fixed("shobj_description", (OID, NAME), TEXT, None),
    _told(
        "col_description",
        (OID, INTEGER),
        TEXT,
        lambda catalog, oid, number: catalog.described(oid, number, "pg_class"),
    ),
)

# ------------------------------------------------------------------ names


def _type_visible(catalog: SystemCatalog, oid: int) -> int | None:
    return int(catalog.is_type_visible(oid)) if catalog.is_type(oid) else None


def _registered(kind: str) -> Tell:
    return lambda catalog, name: catalog.names.find(kind, name)


def _types_of(catalog: SystemCatalog, stored: str) -> str:
    return ", ".join(str(catalog.format_type(oid, None)) for oid in elements_of(stored))


def _last_value(catalog: SystemCatalog, oid: int) -> int | None:
    sequence = catalog.relation(oid)
    if sequence is None or sequence.sequence is None:
        raise WrongObject(f'"{catalog.relation_name(oid)}" is not a sequence')
    return catalog.last_value(sequence)


_NAMES: Final = (
    _told("oidvectortypes", (Type("oidvector"),), TEXT, _types_of),
    _told("pg_sequence_last_value", (REGCLASS,), BIGINT, _last_value),
    _told("pg_table_is_visible", (OID,), BOOLEAN, lambda catalog, oid: catalog.is_visible(oid)),
    _told("pg_type_is_visible", (OID,), BOOLEAN, _type_visible),
    *(
        _fixed(f"pg_{what}_is_visible", (OID,), BOOLEAN, 1)
        for what in (
            *("collation", "function", "operator", "opclass", "opfamily", "conversion"),
            *("statistics_obj", "ts_config", "ts_dict", "ts_parser", "ts_template"),
        )
    ),
    _told(
        "acldefault",
        (Type('"char"'), OID),
        array_of(TEXT),
        lambda catalog, kind, oid: stored_form(catalog.default_acl(kind, oid)),
    ),
    _told("pg_get_userbyid", (OID,), NAME, lambda catalog, oid: catalog.user_name(oid)),
    *(
        _told(f"to_{kind}", (TEXT,), Type(kind), _registered(kind))
        for kind in ("regclass", "regtype", "regnamespace", "regrole")
    ),
    _told("pg_encoding_to_char", (INTEGER,), NAME, lambda _, n: "UTF8" if n == _UTF8 else ""),
    _told(
        "pg_char_to_encoding",
        (NAME,),
        INTEGER,
        lambda _, name: _UTF8 if ascii_lower(name).replace("-", "") == "utf8" else -1,
    ),
    _fixed("getdatabaseencoding", (), NAME, "UTF8"),
    _fixed("pg_my_temp_schema", (), OID, 0),
    _fixed("pg_is_other_temp_schema", (OID,), BOOLEAN, 0),
    _fixed("pg_relation_is_publishable", (REGCLASS,), BOOLEAN, 0),
    _fixed("pg_relation_is_updatable", (REGCLASS, BOOLEAN), INTEGER, 28),
)

# ------------------------------------------------------------------ sizes


def size_pretty(size: int) -> str:
    """Return a size in the unit that shows less than ten thousand, halves rounded up, as PostgreSQL
    does."""
    left, unit = abs(size), 0
    if left >= 10 * 1024:
        left, unit = left >> 9, 1  # one bit more, for rounding
        while (left + 1) // 2 >= 20 * 1024 // 2 and unit + 1 < len(_UNITS):
            left, unit = left >> 10, unit + 1
        left = (left + 1) // 2
    return f"{'-' if size < 0 else ''}{left} {_UNITS[unit]}"


def _numeric_size_pretty(stored: str) -> str:
    """Return a size likewise; below ten thousand bytes with what stands behind the point."""
    size = decimal_of(stored)
    if not size.is_finite():
        return f"{text_of(stored)} {_UNITS[-1]}"
    if abs(size) < 10 * 1024:
        return f"{text_of(stored)} bytes"
    if size.adjusted() < _WHOLE_BY_INT:
        return size_pretty(int(size))
    # In the largest unit; Python writes no int of more than 4,300 digits.
    halves = EXACT.divide_int(size.copy_abs(), _HALF_OF_LARGEST)
    left = EXACT.divide_int(EXACT.add(halves, 1), 2)
    return f"{'-' if size < 0 else ''}{left:f} {_UNITS[-1]}"


_SIZES: Final = (
    # Nobody counts the pages of one table.
    *(
        _fixed(name, (REGCLASS,), BIGINT, None)
        for name in (
            *("pg_table_size", "pg_total_relation_size", "pg_relation_size", "pg_indexes_size"),
        )
    ),
    *(_fixed("pg_database_size", (kind,), BIGINT, None) for kind in (NAME, OID)),
    *(_fixed("pg_tablespace_size", (kind,), BIGINT, None) for kind in (NAME, OID)),
    Function("pg_size_pretty", (BIGINT,), TEXT, size_pretty),
    Function("pg_size_pretty", (NUMERIC,), TEXT, _numeric_size_pretty),
)

FUNCTIONS: Final[tuple[Function, ...]] = (*_DEFINITIONS, *_NAMES, *_SIZES)
