"""The rules as switches: which there are, and which of them are off in a given set of rules."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any


def switches_off(rules: Any) -> str:
    """Names of the switches that are off, those of rules inside rules included."""
    return " and ".join(name for name, on in switches(rules) if not on)


def switches(rules: Any) -> Iterator[tuple[str, bool]]:
    assert is_dataclass(rules), rules
    for field in fields(rules):
        value = getattr(rules, field.name)
        if isinstance(value, bool):
            yield field.name, value
        elif is_dataclass(value):
            yield from switches(value)
