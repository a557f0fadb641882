"""Data flows one way through the layout, and the pure core touches no world.

Goal: a PURE package that reads a clock, a socket or a store would no longer run the same in the
simulation. Method: every import statement of every module, read as text.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[3] / "libs" / "leasehold"
PURE = (
    *("model", "values", "lease", "pgwire", "catalog", "sql", "rows", "schema_change"),
    *("transaction", "events", "replication"),
)
WORLD = frozenset(
    {
        "apsw",
        "asyncio",
        "confluent_kafka",
        "datetime",
        "faust",
        "kafka",
        "logging",
        "os",
        "pathlib",
        "random",
        "redis",
        "secrets",
        "select",
        "selectors",
        "signal",
        "socket",
        "sqlite3",
        "subprocess",
        "tempfile",
        "threading",
        "time",
    }
)
"""Modules that read a clock, randomness, files, the network, or start something beside."""

MAY_USE_DATES = frozenset(
    {
        *(
            "values/types.py",
            "values/dates.py",
            "values/date_text.py",
            "sql/functions/date_templates.py",
        ),
        *("values/time_zone.py",),
        *("sql/functions/dates.py", "sql/as_of.py"),
    }
)
"""Values of date types are datetime objects; the module's clock must still not be asked."""

ALLOWED = {
    # The stand-in for Spark in one process runs the pure parts of the real queries.
    "in_process/pipeline.py": {"spark_streaming"},
}
OUTER = (
    *("settings", "adapters", "pipeline", "node", "client", "admin", "replica", "sql_session"),
    *("in_process", "dev", "dbapi", "cli"),
)
LAYERS = (*PURE, *OUTER)


def modules(*packages: str) -> list[Path]:
    return [path for package in packages for path in sorted((LIBRARY / package).rglob("*.py"))]


def imports(path: Path) -> list[str]:
    """Full names of everything a module imports, inside functions too."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.append(node.module or "")
    return found


def name(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


@pytest.mark.parametrize("path", modules(*PURE), ids=name)
def test_pure_packages_touch_no_world(path: Path) -> None:
    found = {module.partition(".")[0] for module in imports(path)} & WORLD
    found -= ALLOWED.get(name(path), set())
    if name(path) in MAY_USE_DATES:
        found -= {"datetime"}
    assert not found, f"{name(path)} imports {sorted(found)}"


@pytest.mark.parametrize("path", modules(*PURE), ids=name)
def test_pure_packages_know_nothing_of_those_around_them(path: Path) -> None:
    inside = {m.split(".")[1] for m in imports(path) if m.startswith("leasehold.") and "." in m}
    assert not inside & set(OUTER), f"{name(path)} imports {sorted(inside & set(OUTER))}"
    outside = {m.partition(".")[0] for m in imports(path)} & {
        "services",
        "spark_streaming",
        "infra",
    }
    assert not outside


@pytest.mark.parametrize("path", modules(*LAYERS), ids=name)
def test_the_library_knows_nothing_of_the_processes_made_of_it(path: Path) -> None:
    around = {"services", "spark_streaming", "infra", "tests"}
    found = {m.partition(".")[0] for m in imports(path)} & around
    found -= ALLOWED.get(name(path), set())
    assert not found, f"{name(path)} imports {sorted(found)}"


def test_the_model_depends_on_nothing_else_of_the_library() -> None:
    for path in modules("model"):
        inside = {m.split(".")[1] for m in imports(path) if m.startswith("leasehold.")}
        assert inside <= {"model"}, name(path)


def test_kafka_and_redis_are_touched_by_adapters_alone() -> None:
    for path in modules("client", "cli", *PURE):
        found = {m.partition(".")[0] for m in imports(path)} & {"confluent_kafka", "redis", "apsw"}
        assert not found, f"{name(path)} imports {sorted(found)}"


def test_no_clock_is_asked_in_a_pure_package() -> None:
    asked = {"now", "today", "utcnow"}
    for path in modules(*PURE):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = ast.unparse(node.func.value)
                assert not (node.func.attr in asked and of in ("datetime", "date")), name(path)
