"""Runs the dashboard: wires settings, the watch and the Faust application; decides nothing."""

from __future__ import annotations

import logging
import os
import sys

from leasehold.admin.watch import ClusterWatch
from leasehold.model.errors import LeaseholdError
from leasehold.settings.client import ClientSettings
from leasehold.settings.extras import need_extra
from leasehold.settings.setting import describe, from_environment
from services.dashboard.dashboard_settings import DashboardSettings


def main() -> int:
    """0 after SIGTERM or SIGINT; 2 for settings, with the reason as the last line."""
    try:
        need_extra("dashboard", "the dashboard", "faust", "aiokafka")
        settings = ClientSettings.read(os.environ)
        own = from_environment(DashboardSettings, os.environ)
        topics = settings.topics
    except LeaseholdError as error:
        print(f"dashboard: {error}", file=sys.stderr)
        return 2
    from faust import Worker  # an extra, as what the application imports

    from services.dashboard.dashboard_app import dashboard_app

    logging.basicConfig(
        level=settings.cluster.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    log = logging.getLogger("leasehold.dashboard")
    for group in (settings.kafka, settings.redis, settings.cluster, own):
        for name, value in describe(group).items():
            log.info("%s=%s", name, value)
    log.info("watching %s and its neighbours", topics.log.name)
    with ClusterWatch(settings) as watch:
        worker = Worker(
            dashboard_app(settings, watch, own.names),
            loglevel=None,
            quiet=True,
            redirect_stdouts=False,
            override_logging=False,
        )
        try:
            worker.execute_from_commandline()
        except SystemExit as ended:
            code = ended.code
    return int(code or 0)


if __name__ == "__main__":
    sys.exit(main())
