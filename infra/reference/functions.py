"""Functions and operators of SQL, from the catalogue that resolves them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from infra.reference.markdown import code, table
from leasehold.sql.binding.aggregates import WINDOWS
from leasehold.sql.functions import enums, networks, not_supported, polymorphic, registry
from leasehold.sql.functions.aggregates.aggregates import AGGREGATE_NAMES
from leasehold.sql.functions.arrays import array, set_returning
from leasehold.sql.functions.dates import arithmetic, fields, times, timestamps
from leasehold.sql.functions.function import Function
from leasehold.sql.functions.jsonb import functions as jsonb
from leasehold.sql.functions.jsonb import json_functions, made_objects, named_parts
from leasehold.sql.functions.numbers import mathematics
from leasehold.sql.functions.system import (
    advisory_locks,
    catalog,
    node,
    notifications,
    rights,
    sequence,
    session,
)
from leasehold.sql.functions.texts import bytea, like, regexp, text

GROUPS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("Numbers", (mathematics,)),
    ("Text", (text, polymorphic)),
    ("Patterns and regular expressions", (like, regexp)),
    ("Bytes, digests and UUIDs", (bytea,)),
    ("Dates and times", (timestamps, arithmetic, fields, times)),
    ("json and jsonb", (jsonb, json_functions, named_parts, made_objects)),
    ("Network addresses", (networks,)),
    ("Arrays", (array,)),
    ("Enum types", (enums,)),
    ("In FROM: functions that give rows", (set_returning,)),
    ("Sequences", (sequence,)),
    ("The session", (session,)),
    ("Advisory locks", (advisory_locks,)),
    ("Notifications", (notifications,)),
    ("Jobs and sessions of this database", (node,)),
    ("Who may do what", (rights,)),
    ("The system catalog", (catalog,)),
)


def functions() -> str:
    """Return one table for each subject. Raises LookupError for a function that no group has."""
    parts: list[str] = []
    shown: set[str] = set()
    for title, modules in GROUPS:
        rows: list[tuple[str, str, str]] = []
        for name, forms in sorted(_by_name(_functions_of(modules)).items()):
            kinds = ", ".join(sorted({form.volatility for form in forms}))
            rows.append((code(name), "; ".join(dict.fromkeys(map(_form, forms))), kinds))
        families = sorted({name for m in modules for name in getattr(m, "FAMILIES", {})})
        rows += [(code(name), "any types", "") for name in families]
        shown |= {name.strip("`") for name, _, _ in rows}
        parts.append(f"### {title}\n\n{table(('function', 'arguments → result', ''), rows)}")
    missing = (registry.FUNCTION_NAMES | registry.SET_NAMES) - shown
    if missing:
        raise LookupError(f"no group of infra/reference/functions.py has {sorted(missing)}")
    return "\n\n".join(parts)


def operators() -> str:
    """Return the operators with the types that they take."""
    by_sign = sorted(_by_name(registry.ALL_OPERATORS).items())
    rows = [(code(sign), "; ".join(dict.fromkeys(map(_form, forms)))) for sign, forms in by_sign]
    return table(("operator", "operands → result"), rows)


def aggregates() -> str:
    """Return the names of aggregate functions."""
    return ", ".join(code(name) for name in sorted(AGGREGATE_NAMES))


def windows() -> str:
    """Return the names of window functions that are no aggregates."""
    return ", ".join(code(name) for name in sorted(WINDOWS))


def refused_functions() -> str:
    """Return what PostgreSQL has and Leasehold refuses with a sentence of its own."""
    by_words: dict[str, list[str]] = defaultdict(list)
    for name, words in (*not_supported.FUNCTIONS.items(), *not_supported.OPERATORS.items()):
        by_words[words].append(code(name))
    return table(("asked for", "answer"), [(", ".join(n), w) for w, n in by_words.items()])


def _functions_of(modules: Iterable[Any]) -> list[Function]:
    return [
        function
        for module in modules
        for function in (*getattr(module, "FUNCTIONS", ()), *getattr(module, "SETS", ()))
    ]


def _by_name(found: Iterable[Function]) -> dict[str, list[Function]]:
    named: dict[str, list[Function]] = defaultdict(list)
    for function in found:
        named[function.name].append(function)
    return named


def _form(function: Function) -> str:
    kinds = [str(kind) for kind in function.arguments]
    if function.variadic:
        kinds[-1] += " …"
    return f"({', '.join(kinds)}) → {function.result}"
