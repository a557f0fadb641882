"""The dashboard as a Faust application: its web server and its tasks; see DESIGN.md."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import faust
from aiohttp import web
from faust.app.base import BootStrategy
from faust.web.base import BlueprintManager
from faust.web.drivers.aiohttp import Web as AiohttpWeb

from leasehold.adapters.http.hosts import is_own_host, is_own_origin
from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.os.readiness import announce_ready
from leasehold.admin.report import report
from leasehold.admin.watch import ClusterWatch
from leasehold.dashboard.login import LogIns
from leasehold.dashboard.password_check import Verdict
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.private_files import make_private_folder

PAGE: Final = Path(__file__).parent / "page"
FILES: Final[Mapping[str, str]] = {
    "page.css": "text/css",
    "page.js": "text/javascript",
}
REPORT_AT_MOST_EVERY_US: Final = 250_000
"""However many pages are open, a report is made once in this time and served to all."""
TABLES_SHOWN_MAX: Final = 200
"""More rows than that nobody reads, and a browser would be busy with drawing them."""
HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'self'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" a browser names "null" as the origin of our own forms.
    "Referrer-Policy": "same-origin",
}
LOG: Final = logging.getLogger("leasehold.dashboard")


class WithoutKafka(BootStrategy):
    """Web server, tasks and timers, but none of Faust's Kafka clients (DESIGN.md says why)."""

    enable_kafka = False


class DashboardApp(faust.App):
    BootStrategy = WithoutKafka


class Reports:
    """The newest report, at most `REPORT_AT_MOST_EVERY_US` old, computed when asked for."""

    def __init__(self, watch: ClusterWatch, database: str) -> None:
        self._watch = watch
        self._database = database
        self._made_us = 0
        self._told: dict[str, Any] = {}

    def newest(self) -> dict[str, Any]:
        now_us = unix_us()
        if not 0 <= now_us - self._made_us < REPORT_AT_MOST_EVERY_US:
            told = report(self._watch.view, now_us, tables_max=TABLES_SHOWN_MAX)
            self._told = {"database": self._database, **told}
            self._made_us = now_us
        return self._told


def answer_own_names(hosts: Collection[str]) -> Any:
    """Return a middleware that refuses whatever is asked under another name than ours, or by a page
    of another place: on every address, since a container's is published on the host's loopback."""
    names = frozenset(name.lower() for name in hosts)

    @web.middleware
    async def answer(request: web.Request, handler: Any) -> Any:
        host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        if is_own_host(host, names) and is_own_origin(origin, host, names):
            return await handler(request)
        words = "this dashboard answers its own host names only (LEASEHOLD_DASHBOARD_HOSTS)"
        return web.Response(text=words, status=403, headers=dict(HEADERS))

    return answer


def dashboard_app(
    settings: ClientSettings,
    watch: ClusterWatch,
    own: DashboardSettings,
    judge: Callable[[str, str], Verdict],
    *,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[], None] | None = None,
) -> DashboardApp:
    """Return the application with its pages: `/`, its style and script, `/api/state` (the report as
    JSON), and where a log-in is wanted its page. `judge` says whether a user's password is right;
    `tls` is what to serve with."""
    cluster = settings.cluster
    names = (cluster.advertise, *own.names)
    middlewares = [answer_own_names(names)]
    log_ins = None
    if own.wants_login(cluster.listen):
        log_ins = LogIns(
            judge,
            names=names,
            headers=HEADERS,
            session_s=60.0 * own.session_min,
            tls=own.browsers_use_tls,
        )
        middlewares.append(log_ins.middleware())
    folder = cluster.folder / "faust"
    make_private_folder(folder)  # Faust wants one, and makes only its last part
    app = DashboardApp(
        "leasehold-dashboard",
        # Named for Faust's own start-up line only: nothing connects to it.
        broker=f"kafka://{settings.kafka.bootstrap.split(',')[0]}",
        store="memory://",
        datadir=str(folder),
        web_bind=cluster.listen,
        web_host=cluster.advertise,
        web_port=cluster.dashboard_port,
        topic_disable_leader=True,
        web_ssl_context=tls,
        web_application_options={"middlewares": middlewares},
    )
    # Faust's own pages (its tables, its router) say nothing about a database of ours.
    app.web.blueprints = BlueprintManager([])
    if log_ins is not None:
        assert isinstance(app.web, AiohttpWeb), "the one that Faust has"
        log_ins.add_to(app.web.web_app)
    reports = Reports(watch, cluster.database)

    @app.page("/")
    async def index(self: Any, request: Any) -> Any:
        return self.text(_file("index.html"), content_type="text/html", headers=dict(HEADERS))

    @app.page("/page/{name}")
    async def file(self: Any, request: Any, name: str) -> Any:
        if name not in FILES:
            return self.text("there is no such page", status=404)
        return self.text(_file(name), content_type=FILES[name], headers=dict(HEADERS))

    @app.page("/api/state")
    async def state(self: Any, request: Any) -> Any:
        user = None if log_ins is None else log_ins.find_user(request)
        return self.json({"user": user, **reports.newest()}, headers=dict(HEADERS))

    @app.task(traced=False)  # type: ignore[untyped-decorator]
    async def announce() -> None:
        kind = "http" if tls is None else "https"
        LOG.info("dashboard on %s://%s:%d/", kind, cluster.advertise, cluster.dashboard_port)
        await asyncio.to_thread(announce_ready, cluster.ready_file)
        if ready is not None:
            ready()

    return app


def _file(name: str) -> str:
    return (PAGE / name).read_text(encoding="utf-8")
