"""One round: a schedule on a cluster that runs, with clients of every kind, and its verdict."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from infra.kafka.brokers import ONE
from leasehold import Agent, ChangeProducer
from leasehold.admin.view import ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.namespaces import as_shown
from leasehold.model.records.acks import Ack
from tests.faults.checkers.changes import Shapes, count_changes, table_of
from tests.faults.checkers.kept import Cell, cells_of
from tests.faults.cluster import FaultCluster, read_windows
from tests.faults.injection import Injection
from tests.faults.kinds import CLOCKS, ENDS_ITS_PROCESS, SHORT_OF_MEMORY
from tests.faults.parts import SQL
from tests.faults.recovery import Waits, waits_of
from tests.faults.schedule import Event, Schedule
from tests.faults.verdict import Counts, Evidence, judge
from tests.faults.workload.following_service import Uses
from tests.faults.workload.history import Op, Told, read_ops
from tests.faults.workload.menu_client import MenuClient
from tests.faults.workload.orders import Orders
from tests.faults.workload.recorder import Recorder
from tests.faults.workload.request_clients import (
    RequestClient,
    RetriedClient,
    WriteProbe,
    answer_of,
    outcome_of,
)
from tests.faults.workload.sql_clients import (
    Banker,
    Constrainer,
    Inserter,
    Lingerer,
    PairInserter,
    ReadProbe,
    RegisterClient,
    SchemaChanger,
    SqlClient,
    Transactor,
    TurnTaker,
    Values,
)
from tests.faults.workload.sql_sessions import PsycopgSession, SqlFailure
from tests.faults.workload.tables import LATE_BELOW, MENU, Tables
from tests.faults.workload.version_clients import (
    Clearer,
    ColumnWriter,
    OlderWriter,
    Stayer,
    Widener,
)
from tests.matrix.shape import shape_of
from tests.support.cluster.system_cluster import check, settings_of

WARM_UP_S: Final = 0.7
"""Before the first fault, so that there is something to lose."""
AFTER_S: Final = 0.7
"""Behind full coherency: what goes wrong late is seen, too."""
COHERENT_S: Final = 90.0
COHERENT_SLOW_S: Final = 240.0
"""Of three brokers: who has lost its disk copies all from the others, beside a dozen processes; and
of Spark, whose start takes a minute there."""
SET_UP_S: Final = 60.0
FED_S: Final = 60.0
CLIENTS_END_S: Final = 120.0
"""A request is asked until its outcome is known: for ever, where nobody can decide any more."""
LOG_BYTES_MAX: Final = 32 << 20
LOOK_AGAIN_S: Final = 0.02
LINGER_S: Final = 5.5
"""Longer than the session of an agent that is cut off, so that nobody waits for it any more."""
STAY_S: Final = 0.4
CHECKS_MAX: Final = 5
DONE_BEFORE: Final = ("42P07", "42P01", "23505", "3F000")
"""What a statement is refused with that a lost try has carried out."""
NO_MEMORY: Final = (
    *("MemoryError", "failed to map segment", "Cannot allocate memory"),
    "can't start new thread",
)
"""As Python says it, the loader of a library's code, and the system."""


class RoundFailure(Exception):
    """The round could not be judged: it could not begin, or everything did not become coherent."""


