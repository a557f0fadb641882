"""A service that follows tables under leases, as a process of the harness: `python -m
tests.faults.workload.following_service`. It writes down each row event, and each use of a version
while its lease was valid."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, TextIO

from leasehold import Agent, ClientSettings, Subscriber
from leasehold.adapters.os.readiness import announce_ready
from leasehold.client.subscriber import VersionNotice
from leasehold.events.rows import RowEvent
from leasehold.model.errors import LeaseholdError
from tests.faults.workload.orders import LOOK_AGAIN_S, Orders, life_of, read_orders
from tests.faults.workload.tables import Tables

USE_EVERY_S: Final = 0.01
SAY_EVERY_NS: Final = 50_000_000
"""The same version is written down so seldom: each line costs the machine more than the use."""
POLL_S: Final = 0.05
LOG: Final = logging.getLogger("faults.following")


class Uses(threading.Thread):
    """Uses the newest leased version of tables again and again, and writes down which it was."""

    def __init__(self, agent: Agent, name: str, tables: Sequence[str], file: TextIO) -> None:
        super().__init__(daemon=True)
        self._agent = agent
        self._name = name
        self._tables = tables
        self._file = file
        self._stopping = threading.Event()
        self._said: dict[str, tuple[int, int]] = {}
        self.start()

    def stop(self) -> None:
        """End; returns when it has."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        while not self._stopping.wait(USE_EVERY_S):
            for table in self._tables:
                self._use(table)

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
                line = {"use": [at_ns, self._name, use.descriptor.table_id, version]}
                self._file.write(json.dumps(line) + "\n")
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
        tables = Tables(orders.number).all
        life = life_of(name)
        path = Path(orders.history) / f"{life}.fed"
        self._file = path.open("a", buffering=1, encoding="utf-8")
        self._uses = Uses(agent, life, tables, self._file)
        self._news = Subscriber(agent, tables)
        self._columns: dict[tuple[str, int], list[str]] = {}

    def go_on(self) -> None:
        """Take what has come."""
        write_changes(self._news.poll(POLL_S), self._columns, self._file)

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
        following, number = None, 0
        while True:
            orders = read_orders(data)
            if following is not None and orders.number != number:
                following.close()
                following = None
            if following is None and orders.work:
                following, number = Following(agent, orders, name), orders.number
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
