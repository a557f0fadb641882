"""What import-linter (`make check`, contracts in pyproject.toml) can't hold: dates, and itself.

Goal: a pure package that asked a clock would no longer run the same in the simulation. Method:
every import and every call of every module, read as text.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "libs" / "leasehold"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
    "contracts"
]
LAYERS = {name.strip() for name in ",".join(CONTRACTS[0]["layers"]).replace(":", ",").split(",")}
PURE = tuple(
    name.removeprefix("leasehold.")
    for contract in CONTRACTS
    if contract["name"].startswith("Pure packages")
    for name in contract["source_modules"]
)
MAY_USE_DATES = frozenset(
    {
        *("values/storage.py", "values/dates.py", "values/date_text.py", "values/time_zone.py"),
        *(
            "sql/functions/dates/templates.py",
            "events/avro_schema.py",
            "values/time_text.py",
            "values/times.py",
            "sql/functions/dates/timestamps.py",
            "sql/syntax/as_of.py",
        ),
    }
)
"""Values of date types are datetime objects; the module's clock must still not be asked."""


def modules(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((LIBRARY / package).rglob("*.py"))]


def name(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


def test_every_package_has_its_place_in_the_order() -> None:
    """A package that no contract names could import whatever it likes."""
    packages = {f"leasehold.{init.parent.name}" for init in LIBRARY.glob("*/__init__.py")}
    assert packages == {layer for layer in LAYERS if layer.startswith("leasehold.")}
    assert not set(LIBRARY.glob("*.py")) - {LIBRARY / "__init__.py"}


@pytest.mark.parametrize("path", modules(*PURE), ids=name)
def test_dates_are_used_where_they_are_values(path: Path) -> None:
    tree = ast.parse(path.read_text())
    named = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    named |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert "datetime" not in named or name(path) in MAY_USE_DATES


@pytest.mark.parametrize("path", modules(*PURE), ids=name)
def test_no_clock_is_asked_in_a_pure_package(path: Path) -> None:
    asked = {"now", "today", "utcnow"}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of = ast.unparse(node.func.value)
            assert not (node.func.attr in asked and of in ("datetime", "date")), name(path)
