"""Clients of replicants: threads that write, read and change schemas until they are stopped."""

from __future__ import annotations

import random
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Any, ClassVar, Final

from tests.faults.workload.history import Op, Told
from tests.faults.workload.recorder import Recorder
from tests.faults.workload.sql_sessions import DRIVERS, Session, SqlFailure
from tests.faults.workload.tables import (
    ACCOUNTS,
    LATE_BELOW,
    LISTS_EACH,
    OWN,
    REGISTERS,
    REGISTERS_EACH,
    Tables,
    items_of,
    list_of,
    register_of,
)

PACE_S: Final = 0.12
"""Between two operations of a client: what is tested needs operations at any moment, and two
processors for all processes."""
HOLDS_S: Final = (0.3, 1.5)
"""A lock, before what it is taken for is sent: so a node is often cut off while it has one. The
long one is still within its session, so what is sent then stands in the cut, and comes late."""
BEGIN: Final = {
    "default": "BEGIN ISOLATION LEVEL DEFAULT",
    "read committed": "BEGIN ISOLATION LEVEL READ COMMITTED",
    "snapshot": "BEGIN ISOLATION LEVEL REPEATABLE READ",
    "serializable": "BEGIN ISOLATION LEVEL SERIALIZABLE",
    "linearizable": "BEGIN ISOLATION LEVEL LINEARIZABLE",
}
OF_REGISTERS: Final = 0.4
"""How many of the transactions of a level are of registers."""
CHECK_VIOLATION: Final = "23514"
DUPLICATE_OBJECT: Final = "42710"
Ports = Sequence[int]
"""Of the replicants; a client that loses its session goes to the next one."""


class Values:
    """Numbers that no two clients of a round get, also not of two processes."""

    def __init__(self, first: int) -> None:
        self._numbers = count(first)
        self._lock = threading.Lock()

    def next(self) -> int:
        """Return one more."""
        with self._lock:
            return next(self._numbers)


