"""Looks at a replica that holds one table alone, in a process that is no other node: whoever waits
for nodes waits for it by what it holds (C7)."""

from __future__ import annotations

import logging
import random
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Final

import apsw

from leasehold import ClientSettings, Replica, open_replica
from leasehold.model.errors import LeaseholdError, NotCoherent, UnknownTable
from tests.faults.workload.history import Told
from tests.faults.workload.orders import Orders
from tests.faults.workload.recorder import Recorder
from tests.faults.workload.tables import Tables

READ_S: Final = 0.05
OPEN_AGAIN_S: Final = 0.3
LOG: Final = logging.getLogger("faults.part")


class PartLooks(threading.Thread):
    """Reads the counter of one round at a replica of that round's own."""

    def __init__(self, settings: ClientSettings, orders: Orders, life: str) -> None:
        super().__init__(daemon=True)
        cluster = settings.cluster
        self._name = f"{life}-part"
        self._table = Tables(orders.number).counter
        self._settings = replace(settings, cluster=replace(cluster, node=f"{cluster.node}-part"))
        self._folder = cluster.data / cluster.node / f"part-{orders.number}"
        self._history = Path(orders.history) / f"{self._name}.jsonl"
        self._rng = random.Random(f"{orders.seed}/{self._name}")
        self._stopping = threading.Event()
        self.start()

    def stop(self) -> None:
        """End, and leave no store behind; returns when that is done."""
        self._stopping.set()
        self.join()

    def run(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with Recorder(self._history) as recorder:
            while not self._stopping.is_set():
                try:
                    self._look_at_part(recorder)
                except (LeaseholdError, OSError, apsw.Error) as error:
                    # Nobody hands a copy out now, or knows the table yet; or it has been stopped.
                    LOG.warning("no partial replica: %s", error)
                    self._stopping.wait(OPEN_AGAIN_S)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _look_at_part(self, recorder: Recorder) -> None:
        path = self._folder / "store.db"
        with open_replica(self._settings, path=path, tables=[self._table], wait_s=0) as part:
            while not self._stopping.wait(READ_S * self._rng.uniform(0.5, 1.5)):
                self._look(part, recorder)

    def _look(self, part: Replica, recorder: Recorder) -> None:
        op = recorder.begin(f"{self._name}/look", "look", {"node": self._name})
        try:
            row = part.get(self._table, 0)
        except (NotCoherent, UnknownTable) as error:  # without a lease, or it is dropped
            recorder.end(op, Told.NO, error.sqlstate)
        except LeaseholdError as error:
            recorder.end(op, Told.NO, error.sqlstate)
            raise
        else:
            recorder.end(op, Told.YES, n=row and row["n"])
