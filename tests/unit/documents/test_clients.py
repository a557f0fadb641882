"""Goal: the table of clients says what was run: each line names a test that is there, or says that
nobody runs it but people, and the versions of Python's packages are those that are installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from infra.reference.client_table import CLIENTS, Client

ROOT = Path(__file__).parents[3]
NAMED = {client.name: client for client in CLIENTS}


def test_each_client_has_one_line() -> None:
    assert len(NAMED) == len(CLIENTS)


@pytest.mark.parametrize("client", CLIENTS, ids=NAMED)
def test_a_line_is_shown_by_a_test_that_is_there(client: Client) -> None:
    assert client.works
    assert client.version
    assert not client.shown_by or (ROOT / client.shown_by).is_file()


@pytest.mark.parametrize("client", [c for c in CLIENTS if c.package], ids=lambda c: c.name)
def test_a_version_is_the_one_that_is_run(client: Client) -> None:
    try:
        installed = version(client.package)
    except PackageNotFoundError:
        pytest.skip(f"NOT TESTED: {client.package} is not installed")
    assert client.version == installed


def test_every_test_of_tools_is_in_the_table() -> None:
    told = {client.shown_by for client in CLIENTS}
    there = (ROOT / "tests" / "integration" / "tools").glob("test_*.py")
    assert {path.relative_to(ROOT).as_posix() for path in there} <= told
