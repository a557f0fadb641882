"""The table of settings, from their declarations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final

from infra.reference.markdown import code, table
from leasehold.settings.groups import GROUPS as LIBRARY_GROUPS
from spark_streaming.spark_settings import SparkSettings

GROUPS: Final[tuple[tuple[str, type], ...]] = (
    *LIBRARY_GROUPS,
    ("Spark's driver", SparkSettings),
)
_NO_VALUE: Final = "?"
"""No setting but a plain text or a path takes it: whoever reads it says what is expected."""


def settings() -> str:
    """Return one table for each group of settings."""
    parts: list[str] = []
    for title, group in GROUPS:
        rows = [_row(each) for each in fields(group)]
        parts.append(f"### {title}\n\n{table(_HEADS, rows)}")
    return "\n\n".join(parts)


def names() -> frozenset[str]:
    """Return the variables of all groups."""
    return frozenset(each.metadata["env"] for _, group in GROUPS for each in fields(group))


_HEADS: Final = ("variable", "meaning", "default", "expected")


def _row(each: Field[Any]) -> tuple[str, str, str, str]:
    told = each.metadata
    secret = " (secret: masked wherever settings are shown)" if told["secret"] else ""
    default = "" if each.default in (None, MISSING, "", ()) else code(str(each.default))
    return code(told["env"]), told["help"] + secret, default, _expected(told["parse"])


def _expected(parse: Callable[[str], Any]) -> str:
    if parse is str:
        return "text"
    if parse is Path:
        return "a path"
    try:
        parse(_NO_VALUE)
    except ValueError as error:
        return str(error)
    raise LookupError(f"{parse} takes {_NO_VALUE!r} and does not say what it expects")
