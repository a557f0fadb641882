"""What runs on the tables: setup, run, check, each with its own idea of what must hold."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.records.requests import ANY_GENID, Outcome
from leasehold.schema_change.plan.answers import read_jobs
from tests.simulation.client import Asked, Client
from tests.simulation.harm import demand
from tests.simulation.telling_client import TellingClient
from tests.support.memory_store.snapshot import MemorySnapshot
from tests.support.memory_store.store import MemoryStore

if TYPE_CHECKING:
    from tests.simulation.simulation import Simulation

MS = 1_000_000
NOBODYS_PARTITION = 15
UNDEFINED_TABLE = "42P01"
AT_COMMIT = "at commit"
"""As a SQL session asks for an update that the master is to compute
(`transaction/commit_time_updates.py`). """


def computed(column: str, change: int) -> dict[str, Any]:
    return {"expr": f'("{column}" + $1)', "args": [change], "types": ["bigint"]}


def _client(
    name: str, number: int, sim: Simulation, rng: random.Random, *, asks_again: bool
) -> Client:
    settings = sim.plan.shape.fast_requests
    if not settings.on:
        return Client(name, number, sim, rng, asks_again=asks_again)
    return TellingClient(name, number, sim, rng, asks_again=asks_again, settings=settings)


class Workload:
    """`pause_ms` between two requests, on average. `pump` runs until `stop`."""

    tables: tuple[str, ...] = ()

    def __init__(self, sim: Simulation, rng: random.Random, number: int, pause_ms: int) -> None:
        self.sim = sim
        self.rng = rng
        self._pause_ms = pause_ms
        self.on = False
        name = type(self).__name__.lower()
        patient = rng.random() < 0.5
        self.client = _client(name, number, sim, rng, asks_again=not patient)

    def setup(self) -> None:
        """Its tables."""

    def backfill(self) -> None:
        """Its first rows, once the tables are there."""

    def act(self) -> None: ...

    def check(self, snapshot: MemorySnapshot, where: str) -> None:
        """What holds in every snapshot."""

    def check_end(self, snapshot: MemorySnapshot) -> None:
        """What holds once all requests are answered."""

    def start(self) -> None:
        self.on = True
        self._plan()

    def stop(self) -> None:
        self.on = False

    def _plan(self) -> None:
        self.later(self.rng.randrange(1, 2 * self._pause_ms), self._pump)

    def _pump(self) -> None:
        if self.on:
            self.act()
            self._plan()

    def later(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.sim.scheduler.later(delay_ms * MS, action)

    def rows(self, snapshot: MemorySnapshot, table: str) -> dict[Any, dict[str, Any]]:
        """Rows by the value of their key, as the newest version shows them."""
        descriptor = snapshot.newest(table)
        found = {}
        for key, row in snapshot.scan(descriptor, None, None, rows_max=10_000):
            found[key[0]] = _named(descriptor, row.values)
        return found

    def seen(self, table: str, key: int) -> tuple[dict[str, Any], int, int] | None:
        """(columns, genid, version) of a row as some coherent replicant shows it now."""
        snapshot = self.sim.read()
        if snapshot is None:
            return None
        descriptor = snapshot.newest(table)
        row = snapshot.get(descriptor, (key,))
        if row is None:
            return None
        return _named(descriptor, row.values), max(row.genids.values()), descriptor.version


def _named(descriptor: Descriptor, values: Any) -> dict[str, Any]:
    return {name: values.get(c.element_id) for name, c in descriptor.by_name.items()}


class Bank(Workload):
    """Transfers of two rows each that expect both genids: the sum never changes (T1)."""

    tables = ("accounts",)
    accounts = 5
    each = 100

    def setup(self) -> None:
        self.client.ask(
            {"sql": "create table accounts (id bigint primary key, balance bigint not null)"}
        )
        self._opened = self._open_accounts()

    def backfill(self) -> None:
        """Open the accounts again if they were asked for before there was a table: retransmission
        may turn the two requests round."""
        if self._opened.final is not None and self._opened.final.code == UNDEFINED_TABLE:
            self._open_accounts()

    def _open_accounts(self) -> Asked:
        rows = [
            {
                "table": "accounts",
                "op": "insert",
                "key": {"id": n},
                "values": {"balance": self.each},
            }
            for n in range(self.accounts)
        ]
        return self.client.ask({"transaction": rows})

    def act(self) -> None:
        giver, taker = self.rng.sample(range(self.accounts), 2)
        amount = self.rng.randrange(1, 20)
        way = self.rng.choice(("retry", "fail", "replay", AT_COMMIT))
        fields = self._transfer(giver, taker, amount, way)
        if fields is None:
            return
        again = None
        if way in ("replay", AT_COMMIT):
            again = lambda: self._transfer(giver, taker, amount, way)  # noqa: E731
        self.client.ask(fields, again=again)

    def _transfer(self, giver: int, taker: int, amount: int, way: str) -> dict[str, Any] | None:
        seen = [self.seen("accounts", giver), self.seen("accounts", taker)]
        operations = []
        for row, key, change in zip(seen, (giver, taker), (-amount, amount), strict=True):
            if row is None:
                return None
            columns, genid, version = row
            value: Any = columns["balance"] + change
            if way == "retry":
                # Recomputed by the pipeline: it must follow from whatever row is there then.
                sign = "-" if change < 0 else "+"
                value = {"expr": f"balance {sign} {amount}"}
            elif way == AT_COMMIT:
                value, genid = computed("balance", change), ANY_GENID
            operation = {
                "table": "accounts",
                "op": "update",
                "key": {"id": key},
                "values": {"balance": value},
                "expect": genid,
            }
            if self.rng.random() < 0.5 and way != "replay":
                operation["schema_version"] = version
            operations.append(operation)
        if way == "retry":
            operations = [{k: v for k, v in o.items() if k != "schema_version"} for o in operations]
        versions = {o.get("schema_version") for o in operations}
        if len(versions) > 1:
            operations = [{k: v for k, v in o.items() if k != "schema_version"} for o in operations]
        return {"transaction": operations, "on_conflict": "replay" if way == AT_COMMIT else way}

    def check(self, snapshot: MemorySnapshot, where: str) -> None:
        rows = self.rows(snapshot, "accounts")
        total = sum(row["balance"] for row in rows.values())
        demand(
            total == self.accounts * self.each or not rows,
            "T1",
            f"accounts hold {total} {where}: {rows}",
        )


class Increments(Workload):
    """Each committed increment counts once, however often it was asked, retried or replayed."""

    tables = ("counters",)
    counters = 3

    def setup(self) -> None:
        self.client.ask({"sql": "create table counters (id int primary key, n bigint not null)"})

    def backfill(self) -> None:
        for key in range(self.counters):
            values = {"n": 0}
            self.client.ask(
                {"table": "counters", "op": "insert", "key": {"id": key}, "values": values}
            )
        self.asked: dict[bytes, int] = {}

    def act(self) -> None:
        key = self.rng.randrange(self.counters)
        way = self.rng.choice(("blind", "retry", "replay", "fail", AT_COMMIT))
        again = None
        if way in ("replay", AT_COMMIT):
            again = lambda: self._fields(key, way)  # noqa: E731
        fields = self._fields(key, way)
        if fields is not None:
            asked = self.client.ask(fields, again=again)
            self.asked[asked.id] = key

    def _fields(self, key: int, way: str) -> dict[str, Any] | None:
        fields: dict[str, Any] = {
            "table": "counters",
            "op": "update",
            "key": {"id": key},
            "values": {"n": {"expr": "n + 1"}},
        }
        if way == "blind":
            return fields
        seen = self.seen("counters", key)
        if seen is None:
            return None
        columns, genid, version = seen
        if way == AT_COMMIT:
            fields |= {"expect": ANY_GENID, "on_conflict": "replay"}
            fields["values"] = {"n": computed("n", 1)}
            if self.rng.random() < 0.5:
                fields["schema_version"] = version
            return fields
        fields |= {"expect": genid, "on_conflict": way}
        # A constant that was computed of the row is no more lost by a retry than an expression.
        if way in ("replay", "fail") or (way == "retry" and columns["n"] % 2):
            fields["values"] = {"n": columns["n"] + 1}
        if way == "fail" or self.rng.random() < 0.3:
            fields["schema_version"] = version
        return fields

    def check_end(self, snapshot: MemorySnapshot) -> None:
        counted = dict.fromkeys(range(self.counters), 0)
        for asked in self.client.asked.values():
            if asked.id in self.asked and asked.final is not None and asked.final.lsn:
                counted[self.asked[asked.id]] += asked.final.rows_affected
        rows = {key: row["n"] for key, row in self.rows(snapshot, "counters").items()}
        demand(rows == counted, "R1", f"counters are {rows}, committed were {counted}")


class Barriers(Workload):
    """Asks for places behind all that was answered; each answer is judged where it is given
    (T6)."""

    def act(self) -> None:
        cluster = self.sim.cluster
        fields = {"reply_to": NOBODYS_PARTITION, "barrier": [None]}
        cluster.bus.once_there(lambda: cluster.submit(fields))


class Items(Workload):
    """Blind inserts, updates, deletes and upserts, new columns included; the log's commits played
    on a dictionary must give the rows."""

    tables = ("items",)
    keys = 25
    kinds: tuple[str, ...] = ("insert", "insert", "update", "update", "delete", "upsert")

    def setup(self) -> None:
        self.client.ask(
            {"sql": "create table items (id bigint primary key, name text, qty int not null)"}
        )
        self.sent: dict[bytes, tuple[str, int, dict[str, Any]]] = {}

    def act(self) -> None:
        key = self.rng.randrange(self.keys)
        kind = self.rng.choice(self.kinds)
        values: dict[str, Any] = {}
        if kind != "delete":
            values = {"name": f"n{self.rng.randrange(6)}", "qty": self.rng.randrange(100)}
            if kind == "update" and self.rng.random() < 0.5:
                del values[self.rng.choice(("name", "qty"))]
        fields: dict[str, Any] = {"table": "items", "op": kind, "key": {"id": key}}
        snapshot = self.sim.read()
        if snapshot is not None and kind != "delete":
            descriptor = snapshot.newest("items")
            added = [n for n in descriptor.by_name if n not in ("id", "name", "qty")]
            if added and self.rng.random() < 0.7:
                name = self.rng.choice(added)
                values[name] = self._value(descriptor, name)
                fields["schema_version"] = descriptor.version
            elif self.rng.random() < 0.4:
                fields["schema_version"] = descriptor.version
        if values:
            fields["values"] = values
        asked = self.client.ask(fields)
        self.sent[asked.id] = (kind, key, values)

    def _value(self, descriptor: Descriptor, name: str) -> Any:
        if descriptor.by_name[name].type.name == "text":
            return f"v{self.rng.randrange(9)}"
        return self.rng.randrange(9)

    def check_end(self, snapshot: MemorySnapshot) -> None:
        model: dict[int, dict[str, Any]] = {}
        for _lsn, commit in self.sim.reference.in_order:
            sent = self.sent.get(commit.request_id)
            if sent is None:
                continue
            kind, key, values = sent
            if kind == "truncate":
                model.clear()
            elif kind == "delete":
                model.pop(key, None)
            elif kind == "insert":
                demand(key not in model, "T1", f"row {key} was inserted twice")
                model[key] = dict(values)
            elif key in model or kind == "upsert":
                model.setdefault(key, {}).update(values)
        rows = self.rows(snapshot, "items")
        demand(rows.keys() == model.keys(), "T0", f"items {sorted(rows)}, model {sorted(model)}")
        for key, values in model.items():
            for name, value in values.items():
                # A column whose job was cancelled is gone, and so are its values.
                if name in rows[key]:
                    demand(
                        rows[key][name] == value,
                        "T0",
                        f"item {key} has {name} = {rows[key][name]!r}, last written {value!r}",
                    )


class SchemaChanger(Workload):
    """Indexes and columns on the others' tables; some jobs are paused, resumed, cancelled."""

    def setup(self) -> None:
        self._number = 0
        self.jobs: list[int] = []

    def act(self) -> None:
        self._number += 1
        number = self._number
        table, column = self.rng.choice(
            (("items", "name"), ("items", "qty"), ("accounts", "balance"), ("counters", "n"))
        )
        statement = self.rng.choice(
            (
                f"create index i{number} on {table} ({column})",
                f"alter table {table} add column c{number} text",
                f"alter table {table} add column d{number} int not null default {number}",
            )
        )
        self.client.ask({"sql": statement}, done=self._accepted)

    def _accepted(self, outcome: Outcome) -> None:
        for job in read_jobs(outcome.answer) if outcome.lsn else ():
            if job not in self.jobs:
                self._begun(job)

    def _begun(self, job: int) -> None:
        self.jobs.append(job)
        fate = self.rng.random()
        if fate < 0.25:
            self.later(self.rng.randrange(1, 1_500), lambda: self._control(job, "cancel"))
        elif fate < 0.5:
            self.later(self.rng.randrange(1, 800), lambda: self._control(job, "pause"))
            self.later(self.rng.randrange(800, 2_500), lambda: self._resume(job))

    def _control(self, job: int, action: str) -> None:
        self.client.ask({"job": job, "action": action})

    def _resume(self, job: int) -> None:
        """Until it is not paused any more: pausing and resuming may overtake each other."""
        found = self.sim.reference.catalog.jobs.get(job)
        if found is not None and found.status.value == "paused":
            self._control(job, "resume")
        if found is None or not found.status.ended:
            self.later(1_000, lambda: self._resume(job))


def newest_snapshot(store: MemoryStore) -> MemorySnapshot:
    return store.open_snapshot()
