"""A service that follows tables under leases, as a process of the harness: `python -m
tests.faults.workload.following_service`. It writes down each row event, and each use of a version
while its lease was valid."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TextIO

from leasehold import Agent, ClientSettings, Subscriber
from leasehold.adapters.os.readiness import announce_ready
from leasehold.client.agent import LeaseUse
from leasehold.client.subscriber import VersionNotice
from leasehold.events.rows import RowEvent
from leasehold.model.errors import LeaseholdError
from tests.faults.workload.orders import LOOK_AGAIN_S, Orders, life_of, read_orders
from tests.faults.workload.part_looks import PartLooks
from tests.faults.workload.tables import Tables

USE_EVERY_S: Final = 0.01
SAY_EVERY_NS: Final = 50_000_000
"""The same version is written down so seldom: each line costs the machine more than the use."""
LONG_USE_NS: Final = 1_500_000_000
"""So long the table is used whose versions change most: nobody may take one away meanwhile."""
POLL_S: Final = 0.05
LOG: Final = logging.getLogger("faults.following")


class Uses(threading.Thread):
    """Uses the newest leased version of a round's tables again and again, and writes down which it
    was."""

    def __init__(self, agent: Agent, name: str, tables: Tables, file: TextIO) -> None:
        super().__init__(daemon=True)
        self._agent = agent
        self._name = name
        self._tables = (*tables.all, tables.wide)
        self._lasting = tables.wide
        self._file = file
        self._stopping = threading.Event()
        self._said: dict[str, tuple[int, int]] = {}
        self._long: tuple[int, LeaseUse] | None = None  # since when, and the use
        self.start()

    def stop(self) -> None:
        """End; returns when it has."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(USE_EVERY_S):
            for table in self._tables:
                self._use(table)
            self._use_long()
        if self._long is not None:
            self._agent.release(self._long[1])

    def _use_long(self) -> None:
        """Go on with the use that lasts, or end it and begin the next one."""
        now_ns = time.monotonic_ns()
        if self._long is not None:
            since_ns, use = self._long
            if now_ns - since_ns < LONG_USE_NS:
                return
            if self._agent.is_valid(use):
                self._write(now_ns, use)
            self._agent.release(use)
        self._long = None
        with suppress(LeaseholdError):  # no lease now
            self._long = (now_ns, self._agent.acquire(self._lasting, 0.0))

    def _write(self, at_ns: int, use: LeaseUse) -> None:
        place = use.descriptor
        line = {"use": [at_ns, self._name, place.table_id, place.version]}
        self._file.write(json.dumps(line) + "\n")

    def _use(self, table: str) -> None:
        try:
            use = self._agent.acquire(table, 0.0)
        except LeaseholdError:
            return  # no lease now
        try:
            # Valid before and after it: it was acquired before, and is looked at behind it.
            at_ns = time.monotonic_ns()
            version = use.descriptor.version
            said_version, said_ns = self._said.get(table, (0, 0))
            if version == said_version and at_ns - said_ns < SAY_EVERY_NS:
                return
            if self._agent.is_valid(use):
                self._said[table] = (version, at_ns)
                self._write(at_ns, use)
        finally:
            self._agent.release(use)


def write_changes(
    news: Sequence[Any], columns: dict[tuple[str, int], list[str]], out: TextIO
) -> None:
    """Write row events down with the columns of their version, as its own event said them."""
    for each in news:
        if isinstance(each, VersionNotice):
            names = [column.name for column in each.descriptor.by_name.values()]
            columns[each.descriptor.name, each.descriptor.version] = names
        elif isinstance(each, RowEvent):
            shown = columns.get((each.table, each.version))
            line = {
                "table": each.table,
                "key": list(each.key.values()),
                "values": each.values,
                "lsn": each.lsn,
                "version": each.version,
                "made_under": each.made_under,
                "columns": shown if shown is not None else sorted(each.values or ()),
            }
            out.write(json.dumps({"change": line}) + "\n")


class Following:
    """What one life of the process does in one round."""

    def __init__(self, agent: Agent, orders: Orders, name: str) -> None:
        tables = Tables(orders.number)
        life = life_of(name)
        path = Path(orders.history) / f"{life}.fed"
        self._file = path.open("a", buffering=1, encoding="utf-8")
        self._uses = Uses(agent, life, tables, self._file)
        self._news = Subscriber(agent, tables.all)
        self._columns: dict[tuple[str, int], list[str]] = {}

    def go_on(self) -> None:
        """Take what has come."""
        write_changes(self._news.poll(POLL_S), self._columns, self._file)

    def stop_using(self) -> None:
        """Use no version any more: who drops the tables waits for nobody."""
        self._uses.stop()

    def close(self) -> None:
        """Stop following; the agent stays."""
        self._uses.stop()
        self._news.close()
        self._file.close()


def main() -> None:
    logging.basicConfig(level=logging.INFO)
    settings = ClientSettings.read()
    data, name = settings.cluster.data, settings.cluster.node
    pause = threading.Event()
    with Agent(settings) as agent:
        announce_ready(settings.cluster.ready_file)
        following, looks, number = None, None, 0
        while True:
            orders = read_orders(data)
            if looks is not None and (not orders.work or orders.number != number):
                looks.stop()
                looks = None
                if following is not None:
                    following.stop_using()
            if following is not None and orders.number != number:
                following.close()
                following = None
            if following is None and orders.work:
                following, number = Following(agent, orders, name), orders.number
                looks = PartLooks(settings, orders, life_of(name))
            if following is None:
                pause.wait(LOOK_AGAIN_S)
                continue
            try:
                following.go_on()
            except LeaseholdError as error:
                LOG.warning("no news: %s (%s)", error.message, error.sqlstate)
                pause.wait(LOOK_AGAIN_S)


if __name__ == "__main__":
    main()
