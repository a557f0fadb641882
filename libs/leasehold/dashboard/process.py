"""The dashboard as a process: wires settings, the watch and the Faust application; decides
nothing."""

from __future__ import annotations

import logging
import signal
from asyncio import AbstractEventLoop
from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from threading import Event as Flag
from typing import Final

from leasehold.adapters.http.renewed_tls import RenewedTls
from leasehold.adapters.kafka.process_reports import ProcessReports
from leasehold.adapters.metrics.health import Health
from leasehold.adapters.metrics.server import serve_metrics
from leasehold.adapters.service_process import Environment, run_service
from leasehold.admin.budget_watch import BudgetWatch
from leasehold.admin.watch import ClusterWatch
from leasehold.admin.watch_samples import watch_samples
from leasehold.dashboard.activity.counting import ActivityCounting
from leasehold.dashboard.activity.history import ActivityHistory, Series
from leasehold.dashboard.password_check import PasswordCheck
from leasehold.model.errors import LeaseholdError
from leasehold.model.topics import Topics
from leasehold.settings.client import ClientSettings
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.environment import ClusterSettings
from leasehold.settings.extras import need_extra
from leasehold.settings.private_files import make_private_folder
from leasehold.settings.setting import from_environment
from leasehold.settings.sql_address import SqlAddress

TURN_S: Final = 1.0
PATIENCE_S: Final = 60.0
LOG: Final = logging.getLogger("leasehold.dashboard")


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    client: ClientSettings
    own: DashboardSettings
    sql: SqlAddress
    topics: Topics

    @classmethod
    def read(cls, environ: Environment) -> ProcessSettings:
        """Raises ConfigurationError."""
        need_extra("dashboard", "the dashboard", "faust", "aiokafka")
        client = ClientSettings.read(environ)
        own = from_environment(DashboardSettings, environ)
        sql = from_environment(SqlAddress, environ)
        own.check_served_on(client.cluster.listen, sql)
        if own.wants_login(client.cluster.listen):
            sql.tls_context()
        return cls(client, own, sql, client.topics)

    @property
    def cluster(self) -> ClusterSettings:
        return self.client.cluster

    @property
    def groups(self) -> Sequence[object]:
        return self.client.kafka, self.client.redis, self.client.cluster, self.own, self.sql


class Activities:
    """What is counted, by this dashboard or another one, as far as it was read here."""

    def __init__(self, history: ActivityHistory, counting: ActivityCounting) -> None:
        self._history, self._counting = history, counting

    @property
    def series(self) -> Series:
        return self._history.series

    @property
    def trouble(self) -> str:
        return self._history.trouble or self._counting.trouble


def run_dashboard() -> int:
    """Serve the page until SIGTERM or SIGINT; return the exit code, as `run_service` says it."""
    return run_service(LOG.name, ProcessSettings.read, _show)


def _show(settings: ProcessSettings, stop: Flag) -> None:
    """Serve the page until SIGTERM or SIGINT, which Faust handles by itself."""
    # Until Faust has its handlers in place either ends the process as it does without one: set by
    # a signal of just then the flag would be looked at by nobody.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if stop.is_set():
        return
    from faust import Worker  # an extra, as what the application imports

    from leasehold.dashboard.application import dashboard_app

    LOG.info("watching %s and its neighbours", settings.topics.log.name)
    check = PasswordCheck(settings.sql, settings.cluster.database)
    folder = settings.cluster.folder / "activity"
    make_private_folder(folder)
    with (
        serve_metrics(settings.cluster) as exposition,
        closing(RenewedTls(settings.own.served, settings.own.served.context())) as renewed,
        ProcessReports(settings.client.kafka, settings.topics, "dashboard"),
        ClusterWatch(settings.client) as watch,
        ActivityHistory(settings.client.kafka, settings.topics) as history,
        ActivityCounting(settings.client.kafka, settings.topics, folder) as counting,
        ExitStack() as made,
    ):
        health = exposition.health
        exposition.add("watch", partial(watch_samples, watch))
        if settings.cluster.metrics_port is not None:
            budgets = made.enter_context(BudgetWatch(settings.client))
            exposition.add("budgets", budgets.samples)
        worker = Worker(
            dashboard_app(
                settings.client,
                watch,
                settings.own,
                check.judge,
                ready=partial(health.ready_when, lambda: ""),
                tls=renewed.context,
                activity=Activities(history, counting),
                connect=check.connect if settings.sql.port else None,
                default_user=settings.sql.user,
            ),
            loglevel=None,
            quiet=True,
            redirect_stdouts=False,
            override_logging=False,
        )
        health.watch(PATIENCE_S)
        worker.loop.call_soon(_turn, worker.loop, health)
        try:
            worker.execute_from_commandline()
        except SystemExit as ended:
            code = ended.code
        finally:
            exposition.remove("watch")
            exposition.remove("budgets")
    if code:
        raise LeaseholdError(f"Faust has ended with {code}; the lines above say why")


def _turn(loop: AbstractEventLoop, health: Health) -> None:
    """Note that the loop of Faust turns, each second from now on."""
    health.turned()
    loop.call_later(TURN_S, _turn, loop, health)
