"""Schema changes in a loop on a table under one kind of load: `sc_inserts` and the like."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING, ClassVar

from leasehold.catalog.job import Status
from leasehold.model.errors import UnknownTable
from leasehold.model.records.requests import Outcome
from leasehold.schema_change.plan.answers import read_jobs
from tests.simulation.harm import demand
from tests.simulation.workloads import Items, Workload
from tests.support.memory_store.snapshot import MemorySnapshot

if TYPE_CHECKING:
    from tests.simulation.client import Asked

BUSY = "55006"
DUPLICATE = "23505"
STALE = "40001"
UNKNOWN_TABLE = "42P01"


class Load(Items):
    """No write is refused because of a change; only one that was made for a version may be late."""

    def check_end(self, snapshot: MemorySnapshot) -> None:
        super().check_end(snapshot)
        for asked in self.client.asked.values():
            code = "" if asked.final is None or asked.final.lsn else asked.final.code
            demand(code in self._allowed(asked), "load", f"{asked.fields} ended as {asked.final}")

    def _allowed(self, asked: Asked) -> set[str]:
        allowed = {""}
        if asked.fields.get("op") == "insert":
            allowed.add(DUPLICATE)
        if "schema_version" in asked.fields:
            allowed |= {STALE, "42703"}  # of a column that has gone since
        return allowed


class Inserts(Load):
    """`sc_inserts`."""

    kinds = ("insert",)
    keys = 2_000


class InsertsDeletes(Load):
    """`sc_inserts_deletes`: rows come and go, so that a backfill meets each in any state."""

    kinds = ("insert", "delete")
    keys = 20


class RepeatedUpdates(Load):
    """`sc_repeated_updates`: the same few rows again and again."""

    kinds = ("upsert", "update", "update", "update")
    keys = 3


class Truncates(Load):
    """`sc_truncate`, `truncatesc`: rows go all at once between changes; beside one that is under
    way a TRUNCATE is refused, and neither harms the other."""

    kinds = ("insert", "insert", "upsert", "update")

    def setup(self) -> None:
        super().setup()
        self.truncated: list[Asked] = []

    def act(self) -> None:
        if self.rng.random() > 0.15:
            super().act()
            return
        asked = self.client.ask({"sql": "truncate items"})
        self.sent[asked.id] = ("truncate", 0, {})
        self.truncated.append(asked)

    def _allowed(self, asked: Asked) -> set[str]:
        return {"", BUSY} if asked in self.truncated else super()._allowed(asked)

    def ended(self) -> tuple[int, int]:
        """How many were done, and how many refused."""
        done = [a for a in self.truncated if a.final is not None and a.final.lsn]
        return len(done), len(self.truncated) - len(done)


class ChangeLoop(Workload):
    """One change after the other: a column and an index come, and go. Each succeeds."""

    statements: ClassVar[tuple[str, ...]] = (
        "alter table items add column c{0} int not null default {0}",
        "create index i{0} on items (qty)",
        "alter table items add column d{0} text, add check (qty >= 0)",
        "drop index i{0}",
        "alter table items drop column c{0}",
        "alter table items drop column d{0}",
    )

    def setup(self) -> None:
        self.jobs: list[int] = []
        self.rounds = 0
        self._waits = False
        self._left: Iterator[str] = iter(())

    def act(self) -> None:
        jobs = self.sim.reference.catalog.jobs
        if self._waits or (self.jobs and not jobs[self.jobs[-1]].status.ended):
            return
        statement = next(self._left, None)
        if statement is None:
            self.rounds += 1
            self._left = (text.format(self.rounds) for text in self.statements)
            statement = next(self._left)
        self._ask(statement)

    def _ask(self, sql: str) -> None:
        def done(outcome: Outcome) -> None:
            self._waits = False
            demand(bool(outcome.lsn), "loop", f"{sql} was refused: {outcome}")
            self.jobs += read_jobs(outcome.answer)

        self._waits = True
        self.client.ask({"sql": sql}, done=done)

    def check_end(self, snapshot: MemorySnapshot) -> None:
        for number in self.jobs:
            job = self.sim.reference.catalog.jobs[number]
            demand(job.status is Status.SUCCEEDED, "loop", f"{job.sql} {job.status}: {job.error}")


class Drops(ChangeLoop):
    """`sc_drop`: a table is made, filled and dropped again and again while others write to its
    name; a write is of one of these tables, or of none."""

    statements: ClassVar[tuple[str, ...]] = (
        "create table passing (id bigint primary key, n bigint not null)",
        "create index passing_{0} on passing (n)",
        "drop table passing",
    )

    def setup(self) -> None:
        super().setup()
        self._keys = count()
        self.written: list[Asked] = []

    def act(self) -> None:
        super().act()
        for _ in range(3):
            key = next(self._keys)
            row = {"table": "passing", "op": "insert", "key": {"id": key}, "values": {"n": key}}
            self.written.append(self.client.ask(row))

    def check_end(self, snapshot: MemorySnapshot) -> None:
        super().check_end(snapshot)
        decided: dict[int, int] = {}
        for asked in self.written:
            final = asked.final
            good = final is not None and (final.lsn or final.code == UNKNOWN_TABLE)
            demand(bool(good), "loop", f"{asked.fields} ended as {final}")
            if final is not None and final.lsn:
                decided[asked.fields["key"]["id"]] = final.lsn
        try:
            rows = set(self.rows(snapshot, "passing"))
        except UnknownTable:
            return
        demand(rows <= decided.keys(), "loop", f"{rows - decided.keys()} were never acknowledged")
        first = min((decided[key] for key in rows), default=0)
        lost = {key for key, lsn in decided.items() if rows and lsn >= first} - rows
        demand(not lost, "loop", f"{lost} are not there")
