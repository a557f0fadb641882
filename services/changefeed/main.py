"""Runs the changefeed: wires settings, signals and the publisher; decides nothing."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from types import FrameType
from typing import Final

from leasehold.adapters.kafka.access import AccessDenied
from leasehold.adapters.kafka.transaction import Fenced
from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.os.readiness import announce_ready
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.model.topics import Topics
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    describe,
    from_environment,
)
from services.changefeed.changefeed_settings import ChangefeedSettings
from services.changefeed.publisher import Publisher

RESTART_WAIT_S: Final = 1.0
GARBAGE_THRESHOLDS: Final = (100_000, 50, 100)
"""Records are tuples without cycles and go by reference counting; with Python's own thresholds the
collector walks over tens of thousands of live ones again and again (a third of all time)."""
LOG: Final = logging.getLogger("leasehold.changefeed")


def main() -> int:
    """0 after SIGTERM or SIGINT, also while it waits for Kafka; 1 when it can't go on, with the
    reason as the last line; 2 for settings."""
    try:
        kafka = from_environment(KafkaSettings, os.environ)
        cluster = from_environment(ClusterSettings, os.environ)
        settings = from_environment(ChangefeedSettings, os.environ)
        topics = Topics(cluster.database, cluster.replication_factor)
    except LeaseholdError as error:
        print(f"changefeed: {error}", file=sys.stderr)
        return 2
    logging.basicConfig(
        level=cluster.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    LOG.info("%s", version_line())
    for group in (kafka, cluster, settings):
        for name, value in describe(group).items():
            LOG.info("%s=%s", name, value)
    gc.set_threshold(*GARBAGE_THRESHOLDS)
    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    while not stopping.is_set():
        try:
            with Publisher(kafka, topics, settings, stopping.is_set) as publisher:
                publisher.open()
                announce_ready(cluster.ready_file)
                publisher.run()
        except (AccessDenied, Fenced) as error:
            LOG.error("%s", error)
            return 1
        except BusUnavailable as error:
            # The position is stored with what was published, so starting anew loses nothing.
            if not stopping.is_set():
                LOG.warning("%s; starts anew", error)
                stopping.wait(RESTART_WAIT_S)
        except LeaseholdError as error:
            LOG.error("%s", error)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
