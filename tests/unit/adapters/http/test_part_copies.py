"""Goal: a partial replica begins with a copy of what it is to hold, and of nothing else.

Method: real sockets on loopback, a store with the rows of three tables, made by SQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from leasehold.adapters.http import snapshot_fetch
from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import SnapshotServer, copy_store
from leasehold.adapters.sqlite import layout
from leasehold.adapters.sqlite.layout import check_layout, connect, physical_columns, read_part
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.part import PartWish
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.node.bootstrap import stored_part
from tests.support.http.snapshot_talk import TOKEN
from tests.support.sql_session.sql_client import SqlClient

WISH = PartWish.of(["flights"], {"seats": "id >= 100 AND id < 150"})
TEXTS = (
    "CREATE TABLE flights (id integer PRIMARY KEY, gate text)",
    "CREATE TABLE seats (id integer PRIMARY KEY, name text)",
    "CREATE INDEX seats_by_name ON seats (name)",
    "CREATE TABLE bags (id integer PRIMARY KEY, words text)",
    "INSERT INTO flights SELECT n, 'g' FROM generate_series(1, 20) AS s (n)",
    "INSERT INTO seats SELECT n, 'n' || n FROM generate_series(1, 300) AS s (n)",
    "UPDATE seats SET name = 'later' WHERE id IN (5, 120)",
    "INSERT INTO bags SELECT n, repeat('x', 500) FROM generate_series(1, 2000) AS s (n)",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    made = DevDatabase(tmp_path_factory.mktemp("whole"))
    made.wait_ready()
    client = SqlClient(made)
    for text in TEXTS:
        client.ask(text)
    client.session.close()
    yield made
    made.close()


@pytest.fixture
def server(database: DevDatabase) -> Iterator[SnapshotServer]:
    made = SnapshotServer(database._stores["r1"].path, token=TOKEN)
    yield made
    made.close()


def rows(path: Path) -> dict[str, int]:
    """Return how many rows each physical table of rows, entries and images has."""
    connection = connect(path, cache_mb=1, read_only=True)
    try:
        names = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB '[txh][0-9]*'"
        )
        found = [str(name) for (name,) in names]
        counted = {n: connection.execute(f"SELECT count(*) FROM {n}").get for n in sorted(found)}
        return {name: int(str(count)) for name, count in counted.items()}
    finally:
        connection.close()


def test_a_copy_has_what_is_wished_for_and_nothing_else(
    database: DevDatabase, server: SnapshotServer, tmp_path: Path
) -> None:
    whole, part = tmp_path / "a" / "store.db", tmp_path / "b" / "store.db"
    fetch_snapshot(server.url, whole, token=TOKEN)
    position = fetch_snapshot(server.url, part, token=TOKEN, wish=WISH)
    assert position.lsn == database._stores["r1"].position().lsn
    kept = rows(part)
    assert {name: count for name, count in kept.items() if name[0] == "t"} == {"t1": 20, "t2": 50}
    assert [count for name, count in kept.items() if name[0] == "x"] == [50]
    assert [count for name, count in kept.items() if name[0] == "h"] == [0, 1], "its old image"
    assert part.stat().st_size < whole.stat().st_size / 5
    assert WISH.is_met_by(stored_part(part))
    store = SqliteStore(part, cache_mb=1)
    assert store.rows_about(2) == 50
    assert store.catalog() == database._stores["r1"].catalog()
    store.close()


def test_of_a_whole_copy_the_rest_is_dropped(
    server: SnapshotServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node of an earlier release reads no wish."""
    monkeypatch.setattr(snapshot_fetch, "PART_HEADER", "X-Unheard-Of")
    path = tmp_path / "store.db"
    fetch_snapshot(server.url, path, token=TOKEN, wish=WISH)
    assert {name for name in rows(path) if name[0] == "t"} == {"t1", "t2"}
    assert [each.name for each in tmp_path.iterdir() if "part" in each.name] == []


def test_what_can_not_be_held_is_told_by_name(server: SnapshotServer, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with pytest.raises(ConfigurationError, match="'nothing', which does not exist"):
        fetch_snapshot(server.url, path, token=TOKEN, wish=PartWish.of(["nothing"]))
    wish = PartWish.of(None, {"seats": "name > 'x'"})
    with pytest.raises(ConfigurationError, match="no range of its primary key"):
        fetch_snapshot(server.url, path, token=TOKEN, wish=wish)
    assert not path.exists()


def test_of_a_part_no_copy_is_made(server: SnapshotServer, tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    fetch_snapshot(server.url, path, token=TOKEN, wish=WISH)
    with pytest.raises(ConfigurationError, match="is a partial replica's store"):
        copy_store(path, tmp_path / "copy.db")
    again = SnapshotServer(path, token=TOKEN)
    try:
        for wish in (PartWish(), PartWish.of(["flights"])):
            with pytest.raises((ConfigurationError, SnapshotUnavailable), match="partial replica"):
                fetch_snapshot(again.url, tmp_path / "c" / "store.db", token=TOKEN, wish=wish)
    finally:
        again.close()


def test_an_earlier_program_does_not_take_it_for_a_whole_store(
    server: SnapshotServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store.db"
    fetch_snapshot(server.url, path, token=TOKEN, wish=WISH)
    connection = connect(path, cache_mb=1, read_only=True)
    assert not read_part(connection).is_whole
    assert not physical_columns(connection, "t3")
    monkeypatch.setattr(layout, "PARTIAL_LAYOUT", -1)
    with pytest.raises(ConfigurationError, match="layout"):
        check_layout(connection, path)
    connection.close()
