"""The rules as switches: which there are, and which of them are off in a given set of rules."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any, Final, NamedTuple

import leasehold
from tests.models.mutants import lease, replication, schema, transaction

MUTANTS: Final = "tests.models.mutants."
"""Rules of a package that have no switches there, as dataclasses of the module of its name."""
PURE: Final = ("schema", "transaction", "replication", "lease")


class Switch(NamedTuple):
    """`part`: the package that it belongs to (of the library, or of the tests)."""

    part: str
    name: str


def switches_off(rules: Any) -> str:
    """Names of the switches that are off, for the summary."""
    return " and ".join(switch.name for switch, on in switches(rules) if not on)


def off(rules: Any) -> frozenset[Switch]:
    return frozenset(switch for switch, on in switches(rules) if not on)


def switches(rules: Any) -> Iterator[tuple[Switch, bool]]:
    """Those of rules inside rules included."""
    assert is_dataclass(rules), rules
    module = type(rules).__module__
    part = module.removeprefix(MUTANTS) if module.startswith(MUTANTS) else module.split(".")[1]
    for field in fields(rules):
        value = getattr(rules, field.name)
        if isinstance(value, bool):
            yield Switch(part, field.name), value
        elif is_dataclass(value):
            yield from switches(value)


def of_the_library() -> frozenset[Switch]:
    """Every switch of every dataclass of rules in the pure packages, and those of L5's settings;
    and every rule of theirs that the tests can break without one."""
    modules = [
        import_module(f"leasehold.{package}.{module.name}")
        for package in PURE
        for module in pkgutil.iter_modules([f"{leasehold.__path__[0]}/{package}"])
    ]
    return frozenset(
        switch
        for module in (*modules, lease, replication, schema, transaction)
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__name__.endswith(("Rules", "OutcomeSettings"))
        for switch, _ in switches(kind())
    )
