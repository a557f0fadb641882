"""Hundreds of tables, each with a few rows, written and changed at random: what a table costs is
paid by all of them, in catalogs, leases, sessions, topics and copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from leasehold.model.errors import UnknownTable
from tests.simulation.harm import demand
from tests.simulation.workloads import Workload

if TYPE_CHECKING:
    from tests.support.memory_store.snapshot import MemorySnapshot

KEYS: Final = 3
PER_REQUEST: Final = 10


class ManyTables(Workload):
    """Blind writes; the log's commits played on a dictionary must give the rows."""

    def setup(self) -> None:
        self.sent: dict[bytes, tuple[str, int, int | None]] = {}
        self._number = self.sim.plan.tables
        names = [f"n{number}" for number in range(self._number)]
        for first in range(0, len(names), PER_REQUEST):
            self._make(names[first : first + PER_REQUEST])

    def _make(self, names: list[str]) -> None:
        made = (f"create table {name} (id int primary key, n int)" for name in names)
        self.client.ask({"sql": "; ".join(made)})

    def act(self) -> None:
        name, way = f"n{self.rng.randrange(self._number)}", self.rng.random()
        if way < 0.85:
            self._write(name)
        elif way < 0.93:
            column = f"c{self.rng.randrange(1_000)}"
            self.client.ask({"sql": f"alter table {name} add column {column} int"})
        elif way < 0.97:
            self.client.ask({"sql": f"drop table {name}"})
        else:
            self._make([f"n{self._number}"])
            self._number += 1

    def _write(self, name: str) -> None:
        key, value = self.rng.randrange(KEYS), self.rng.randrange(100)
        fields: dict[str, Any] = {"table": name, "op": "delete", "key": {"id": key}}
        if self.rng.random() < 0.8:
            fields |= {"op": "upsert", "values": {"n": value}}
        asked = self.client.ask(fields)
        self.sent[asked.id] = name, key, value if fields["op"] == "upsert" else None

    def check_end(self, snapshot: MemorySnapshot) -> None:
        model: dict[str, dict[int, int]] = {}
        for _lsn, commit in self.sim.reference.in_order:
            if (sent := self.sent.get(commit.request_id)) is None:
                continue
            name, key, value = sent
            rows = model.setdefault(name, {})
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
        for name, rows in model.items():
            try:
                found = {key: row["n"] for key, row in self.rows(snapshot, name).items()}
            except UnknownTable:
                continue  # dropped meanwhile
            demand(found == rows, "T0", f"table {name} holds {found}, written were {rows}")
