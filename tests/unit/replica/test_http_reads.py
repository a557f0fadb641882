"""Reads and changes over HTTP: with the client of the standard library, on a real socket.

Method: a database in this process, whose node r1 has the listener's parts beside it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.http.reads_server import ReadsServer
from leasehold.adapters.os.clock import boottime_ns
from leasehold.catalog.part import PartWish
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import ConfigurationError
from leasehold.replica.http_reads import HttpReads, Node
from leasehold.replica.row_feed import QUEUED_MAX, Following, RowFeed, RowMoved
from leasehold.settings.environment import from_environment
from leasehold.settings.http_port import HttpSettings
from tests.support.replication.partial import narrow
from tests.support.sql_session.sql_client import SqlClient

TOKEN = "a token of the tests, long enough".replace(" ", "-")
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TABLES = (
    "CREATE TABLE seats (id integer PRIMARY KEY, name text, price numeric(10, 2))",
    "CREATE TABLE crews (ship text, n integer, at timestamptz, PRIMARY KEY (ship, n))",
    "INSERT INTO seats SELECT n, 'n' || n, n FROM generate_series(1, 200) AS s (n)",
    "INSERT INTO crews VALUES ('a/b c', 1, '2026-01-01T00:00:00Z')",
)


class Listener:
    """Serves one node, as `HttpListener` does."""

    def __init__(self, database: DevDatabase, name: str, role: str = "") -> None:
        store, node = database._stores[name], database.cluster.nodes[name].node
        assert node is not None
        self.lease, self.feed = node.lease, RowFeed(lambda: store.part)
        with database.held():
            node.followers = (self.feed,)
        reads = HttpReads(Node(store, self.coherent, self.feed, lambda: None), TOKEN, role)
        self.server = ReadsServer(reads.answer, host="127.0.0.1", port=0)

    def coherent(self) -> bool:
        return self.lease.holds(boottime_ns())

    def get(self, path: str, headers: dict[str, str] | None = None) -> tuple[int, Any]:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        try:
            connection.request("GET", path, headers=BEARER if headers is None else headers)
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    @contextmanager
    def stream(self, path: str, **headers: str) -> Iterator[Iterator[tuple[str, Any]]]:
        connection = HTTPConnection("127.0.0.1", self.server.port, timeout=20)
        connection.request("GET", path, headers={**BEARER, **headers})
        answer = connection.getresponse()
        assert answer.status == 200
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        try:
            yield events(answer)
        finally:
            answer.close()
            connection.close()

    def close(self) -> None:
        self.feed.close()
        self.server.close()


def events(answer: HTTPResponse) -> Iterator[tuple[str, Any]]:
    """Give (event, data), as any reader of such streams does."""
    kind = ""
    for line in answer:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name == "event":
            kind = value
        elif name == "data":
            yield kind, json.loads(value)


def until(found: Iterator[tuple[str, Any]], kind: str) -> list[tuple[str, Any]]:
    """Return events up to the first of a kind, that one included."""
    seen: list[tuple[str, Any]] = []
    for each in found:
        seen.append(each)
        if each[0] == kind:
            return seen
    raise AssertionError(f"no {kind} in {seen}")


def changes(found: Iterator[tuple[str, Any]], count: int) -> list[tuple[str, Any]]:
    """Return the next changes, without the marks between them."""
    seen: list[tuple[str, Any]] = []
    while len(seen) < count:
        kind, data = next(found)
        if kind != "at":
            seen.append((kind, data))
    return seen


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    made = DevDatabase(tmp_path_factory.mktemp("http"))
    made.wait_ready()
    for text in TABLES:
        ask(made, text)
    yield made
    made.close()


@pytest.fixture
def listener(database: DevDatabase) -> Iterator[Listener]:
    made = Listener(database, "r1")
    yield made
    made.close()


def ask(database: DevDatabase, text: str, node: str = "r1") -> list[Any]:
    client = SqlClient(database, node)
    try:
        return client.ask(text)
    finally:
        client.session.close()


def test_a_row_by_its_key(listener: Listener) -> None:
    status, told = listener.get("/v1/tables/seats/row?id=7")
    assert (status, told["row"]) == (200, {"id": 7, "name": "n7", "price": "7.00"})
    assert told["lsn"] > 0
    assert listener.get("/v1/tables/seats/row?id=9999")[0] == 404
    status, told = listener.get("/v1/tables/crews/row?ship=a%2Fb+c&n=1")
    assert (status, told["row"]["at"]) == (200, "2026-01-01T00:00:00+00:00")


def test_a_range_of_the_key(listener: Listener) -> None:
    _, told = listener.get("/v1/tables/seats/rows?from=10&below=14")
    assert [row["id"] for row in told["rows"]] == [10, 11, 12, 13]
    assert told["more"] is False
    _, told = listener.get("/v1/tables/seats/rows?limit=5")
    assert ([row["id"] for row in told["rows"]], told["more"]) == ([1, 2, 3, 4, 5], True)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/tables/nothing/row?id=1", 404, "42P01"),
        ("/v1/tables/seats/row", 400, "08P01"),
        ("/v1/tables/seats/row?id=x", 400, "08P01"),
        ("/v1/tables/seats/row?id=99999999999999999", 400, "22003"),
        ("/v1/tables/seats/rows?limit=0", 400, "08P01"),
        ("/v1/tables/seats/rows?limit=10001", 400, "08P01"),
        ("/v1/tables/seats/row?id=1&after_lsn=99999999&wait_ms=1", 503, "57P03"),
        ("/v1/tables/seats", 404, "08P01"),
        ("/", 404, "08P01"),
        ("/v1/tables/%00/row?id=1", 404, "42P01"),
    ],
)
def test_what_is_asked_wrongly_is_told_so(
    listener: Listener, path: str, status: int, code: str
) -> None:
    found, told = listener.get(path)
    assert (found, told["error"]["code"]) == (status, code)


def test_nobody_comes_without_the_token(listener: Listener) -> None:
    path = "/v1/tables/seats/row?id=7"
    for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": f"Basic {TOKEN}"}):
        assert listener.get(path, headers)[0] == 401
    assert listener.get(path, {**BEARER, "Host": "elsewhere.example"})[0] == 403
    assert listener.get(path, {**BEARER, "Origin": "http://elsewhere.example"})[0] == 403


def test_a_role_reads_what_it_may(database: DevDatabase) -> None:
    ask(database, "CREATE ROLE http_reader LOGIN")
    ask(database, "GRANT SELECT ON seats TO http_reader")
    listener = Listener(database, "r1", "http_reader")
    try:
        assert listener.get("/v1/tables/seats/row?id=7")[0] == 200
        status, told = listener.get("/v1/tables/crews/row?ship=a&n=1")
        assert (status, told["error"]["code"]) == (403, "42501")
        with listener.stream("/v1/tables/seats/changes") as found:
            until(found, "begin")
            ask(database, "REVOKE SELECT ON seats FROM http_reader")
            assert until(found, "ended")[-1][1]["code"] == "42501"
    finally:
        listener.close()


def test_it_answers_nothing_while_it_is_not_coherent(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C2: the lease is looked at before the snapshot."""
    monkeypatch.setattr(listener.lease, "holds", lambda now_ns: False)
    status, told = listener.get("/v1/tables/seats/row?id=7")
    assert (status, told["error"]["code"]) == (503, "57P03")
    assert listener.get("/v1/status")[1]["coherent"] is False


