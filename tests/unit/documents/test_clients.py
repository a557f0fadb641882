"""Goal: the table of clients says what was run: each statement names a test that is there, and the
versions are those that are installed: of this environment, or where the tools come from."""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from infra.reference.client_table import CLIENTS, Client
from tests.support.postgres.postgres_server import installed

ROOT = Path(__file__).parents[3]
NAMED = {client.name: client for client in CLIENTS}
SHOWN = [(c.name, shown) for c in CLIENTS for shown in (*c.works, *c.otherwise)]
OF_POSTGRESQL = ("psql", "pg_dump")
"""Programs of the PostgreSQL that the tests start."""


@cache
def find_tests(path: str) -> dict[str, frozenset[str]]:
    """Return the tests of a file, each with the texts of the file that may name its cases."""
    tree = ast.parse((ROOT / path).read_text())
    texts = frozenset(
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    )
    return {
        each.name: texts
        for each in tree.body
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        and each.name.startswith("test_")
    }


@cache
def pins() -> str:
    """Return what the tools are installed from, each run of blanks and line ends as one blank."""
    files = ("infra/client_tools.sh", "infra/client_tools/pom.xml")
    return " ".join(" ".join((ROOT / file).read_text() for file in files).split())


def test_each_client_has_one_line() -> None:
    assert len(NAMED) == len(CLIENTS)


def test_each_client_works_in_part() -> None:
    assert all(client.works and client.version for client in CLIENTS)


@pytest.mark.parametrize(("name", "shown"), SHOWN, ids=[f"{n}: {s.said[:40]}" for n, s in SHOWN])
def test_a_statement_is_shown_by_a_test_that_is_there(name: str, shown: tuple[str, str]) -> None:
    said, by = shown
    assert said
    path, _, test = by.partition("::")
    function, bracket, case = test.removesuffix("]").partition("[")
    there = find_tests(path)
    assert function in there
    assert not bracket or case in there[function]


@pytest.mark.parametrize("client", CLIENTS, ids=NAMED)
def test_a_version_is_the_one_that_is_installed(client: Client) -> None:
    if client.pin:
        assert client.pin in pins()
        assert client.version in client.pin
    elif client.package:
        try:
            assert client.version == version(client.package)
        except PackageNotFoundError:
            pytest.skip(f"NOT TESTED: {client.package} is not installed")
    else:
        assert client.name in OF_POSTGRESQL
        programs = installed()
        if programs is None:
            pytest.skip("NOT TESTED: no PostgreSQL is installed")
        assert client.version == programs.parent.name


def test_every_test_of_tools_is_in_the_table() -> None:
    told = {shown.by.partition("::")[0] for _, shown in SHOWN}
    there = (ROOT / "tests" / "integration" / "tools").glob("test_*.py")
    assert {path.relative_to(ROOT).as_posix() for path in there} <= told


def test_the_page_has_the_materialization_that_is_tested() -> None:
    macro = (ROOT / "tests/support/tools/dbt/macros/table.sql").read_text()
    assert f"```jinja\n{macro}```" in (ROOT / "docs/reference/clients.md").read_text()
