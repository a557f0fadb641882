"""Functions that PostgreSQL has beside the operators over json and jsonb, and paths whose steps are
arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from leasehold.sql.functions.function import INTEGER, JSON, JSONB, TEXT, Function
from leasehold.sql.functions.jsonb import functions as jsonb
from leasehold.sql.functions.jsonb import json_functions
from leasehold.values.types import Type, array_of

_TEXTS: Final = array_of(TEXT)
_NAMES: Final[Mapping[tuple[str, Type], str]] = {
    ("->", TEXT): "object_field",
    ("->", INTEGER): "array_element",
    ("->>", TEXT): "object_field_text",
    ("->>", INTEGER): "array_element_text",
    ("<@", JSONB): "contained",
    ("?|", _TEXTS): "exists_any",
    ("?&", _TEXTS): "exists_all",
    ("||", JSONB): "concat",
    ("-", TEXT): "delete",
    ("-", INTEGER): "delete",
    ("#-", _TEXTS): "delete_path",
}
"""By an operator and its right side: what the function is called behind `json_` or `jsonb_`."""


def _named(operators: Sequence[Function]) -> list[Function]:
    return [
        replace(each, name=f"{each.arguments[0]}_{_NAMES[each.name, each.arguments[1]]}")
        for each in operators
        if (each.name, each.arguments[1]) in _NAMES
    ]


def _steps(of_path: Callable[[str, Any], Any]) -> Callable[..., Any]:
    return lambda stored, *steps: of_path(stored, steps)


def _by_steps(operators: Sequence[Function]) -> list[Function]:
    """Return functions whose arguments are the steps of a path."""
    found: list[Function] = []
    for each in operators:
        kind, path = each.arguments
        if each.name in ("#>", "#>>") and path == TEXT:
            name = f"{kind}_extract_path{'_text' if each.name == '#>>' else ''}"
            compute = _steps(each.compute)
            found.append(Function(name, (kind, TEXT), each.result, compute, variadic=True))
    return found


FUNCTIONS: Final[tuple[Function, ...]] = tuple(
    function
    for kind, operators in ((JSON, json_functions.OPERATORS), (JSONB, jsonb.OPERATORS))
    for of_kind in ([each for each in operators if each.arguments[0] == kind],)
    for function in (*_named(of_kind), *_by_steps(of_kind))
)
