"""A whole database as the target of a fuzz: nodes over SQLite, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.errors import MalformedRequest
from leasehold.model.records.acks import CheckReport
from tests.isolation.sql_stage import SqlStage
from tests.simulation.harm import demand

CODEC: Final = MessagePackCodec()
ANSWER_MS_MAX: Final = 1_000
"""Virtual time in which a good input is answered."""
MAKE_GOOD: Final = "create table good (id bigint primary key, n bigint not null)"


class WholeDatabase:
    """`good` is a table that no bad input names, with row 1."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.stage = SqlStage(folder, **options)
        self.number = 0
        self.settle({"sql": MAKE_GOOD})
        self.settle({"table": "good", "op": "insert", "key": {"id": 1}, "values": {"n": 0}})

    def settle(self, fields: dict[str, Any]) -> None:
        outcome = self.stage.settle(fields)
        assert not outcome.code, outcome

    def good(self) -> None:
        """A write is answered in time, and read on each node that may answer."""
        self.number += 1
        stage, began_ns = self.stage, self.stage.scheduler.now_ns
        values = {"n": self.number}
        self.settle({"table": "good", "op": "update", "key": {"id": 1}, "values": values})
        took_ms = (stage.scheduler.now_ns - began_ns) // 1_000_000
        assert took_ms <= ANSWER_MS_MAX, f"{took_ms} ms until a good request was answered"
        assert len(stage.coherent()) == 2, f"coherent: {stage.coherent()}"
        for name in stage.coherent():
            store: Any = stage.node(name).store
            with store.open_snapshot() as snapshot:
                row = snapshot.get(snapshot.newest("good"), (1,))
            assert row is not None
            assert row.values[2] == self.number, f"{name} answers with an older row"

    def end(self) -> None:
        """All nodes are there, in their roles, with the same rows, which fit the descriptors."""
        stage = self.stage
        stage.passing(3_000)
        roles = [n.node.role if n.node else "ended" for n in stage.cluster.nodes.values()]
        assert sorted(roles) == ["master", "replicant", "replicant", "standby"], roles
        asked = stage.ask({"barrier": [-1]})
        wanted = len(self._tables()) * len(stage.cluster.nodes)
        stage.until(lambda: len(self._reports(asked)) >= wanted, "what all nodes have checked")
        by_table: dict[int, set[tuple[int, bytes]]] = {}
        for report in self._reports(asked):
            demand(not report.findings_total, "d ⊨ S", f"{report}")
            demand(not report.error, "d ⊨ S", f"{report}")
            said = report.offset, report.checksum
            by_table.setdefault(report.table_id, set()).add(said)
        for table_id, said_by_all in by_table.items():
            demand(len(said_by_all) == 1, "L6", f"nodes differ in table {table_id}: {said_by_all}")

    def _tables(self) -> list[Any]:
        store: Any = self.stage.node("r1").store
        with store.open_snapshot() as snapshot:
            return list(snapshot.tables())

    def _reports(self, subject: bytes) -> list[CheckReport]:
        found = []
        for message in self.stage.cluster.bus.read(self.stage.cluster.topics.acks.name):
            try:
                report = CODEC.decode_as(CheckReport, message.value or b"")
            except MalformedRequest:
                continue
            if report.subject == subject and report.node in self.stage.cluster.nodes:
                found.append(report)
        return found

    def close(self) -> None:
        self.stage.close()
