"""What users do from the dashboard's pages: sign in for it, run SQL, press buttons. Each request
carries the token of the user's connection, which only our own pages get to read."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, Final

from aiohttp import web

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.postgres.arrivals import origin_of
from leasehold.adapters.postgres.client import SqlConnection
from leasehold.dashboard.actions import make_statement
from leasehold.dashboard.own_pages import HEADERS
from leasehold.dashboard.user_sql import (
    CONNECTIONS_MAX,
    STATEMENT_CHARACTERS_MAX,
    AlreadyRunning,
    UserConnection,
    UserConnections,
)
from leasehold.model.errors import LeaseholdError, MalformedRequest
from leasehold.pgwire.auth.failed_logins import FailedLogins
from leasehold.pgwire.wire_errors import AuthenticationRefused

LOG: Final = logging.getLogger("leasehold.dashboard")
BODY_BYTES_MAX: Final = 60_000
USER_CHARACTERS_MAX: Final = 256
PASSWORD_CHARACTERS_MAX: Final = 1024
SIGN_INS_AT_ONCE_MAX: Final = 4
WAITING_MAX: Final = 64
TOKEN: Final = "X-Leasehold-Token"  # noqa: S105 - a header's name
TOO_MANY: Final = "Too many sign-ins at a time, or too many wrong ones: try again in some seconds."
SIGN_IN_FIRST: Final = "sign in first: your connection to SQL has ended, or there was none"
_REFUSES_USER: Final = ("28P01", "28000")


class Refusal(Exception):
    """What a page is told of a request that is not done."""

    def __init__(self, status: int, message: str, sqlstate: str = "") -> None:
        super().__init__(message)
        self.status, self.message, self.sqlstate = status, message, sqlstate


class Acting:
    """Knows who has signed in for SQL. Used on the web server's loop; SQL is run in threads."""

    def __init__(
        self,
        connect: Callable[[str, str], SqlConnection] | None,
        *,
        default_user: str,
        find_user: Callable[[web.Request], str | None] | None,
        tls: bool,
    ) -> None:
        """Begin with nobody signed in. `connect`: opens a user's connection, None = there is no
        node to ask. `find_user`: says who has logged in; None where nobody has to."""
        self._connections = None if connect is None else UserConnections(connect, _now_s)
        self._default_user = default_user
        self._find_user = find_user
        self._tls = tls
        self._failed = FailedLogins(_now_s)
        self._sign_ins = asyncio.Semaphore(SIGN_INS_AT_ONCE_MAX)
        self._waiting = 0
        self._cookie = "__Host-leasehold-sql" if tls else "leasehold-sql"
        # Of their own: statements of a minute would hold up all else that waits for a thread.
        self._threads = ThreadPoolExecutor(CONNECTIONS_MAX, "leasehold-user-sql")

    def add_to(self, app: web.Application) -> None:
        for path, handle in (
            ("/api/sql/sign-in", self._sign_in),
            ("/api/sql/sign-out", self._sign_out),
            ("/api/sql/run", self._run),
            ("/api/sql/cancel", self._cancel),
            ("/api/act", self._act),
        ):
            app.router.add_post(path, answering(handle))

    def find(self, request: web.Request) -> UserConnection | None:
        """Return the connection of who asks, if he has one; that of another one who was logged in
        here before him is not his."""
        if self._connections is None:
            return None
        found = self._connections.find(request.cookies.get(self._cookie))
        if found is not None and self._find_user is not None:
            return found if found.user == self._find_user(request) else None
        return found

    def report(self, request: web.Request) -> dict[str, Any]:
        """Return what a page has to know to offer what there is."""
        found = self.find(request)
        return {
            "there": self._connections is not None,
            "user": None if found is None else found.user,
            "node": None if found is None else found.node,
            "token": None if found is None else found.token,
            "running": found is not None and found.is_running,
            "default_user": self._default_user,
        }

    def forget(self, request: web.Request) -> None:
        """Close the connection of who asks, as he logs out."""
        secret = request.cookies.get(self._cookie)
        if self._connections is not None and secret is not None:
            self._connections.end(secret)

    def end_idle(self) -> None:
        if self._connections is not None:
            self._connections.end_idle()

    def close(self) -> None:
        if self._connections is not None:
            self._connections.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(
        self,
        connection: UserConnection,
        text: str,
        *,
        writes: bool = False,
        parameters: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return what came of a text, as `UserConnection.run` does. Raises Refusal."""
        began_ns = boottime_ns()
        run = partial(connection.run, text, writes=writes, parameters=parameters)
        try:
            told = await asyncio.get_running_loop().run_in_executor(self._threads, run)
        except AlreadyRunning as error:
            raise Refusal(409, error.message, error.sqlstate) from None
        except LeaseholdError as error:
            raise Refusal(502, f"{error.message}. Sign in again.", error.sqlstate) from None
        return {**told, "took_ms": (boottime_ns() - began_ns) // 1_000_000}

    # ------------------------------------------------------------ signing in

    async def _sign_in(self, request: web.Request) -> web.Response:
        asked = await read_object(request)
        user = asked.get("user") or self._default_user
        password = asked.get("password") or ""
        if not isinstance(user, str) or not isinstance(password, str) or "\0" in user + password:
            raise Refusal(400, "user and password are texts")
        if len(user) > USER_CHARACTERS_MAX or len(password) > PASSWORD_CHARACTERS_MAX:
            raise Refusal(400, "the user or the password is too long")
        if self._find_user is not None and user != self._find_user(request):
            raise Refusal(403, "sign in as the user that you have logged in as")
        if self._connections is None:
            raise Refusal(503, "no SQL node is named: set LEASEHOLD_SQL_HOST, LEASEHOLD_SQL_PORT")
        if self._waiting >= WAITING_MAX:
            raise Refusal(503, TOO_MANY)
        self._waiting += 1
        try:
            secret, made = await self._connect(user, password, origin_of(_address(request)))
        finally:
            self._waiting -= 1
        LOG.info("%r has signed in for SQL from %s", user, request.remote)
        answer = make_json({"user": made.user, "token": made.token})
        answer.set_cookie(
            self._cookie, secret, path="/", secure=self._tls, httponly=True, samesite="Strict"
        )
        return answer

    async def _connect(self, user: str, password: str, origin: int) -> tuple[str, UserConnection]:
        assert self._connections is not None
        try:
            wait_s = self._failed.claim(user, origin)
        except AuthenticationRefused:
            raise Refusal(503, TOO_MANY) from None
        # Until it is known to be right it counts as wrong: who tries many at once waits as well.
        self._failed.settle(user, origin, right=False)
        await asyncio.sleep(wait_s)
        try:
            async with self._sign_ins:
                made = await asyncio.to_thread(self._connections.begin, user, password)
        except LeaseholdError as error:
            if error.sqlstate in _REFUSES_USER:
                raise Refusal(401, "The user or the password is wrong.", error.sqlstate) from None
            raise Refusal(503, error.message, error.sqlstate) from None
        self._failed.settle(user, origin, right=True)
        return made

    async def _sign_out(self, request: web.Request) -> web.Response:
        self._find_with_token(request)
        self.forget(request)
        answer = make_json({})
        answer.del_cookie(
            self._cookie, path="/", secure=self._tls, httponly=True, samesite="Strict"
        )
        return answer

    def _find_with_token(self, request: web.Request) -> UserConnection:
        found = self.find(request)
        if found is None:
            raise Refusal(403, SIGN_IN_FIRST)
        if not secrets.compare_digest(
            request.headers.get(TOKEN, "").encode(), found.token.encode()
        ):
            raise Refusal(403, f"the header {TOKEN} is not that of this connection")
        return found

    # ------------------------------------------------------------ doing

    async def _run(self, request: web.Request) -> web.Response:
        connection = self._find_with_token(request)
        asked = await read_object(request)
        text, writes = asked.get("sql"), asked.get("writes", False)
        if not isinstance(text, str) or not isinstance(writes, bool):
            raise Refusal(400, "sql is a text, writes true or false")
        if len(text) > STATEMENT_CHARACTERS_MAX:
            raise Refusal(413, f"the text has more than {STATEMENT_CHARACTERS_MAX} characters")
        if "\0" in text:
            raise Refusal(400, "the text holds a zero character")
        return make_json(await self.run(connection, text, writes=writes))

    async def _cancel(self, request: web.Request) -> web.Response:
        connection = self._find_with_token(request)
        return make_json({"cancelled": await asyncio.to_thread(connection.cancel)})

    async def _act(self, request: web.Request) -> web.Response:
        connection = self._find_with_token(request)
        asked = await read_object(request)
        try:
            statement = make_statement(asked)
        except MalformedRequest as error:
            raise Refusal(400, error.message, error.sqlstate) from None
        told = await self.run(
            connection, statement.text, writes=True, parameters=statement.parameters
        )
        refused = told["error"]
        if refused is not None:
            raise Refusal(409, refused.get("message", ""), refused.get("sqlstate", ""))
        done = told["results"][0]["rows"][0][0] if told["results"] else None
        LOG.info("%r has done: %s", connection.user, statement.words)
        return make_json({"done": done == "t", "statement": statement.words})


def answering(handle: Any) -> Any:
    """Return a handler that answers refusals as JSON."""

    async def answer(request: web.Request) -> web.Response:
        try:
            made: web.Response = await handle(request)
            return made
        except Refusal as refusal:
            told = {"message": refusal.message, "sqlstate": refusal.sqlstate}
            return make_json({"error": told}, status=refusal.status)

    return answer


def make_json(told: Any, status: int = 200) -> web.Response:
    """Return an answer of JSON, with the headers of all."""
    text = json.dumps(told, ensure_ascii=False)
    return web.Response(
        text=text, status=status, content_type="application/json", headers=dict(HEADERS)
    )


async def read_object(request: web.Request) -> dict[str, Any]:
    """Return the object that was sent. Raises Refusal for what is none, or too long."""
    if request.content_type != "application/json":
        raise Refusal(415, "JSON is expected")
    if request.content_length is None or request.content_length > BODY_BYTES_MAX:
        raise Refusal(413, f"at most {BODY_BYTES_MAX} bytes are taken here")
    try:
        told = json.loads(await request.read())
        json.dumps(told, ensure_ascii=False).encode()  # else half a character is in it
    except (ValueError, RecursionError):
        raise Refusal(400, "it is no JSON") from None
    if not isinstance(told, dict):
        raise Refusal(400, "an object with fields is expected")
    return told


def _now_s() -> float:
    return boottime_ns() / 1e9


def _address(request: web.Request) -> IPv4Address | IPv6Address:
    return ip_address((request.remote or "0.0.0.0").partition("%")[0])  # noqa: S104 - compared only
