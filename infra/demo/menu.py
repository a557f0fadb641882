"""The demo's other schema changes, on the small tables and under the same load: a unique index over
duplicates, a foreign key, a type change, a dropped column, a lock; and a plan that is only shown.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from infra.demo.changes import Change, follow
from infra.demo.lock_duel import Duel, fight
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Status
from leasehold.client.change_producer import ChangeProducer
from leasehold.model.records.requests import Outcome
from leasehold.replica.replica import Replica

UNIQUE: Final = "CREATE UNIQUE INDEX airports_name ON airports (name)"
REFER: Final = (
    "ALTER TABLE weather ADD CONSTRAINT weather_origin FOREIGN KEY (origin) REFERENCES airports"
)
RETYPE: Final = "ALTER TABLE planes ALTER COLUMN seats TYPE integer"
DROP: Final = "ALTER TABLE flights DROP COLUMN gate"
LOCK: Final = "ALTER TABLE planes ADD LOCK cabin COVERING (seats)"
PLANE: Final = "N14228"
SEATS: Final = 100_000
"""More than a smallint holds: the plane takes them once the column is an integer."""
MANY_SEATS: Final = {
    "table": "planes",
    "op": "update",
    "key": {"tailnum": PLANE},
    "values": {"seats": SEATS},
}
WEATHER_OF_NOWHERE: Final = {
    "table": "weather",
    "op": "insert",
    "key": {"origin": "???", "time_hour": "2013-01-01T00:00:00Z"},
    "values": {},
}
NO_MORE_JFK: Final = {"table": "airports", "op": "delete", "key": {"faa": "JFK"}}
DUEL_COLUMNS: Final = ("seats", "engines")
DUEL_S: Final = 2.5
OUTCOME_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Shown:
    """What happened, for the verdict. `airports`: its descriptors before and after the failed
    job; `broken`: outcomes of requests that would break the foreign key; `too_many`: those of a
    plane with SEATS seats before and after the type change."""

    plan: list[dict[str, Any]]
    last_job: int
    unique: Change
    refer: Change
    retype: Change
    drop: Change
    lock: Change
    airports: tuple[Descriptor, Descriptor]
    broken: tuple[Outcome, Outcome]
    too_many: tuple[Outcome, Outcome]
    duels: tuple[Duel, Duel]

    @property
    def changes(self) -> list[Change]:
        return [self.unique, self.refer, self.retype, self.drop, self.lock]


class Menu:
    def __init__(
        self,
        producer: ChangeProducer,
        watch: ClusterWatch,
        replica: Replica,
        console: Console,
        say: Callable[[str], None],
    ) -> None:
        self._producer = producer
        self._watch = watch
        self._replica = replica
        self._console = console
        self._say = say

    def run(self) -> Shown:
        """Raises RuntimeError when a job ends as nobody foresaw."""
        self._say("a UNIQUE index over airports that share their names; the job must fail")
        before = self._descriptor("airports")
        unique = self._follow(UNIQUE, Status.FAILED)
        for _, _, key, words in unique.job.findings:
            self._console.print(f"  [yellow]{', '.join(key)}[/yellow]: {words}")
        table = before.table_id
        self._watch.wait_for(  # its version events may come after its end
            lambda view: view.tables[table].descriptor.version >= unique.job.versions[table],
            OUTCOME_TIMEOUT_S,
        )
        after = self._descriptor("airports")

        self._say("a foreign key from weather to airports, then both ways of breaking it")
        refer = self._follow(REFER)
        broken = (self._ask(WEATHER_OF_NOWHERE), self._ask(NO_MORE_JFK))

        self._say("a type change: first shown by EXPLAIN, which changes nothing, then made")
        refused = self._ask(MANY_SEATS)
        last_job = max(self._watch.view.jobs)
        plan = self._explain(RETYPE)
        retype = self._follow(RETYPE)
        taken = self._ask(MANY_SEATS)

        self._say("DROP COLUMN of what was added in the beginning, under its writers")
        drop = self._follow(DROP)

        self._say(f"two writers of one plane, one of its {' and one of its '.join(DUEL_COLUMNS)}")
        first = self._fight("under one lock")
        lock = self._follow(LOCK)
        second = self._fight("under two locks")
        return Shown(
            plan,
            last_job,
            unique,
            refer,
            retype,
            drop,
            lock,
            (before, after),
            broken,
            (refused, taken),
            (first, second),
        )

    def _follow(self, sql: str, end: Status = Status.SUCCEEDED) -> Change:
        return follow(self._producer, self._watch, self._console, sql, lambda _: None, end)

    def _fight(self, words: str) -> Duel:
        self._replica.wait_coherent()
        duel = fight(self._replica, "planes", PLANE, DUEL_COLUMNS, DUEL_S)
        self._console.print(f"  {words}: {duel}")
        return duel

    def _ask(self, request: dict[str, Any]) -> Outcome:
        outcome = self._producer.submit({**request, "on_conflict": "fail"}).result(
            OUTCOME_TIMEOUT_S
        )
        words = f"refused, {outcome.code}: {outcome.message}" if outcome.code else "committed"
        self._console.print(f"  {request['op']} {request['table']} {request['key']}: {words}")
        return outcome

    def _descriptor(self, name: str) -> Descriptor:
        tables = self._watch.view.tables.values()
        return next(table.descriptor for table in tables if table.descriptor.name == name)

    def _explain(self, sql: str) -> list[dict[str, Any]]:
        outcome = self._producer.submit({"sql": f"EXPLAIN {sql}"}).result(OUTCOME_TIMEOUT_S)
        if not outcome.lsn:
            raise RuntimeError(f"EXPLAIN {sql}: {outcome.message}")
        plan: list[dict[str, Any]] = outcome.answer["plan"]
        table = Table("step", "version", "changes", "then waits for", box=None)
        for row in plan:
            point = "\n[yellow]point of no return[/yellow]" if row["point_of_no_return"] else ""
            table.add_row(
                str(row["step"]), str(row["version"]), row["changes"], row["waits_for"] + point
            )
        self._console.print(f"[bold]EXPLAIN {sql}[/bold]")
        self._console.print(table)
        return plan
