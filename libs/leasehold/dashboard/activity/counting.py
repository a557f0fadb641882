"""Runs the application that counts, in a thread of its own, again and again while it is wanted."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from leasehold.adapters.kafka.admin import TopicAdmin
from leasehold.adapters.os.clock import unix_us
from leasehold.model.closing import Closing
from leasehold.model.errors import LeaseholdError
from leasehold.model.topics import ACTIVITY_TABLES, Topics
from leasehold.settings.environment import KafkaSettings

LOG: Final = logging.getLogger("leasehold.activity")
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
TOPICS_TIMEOUT_S: Final = 10.0
TALKATIVE: Final = ("faust.tables", "faust.transport", "aiokafka")
"""Loggers that draw tables of offsets at each start, on many lines."""
STOP_S: Final = 20.0
LOOK_EVERY_S: Final = 0.5

AppMaker = Callable[[Callable[[], None], Callable[[BaseException], None]], Any]


class ActivityCounting(Closing):
    """A thread that counts. Faust's worker ends when Kafka is away as it starts, or loses its
    place in the group: it is begun anew then, after a pause that grows. The dashboard itself never
    waits for it."""

    def __init__(
        self, kafka: KafkaSettings, topics: Topics, folder: Path, make: AppMaker | None = None
    ) -> None:
        """Begin. `folder` is for Faust's own state. `make`: makes the application."""
        self._kafka = kafka
        self._topics = topics
        self._folder = folder
        self._make = make or self._make_app
        self._stopping = threading.Event()
        self._since_us = unix_us()
        self._trouble = ""
        self._beat_us = 0
        self._thread = threading.Thread(target=self._run, name="leasehold-activity", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Return why nothing is counted here, "" while it is, or another dashboard does."""
        return self._trouble

    @property
    def counted_us(self) -> int:
        """Return when records were counted here last, 0 = never."""
        return self._beat_us

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(STOP_S)

    def _make_app(self, beat: Callable[[], None], fail: Callable[[BaseException], None]) -> Any:
        from leasehold.dashboard.activity.application import activity_app  # an extra

        for name in TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
        return activity_app(self._kafka, self._topics, self._folder, beat, fail)

    def _beat(self) -> None:
        self._beat_us = unix_us()
        if self._trouble:
            LOG.warning("what the database does is counted again")
            self._trouble = ""

    def _fail(self, error: BaseException) -> None:
        self._trouble = f"{type(error).__name__}: {error}"

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping.is_set():
            began_us, beat_us = unix_us(), self._beat_us
            try:
                self._make_topics()
                asyncio.run(self._count())
                why = "Faust has ended it"
            except LeaseholdError as error:
                why = error.message
            except Exception as error:  # noqa: BLE001 - Faust's clients raise what they like
                why = f"{type(error).__name__}: {error}"
            if self._stopping.is_set():
                return
            if self._beat_us > max(began_us, beat_us):
                pause_s = FIRST_PAUSE_S
            if not self._trouble:
                LOG.warning(
                    "what the database does is not counted, so the dashboard shows no series (%s);"
                    " it is tried again in %g s",
                    why,
                    pause_s,
                )
            self._trouble = why
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _make_topics(self) -> None:
        """Make what is missing, as in a database of an earlier release. Raises BusUnavailable."""
        topics = self._topics
        wanted = [topics.activity, *map(topics.activity_changelog, ACTIVITY_TABLES)]
        with TopicAdmin(self._kafka, "leasehold-activity-topics") as admin:
            admin.create(wanted, topics.replication_factor, TOPICS_TIMEOUT_S)

    async def _count(self) -> None:
        """Count until it is stopped, or Faust has ended it. Raises what Faust's clients do."""
        app = self._make(self._beat, self._fail)
        app.finalize()
        try:
            await app.start()
            while not self._stopping.is_set() and not app.should_stop:
                await asyncio.to_thread(self._stopping.wait, LOOK_EVERY_S)
            if app.crash_reason is not None:
                raise app.crash_reason
        finally:
            await app.stop()
