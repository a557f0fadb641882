"""Goal: beyond loopback only who may read reaches what the dashboard shows, by a session that no
other page and no guess gets hold of.

Method: the application of the process on a real port, asked as browsers ask; the node that judges
passwords is a function here (test_password_check.py has a real one).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from aiohttp import ClientResponse, ClientSession, CookieJar, TCPConnector, web

from infra.ports import find_free_port
from leasehold.admin.view import ClusterView
from leasehold.dashboard.application import dashboard_app
from leasehold.dashboard.login import MAY_NOT_READ, NOT_NOW, TOO_MANY, WRONG, LogIns
from leasehold.dashboard.own_pages import HEADERS
from leasehold.dashboard.password_check import Verdict
from leasehold.dashboard.sessions import LOGGED_IN_MAX, LOGGED_IN_OF_USER_MAX, Sessions
from leasehold.model.errors import ConfigurationError
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import ClusterSettings
from leasehold.settings.sql_address import SqlAddress
from tests.support.pgwire.certificates import make_certificate

ANN: Final = {"user": "ann", "password": "pencil"}
STATE: Final = "/api/state"


def judge(user: str, password: str) -> Verdict:
    if user == "away":
        return Verdict.UNKNOWN
    if password != "pencil":
        return Verdict.WRONG
    return Verdict.MAY_NOT_READ if user == "bob" else Verdict.MAY_READ


class Browser:
    def __init__(self, session: ClientSession, url: str) -> None:
        self.session = session
        self.url = url

    async def get(self, path: str, **headers: str) -> ClientResponse:
        return await self.session.get(self.url + path, headers=headers, allow_redirects=False)

    async def post(
        self, path: str, form: dict[str, str] | bytes, headers: dict[str, str] | None = None
    ) -> ClientResponse:
        """Send a form as a page of the dashboard does, or with other headers."""
        own = {"Origin": self.url, "Sec-Fetch-Site": "same-origin"}
        sent = own if headers is None else headers
        return await self.session.post(
            self.url + path, data=form, headers=sent, allow_redirects=False
        )


@asynccontextmanager
async def browsing(
    folder: Path, listen: str = "0.0.0.0", **settings: Any
) -> AsyncIterator[Browser]:
    own = DashboardSettings(**settings)
    port = find_free_port()
    cluster = ClusterSettings(data=folder, listen=listen, dashboard_port=port)
    watch: Any = SimpleNamespace(view=ClusterView())
    tls = own.served.context()
    app = dashboard_app(ClientSettings(cluster=cluster), watch, own, judge, tls=tls)
    runner = web.AppRunner(await app.web.wsgi(), access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port, ssl_context=app.conf.web_ssl_context).start()
    scheme = "http" if own.tls_cert is None else "https"
    trusted = ssl.create_default_context(cafile=own.tls_cert)
    try:
        connector = TCPConnector(ssl=trusted)
        jar = CookieJar(unsafe=True)  # it is an address that is asked
        async with ClientSession(connector=connector, cookie_jar=jar) as session:
            yield Browser(session, f"{scheme}://127.0.0.1:{port}")
    finally:
        await runner.cleanup()


def run(story: Callable[[Browser], Awaitable[None]], folder: Path, **settings: Any) -> None:
    async def whole() -> None:
        async with browsing(folder, **settings) as browser:
            await story(browser)

    asyncio.run(whole())


def test_beyond_loopback_nothing_is_told_before_log_in_and_after_log_out(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        for path in (STATE, "/metrics", "/page/none"):
            assert (await browser.get(path)).status == 401
        forged = await browser.get(STATE, Cookie="leasehold=AAAA")
        assert forged.status == 401
        page = await browser.get("/log-in")
        assert page.status == 200
        assert 'action="/log-in"' in await page.text()
        assert page.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]
        assert (await browser.get("/")).status == 200, "the page is there, and holds no data"

        let_in = await browser.post("/log-in", ANN)
        assert (let_in.status, let_in.headers["Location"]) == (303, "/")
        cookie = let_in.cookies["leasehold"]
        assert cookie["httponly"]
        assert cookie["samesite"] == "Strict"
        assert cookie["max-age"] == "3600"
        state = await browser.get(STATE)
        assert state.status == 200
        assert (await state.json())["user"] == "ann"

        left = await browser.post("/log-out", {})
        assert (left.status, left.headers["Location"]) == (303, "/log-in")
        stolen = await browser.get(STATE, Cookie=f"leasehold={cookie.value}")
        assert stolen.status == 401, "the session ended on the server, too"

    run(story, tmp_path)


def test_on_loopback_nobody_is_asked_unless_it_is_wished(tmp_path: Path) -> None:
    async def open_to_all(browser: Browser) -> None:
        state = await browser.get(STATE)
        assert (await state.json())["user"] is None
        assert (await browser.get("/log-in")).status == 404

    async def asked(browser: Browser) -> None:
        assert (await browser.get(STATE)).status == 401

    run(open_to_all, tmp_path, listen="127.0.0.1")
    run(asked, tmp_path, listen="127.0.0.1", login="on")


def test_who_is_refused_learns_nothing_of_users(tmp_path: Path) -> None:
    async def story(browser: Browser) -> None:
        told = []
        for user, password in (("ann", "wrong"), ("nobody", "wrong"), ("x" * 300, "pencil")):
            answer = await browser.post("/log-in", {"user": user, "password": password})
            told.append((answer.status, await answer.text(), dict(answer.cookies)))
        assert told[0] == told[1] == told[2]
        assert told[0][0] == 401
        assert WRONG in told[0][1]
        for user, status, words in (("bob", 403, MAY_NOT_READ), ("away", 503, NOT_NOW)):
            answer = await browser.post("/log-in", {"user": user, "password": "pencil"})
            assert answer.status == status
            assert words in await answer.text()
        assert (await browser.get(STATE)).status == 401

    run(story, tmp_path)


@pytest.mark.parametrize(
    "headers",
    [
        {},  # no browser says nothing
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "own", "Sec-Fetch-Site": "same-site"},
        {"Origin": "own", "Host": "rebound.evil.example"},
    ],
)
def test_forms_of_other_pages_are_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async def story(browser: Browser) -> None:
        sent = {name: browser.url if text == "own" else text for name, text in headers.items()}
        for path in ("/log-in", "/log-out", STATE):
            answer = await browser.post(path, ANN, sent)
            assert answer.status == 403
            assert not answer.cookies

    run(story, tmp_path)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"user=ann", "application/x-www-form-urlencoded", 401),
        (b"user=ann%00&password=pencil", "application/x-www-form-urlencoded", 401),
        (b"user=\xff\xfe&password=pencil", "application/x-www-form-urlencoded", 400),
        (b"user=a&password=b", "application/x-www-form-urlencoded; charset=nonsense", 400),
        (b"user=" + b"a" * 9000, "application/x-www-form-urlencoded", 413),
        (b'{"user": "ann", "password": "pencil"}', "application/json", 415),
        (b"user=ann&password=pencil", "text/plain", 415),
    ],
)
def test_what_is_no_form_of_ours_is_refused(
    tmp_path: Path, body: bytes, kind: str, status: int
) -> None:
    async def story(browser: Browser) -> None:
        headers = {"Origin": browser.url, "Content-Type": kind}
        assert (await browser.post("/log-in", body, headers)).status == status

    run(story, tmp_path)


def test_under_tls_the_cookie_is_for_this_host_and_tls_alone(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "dashboard")

    async def story(browser: Browser) -> None:
        cookie = (await browser.post("/log-in", ANN)).cookies["__Host-leasehold"]
        assert cookie["secure"]
        assert cookie["path"] == "/"
        assert not cookie["domain"]
        assert (await browser.get(STATE)).status == 200

    run(story, tmp_path, tls_cert=made.cert, tls_key=made.key)


def test_guesses_wait_however_many_come_at_a_time() -> None:
    """Time is given in, and stands still: beyond the free ones each has to wait, and most are
    refused at once."""
    judged = []

    def wrong(user: str, password: str) -> Verdict:
        judged.append(password)
        return Verdict.WRONG

    async def story() -> None:
        logins = LogIns(wrong, headers={}, session_s=60.0, tls=False, now_s=lambda: 1000.0)
        app = web.Application(middlewares=[logins.middleware()])
        logins.add_to(app)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        port = find_free_port()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        try:
            async with ClientSession() as session:
                browser = Browser(session, f"http://127.0.0.1:{port}")
                answers = await asyncio.gather(
                    *(
                        browser.post("/log-in", {"user": "ann", "password": str(number)})
                        for number in range(40)
                    )
                )
                statuses = [answer.status for answer in answers]
                assert statuses.count(503) > 30
                assert TOO_MANY in await answers[statuses.index(503)].text()
                assert len(judged) == statuses.count(401) < 10
                other = await browser.post("/log-in", {"user": "bob", "password": "x"})
                assert other.status == 401, "another user waits for nobody"
        finally:
            await runner.cleanup()

    asyncio.run(story())


def test_sessions_end_and_are_bounded() -> None:
    now = [0.0]
    sessions = Sessions(60.0, lambda: now[0])
    first = sessions.begin("ann")
    others = [sessions.begin("ann") for _ in range(LOGGED_IN_OF_USER_MAX)]
    assert sessions.find_user(first) is None, "the oldest of a user gives way"
    assert {sessions.find_user(each) for each in others} == {"ann"}
    for number in range(2 * LOGGED_IN_MAX):
        sessions.begin(f"user{number}")
    assert len(sessions) == LOGGED_IN_MAX
    last = sessions.begin("bob")
    now[0] = 59.9
    assert sessions.find_user(last) == "bob"
    now[0] = 60.0
    assert sessions.find_user(last) is None
    sessions.begin("cid")
    assert len(sessions) == 1, "what has ended is forgotten"


@pytest.mark.parametrize(
    ("settings", "port", "words"),
    [
        ({}, 0, "LEASEHOLD_SQL_PORT"),
        ({"login": "on"}, 0, "LEASEHOLD_DASHBOARD_LOGIN=off"),
        ({}, 54331, "LEASEHOLD_DASHBOARD_TLS_CERT"),
        ({"tls": "proxy"}, 54331, None),
        ({"tls": "off"}, 54331, None),
        ({"tls_cert": Path("c"), "tls_key": Path("k")}, 54331, None),
        ({"login": "off"}, 0, None),
    ],
)
def test_beyond_loopback_it_starts_only_if_somebody_can_be_asked(
    settings: dict[str, Any], port: int, words: str | None
) -> None:
    own, sql = DashboardSettings(**settings), SqlAddress(port=port)
    own.check_served_on("127.0.0.1", sql)
    own.check_served_on("::1", sql)
    for listen in ("0.0.0.0", "::", "192.0.2.1"):
        if words is None:
            own.check_served_on(listen, sql)
        else:
            with pytest.raises(ConfigurationError, match=words):
                own.check_served_on(listen, sql)


def test_files_of_a_certificate_that_cant_be_used_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_DASHBOARD_TLS_KEY only work together"):
        DashboardSettings(tls_cert=tmp_path / "c")
    own = DashboardSettings(tls_cert=tmp_path / "c", tls_key=tmp_path / "k")
    for read in (own.served.context, own.served.digest):
        with pytest.raises(ConfigurationError, match="can't be used: No such file"):
            read()