def test_changes_come_in_the_order_of_the_log(database: DevDatabase, listener: Listener) -> None:
    with listener.stream("/v1/tables/seats/changes") as found:
        begun = until(found, "begin")[-1][1]
        ask(database, "UPDATE seats SET name = 'x' WHERE id = 7")
        ask(database, "UPDATE crews SET at = now()")
        ask(database, "DELETE FROM seats WHERE id = 8")
        ask(database, "UPDATE seats SET id = 1007 WHERE id = 9")
        told = changes(found, 4)
        assert [kind for kind, _ in told] == ["row", "delete", "delete", "row"]
        assert told[0][1]["row"] == {"id": 7, "name": "x", "price": "7.00"}
        assert told[1][1]["key"] == {"id": 8}
        assert told[3][1]["key"] == {"id": 1007}
        assert begun["lsn"] < told[0][1]["lsn"] < told[1][1]["lsn"] < told[2][1]["lsn"]
        at = until(found, "at")[-1][1]
        assert at["coherent"] is True
        assert at["lsn"] >= told[3][1]["lsn"]


def test_rows_first_and_then_their_changes(database: DevDatabase, listener: Listener) -> None:
    with listener.stream("/v1/tables/seats/changes?rows=1") as found:
        seen = until(found, "rows")
        there = {data["key"]["id"]: data["row"] for kind, data in seen if kind == "row"}
        assert len(there) == ask(database, "SELECT count(*) FROM seats")[0][0]
        ask(database, "INSERT INTO seats VALUES (5000, 'new', 1)")
        (kind, data), *_ = changes(found, 1)
        assert (kind, data["row"]["name"]) == ("row", "new")


