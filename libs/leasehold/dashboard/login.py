"""Log-in to the dashboard: its page, sessions kept by a cookie, and what is refused without one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from html import escape
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.postgres.arrivals import origin_of
from leasehold.dashboard.password_check import Verdict
from leasehold.dashboard.sessions import Sessions
from leasehold.dashboard.views import is_view
from leasehold.pgwire.auth.failed_logins import FailedLogins
from leasehold.pgwire.wire_errors import AuthenticationRefused

LOG: Final = logging.getLogger("leasehold.dashboard")
PAGE: Final = Path(__file__).parent / "page" / "log-in.html"
LOG_IN: Final = "/log-in"
LOG_OUT: Final = "/log-out"
FORM_BYTES_MAX: Final = 8 * 1024
USER_CHARACTERS_MAX: Final = 256
PASSWORD_CHARACTERS_MAX: Final = 1024
CHECKS_AT_ONCE_MAX: Final = 4
WAITING_MAX: Final = 64
WRONG: Final = "The user or the password is wrong. After several failures wait some seconds."
MAY_NOT_READ: Final = "This role may not read here: it needs pg_read_all_stats or pg_monitor."
NOT_NOW: Final = "Log-ins can't be looked at now. The log of the dashboard says why; try again."
TOO_MANY: Final = "Too many log-ins at a time, or too many wrong ones: try again in some seconds."
_SAID: Final[Mapping[Verdict, tuple[int, str]]] = {
    Verdict.WRONG: (401, WRONG),
    Verdict.MAY_NOT_READ: (403, MAY_NOT_READ),
    Verdict.UNKNOWN: (503, NOT_NOW),
}


def _now_s() -> float:
    return boottime_ns() / 1e9


class LogIns:
    """Knows who may read. Used on the web server's loop; `judge` is called in threads of its
    own."""

    def __init__(
        self,
        judge: Callable[[str, str], Verdict],
        *,
        headers: Mapping[str, str],
        session_s: float,
        tls: bool,
        now_s: Callable[[], float] = _now_s,
    ) -> None:
        """Begin with nobody logged in. `tls` is whether browsers speak it."""
        self._judge = judge
        self._open_paths: frozenset[str] = frozenset((LOG_IN, LOG_OUT))
        self._forget: Callable[[web.Request], None] = lambda request: None
        self._headers = headers
        self._session_s = session_s
        self._tls = tls
        self._sessions = Sessions(session_s, now_s)
        self._failed = FailedLogins(now_s)
        self._waiting = 0
        self._checks = asyncio.Semaphore(CHECKS_AT_ONCE_MAX)
        # With this prefix no other host of the same domain can set it.
        self._cookie = "__Host-leasehold" if tls else "leasehold"

    def add_to(
        self,
        app: web.Application,
        open_paths: Collection[str] = (),
        forget: Callable[[web.Request], None] = lambda request: None,
    ) -> None:
        """Add the page. `open_paths` hold nothing of the database: the views themselves. `forget`
        is called as somebody logs out."""
        self._open_paths = frozenset((*open_paths, LOG_IN, LOG_OUT))
        self._forget = forget
        app.router.add_get(LOG_IN, self._show)
        app.router.add_post(LOG_IN, self._log_in)
        app.router.add_post(LOG_OUT, self._log_out)

    def find_user(self, request: web.Request) -> str | None:
        secret = request.cookies.get(self._cookie)
        return None if secret is None else self._sessions.find_user(secret)

    def middleware(self) -> Any:
        """Return a middleware that lets only those who have logged in see what is no open page."""

        @web.middleware
        async def guard(request: web.Request, handler: Any) -> Any:
            is_open = request.path in self._open_paths or is_view(request.path)
            if not is_open and self.find_user(request) is None:
                words = "log in first"
                return web.Response(text=words, status=401, headers=dict(self._headers))
            return await handler(request)

        return guard

    async def _show(self, request: web.Request) -> web.Response:
        return self._make_page(200, "")

    def _make_page(self, status: int, words: str) -> web.Response:
        text = PAGE.read_text(encoding="utf-8").replace("<!-- said -->", escape(words, quote=False))
        return web.Response(
            text=text, status=status, content_type="text/html", headers=dict(self._headers)
        )

    async def _log_in(self, request: web.Request) -> web.Response:
        user, password = await _read_form(request)
        fits = len(user) <= USER_CHARACTERS_MAX and len(password) <= PASSWORD_CHARACTERS_MAX
        if not user or not password or not fits or "\0" in user + password:
            return self._make_page(401, WRONG)
        if self._waiting >= WAITING_MAX:
            return self._make_page(503, TOO_MANY)
        self._waiting += 1
        try:
            verdict = await self._look_at(user, password, origin_of(_address(request)))
        except AuthenticationRefused:
            return self._make_page(503, TOO_MANY)
        finally:
            self._waiting -= 1
        if verdict is not Verdict.MAY_READ:
            return self._make_page(*_SAID[verdict])
        LOG.info("%r has logged in from %s", user, request.remote)
        answer = web.Response(status=303, headers={**self._headers, "Location": "/"})
        answer.set_cookie(
            self._cookie,
            self._sessions.begin(user),
            max_age=int(self._session_s),
            path="/",
            secure=self._tls,
            httponly=True,
            samesite="Strict",
        )
        return answer

    async def _look_at(self, user: str, password: str, origin: int) -> Verdict:
        """Raises AuthenticationRefused for one who has failed too often just before."""
        wait_s = self._failed.claim(user, origin)
        # Until it is known to be right it counts as wrong: who tries many at once waits as well.
        self._failed.settle(user, origin, right=False)
        await asyncio.sleep(wait_s)
        async with self._checks:
            verdict = await asyncio.to_thread(self._judge, user, password)
        if verdict in (Verdict.MAY_READ, Verdict.MAY_NOT_READ):
            self._failed.settle(user, origin, right=True)
        return verdict

    async def _log_out(self, request: web.Request) -> web.Response:
        secret = request.cookies.get(self._cookie)
        if secret is not None:
            self._sessions.end(secret)
        await asyncio.to_thread(self._forget, request)
        answer = web.Response(status=303, headers={**self._headers, "Location": LOG_IN})
        answer.del_cookie(
            self._cookie, path="/", secure=self._tls, httponly=True, samesite="Strict"
        )
        return answer


async def _read_form(request: web.Request) -> tuple[str, str]:
    """Return user and password, "" for what is not in it. Raises HTTPException for what is no
    form, or too long."""
    if request.content_type != "application/x-www-form-urlencoded":
        raise web.HTTPUnsupportedMediaType(text="a form is expected")
    if request.content_length is None or request.content_length > FORM_BYTES_MAX:
        raise web.HTTPRequestEntityTooLarge(
            max_size=FORM_BYTES_MAX, actual_size=request.content_length or 0
        )
    try:
        form = await request.post()
    except (ValueError, LookupError):  # no UTF-8, or a character set that there is none of
        raise web.HTTPBadRequest(text="the form can't be read") from None
    return str(form.get("user", "")), str(form.get("password", ""))


def _address(request: web.Request) -> IPv4Address | IPv6Address:
    return ip_address((request.remote or "0.0.0.0").partition("%")[0])  # noqa: S104 - compared only
