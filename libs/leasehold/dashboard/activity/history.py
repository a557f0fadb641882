"""What was counted, as every dashboard reads it from its topic: the last quarter of an hour by the
second, the last day by the minute."""

from __future__ import annotations

import json
import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from leasehold.adapters.kafka.leader_wait import ask_once_led
from leasehold.adapters.kafka.reader import Record, TopicReader
from leasehold.dashboard.activity.windows import (
    BETWEEN,
    HOT_KEYS_MAX,
    MINUTE_S,
    SECOND_S,
    count_hot,
)
from leasehold.model.closing import Closing
from leasehold.model.errors import LeaseholdError
from leasehold.model.topics import ACTIVITY_MINUTES, ACTIVITY_SECONDS, Topics
from leasehold.settings.environment import KafkaSettings

LOG: Final = logging.getLogger("leasehold.activity")
SECONDS_MAX: Final = 900
MINUTES_MAX: Final = 1_440
EVENT_BYTES_MAX: Final = 60_000
"""A longer event is nobody's of ours."""
AWAY_RETRY_S: Final = 2.0
READ_TIMEOUT_S: Final = 0.5
RECORDS_MAX: Final = 500
TAILS: Final[Mapping[int, int]] = {
    ACTIVITY_SECONDS: SECONDS_MAX,
    ACTIVITY_MINUTES: 2 * MINUTES_MAX,
}
"""Partition → its newest records that are read at a start."""
_OF_PHASE: Final = ("count", "mean_ms", "longest_ms")
_OF_ROW: Final = ("refusals", "at_most_over")
KEPT: Final[Mapping[tuple[str, int], int]] = {
    ("writes", SECOND_S): SECONDS_MAX,
    ("writes", MINUTE_S): MINUTES_MAX,
    ("steps", MINUTE_S): MINUTES_MAX,
}


class Series:
    """Windows by what they are of, each with its begin, oldest first. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[tuple[str, int], OrderedDict[int, dict[str, Any]]] = {
            kind: OrderedDict() for kind in KEPT
        }

    def take(self, value: bytes | None) -> None:
        """Take a record of the topic; one that can't be used is passed over."""
        told = _read_event(value)
        if told is None:
            return
        kind = told["what"], told["window_s"]
        with self._lock:
            kept = self._kept[kind]
            from_s = told["from_s"]
            late = bool(kept) and from_s < next(reversed(kept))
            kept[from_s] = told
            if late:
                self._kept[kind] = kept = OrderedDict(sorted(kept.items()))
            while len(kept) > KEPT[kind]:
                kept.popitem(last=False)

    def windows(self, what: str, window_s: int, after_s: int = 0) -> list[dict[str, Any]]:
        """Return windows that begin after `after_s`, oldest first. Raises KeyError for what there
        is none of."""
        with self._lock:
            return [told for begin, told in self._kept[what, window_s].items() if begin > after_s]

    def newest_s(self) -> int:
        """Return when the newest window of a second began, 0 = there is none."""
        with self._lock:
            return next(reversed(self._kept["writes", SECOND_S]), 0)


def _read_event(value: bytes | None) -> dict[str, Any] | None:
    """Return a window as it was told; None for what is no window of ours."""
    if value is None or len(value) > EVENT_BYTES_MAX:
        return None
    try:
        told = json.loads(value)
        known = (told["what"], told["window_s"]) in KEPT
        return told if known and type(told["from_s"]) is int and _is_whole(told) else None
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None


def _is_whole(told: Mapping[str, Any]) -> bool:
    """Return whether a window has what pages and `hot_rows` take from it. Raises TypeError and the
    like for another form."""
    if told["what"] == "steps":
        numbers = [each[name] for each in told["phases"].values() for name in _OF_PHASE]
    else:
        numbers = [told[name] for name in ("commits", "retried", "rows")]
        numbers += [*told["refused"].values(), *told["dispositions"].values()]
        numbers += [number for held in told["tables"].values() for number in held]
        numbers += [row[name] for row in told["conflicts"] for name in _OF_ROW]
        texts = [*told["coherent"]]
        texts += [row[name] for row in told["conflicts"] for name in ("table", "key")]
        times = [told["decided_ms"][name] for name in ("p50", "p95", "p99")]
        if not all(isinstance(text, str) for text in texts):
            return False
        if not all(time is None or isinstance(time, int | float) for time in times):
            return False
    return all(type(number) is int for number in numbers)


def hot_rows(windows: Iterable[Mapping[str, Any]], most: int) -> list[dict[str, Any]]:
    """Return the rows that refused most requests in all of these windows together."""
    counted: dict[str, list[int]] = {}
    over: dict[str, int] = {}
    for window in windows:
        for row in window.get("conflicts", ()):
            name = f"{row['table']}{BETWEEN}{row['key']}"
            count_hot(counted, name, HOT_KEYS_MAX, int(row["refusals"]))
            over[name] = over.get(name, 0) + int(row["at_most_over"])
    ranked = sorted(counted.items(), key=lambda held: (-held[1][0], held[0]))[:most]
    return [
        {
            "table": name.partition(BETWEEN)[0],
            "key": name.partition(BETWEEN)[2],
            "refusals": count,
            "at_most_over": floor + over.get(name, 0),
        }
        for name, (count, floor) in ranked
    ]


class ActivityHistory(Closing):
    """A thread that reads the topic's newest windows, and goes on reading."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        """Begin to read."""
        self.series = Series()
        self._topic = topics.activity.name
        self._stopping = threading.Event()
        self._kafka = kafka
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="leasehold-history", daemon=True)
        self._thread.start()

    @property
    def trouble(self) -> str:
        """Return why windows can't be read, "" while they can."""
        return self._trouble

    def close(self) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read()
            except LeaseholdError as error:
                self._trouble = error.message
                LOG.debug("windows can't be read: %s", error.message)
                self._stopping.wait(AWAY_RETRY_S)

    def _read(self) -> None:
        """Read until it is stopped. Raises BusUnavailable, LogStopped."""
        reader = TopicReader(self._kafka, "leasehold-history", give_up=self._stopping.is_set)
        try:
            for partition, tail in TAILS.items():
                offsets = partial(reader.offsets, self._topic, partition)
                first, end = ask_once_led(offsets)
                reader.start(self._topic, partition, max(first, end - tail))
            while not self._stopping.is_set():
                self._take(reader.read(RECORDS_MAX, READ_TIMEOUT_S))
                self._trouble = ""
        finally:
            reader.close()

    def _take(self, records: Iterable[Record]) -> None:
        for record in records:
            self.series.take(record.value)