class SqlClient(ABC, threading.Thread):
    """One client with one session. `place`: the replicant that it begins with."""

    pace_s: ClassVar[float] = PACE_S

    def __init__(
        self,
        name: str,
        recorder: Recorder,
        tables: Tables,
        ports: Ports,
        place: int,
        driver: str,
        seed: int,
        values: Values,
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._recorder = recorder
        self._tables = tables
        self._ports = ports
        self._place = place
        self._driver = driver
        self._rng = random.Random(f"{seed}/{name}")
        self._values = values
        self._session: Session | None = None
        self._stopping = threading.Event()
        self.defect: BaseException | None = None

    def stop(self) -> None:
        """Let it end after the operation that it is at."""
        self._stopping.set()

    def run(self) -> None:
        try:
            self._prepare()
            while not self._stopping.wait(self.pace_s * self._rng.uniform(0.5, 1.5)):
                self._act_safely()
        except Exception as error:  # noqa: BLE001 - the harness raises it again
            self.defect = error
        finally:
            self._leave()

    def _prepare(self) -> None:
        """What has to be there before the first operation."""

    @abstractmethod
    def act(self) -> None:
        """Do one operation, written down. Raises SqlFailure where it could not begin."""

    def _act_safely(self) -> None:
        try:
            self.act()
        except SqlFailure as error:
            if error.lost or error.sqlstate.startswith("57P03"):
                self._leave()
                self._place += 1

    def _leave(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            with suppress(Exception):
                session.close()

    @property
    def node(self) -> str:
        return f"r{self._place % len(self._ports) + 1}"

    def session(self) -> Session:
        """Return its session, a new one where it has lost it. Raises SqlFailure."""
        if self._session is None:
            port = self._ports[self._place % len(self._ports)]
            self._session = DRIVERS[self._driver](port)
            self.greet(self._session)
        return self._session

    def greet(self, session: Session) -> None:
        """Set a new session up. Raises SqlFailure."""

    def single(self, op: Op, text: str, answer: Callable[[Any], dict[str, Any]]) -> None:
        """Run one statement, which is a transaction by itself, and write down what came."""
        try:
            rows = self.session().run(text)
        except SqlFailure as error:
            self._recorder.end(op, error.told, error.sqlstate)
            raise
        self._recorder.end(op, Told.YES, **answer(rows))

    def block(self, op: Op, begin: str, work: Callable[[Session], dict[str, Any]]) -> None:
        """Run a transaction of several statements. Before COMMIT every error is definite; behind it
        what the work has found is written down, too."""
        committing = False
        more: dict[str, Any] = {}
        try:
            session = self.session()
            session.run(begin)
            more = work(session)
            committing = True
            session.run("COMMIT")
        except SqlFailure as error:
            told = error.told if committing else Told.NO
            self._recorder.end(op, told, error.sqlstate, **more)
            if not error.lost and self._session is not None:
                self._session.run("ROLLBACK")
            raise
        self._recorder.end(op, Told.YES, **more)


class Transactor(SqlClient):
    """Transactions at one level, of lists that are appended to or of registers."""

    def __init__(self, *given: Any, level: str) -> None:
        super().__init__(*given)
        self._level = level

    def act(self) -> None:
        if self._rng.random() < OF_REGISTERS:
            self._move()
        else:
            self._append()

    def _append(self) -> None:
        steps = draw_steps(self._rng, self._level, self._values)
        op = self._recorder.begin(self.name, "append", {"level": self._level, "steps": steps})

        def work(session: Session) -> dict[str, Any]:
            return {"steps": [self._step(session, *step) for step in steps]}

        self.block(op, BEGIN[self._level], work)

    def _step(self, session: Session, what: str, key: int, value: Any) -> list[Any]:
        lists = self._tables.lists
        if what == "append":
            session.run(f"UPDATE {lists} SET items = items || ',{value}' WHERE id = {key}")
            return [what, key, value]
        rows = session.run(f"SELECT items FROM {lists} WHERE id = {key}")
        return [what, key, items_of(rows[0][0])]

    def _move(self) -> None:
        """Read registers, and write some of those that were read."""
        keys = self._rng.sample(range(REGISTERS_EACH), self._rng.randrange(1, REGISTERS_EACH + 1))
        wanted = [(register_of(self._level, key), self._rng.random() < 0.6) for key in keys]
        values = {key: self._values.next() for key, writes in wanted if writes}
        steps = [["write", key, value] for key, value in values.items()]
        op = self._recorder.begin(self.name, "move", {"level": self._level, "steps": steps})
        registers = self._tables.registers

        def work(session: Session) -> dict[str, Any]:
            done: list[list[Any]] = []
            for key, _ in wanted:
                rows = session.run(f"SELECT value FROM {registers} WHERE id = {key}")
                done.append(["read", key, rows[0][0]])
                if key in values:
                    value = values[key]
                    session.run(f"UPDATE {registers} SET value = {value} WHERE id = {key}")
                    done.append(["write", key, value])
            return {"steps": done}

        self.block(op, BEGIN[self._level], work)


def draw_steps(rng: random.Random, level: str, values: Values) -> list[list[Any]]:
    """Return the steps of a list-append transaction. Who does not see his own writes reads no list
    that he has appended to."""
    steps: list[list[Any]] = []
    own: set[int] = set()
    for _ in range(rng.randrange(2, 5)):
        key = list_of(level, rng.randrange(LISTS_EACH))
        if rng.random() < 0.5 and key not in own:
            own.add(key)
            steps.append(["append", key, values.next()])
        elif level != "default" or key not in own:
            steps.append(["read", key, []])
    return steps or [["append", list_of(level, 0), values.next()]]


class RegisterClient(SqlClient):
    """Single reads and writes of registers, linearizable."""

    def greet(self, session: Session) -> None:
        session.run("SET leasehold.isolation = 'linearizable'")

    def act(self) -> None:
        key, registers = self._rng.randrange(REGISTERS), self._tables.registers
        if self._rng.random() < 0.5:
            value = self._values.next()
            op = self._recorder.begin(self.name, "write", {"key": key, "value": value})
            text = f"UPDATE {registers} SET value = {value} WHERE id = {key}"
            self.single(op, text, lambda _: {})
        else:
            op = self._recorder.begin(self.name, "read", {"key": key, "value": None})
            text = f"SELECT value FROM {registers} WHERE id = {key}"
            self.single(op, text, lambda rows: {"value": rows[0][0]})


class Banker(SqlClient):
    """Transfers, and looks at all balances at once."""

    def act(self) -> None:
        accounts = self._tables.accounts
        if self._rng.random() < 0.4:
            op = self._recorder.begin(self.name, "total", {"balances": []})
            text = f"SELECT balance FROM {accounts}"
            self.single(op, text, lambda rows: {"balances": [row[0] for row in rows]})
            return
        payer, payee = self._rng.sample(range(ACCOUNTS), 2)
        amount = self._rng.randrange(1, 60)
        value = {"payer": payer, "payee": payee, "amount": amount}
        op = self._recorder.begin(self.name, "transfer", value)

        def work(session: Session) -> dict[str, Any]:
            for account, change in ((payer, -amount), (payee, amount)):
                session.run(
                    f"UPDATE {accounts} SET balance = balance + ({change}) WHERE id = {account}"
                )
            return {}

        self.block(op, "BEGIN", work)


class Inserter(SqlClient):
    """Rows with a tag of their own, each under a number of a sequence."""

    def act(self) -> None:
        tag = f"{self.name}-{self._values.next()}"
        op = self._recorder.begin(self.name, "insert", {"tag": tag, "number": None})
        text = f"INSERT INTO {self._tables.members} (tag) VALUES ('{tag}') RETURNING number"
        self.single(op, text, lambda rows: {"number": rows[0][0]})


class PairInserter(SqlClient):
    """Two rows at once with tags of their own, into a table without a primary key (T7)."""

    def act(self) -> None:
        number = self._values.next()
        tags = [f"{self.name}-{number}-{which}" for which in "ab"]
        op = self._recorder.begin(self.name, "pair", {"tags": tags})
        values = ", ".join(f"('{tag}')" for tag in tags)
        self.single(op, f"INSERT INTO {self._tables.loose} (tag) VALUES {values}", lambda _: {})


class TurnTaker(SqlClient):
    """Takes turns under an advisory lock: looks at the last one, and inserts the next (D10)."""

    def act(self) -> None:
        lock, number = self._tables.number, self._values.next()
        op = self._recorder.begin(self.name, "turn", {"id": number})
        turns = self._tables.turns
        try:
            session = self.session()
            session.run(f"SELECT pg_advisory_lock({lock})")
            ((last,),) = session.run(f"SELECT coalesce(max(turn), 0) FROM {turns}")
            self._stopping.wait(self._rng.choice(HOLDS_S))
        except SqlFailure as error:
            self._recorder.end(op, Told.NO, error.sqlstate)
            self._leave()  # a session's end gives its locks back
            raise
        try:
            self.single(
                op, f"INSERT INTO {turns} (id, turn) VALUES ({number}, {last + 1})", lambda _: {}
            )
            session.run(f"SELECT pg_advisory_unlock({lock})")
        except SqlFailure:
            self._leave()
            raise


class ReadProbe(SqlClient):
    """Reads one row of one replicant again and again: how long are readers without an answer?"""

    pace_s = 0.05

    def _act_safely(self) -> None:
        with suppress(SqlFailure):
            try:
                self.act()
            except SqlFailure as error:
                if error.lost:
                    self._leave()
                raise

    def act(self) -> None:
        op = self._recorder.begin(self.name, "look", {"node": self.node})
        text = f"SELECT n FROM {self._tables.counter} WHERE id = 0"
        self.single(op, text, lambda rows: {"n": rows[0][0]})


class Lingerer(SqlClient):
    """Transactions that stay open for `open_s`, or until it is to end, each with a row of `late`:
    whoever changes that table meanwhile waits for them, or has their commits refused. `first`: what
    the first row has, which may be more than the constraint allows that `Constrainer` adds."""

    def __init__(self, *given: Any, open_s: float, first: int = 0) -> None:
        super().__init__(*given)
        self._open_s = open_s
        self._value = first

    def act(self) -> None:
        number, value, self._value = self._values.next(), self._value, 0
        op = self._recorder.begin(self.name, "linger", {"id": number, "v": value})
        text = f"INSERT INTO {self._tables.late} (id, v) VALUES ({number}, {value})"

        def work(session: Session) -> dict[str, Any]:
            session.run(text)
            self._stopping.wait(self._open_s)
            return {}

        self.block(op, "BEGIN", work)


class Constrainer(SqlClient):
    """Adds a constraint to `late`, until it is there or rows break it: once in a round."""

    def act(self) -> None:
        text = f"ALTER TABLE {self._tables.late} ADD CONSTRAINT small CHECK (v < {LATE_BELOW})"
        op = self._recorder.begin(self.name, "schema", {"sql": text})
        try:
            self.single(op, text, lambda _: {})
        except SqlFailure as error:
            if error.sqlstate not in (CHECK_VIOLATION, DUPLICATE_OBJECT):
                raise
        self._stopping.wait()


class SchemaChanger(SqlClient):
    """Changes the tables that the others use: columns come, are renamed and go; tables and indexes,
    too. What is refused because a table is busy, or a name is not there yet, comes again."""

    pace_s = 0.5

    def act(self) -> None:
        text = self._statement()
        op = self._recorder.begin(self.name, "schema", {"sql": text})
        self.single(op, text, lambda _: {})

    def _statement(self) -> str:
        tables, number = self._tables, self._rng.randrange(OWN)
        table = self._rng.choice((tables.members, tables.accounts, tables.lists, tables.counter))
        own = tables.own(number)
        return self._rng.choice(
            (
                f"ALTER TABLE {table} ADD COLUMN c{number} text",
                f"ALTER TABLE {table} ADD COLUMN c{number} int DEFAULT {number}",
                f"ALTER TABLE {table} DROP COLUMN c{number}",
                f"ALTER TABLE {table} RENAME COLUMN c{number} TO c{(number + 1) % 3}",
                f"ALTER TABLE {table} ADD COLUMN c{number} bigint NOT NULL DEFAULT 7",
                f"CREATE TABLE {own} (id bigint PRIMARY KEY, v text)",
                f"CREATE INDEX ON {own} (v)",
                f"DROP TABLE {own}",
            )
        )
