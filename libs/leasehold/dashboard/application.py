"""The dashboard as a Faust application: its web server and its tasks; see DESIGN.md."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

import faust
from faust.app.base import BootStrategy
from faust.web.base import BlueprintManager
from faust.web.drivers.aiohttp import Web as AiohttpWeb

from leasehold.adapters.os.readiness import announce_ready
from leasehold.adapters.postgres.client import SqlConnection
from leasehold.dashboard.acting import Acting
from leasehold.dashboard.login import LogIns
from leasehold.dashboard.own_pages import HEADERS, answer_own_names
from leasehold.dashboard.password_check import Verdict
from leasehold.dashboard.reading import Activity, Reading, Watched
from leasehold.dashboard.views import add_views
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.private_files import make_private_folder

DEFAULT_USER: Final = "leasehold"
IDLE_LOOK_S: Final = 30.0
LOG: Final = logging.getLogger("leasehold.dashboard")


class WithoutKafka(BootStrategy):
    """Web server, tasks and timers, but none of Faust's Kafka clients (DESIGN.md says why)."""

    enable_kafka = False


class DashboardApp(faust.App):
    BootStrategy = WithoutKafka


def dashboard_app(
    settings: ClientSettings,
    watch: Watched,
    own: DashboardSettings,
    judge: Callable[[str, str], Verdict],
    *,
    tls: ssl.SSLContext | None = None,
    ready: Callable[[], None] | None = None,
    activity: Activity | None = None,
    connect: Callable[[str, str], SqlConnection] | None = None,
    default_user: str = DEFAULT_USER,
) -> DashboardApp:
    """Return the application with its views and what they ask (`reading.py`, `acting.py`), and
    where a log-in is wanted its page. `judge` says whether a user's password is right; `tls` is
    what to serve with; `activity` is what is counted, None = nothing; `connect` opens a user's
    connection to SQL, None = there is no node to ask, so that nobody can do anything."""
    cluster = settings.cluster
    names = (cluster.advertise, *own.names)
    middlewares = [answer_own_names(names)]
    log_ins = None
    if own.wants_login(cluster.listen):
        log_ins = LogIns(
            judge,
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
    assert isinstance(app.web, AiohttpWeb), "the one that Faust has"
    server = app.web.web_app
    find_user = None if log_ins is None else log_ins.find_user
    acting = Acting(
        connect, default_user=default_user, find_user=find_user, tls=own.browsers_use_tls
    )
    reading = Reading(settings, watch, activity, acting, find_user)
    open_paths = add_views(server)
    reading.add_to(server)
    acting.add_to(server)
    if log_ins is not None:
        log_ins.add_to(server, open_paths, acting.forget)

    async def close(_app: Any) -> None:
        await asyncio.to_thread(acting.close)

    server.on_cleanup.append(close)

    @app.task(traced=False)  # type: ignore[untyped-decorator]
    async def announce() -> None:
        kind = "http" if tls is None else "https"
        LOG.info("dashboard on %s://%s:%d/", kind, cluster.advertise, cluster.dashboard_port)
        await asyncio.to_thread(announce_ready, cluster.ready_file)
        if ready is not None:
            ready()

    @app.timer(IDLE_LOOK_S, traced=False)  # type: ignore[untyped-decorator]
    async def end_idle() -> None:
        await asyncio.to_thread(acting.end_idle)

    return app
