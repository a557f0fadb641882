"""The reports of a process that is no node: of which release it is, and what it reads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final, Protocol

from leasehold import __version__
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.writer import Delivery, TopicWriter
from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.os.process_name import process_name
from leasehold.model.closing import Closing
from leasehold.model.errors import LeaseholdError
from leasehold.model.features import NEWEST
from leasehold.model.records.acks import ProcessReport
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

REPORT_EVERY_S: Final = 5.0
GOODBYE_S: Final = 2.0
LOG: Final = logging.getLogger("leasehold.process")


class Writer(Protocol):
    """What is used of a TopicWriter."""

    def send(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None: ...
    def deliveries(self, timeout_s: float = 0) -> list[Delivery]: ...
    def close(self, timeout_s: float) -> int: ...


class ProcessReports(Closing):
    """A thread that reports each 5 s until `close`, which says that the process has ended.

    For people only (`leasehold upgrade status`): what can't be sent is told once in the log, and
    keeps nobody from his work.
    """

    def __init__(
        self,
        kafka: KafkaSettings,
        topics: Topics,
        role: str,
        name: str = "",
        *,
        open_writer: Callable[[], Writer] | None = None,
        every_s: float = REPORT_EVERY_S,
    ) -> None:
        """Begin to report. `name`: what the process is called; without one, after its host and its
        number. `open_writer`: makes what it sends with."""
        self._process = process_name(role, name)
        self._role = role
        self._topic = topics.acks.name
        self._open = open_writer or (lambda: TopicWriter(kafka, f"{role}-reports"))
        self._every_s = every_s
        self._codec = MessagePackCodec()
        self._is_told = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="process reports", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Say that the process has ended, as far as that can be sent in 2 s."""
        self._stopping.set()
        self._thread.join(2 * GOODBYE_S)

    def _run(self) -> None:
        try:
            writer = self._open()
            while not self._stopping.is_set():
                self._report(writer, ended=False)
                self._stopping.wait(self._every_s)
            self._report(writer, ended=True)
            writer.close(GOODBYE_S)
        except LeaseholdError as error:  # of settings, of which others of the process tell, too
            self._note(error.message)

    def _report(self, writer: Writer, *, ended: bool) -> None:
        report = ProcessReport(
            self._process, self._role, __version__, int(NEWEST), unix_us(), ended
        )
        key, value = self._process.encode(), self._codec.encode(report)
        try:
            writer.send(self._topic, 0, key, value)
        except LeaseholdError as error:  # the queue is full
            self._note(error.message)
        for each in writer.deliveries():  # of earlier ones; those that came are not told
            self._note(each.error or "")

    def _note(self, trouble: str) -> None:
        """Tell the first trouble."""
        if not self._is_told:
            LOG.warning(
                "%s can't say of which release it is, so leasehold upgrade status does not list it:"
                " %s. Where rights are given, leasehold setup-acls gives Write on %s.",
                *(self._process, trouble, self._topic),
            )
        self._is_told = True
