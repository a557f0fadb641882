"""A process that is no node says of which release it is, until it has ended."""

from __future__ import annotations

import logging
from functools import partial
from threading import Event

import pytest

from leasehold import __version__
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.process_reports import ProcessReports
from leasehold.adapters.kafka.writer import Delivery
from leasehold.model.errors import BusUnavailable
from leasehold.model.features import NEWEST
from leasehold.model.records.acks import ProcessReport
from leasehold.model.topics import Topics
from leasehold.settings.environment import KafkaSettings

DEADLINE_S = 30


class Sent:
    """A writer; `fails`: each record ends with that error, `full`: none is taken."""

    def __init__(self, enough: int = 2, fails: str | None = None, *, full: bool = False) -> None:
        self.fails, self.full = fails, full
        self._enough = enough
        self.reports: list[ProcessReport] = []
        self.topics: set[str] = set()
        self.is_closed = False
        self.has_enough = Event()

    def send(self, topic: str, partition: int, key: bytes | None, value: bytes | None) -> None:
        report = MessagePackCodec().decode_as(ProcessReport, value or b"")
        assert (partition, key) == (0, report.process.encode())
        self.topics.add(topic)
        self.reports.append(report)
        if len(self.reports) >= self._enough:
            self.has_enough.set()
        if self.full:
            raise BusUnavailable("the queue is full")

    def deliveries(self, timeout_s: float = 0) -> list[Delivery]:
        return [] if self.fails is None else [Delivery(None, "t", 0, -1, self.fails)]

    def close(self, timeout_s: float) -> int:
        self.is_closed = True
        return 0


def reports(sent: Sent, role: str = "intake", name: str = "shop") -> ProcessReports:
    opened = partial(lambda made: made, sent)
    return ProcessReports(
        KafkaSettings(), Topics("demo"), role, name, open_writer=opened, every_s=0.001
    )


def test_it_reports_again_and_again_and_says_goodbye() -> None:
    sent = Sent()
    with reports(sent):
        assert sent.has_enough.wait(DEADLINE_S)
    assert sent.is_closed
    assert sent.topics == {"demo.acks"}
    *said, last = sent.reports
    assert {each._replace(sent_us=0) for each in said} == {
        ProcessReport("intake shop", "intake", __version__, NEWEST, 0)
    }
    assert last.ended
    assert last.sent_us >= said[-1].sent_us > 0


def test_processes_of_one_role_have_names_of_their_own() -> None:
    sent = Sent(1)
    with reports(sent, "dashboard", ""):
        assert sent.has_enough.wait(DEADLINE_S)
    assert sent.reports[0].process.startswith("dashboard ")
    assert len(sent.reports[0].process) > len("dashboard ")


@pytest.mark.parametrize("sent", [Sent(3, "not allowed"), Sent(3, full=True)])
def test_what_can_not_be_sent_is_told_once(sent: Sent, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), reports(sent):
        assert sent.has_enough.wait(DEADLINE_S)
    (record,) = caplog.records
    assert "intake shop can't say of which release it is" in record.getMessage()
    assert "Write on demo.acks" in record.getMessage()
