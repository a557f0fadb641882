"""Reads what the topic of acknowledgements says of the time before a candidate began to read it
(`replication/log/ack_history.py` says what of it counts)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.kafka.reader import TO_THE_END_MS, TopicReader
from leasehold.adapters.os.clock import boottime_ns
from leasehold.model.errors import BusUnavailable, LeaseholdError, MalformedRequest
from leasehold.model.records.acks import Ack
from leasehold.replication.effects import ReadersFound
from leasehold.replication.log.ack_history import AckHistory
from leasehold.settings.environment import KafkaSettings

RECORDS_MAX: Final = 400_000
"""How many are looked at, the newest: what three nodes say in five hours where their
acknowledgements go by Redis."""
SLICE_RECORDS: Final = 500
READ_SLICE_S: Final = 0.2
PAUSE_S: Final = 0.05
"""Between two slices, which take about 10 ms: the node begins meanwhile, and nobody waits for this
but a deletion in an hour."""
GIVE_UP_S: Final = 600.0
QUEUED_KBYTES_MAX: Final = 1_024
CODEC: Final = MessagePackCodec()
LOG: Final = logging.getLogger("leasehold.log")


class AckHistoryReader:
    """Looks once, in a thread of its own, and tells what was found. What can't be found out is told
    in the log: then a master hears for as long as if it had not looked."""

    def __init__(
        self,
        kafka: KafkaSettings,
        topic: str,
        client_id: str,
        ask_late_ms: int,
        take: Callable[[ReadersFound], None],
    ) -> None:
        """Prepare to look. `take` is called on the thread, once at most. `ask_late_ms`: see
        `AckHistory`."""
        self._kafka = kafka
        self._topic = topic
        self._client_id = client_id
        self._ask_late_ms = ask_late_ms
        self._take = take
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self, end: int) -> None:
        """Look at what stands below that offset, from which on the owner reads the topic itself."""
        assert self._thread is None, "it looks once"
        name = "leasehold-ack-history"
        self._thread = threading.Thread(target=self._run, args=(end,), name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Give up what is under way."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(2 * READ_SLICE_S)

    def _run(self, end: int) -> None:
        try:
            found = self._read(end)
        except Exception as error:  # noqa: BLE001 - nobody waits for this thread, who could be told
            if self._closing.is_set():
                return
            words = error.message if isinstance(error, LeaseholdError) else repr(error)
            LOG.warning(
                "could not find out who read the log before this process began; as master it"
                " deletes nothing of the log before it has heard for an hour who does: %s",
                words,
            )
        else:
            if found is not None:
                self._take(found)

    def _read(self, end: int) -> ReadersFound | None:
        """Return what was found, None: closed meanwhile."""
        history = AckHistory(self._ask_late_ms)
        topic, give_up_ns = self._topic, boottime_ns() + int(GIVE_UP_S * 1e9)
        with closing(
            TopicReader(
                self._kafka,
                self._client_id,
                give_up=self._closing.is_set,
                queued_kbytes_max=QUEUED_KBYTES_MAX,
                fetch_wait_ms=TO_THE_END_MS,
            )
        ) as reader:
            begin = expected = max(reader.first_offset(topic, 0), end - RECORDS_MAX)
            if begin < end:
                reader.start(topic, 0, begin)
            while expected < end:
                for record in reader.read(SLICE_RECORDS, READ_SLICE_S):
                    if record.offset >= end:
                        expected = end
                        break
                    if record.offset != expected:
                        history.begin_anew()
                    expected = record.offset + 1
                    ack = _ack_of(record.value)
                    if ack is not None:
                        history.take(ack)
                if self._closing.wait(PAUSE_S):
                    return None
                if boottime_ns() > give_up_ns:
                    raise BusUnavailable(
                        f"{topic} was read from offset {begin} to {expected} of {end} in"
                        f" {GIVE_UP_S:.0f} s, and no further"
                    )
        return ReadersFound(history.readers(), history.span_ns())


def _ack_of(value: bytes | None) -> Ack | None:
    try:
        ack = CODEC.decode(value or b"")
    except MalformedRequest:
        return None
    return ack if isinstance(ack, Ack) else None