@dataclass(slots=True)
class Report:
    """What came of a round. `wrong`: what contradicts a promise, a sentence each."""

    schedule: Schedule
    wrong: list[str] = field(default_factory=list)
    waits: Waits | None = None
    operations: int = 0
    changes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Items of the menu of schema changes, by what was told of them (`count_changes`)."""
    took_s: float = 0.0


class Rounds:
    """Rounds on one cluster, one after the other."""

    def __init__(self, cluster: FaultCluster, folder: Path) -> None:
        self._cluster = cluster
        self._folder = folder
        self._pause = threading.Event()  # never set: it paces
        self._settings = settings_of(cluster, "harness")
        self._producer = ChangeProducer(self._settings)
        self._watch = ClusterWatch(settings_of(cluster, "watcher"))
        self._agent = Agent(settings_of(cluster, "h1"))
        self._injection = Injection(cluster, folder)
        self._number = 0

    @property
    def effects(self) -> Mapping[str, int]:
        """Return how many calls and pages faults of disks have befallen so far, by their kind."""
        return self._injection.effects

    def close(self) -> None:
        """Leave the cluster; it goes on."""
        self._producer.close()
        self._watch.close()
        self._agent.close()

    def run(self, schedule: Schedule) -> Report:
        """Run one round and judge it."""
        begun_s = time.monotonic()
        self._number += 1
        report = Report(schedule)
        one = _Round(self, schedule, self._folder / f"round-{self._number}", self._number)
        try:
            one.run(report)
        except RoundFailure as error:
            report.wrong.append(str(error))
        except Exception as error:
            report.wrong.append(f"the harness: {type(error).__name__}: {error}")
            raise
        finally:
            self._injection.mend_all()
            report.took_s = time.monotonic() - begun_s
        return report


class _Round:
    def __init__(self, rounds: Rounds, schedule: Schedule, folder: Path, number: int) -> None:
        self._cluster = rounds._cluster
        self._producer = rounds._producer
        self._watch = rounds._watch
        self._agent = rounds._agent
        self._injection = rounds._injection
        self._pause = rounds._pause
        self._schedule = schedule
        self._folder = folder
        self._tables = Tables(number)
        self._number = number
        self._parts = self._cluster.parts
        self._requests: list[RequestClient] = []
        self._ended: list[str] = []
        self._lives: dict[str, list[dict[str, Any]]] = {}  # of followers
        self._fed_bytes: dict[str, int] = {}
        self._begun_epoch = 0
        self._logged = {name: self._log_of(name).stat().st_size for name in self._parts.processes}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "schedule.json").write_text(schedule.to_json())

    def run(self, report: Report) -> None:
        self._set_up()
        for event in self._schedule.events:
            self._injection.prepare(event)
        with Recorder(self._folder / "harness.jsonl") as recorder, self._uses():
            clients = self._clients(recorder)
            self._order(work=True)
            with _working(clients), self._mended():
                self._pause.wait(WARM_UP_S)
                first_ns, mended_ns = self._carry_out()
                coherent_ns = self._await_coherent()
                self._pause.wait(AFTER_S)
        self._order(work=False)
        ops = self._ops()
        evidence = self._evidence(ops)
        report.wrong += self._ended
        report.wrong += self._defects()
        report.wrong += judge(evidence)
        report.wrong += self._checked()
        report.waits = waits_of(ops, first_ns, mended_ns, coherent_ns)
        report.operations = len(ops)
        report.changes = count_changes(ops)
        if not report.wrong:  # else its cluster is left
            self._tear_down(ops)

    @contextmanager
    def _mended(self) -> Iterator[None]:
        """Whoever is interrupted mends first: clients may wait for what is broken."""
        try:
            yield
        except BaseException:
            self._injection.mend_all()
            raise

    @property
    def _is_slow(self) -> bool:
        """Whether there is more than what two processors start in a minute."""
        return self._parts.brokers != ONE or self._parts.has_spark

    # ------------------------------------------------------------ before and behind

    def _session(self) -> PsycopgSession:
        """A session that no fault touches, at the first replicant that takes it."""
        for name in self._parts.replicants:
            try:
                return PsycopgSession(self._cluster.sql_port(name))
            except SqlFailure:
                continue
        raise SqlFailure("", "no replicant takes a session", lost=True)

    def _statements(self, statements: Sequence[str]) -> None:
        """Run each until it has been done; a try that came through unseen is no failure."""
        given_s = COHERENT_SLOW_S if self._is_slow else SET_UP_S
        give_up_s = time.monotonic() + given_s
        for text in statements:
            while True:
                try:
                    session = self._session()
                    try:
                        # Where no job ends any more its statement would wait for ever.
                        session.run(f"SET statement_timeout = {int(given_s * 1e3)}")
                        session.run(text)
                    finally:
                        session.close()
                    break
                except SqlFailure as error:
                    if error.sqlstate in DONE_BEFORE:
                        break
                    if time.monotonic() > give_up_s:
                        words = f"{text[:60]}: {error.sqlstate} {error}"
                        raise RoundFailure(f"after {given_s:g} s still refused: {words}") from error
                    self._pause.wait(0.1)

    def _set_up(self) -> None:
        self._await_coherent()
        self._begun_epoch = self._watch.view.log.epoch
        self._statements(self._tables.create())

    def _tear_down(self, ops: Sequence[Op]) -> None:
        schemas = [op.value["schema"] for op in ops if op.kind == "menu"]
        self._statements([f"DROP SCHEMA {schema} CASCADE" for schema in schemas])
        self._statements(self._tables.drop())

    def _order(self, *, work: bool) -> None:
        orders = Orders(
            self._number, work, str(self._folder), self._schedule.seed, self._schedule.levels
        )
        orders.write(self._cluster.data)

    @contextmanager
    def _uses(self) -> Iterator[None]:
        """An agent of the harness's own, whose links nothing disturbs, beside the others."""
        with (self._folder / "h1.fed").open("a", buffering=1) as file:
            uses = Uses(self._agent, "h1", self._tables, file)
            try:
                yield
            finally:
                uses.stop()

    def _clients(self, recorder: Recorder) -> list[SqlClient | RequestClient]:
        ports = [self._cluster.links.reserve(f"{name}-{SQL}") for name in self._parts.replicants]
        seed, values = self._schedule.seed, Values(1)
        given = (recorder, self._tables, ports)

        def sql(
            kind: Callable[..., SqlClient], name: str, place: int, driver: str, **more: Any
        ) -> SqlClient:
            return kind(name, *given, place, driver, seed, values, **more)

        made: list[SqlClient | RequestClient] = [
            sql(RegisterClient, "register-p", 0, "psycopg"),
            sql(RegisterClient, "register-a", 1, "asyncpg"),
            sql(Banker, "bank-p", 0, "psycopg"),
            sql(Banker, "bank-a", 1, "asyncpg"),
            sql(Inserter, "insert-p", 1, "psycopg"),
            sql(Inserter, "insert-a", 0, "asyncpg"),
            sql(SchemaChanger, "schema", 0, "psycopg"),
            sql(SchemaChanger, "schema-2", 1, "psycopg"),
            sql(PairInserter, "pair", 1, "psycopg"),
            *(sql(TurnTaker, f"turn-{n}", n, "psycopg") for n in range(len(ports))),
            sql(Stayer, "stay", 1, "psycopg", between_s=STAY_S),
            sql(Widener, "widen", 0, "psycopg"),
            sql(ColumnWriter, "column", 1, "psycopg"),
            sql(OlderWriter, "older-p", 1, "psycopg"),
            sql(OlderWriter, "older-a", 0, "asyncpg"),
            sql(Lingerer, "linger", 0, "psycopg", open_s=LINGER_S, first=LATE_BELOW),
            sql(Lingerer, "linger-2", 1, "psycopg", open_s=LINGER_S / 2),
            sql(Lingerer, "linger-3", 1, "psycopg", open_s=LINGER_S / 3),
            sql(Constrainer, "constraint", 1, "psycopg"),
            sql(MenuClient, "menu", 0, "psycopg", fills=self._parts.has_spark),
        ]
        if len(ports) > 2:
            made.append(sql(Banker, "bank-3", 2, "psycopg"))
            made.append(sql(Inserter, "insert-3", 2, "asyncpg"))
        made += [sql(ReadProbe, f"look-{n}", n, "psycopg") for n in range(len(ports))]
        for level in self._schedule.levels:
            for place, driver in enumerate(("psycopg", "asyncpg")):
                made.append(sql(Transactor, f"{level}-{driver}", place, driver, level=level))
        asking = (recorder, self._tables, self._producer, seed, values)
        self._requests = [RequestClient("request", *asking), WriteProbe("count", *asking)]
        if self._parts.has_spark:
            made.append(sql(Clearer, "clear", 1, "psycopg"))
            self._requests += [RetriedClient(f"retried-{n}", *asking) for n in range(2)]
        return [*made, *self._requests]

    # ------------------------------------------------------------ the faults

    def _carry_out(self) -> tuple[int, int]:
        """Begin and mend each fault at its time; → when the first one befell, and when the last
        one was mended, in ns of CLOCK_MONOTONIC."""
        steps: list[tuple[int, bool, Event]] = []
        for event in self._schedule.events:
            steps += [(event.at_ms, True, event), (event.end_ms, False, event)]
        steps.sort(key=lambda step: step[0])  # stable: what lasts no time begins before it ends
        begun_s, first_ns = time.monotonic(), 0
        for at_ms, begins, event in steps:
            self._pause.wait(max(0.0, begun_s + at_ms / 1e3 - time.monotonic()))
            if begins:
                first_ns = first_ns or time.monotonic_ns()
                self._injection.begin(event)
            else:
                self._injection.mend(event)
        return first_ns or time.monotonic_ns(), time.monotonic_ns()

    def _await_coherent(self) -> int:
        """Wait until every process is there, one master decides, every node is coherent, writes are
        answered and reads, too; → when. Raises RoundFailure where that does not come."""
        before = {name: seen.ack for name, seen in self._watch.view.nodes.items()}
        given_s = COHERENT_SLOW_S if self._is_slow else COHERENT_S
        give_up_s = time.monotonic() + given_s
        while True:
            self._start_what_ended()
            missing = self._incoherent(self._watch.view, before)
            if not missing:
                return time.monotonic_ns()
            if time.monotonic() > give_up_s:
                raise RoundFailure(f"not coherent {given_s:g} s behind the last fault: {missing}")
            self._pause.wait(LOOK_AGAIN_S)

    def _start_what_ended(self) -> None:
        for name in (*self._cluster.server_names, *self._parts.processes):
            if not self._cluster.is_running(name):
                last = self._cluster.log_tail(name, 1)
                events = self._schedule.events
                if not any(e.who == name and e.kind in ENDS_ITS_PROCESS for e in events):
                    self._ended.append(f"{name} ended by itself; its last line: {last}")
                self._cluster.start(name, wait=False)

    def _incoherent(self, view: ClusterView, before: Mapping[str, Ack]) -> str:
        """Return what is not yet as it should be; "" when nothing is. `before`: what each node had
        acknowledged, which is no news (their clocks tell nothing: they are moved)."""
        for name in self._parts.processes:
            if not self._cluster.is_ready(name):
                return f"{name} is not ready"
        if view.log.master not in self._parts.masters:
            return "no master is known"
        for name in self._parts.nodes:
            found = view.nodes.get(name)
            if found is None or found.ack == before.get(name):
                return f"{name} has not been heard of"
            if name in self._parts.readers and not found.ack.coherent:
                return f"{name} is not coherent"
            if found.ack.role == "master" and name != view.log.master:
                seen = view.log
                return (
                    f"{name} takes itself for master of epoch {found.ack.epoch}, and the log has"
                    f" {seen.master} of epoch {seen.epoch} at offset {seen.end},"
                    f" {len(seen.claims)} Claims behind"
                )
        if not self._cluster.redis.master():
            return "Redis has no master"
        several = len(self._parts.broker_names) > 1
        if several and not self._cluster.brokers.all_in_sync(self._cluster.kafka_settings):
            return "brokers have not caught up with each other"
        return ""

    # ------------------------------------------------------------ what is there in the end

    def _ops(self) -> list[Op]:
        """All operations, once each embedded replica has said what it holds."""
        give_up_s = time.monotonic() + COHERENT_S
        while True:
            ops = read_ops(path.read_text() for path in self._folder.glob("*.jsonl"))
            said = {op.client.rsplit("-", 1)[0] for op in ops if op.kind == "final" and op.ended_ns}
            if said >= set(self._parts.embedded):
                return ops
            self._start_what_ended()
            if time.monotonic() > give_up_s:
                raise RoundFailure("an embedded replica has not said what it holds")
            self._pause.wait(LOOK_AGAIN_S)

    def _evidence(self, ops: list[Op]) -> Evidence:
        first: dict[str, list[dict[str, Any]]] = {}
        again: dict[str, dict[str, Any]] = {}
        counted: list[int] = []
        for op in ops:
            answer = op.value.get("answer")
            if op.kind == "count" and answer and answer["lsn"]:
                counted.append(answer["lsn"])
        for client in self._requests:
            told = [op for op in ops if op.client == client.name and "answer" in op.value]
            sample = list(client.asked.items())[-40:]
            for (request_id, request), op in zip(sample, told[-len(sample) :], strict=False):
                first[request_id] = [op.value["answer"]]
                again[request_id] = answer_of(outcome_of(self._producer, request))
        return Evidence(
            ops=ops,
            tables=self._tables,
            nodes={name: self._rows_of(name, ops) for name in self._parts.readers},
            first=first,
            again=again,
            counted=counted,
            fed=self._fed,
            seconds=FED_S,
            activity=self._counts() if self._parts.counting else None,
            shapes=self._shapes,
            menu_rows={name: self._menu_rows_of(name, ops) for name in self._parts.replicants},
            kept={name: self._kept_by(name, ops) for name in self._parts.replicants},
        )

    def _shapes(self) -> Shapes:
        """The public tables of the menu in words, as their newest version events say them."""
        shapes: dict[str, Sequence[str]] = {}
        for table in self._watch.view.tables.values():
            schema = table.descriptor.schema
            if schema.startswith(MENU):
                shape = shape_of(as_shown(table.descriptor))
                # In a default a sequence's name has its schema, and both are quoted.
                words = [word.replace(f"{schema}.", "").replace('"', "") for word in shape]
                if words:
                    shapes[f"{schema}.{words[0].removeprefix('table ')}"] = words
        return shapes

    def _menu_rows_of(self, name: str, ops: Sequence[Op]) -> dict[str, int]:
        """How many rows each table of the menu has whose change was acknowledged."""
        counts: dict[str, int] = {}
        session = PsycopgSession(self._cluster.sql_port(name))
        try:
            for op in ops:
                if op.kind == "change" and op.told is Told.YES and op.value["after"]:
                    table = table_of(op)
                    with suppress(SqlFailure):  # then there is no such table, which is told
                        counts[table] = session.run(f"SELECT count(*) FROM {table}")[0][0]
        finally:
            session.close()
        return counts

    def _kept_by(self, name: str, ops: Sequence[Op]) -> dict[Cell, Any]:
        """What a node shows of the values that one client alone has written."""
        cells: dict[Cell, Any] = {}
        session = PsycopgSession(self._cluster.sql_port(name))
        try:
            for table, column in {cell[:2] for op in ops for cell in cells_of(op)}:
                with suppress(SqlFailure):  # then it is not shown, which is told
                    for row, value in session.run(f"SELECT id, {column} FROM {table}"):
                        cells[Cell(table, column, row)] = value
        finally:
            session.close()
        return cells

    def _counts(self) -> Counts | None:
        """What was counted, unless the time that it is counted by was moved."""
        view, kinds = self._watch.view, {event.kind for event in self._schedule.events}
        if kinds & CLOCKS:
            return None
        (counter,) = (
            table_id
            for table_id, table in view.tables.items()
            if table.event.name == self._tables.counter
        )
        return Counts(self._windows, counter, view.log.epoch == self._begun_epoch)

    def _windows(self) -> list[dict[str, Any]]:
        return read_windows(self._cluster)

    def _rows_of(self, name: str, ops: list[Op]) -> dict[str, list[tuple[Any, ...]]]:
        """The base columns of the tables that every node is asked for."""
        tables = self._tables
        if name in self._parts.embedded:
            final = next(op for op in reversed(ops) if op.kind == "final" and op.ended_ns)
            rows = {table: [dict(row) for row in its] for table, its in final.value["rows"].items()}
            return {
                tables.members: [(row["number"], row["tag"]) for row in rows[tables.members]],
                tables.lists: [(row["id"], row["items"]) for row in rows[tables.lists]],
            }
        session = PsycopgSession(self._cluster.sql_port(name))
        try:
            return {
                table: [tuple(row) for row in session.run(f"SELECT {columns} FROM {table}")]
                for table, columns in (
                    (tables.members, "number, tag"),
                    (tables.lists, "id, items"),
                    (tables.accounts, "id, balance"),
                    (tables.registers, "id, value"),
                    (tables.counter, "id, n"),
                    (tables.late, "id, v"),
                    (tables.loose, "0, tag"),
                    (tables.turns, "id, turn"),
                )
            }
        finally:
            session.close()

    def _fed(self) -> dict[str, list[dict[str, Any]]]:
        """Life → lines that it has written so far. What was read before is not read again."""
        for path in self._folder.glob("*.fed"):
            lines = self._lives.setdefault(path.stem, [])
            with path.open("rb") as file:
                file.seek(self._fed_bytes.get(path.stem, 0))
                whole, end, _unfinished = file.read().rpartition(b"\n")
            self._fed_bytes[path.stem] = self._fed_bytes.get(path.stem, 0) + len(whole + end)
            lines += [json.loads(line) for line in whole.split(b"\n") if line]
        return self._lives

    def _log_of(self, name: str) -> Path:
        return self._cluster.processes.logs / f"{name}.log"

    def _defects(self) -> list[str]:
        """What processes logged of errors that nobody foresaw, in this round."""
        found = []
        for name, begin in self._logged.items():
            with self._log_of(name).open("rb") as log:
                log.seek(begin)
                text = log.read(LOG_BYTES_MAX).decode("utf-8", "replace")
            _, *tracebacks = text.split("Traceback (most recent call last)")
            for behind in tracebacks:
                if not (
                    self._is_short_of_memory(name) and any(words in behind for words in NO_MEMORY)
                ):
                    found.append(f"{name} logged a traceback: {behind[:1_500]}")
                    break
        return found

    def _is_short_of_memory(self, name: str) -> bool:
        events = self._schedule.events
        return any(event.who == name and event.kind == SHORT_OF_MEMORY for event in events)

    def _checked(self) -> list[str]:
        """What `leasehold check` finds: the conditions of d ⊨ S and the checksums of every node."""
        for _ in range(CHECKS_MAX):
            said = check(self._cluster)
            (self._folder / "check.json").write_text(said.out)
            told = json.loads(said.out) if said.out else {}
            wrong = [f"check: {trouble}" for trouble in told.get("troubles", [said.err[-400:]])]
            reported = {report["node"] for report in told.get("reports", [])}
            missing = set(self._parts.nodes) - reported
            if wrong or not missing:
                return wrong
            # Each was coherent: the command asks those whom it has heard of within three seconds,
            # and on a busy machine what a node says may be read later.
        return [f"check: no report of {', '.join(sorted(missing))}"]


def _await_ended(clients: Sequence[threading.Thread], given_s: float) -> str:
    """Wait until clients have ended; return the names of those that wait for an answer still,
    which end with their processes."""
    give_up_s = time.monotonic() + given_s
    for client in clients:
        client.join(max(0.0, give_up_s - time.monotonic()))
    return ", ".join(client.name for client in clients if client.is_alive())


@contextmanager
def _working(clients: Sequence[SqlClient | RequestClient]) -> Iterator[None]:
    """Clients at work; their own defects are raised in the end."""
    for client in clients:
        client.start()
    try:
        yield
    finally:
        for client in clients:
            client.stop()
        waiting = _await_ended(clients, CLIENTS_END_S)
    if waiting:
        raise RoundFailure(f"still waiting {CLIENTS_END_S:g} s later: clients {waiting}")
    for client in clients:
        if client.defect is not None:
            raise RoundFailure(f"client {client.name}: {client.defect!r}") from client.defect
