"""Goal: what users do from pages is done in their name, by our own pages alone, within limits.

Method: the application of the process on a real port, over a whole database in this process with
its SQL port; asked as browsers ask.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, web

from infra.ports import find_free_port
from leasehold.adapters.postgres.client import SqlConnection
from leasehold.admin.view import ClusterView
from leasehold.dashboard.acting import BODY_BYTES_MAX, TOKEN
from leasehold.dashboard.actions import ACTIONS
from leasehold.dashboard.application import dashboard_app
from leasehold.dashboard.password_check import PasswordCheck
from leasehold.dashboard.user_sql import (
    CONNECTIONS_MAX,
    CONNECTIONS_OF_USER_MAX,
    IDLE_S,
    ROWS_MAX,
    UserConnections,
)
from leasehold.dev.database import DevDatabase
from leasehold.pgwire.auth.scram_server import verifier_of_password
from leasehold.pgwire.messages.client_replies import Told
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import ClusterSettings
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener

ENDLESS = "select count(*) from generate_series(1, 100000000000) as g where md5(g::text) = 'x'"
STATEMENTS = (
    "create role ann login password 'pencil' in role pg_monitor",
    "create role bob login password 'pencil'",
    "create table t (id int primary key, n int)",
    "grant select, insert on t to ann",
    "insert into t values (1, 10), (2, 20)",
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    dev = DevDatabase(Path(tmp_path_factory.mktemp("acting")))
    dev.wait_ready()
    listener = SqlListener(dev.sql_node(), PgwireSettings())
    name = dev.cluster.shape.database
    with closing(SqlConnection(SqlAddress(port=listener.port), name)) as sql:
        for statement in STATEMENTS:
            assert not [s for s in sql.ask(statement) if isinstance(s, Told) and s.failed]
    listener.close()
    yield dev
    dev.close()


@pytest.fixture(scope="module")
def check(database: DevDatabase) -> Iterator[PasswordCheck]:
    users = {"root": verifier_of_password("chalk", b"salt" * 4, 4096)}
    listener = SqlListener(database.sql_node(), PgwireSettings(auth="scram-sha-256", users=users))
    yield PasswordCheck(SqlAddress(port=listener.port), database.cluster.shape.database)
    listener.close()


class Browser:
    def __init__(self, session: ClientSession, url: str) -> None:
        self.session = session
        self.url = url
        self.token = ""

    async def get(self, path: str) -> Any:
        async with self.session.get(self.url + path) as answer:
            return await answer.json()

    async def post(self, path: str, fields: Any, **headers: str) -> ClientResponse:
        own = {"Origin": self.url, "Sec-Fetch-Site": "same-origin", TOKEN: self.token}
        return await self.session.post(self.url + path, json=fields, headers={**own, **headers})

    async def sign_in(self, user: str, password: str) -> int:
        answer = await self.post("/api/sql/sign-in", {"user": user, "password": password})
        if answer.status == 200:
            self.token = (await answer.json())["token"]
        return answer.status

    async def run(self, sql: str, *, writes: bool = False) -> Any:
        answer = await self.post("/api/sql/run", {"sql": sql, "writes": writes})
        assert answer.status == 200, await answer.text()
        return await answer.json()


@asynccontextmanager
async def browsing(
    folder: Path, check: PasswordCheck | None, **settings: Any
) -> AsyncIterator[Browser]:
    own = DashboardSettings(**settings)
    port = find_free_port()
    cluster = ClusterSettings(data=folder, listen="127.0.0.1", dashboard_port=port)
    watch: Any = SimpleNamespace(view=ClusterView())
    judge: Any = None if check is None else check.judge
    connect = None if check is None else check.connect
    app = dashboard_app(ClientSettings(cluster=cluster), watch, own, judge, connect=connect)
    runner = web.AppRunner(await app.web.wsgi(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            yield Browser(session, f"http://127.0.0.1:{port}")
    finally:
        await runner.cleanup()


def run(
    story: Callable[[Browser], Awaitable[None]],
    folder: Path,
    check: PasswordCheck | None,
    **settings: Any,
) -> None:
    async def whole() -> None:
        async with browsing(folder, check, **settings) as browser:
            await story(browser)

    asyncio.run(whole())


def test_statements_run_in_the_users_name_and_read_only_unless_he_says_so(
    tmp_path: Path, check: PasswordCheck
) -> None:
    async def story(browser: Browser) -> None:
        assert (await browser.get("/api/state"))["sql"]["user"] is None
        assert (await browser.post("/api/sql/run", {"sql": "select 1"})).status == 403
        assert await browser.sign_in("ann", "wrong") == 401
        assert await browser.sign_in("ann", "pencil") == 200
        told = (await browser.get("/api/state"))["sql"]
        assert (told["user"], told["token"]) == ("ann", browser.token)
        assert told["node"]
        read = await browser.run("select current_user, n from t where id = 1; select NULL as x")
        assert [one["rows"] for one in read["results"]] == [[["ann", "10"]], [[None]]]
        assert read["results"][0]["columns"] == ["current_user", "n"]
        for statement in ("insert into t values (3, 30)", "select leasehold.submit_request('{}')"):
            refused = await browser.run(statement)
            assert refused["error"]["sqlstate"] == "25006", refused
        wrote = await browser.run("insert into t values (3, 30)", writes=True)
        assert wrote["results"][0]["tag"] == "INSERT 0 1"
        denied = await browser.run("delete from t", writes=True)
        assert denied["error"]["sqlstate"] == "42501"
        left_open = await browser.run("begin; insert into t values (4, 40)", writes=True)
        assert left_open["rolled_back"]
        assert (await browser.run("select count(*) from t where id = 4"))["results"][0]["rows"] == [
            ["0"]
        ]
        assert (await browser.post("/api/sql/sign-out", {})).status == 200
        assert (await browser.post("/api/sql/run", {"sql": "select 1"})).status == 403

    run(story, tmp_path, check)


def test_what_is_shown_has_a_limit_and_what_runs_can_be_cancelled(
    tmp_path: Path, check: PasswordCheck
) -> None:
    async def story(browser: Browser) -> None:
        assert await browser.sign_in("ann", "pencil") == 200
        many = await browser.run("select * from generate_series(1, 100000)")
        assert many["error"] is None
        assert len(many["results"][0]["rows"]) == ROWS_MAX
        assert many["results"][0]["cut"]
        wide = await browser.run("select repeat('x', 100000)")
        assert wide["results"][0]["rows"] == []
        assert wide["results"][0]["cut"]
        running = asyncio.create_task(browser.run(ENDLESS))
        while not (await browser.get("/api/state"))["sql"]["running"]:
            pass
        busy = await browser.post("/api/sql/run", {"sql": "select 1"})
        assert busy.status == 409
        while not running.done():  # one that comes before the statement does cancels nothing
            await browser.post("/api/sql/cancel", {})
        assert (await running)["error"]["sqlstate"] == "57014"
        assert (await browser.run("select 1"))["error"] is None

    run(story, tmp_path, check)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({TOKEN: ""}, 403),
        ({TOKEN: "guess"}, 403),
        ({TOKEN: "é"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
    ],
)
def test_only_our_own_page_with_its_token_acts(
    tmp_path: Path, check: PasswordCheck, headers: dict[str, str], status: int
) -> None:
    async def story(browser: Browser) -> None:
        assert await browser.sign_in("ann", "pencil") == 200
        for path in ("/api/sql/run", "/api/act"):
            answer = await browser.post(path, {"sql": "select 1", "action": "pause_job"}, **headers)
            assert answer.status == status
        assert (await browser.session.post(browser.url + "/api/act", json={})).status == 403

    run(story, tmp_path, check)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b"[" * 50_000, 400),
        (b'{"sql": "\\ud800"}', 400),
        (b'{"sql": 7}', 400),
        (b'{"sql": "select 1", "writes": "yes"}', 400),
        (b'{"sql": "\\u0000"}', 400),
        (b" " * (BODY_BYTES_MAX + 1), 413),
    ],
)
def test_what_is_no_request_is_refused_and_the_next_one_is_served(
    tmp_path: Path, check: PasswordCheck, body: bytes, status: int
) -> None:
    async def story(browser: Browser) -> None:
        assert await browser.sign_in("ann", "pencil") == 200
        headers = {"Origin": browser.url, TOKEN: browser.token, "Content-Type": "application/json"}
        for path in ("/api/sql/run", "/api/act"):
            answer = await browser.session.post(browser.url + path, data=body, headers=headers)
            assert answer.status in (status, 400), await answer.text()
        assert (await browser.run("select 1"))["error"] is None

    run(story, tmp_path, check)


def test_buttons_do_what_the_user_may(
    tmp_path: Path, check: PasswordCheck, database: DevDatabase
) -> None:
    async def story(browser: Browser) -> None:
        assert await browser.sign_in("root", "chalk") == 200
        unknown = await browser.post("/api/act", {"action": "pause_job", "job": 4711})
        assert unknown.status == 409
        assert (await unknown.json())["error"]["sqlstate"] == "42704"
        assert (await browser.post("/api/act", {"action": "nothing"})).status == 400
        for action in ACTIONS:
            sent = {"action": action, "job": 4711, "setting": "gentle", "value": 1}
            answer = await browser.post("/api/act", {**sent, "letter": 4711, "pid": 4711})
            told = await answer.json()
            met = told["error"]["sqlstate"] if "error" in told else str(told["done"])
            assert met in ("42704", "22023", "False", "02000"), (action, told)
        request = {"table": "t", "op": "insert", "values": {"id": 50, "n": 1}}
        asked = {"action": "resubmit", "letter": 0, "request": request}
        done = await browser.post("/api/act", asked)
        assert (await done.json())["done"] is True
        again = await browser.post("/api/act", asked)
        assert (await again.json())["error"]["sqlstate"] == "23505"
        assert (await browser.run("select n from t where id = 50"))["results"][0]["rows"] == [["1"]]
        assert await browser.sign_in("bob", "pencil") == 200
        denied = await browser.post(
            "/api/act", {**asked, "request": {**request, "values": {"id": 51, "n": 1}}}
        )
        assert (await denied.json())["error"]["sqlstate"] == "42501"

    run(story, tmp_path, check)


def test_where_users_log_in_each_signs_in_as_himself(tmp_path: Path, check: PasswordCheck) -> None:
    async def story(browser: Browser) -> None:
        form = {"user": "ann", "password": "pencil"}
        own = {"Origin": browser.url, "Sec-Fetch-Site": "same-origin"}

        async def log_in(user: str, password: str) -> None:
            sent = {"user": user, "password": password}
            async with browser.session.post(
                browser.url + "/log-in", data=sent, headers=own, allow_redirects=False
            ) as answer:
                assert answer.status == 303

        await log_in(**form)
        assert await browser.sign_in("root", "chalk") == 403
        assert await browser.sign_in("ann", "pencil") == 200
        assert (await browser.run("select current_user"))["results"][0]["rows"] == [["ann"]]
        await log_in("root", "chalk")
        assert (await browser.get("/api/state"))["sql"]["user"] is None, "that was another user's"
        assert (await browser.post("/api/sql/run", {"sql": "select 1"})).status == 403
        await log_in(**form)
        assert (await browser.run("select 1"))["error"] is None
        await browser.session.post(browser.url + "/log-out", headers=own, allow_redirects=False)
        await log_in(**form)
        assert (await browser.get("/api/state"))["sql"]["user"] is None, "it ended with the log-out"

    run(story, tmp_path, check, login="on")


def test_without_a_node_nobody_can_act(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        assert (await browser.get("/api/state"))["sql"]["there"] is False
        assert await browser.sign_in("ann", "pencil") == 503
        assert (await browser.post("/api/act", {})).status == 403

    run(story, tmp_path, None)


def test_connections_are_few_and_end_when_nobody_uses_them() -> None:
    now = [0.0]
    ended: list[str] = []

    def connect(user: str, password: str) -> Any:
        return SimpleNamespace(ask=lambda text: [], close=lambda: ended.append(user), cancel=None)

    connections = UserConnections(connect, lambda: now[0])
    secret, first = connections.begin("ann", "")
    assert connections.find(secret) is first
    assert connections.find("guess") is None
    assert connections.find(None) is None
    for _ in range(CONNECTIONS_OF_USER_MAX):
        connections.begin("ann", "")
    assert (connections.find(secret), ended) == (None, ["ann"])
    for number in range(2 * CONNECTIONS_MAX):
        connections.begin(f"user{number}", "")
    assert len(connections) == CONNECTIONS_MAX
    secret, last = connections.begin("bob", "")
    now[0] = IDLE_S - 1
    assert connections.find(secret) is last
    now[0] = 2 * IDLE_S - 2
    connections.end_idle()
    assert len(connections) == 1
    last.broken = True
    assert connections.find(secret) is None
    assert json.dumps(ended).count("bob") == 1