def test_what_the_rows_show_is_not_told_again(
    database: DevDatabase, listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write between the beginning of the stream and its snapshot is in the rows alone."""
    follow = listener.feed.follow

    def follow_before_a_write(table_id: int) -> Following | None:
        made = follow(table_id)
        ask(database, "UPDATE seats SET name = 'between' WHERE id = 3")
        return made

    monkeypatch.setattr(listener.feed, "follow", follow_before_a_write)
    with listener.stream("/v1/tables/seats/changes?rows=1") as found:
        seen = until(found, "rows")
        rows = {data["key"]["id"]: data["row"] for kind, data in seen if kind == "row"}
        assert rows[3]["name"] == "between"
        ask(database, "UPDATE seats SET name = 'after' WHERE id = 4")
        assert changes(found, 1)[0][1]["row"]["name"] == "after"


def test_who_comes_back_goes_on_where_nothing_has_changed(
    database: DevDatabase, listener: Listener
) -> None:
    lsn = str(listener.get("/v1/status")[1]["lsn"])
    with listener.stream("/v1/tables/seats/changes", **{"Last-Event-ID": lsn}) as found:
        assert next(found)[0] == "begin"
    ask(database, "UPDATE seats SET name = 'y' WHERE id = 1")
    with listener.stream("/v1/tables/seats/changes", **{"Last-Event-ID": lsn}) as found:
        assert next(found)[0] == "lost"


def test_schema_changes_truncation_and_the_end_of_a_table(
    database: DevDatabase, listener: Listener
) -> None:
    ask(database, "CREATE TABLE bags (id integer PRIMARY KEY)")
    with listener.stream("/v1/tables/bags/changes") as found:
        until(found, "at")
        ask(database, "ALTER TABLE bags ADD COLUMN kg integer DEFAULT 3")
        ask(database, "INSERT INTO bags VALUES (1)")
        told = changes(found, 2)
        assert [kind for kind, _ in told] == ["schema", "row"]
        assert told[0][1]["columns"] == ["id", "kg"]
        assert told[1][1]["row"] == {"id": 1, "kg": 3}
        ask(database, "TRUNCATE bags")
        assert changes(found, 1)[0][0] == "truncate"
        ask(database, "DROP TABLE bags")
        assert until(found, "ended")[-1][1]["code"] == "42P01"


def test_a_partial_replica_says_what_it_lacks(database: DevDatabase) -> None:
    narrow(database, "r2", PartWish.of(None, {"seats": "id >= 100 AND id < 150"}))
    listener = Listener(database, "r2")
    try:
        assert listener.get("/v1/tables/seats/row?id=120")[0] == 200
        for path in ("crews/row?ship=a&n=1", "seats/row?id=7", "seats/rows?from=140"):
            status, told = listener.get(f"/v1/tables/{path}")
            assert (status, told["error"]["code"]) == (421, "55000"), path
        assert listener.get("/v1/status")[1]["holds"].startswith("seats (id >= 100")
        with listener.stream("/v1/tables/seats/changes?rows=1") as found:
            rows = [data for kind, data in until(found, "rows") if kind == "row"]
            assert len(rows) == 50
            ask(database, "UPDATE seats SET name = 'outside' WHERE id = 1")
            ask(database, "UPDATE seats SET name = 'inside' WHERE id = 101")
            assert changes(found, 1)[0][1]["row"]["name"] == "inside"
    finally:
        listener.close()


def test_who_is_too_slow_has_lost_some_and_holds_nobody_up() -> None:
    slow = Following(1)
    for n in range(QUEUED_MAX + 1):
        slow.put(RowMoved(n, (n,), None, 1))
    assert slow.lost
    assert slow.take() == []
    wide = Following(1)
    for n in range(10):
        wide.put(RowMoved(n, (n,), {1: "x" * (1 << 20)}, 1))
    assert wide.lost


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"LEASEHOLD_HTTP_PORT": "8080"}, "LEASEHOLD_HTTP_TOKEN is not"),
        ({"LEASEHOLD_HTTP_PORT": "8080", "LEASEHOLD_HTTP_LISTEN": "10.0.0.1"}, "in the clear"),
        ({"LEASEHOLD_HTTP_TOKEN": "short"}, "LEASEHOLD_HTTP_TOKEN"),
        ({"LEASEHOLD_HTTP_TLS_CERT": "/c"}, "LEASEHOLD_HTTP_TLS_KEY only work together"),
    ],
)
def test_settings_that_would_let_anybody_in_are_refused(given: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        from_environment(HttpSettings, given).check()


def test_with_a_certificate_other_machines_may_come() -> None:
    given = {"LISTEN": "10.0.0.1", "TOKEN": TOKEN, "TLS_CERT": "/c", "TLS_KEY": "/k"}
    environ = {f"LEASEHOLD_HTTP_{name}": value for name, value in given.items()}
    settings = from_environment(HttpSettings, {**environ, "LEASEHOLD_HTTP_HOSTS": "r1.lan, r1"})
    settings.check()
    assert settings.names == ("r1.lan", "r1")
    with pytest.raises(ConfigurationError, match="LEASEHOLD_HTTP_TLS_CERT and"):
        settings.served.context()


def test_a_token_may_come_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    given = {"LEASEHOLD_HTTP_PORT": "1", "LEASEHOLD_HTTP_TOKEN_FILE": str(tmp_path / "token")}
    settings = from_environment(HttpSettings, given)
    settings.check()
    assert settings.token == TOKEN
