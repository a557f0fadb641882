"""How far the clocks of those who tell of themselves are ahead of the watcher's. PURE.

A report says when it was sent by its sender's clock, and a clock may be wrong by minutes: by that
alone a node that lives would look silent, and one that has died would not. What comes while the
watcher looks was sent just then, by its own clock. What stood on the topic before was sent between
two words of any other sender, of whom that is known as soon as he is heard: so the order of the
topic tells when. Only while nobody at all is heard the senders' own clocks are believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from leasehold.admin.view import SILENT_AFTER_US, Heard
from leasehold.model.records.acks import (
    AccessReport,
    Ack,
    HoldingReport,
    NodeReport,
    PartReport,
    ProcessReport,
)
from leasehold.model.records.jobs import ChangefeedReport, JobProgress, SparkReport
from leasehold.replication.coherency import GIVEN_UP
from leasehold.replication.log.truncation import CHANGEFEED_ROLE, COPY_ROLE

SPARK: Final = "spark"
"""Sender of what Spark's driver tells, on whatever topic."""
CHANGEFEED: Final = "changefeed"
STOOD_MAX: Final = 4_000
HEARD_MAX: Final = 4_000
_OF_NODES: Final = (AccessReport, NodeReport, PartReport)


def sender_of(event: Any) -> str:
    """Return whose clock a report's `sent_us` is of; "" = it has none."""
    if isinstance(event, Ack):
        return CHANGEFEED if event.role == CHANGEFEED_ROLE else event.node
    if isinstance(event, _OF_NODES):
        return event.node
    if isinstance(event, HoldingReport):
        return event.agent
    if isinstance(event, ProcessReport):
        return SPARK if event.role == SPARK else event.process
    if isinstance(event, SparkReport | JobProgress):
        return SPARK
    return CHANGEFEED if isinstance(event, ChangefeedReport) else ""


class _Stood(NamedTuple):
    """A word that stood on the topic. `often`: from somebody who says one several times a second as
    long as he lives."""

    name: str
    sent_us: int
    often: bool


def _speaks_often(event: Any) -> bool:
    is_node = isinstance(event, Ack) and event.role not in (CHANGEFEED_ROLE, COPY_ROLE)
    return is_node and event.asked_ns != GIVEN_UP


class SenderClocks:
    """Takes what is read, in the order of the topic of acknowledgements; tells what it says of the
    senders' clocks. It keeps what stood there until somebody is heard."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self._stood: list[_Stood] = []
        self._oldest_us: int | None = None  # when the first word of those was sent, once known
        self._heard: set[str] = set()

    def stand(self, event: Any) -> None:
        """Take what stood on the topic when the watcher began, the oldest first."""
        name = sender_of(event)
        if name and self._oldest_us is None:
            self._stood.append(_Stood(name, event.sent_us, _speaks_often(event)))
            del self._stood[:-STOOD_MAX]

    def stand_before(self, event: Any) -> Iterator[Heard]:
        """Take what stood before all of that; yield what is known of its sender's clock."""
        name = sender_of(event)
        if not name or name in self._heard:
            return
        if self._oldest_us is None:
            self._stood.insert(0, _Stood(name, event.sent_us, _speaks_often(event)))
        elif event.sent_us > self._oldest_us:
            yield Heard(name, event.sent_us - self._oldest_us)

    def hear(self, event: Any, now_us: int) -> Iterator[Heard]:
        """Take what came while the watcher looks, at `now_us` by its clock; yield what that says of
        its sender's clock, and of those of all who stood before him."""
        name = sender_of(event)
        if not name:
            return
        ahead_us = event.sent_us - now_us
        if self._oldest_us is None and len(self._heard) < HEARD_MAX:
            self._heard.add(name)
        yield Heard(name, ahead_us)
        if self._oldest_us is None and any(name == each.name for each in self._stood):
            yield from self._date(name, ahead_us, now_us)

    def in_doubt(self, now_us: int) -> bool:
        """Return whether the last word of a node that has not left is old, or to come, by its own
        clock alone: then it is worth a moment to hear somebody first."""
        if self._oldest_us is not None:
            return False
        newest = {each.name: each for each in self._stood}
        return any(
            each.often and abs(now_us - each.sent_us) > SILENT_AFTER_US
            for name, each in newest.items()
            if name not in self._heard
        )

    def _date(self, reference: str, ahead_us: int, now_us: int) -> Iterator[Heard]:
        """Yield how far the clocks of all are ahead who have stood there and were not heard, by the
        words of a sender whose clock is known: a last word is as old as his next one. Where he did
        not speak before it, or not for long, it may be older, and its sender's clock may say so."""
        after_us, waiting = now_us, dict[str, int]()
        done = set(self._heard)
        for name, sent_us, _ in reversed(self._stood):
            if name == reference:
                spoke_us = min(sent_us - ahead_us, after_us)
                sure = after_us - spoke_us <= SILENT_AFTER_US
                for each, told_us in waiting.items():
                    yield _dated(each, told_us, after_us, sure=sure)
                after_us = spoke_us
                waiting = {}
            elif name not in done:
                done.add(name)
                waiting[name] = sent_us
        for each, told_us in waiting.items():
            yield _dated(each, told_us, after_us, sure=False)
        self._oldest_us = after_us
        self._stood = []


def _dated(name: str, sent_us: int, at_us: int, *, sure: bool) -> Heard:
    """Return how far a clock is ahead by which something was sent at `at_us`, or, where that is not
    `sure`, maybe earlier."""
    return Heard(name, sent_us - (at_us if sure else min(sent_us, at_us)))
