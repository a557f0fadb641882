"""The database that an import fills: read over a node's SQL port, written by change requests."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, Self

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model import byte_limits
from leasehold.model.errors import (
    DuplicateKey,
    LeaseholdError,
    OutcomeUnknown,
    Refused,
    TableBusy,
    VerifyError,
    refused,
)
from leasehold.model.records.requests import OnConflict, Outcome
from leasehold.pgwire.messages.client_replies import Columns, Copied, Row, Told
from leasehold.schema_change.plan.answers import read_jobs
from leasehold.sql.ddl.schema_statements import STATEMENTS_MAX
from leasehold.transfer import progress
from leasehold.transfer.quoting import quote_text
from leasehold.values.array_text import array_of_text
from leasehold.values.arrays import elements_of
from leasehold.values.declared import BY_NAME

_NAMES: Final = {numbers.oid: name for name, numbers in BY_NAME.items()}
_TYPED: Final[Mapping[int, Callable[[str], Any]]] = {
    16: lambda text: text == "t",
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((1003, 1009), lambda text: elements_of(array_of_text(text, str))),
}
"""By the numbers of types: boolean, integers, arrays of names and texts."""
ANSWER_TIMEOUT_S: Final = 60.0
ASKED_MAX: Final = 10
"""How often one request is asked for whose outcome is not known: ten minutes in all."""
JOB_LOOK_S: Final = 0.01
JOB_LOOK_S_MAX: Final = 0.2
"""How soon a job is looked at again, first and at last: most jobs of an import are over empty
tables and take some hundredths of a second, those that fill an index take minutes. The topic of
jobs would tell no sooner: what it has waits for up to 150 ms to be published."""
MOVED_ELSEWHERE: Final = (VerifyError, DuplicateKey)
"""What is refused where the part of the import is not where it was."""
_STATEMENT_ROOM: Final = byte_limits.STATEMENT - 1_024


class Sent(Protocol):
    """A request on its way, as `client.pending.Pending` is."""

    def result(self, timeout_s: float = ...) -> Outcome: ...
    def ask_again(self) -> Sent: ...


class Requests(Protocol):
    """Sends change requests, as `client.change_producer.ChangeProducer` does."""

    def submit(self, request: Mapping[str, Any]) -> Sent: ...


class TargetReader:
    """Asks a node's SQL port, for one thread. `connect` makes a connection to it, when something is
    asked."""

    def __init__(self, connect: Callable[[], SqlConnection]) -> None:
        self._connect = connect
        self._connection: SqlConnection | None = None

    def rows(self, query: str) -> list[Sequence[str | None]]:
        """Return the rows of a query, as texts. Raises Refused, OutcomeUnknown."""
        return [said.values for said in self._ask(query) if isinstance(said, Row)]

    def typed_rows(self, query: str) -> list[Sequence[Any]]:
        """Return the rows of a query as values of Python: numbers, truth values and arrays of texts
        are what they are."""
        readers: list[Callable[[str], Any]] = []
        found: list[Sequence[Any]] = []
        for said in self._ask(query):
            if isinstance(said, Columns):
                readers = [_TYPED.get(field.oid, str) for field in said.fields]
            elif isinstance(said, Row):
                pairs = zip(readers, said.values, strict=True)
                found.append([None if text is None else read(text) for read, text in pairs])
        return found

    def columns(self, query: str) -> list[tuple[str, str]]:
        """Return names and types of a query's columns, without its rows."""
        asked = self._ask(f"SELECT * FROM ({query}) AS asked LIMIT 0")
        fields = [f for said in asked if isinstance(said, Columns) for f in said.fields]
        return [(field.name, _NAMES.get(field.oid, "text")) for field in fields]

    def run(self, text: str) -> None:
        """Run what has no rows, such as BEGIN. Raises Refused."""
        for _ in self._ask(text):
            pass

    def copy_out(self, query: str, options: str = "") -> Iterator[bytes]:
        """Yield what COPY TO STDOUT writes, cut anywhere."""
        for said in self._ask(f"COPY ({query}) TO STDOUT {options}"):
            if isinstance(said, Copied):
                yield said.data

    def _ask(self, text: str) -> Iterator[Any]:
        if self._connection is None:
            self._connection = self._connect()
        failed: Mapping[str, str] | None = None
        try:
            for said in self._connection.ask(text):
                if isinstance(said, Told) and said.failed:
                    failed = said.fields
                else:
                    yield said
        except OutcomeUnknown:
            self.close()
            raise
        if failed is not None:
            words = failed.get("M", "no reason was given")
            raise refused(failed.get("C", ""), f"the target says {failed.get('C')}: {words}", {})

    def close(self) -> None:
        """Close the connection; the next query makes a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has_relations(self, names: Sequence[str]) -> list[str]:
        """Return those of these names that relations of the target have."""
        if not names:
            return []
        listed = ", ".join(map(quote_text, names))
        query = (
            "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            f" WHERE n.nspname = 'public' AND c.relname IN ({listed}) ORDER BY 1"
        )
        return [name for (name,) in self.rows(query) if name is not None]


class Target(TargetReader):
    """The target of an import. What is sent by `requests` may come from several threads, each of
    which has a `Target` of its own."""

    def __init__(self, requests: Requests, connect: Callable[[], SqlConnection]) -> None:
        super().__init__(connect)
        self._requests = requests

    def again(self) -> Target:
        """Return another one of the same database, for another thread."""
        return Target(self._requests, self._connect)

    # ------------------------------------------------------------ writing

    def send(self, operations: Sequence[progress.Fields], sql: str = "") -> Sent:
        """Send rows, and schema statements with them, as one transaction."""
        request: dict[str, Any] = {"on_conflict": OnConflict.FAIL.value}
        if operations:
            request["transaction"] = list(operations)
        if sql:
            request["sql"] = sql
        return self._requests.submit(request)

    def settle(self, sent: Sent) -> Outcome:
        """Wait for what becomes of a request; return the outcome of one that was committed. Raises
        what it was refused with, when whatever that rests on can be read; OutcomeUnknown after all
        tries."""
        for attempt in range(ASKED_MAX):
            try:
                outcome = sent.result(ANSWER_TIMEOUT_S)
                break
            except OutcomeUnknown:
                if attempt + 1 == ASKED_MAX:
                    raise
                sent.ask_again()
        if not outcome.lsn:
            self._pass_barrier()
            raise outcome.make_error()
        return outcome

    def _pass_barrier(self) -> None:
        """Wait until the node that is read has applied what the log holds now. A refusal tells of
        the master's state, which may be ahead of it, and what a caller reads next is why."""
        try:
            self.run("BEGIN ISOLATION LEVEL LINEARIZABLE READ ONLY; SELECT 1; ROLLBACK")
        except LeaseholdError:
            self.close()
            raise

    def begin_parts(self, name: str, parts: Sequence[progress.Part]) -> None:
        """Keep parts, unless they are kept: by a request that was under way when its sender was
        killed."""
        try:
            self.apply([progress.insert_parts(name, parts)])
        except Refused as error:
            if not is_moved_elsewhere(error) or self.part(name, parts[0].name) is None:
                raise

    def apply(self, operations: Sequence[progress.Fields], sql: str = "") -> Outcome:
        """Send a transaction and wait for it. Raises as `settle` does."""
        return self.settle(self.send(operations, sql))

    def run_schema_change(self, text: str, waits: Callable[[str], None]) -> None:
        """Do a schema change and wait for its job's end. While another job has the table, as of an
        import that was cut off, it waits, of which `waits` is told. Raises Refused, also where the
        job fails."""
        told, pauses = False, look_pauses()
        while True:
            try:
                outcome = self.apply((), text)
                break
            except TableBusy as error:
                if not told:
                    told = True
                    waits(error.message)
                time.sleep(next(pauses))
        for job in read_jobs(outcome.answer):
            self._wait_for_job(job)

    def has_job(self, table: str) -> bool:
        """Return whether a job has that table now."""
        query = (
            "SELECT 1 FROM leasehold.jobs WHERE status NOT IN ('succeeded', 'failed', 'cancelled')"
            f" AND table_name = {quote_text(table)}"
        )
        return bool(self.rows(query))

    def _wait_for_job(self, job: int) -> None:
        query = f"SELECT status, error FROM leasehold.jobs WHERE job = {job}"
        for pause_s in look_pauses():
            found = self.rows(query)
            status = found[0][0] if found else ""
            if status == "succeeded":
                return
            if status in ("failed", "cancelled"):
                raise Refused(f"job {job} was {status}: {found[0][1] or ''}")
            time.sleep(pause_s)

    # ------------------------------------------------------------ parts

    def parts(self, name: str) -> dict[str, progress.Part]:
        """Return the parts of an import; none where there was never one."""
        if not self.has_relations([progress.TABLE]):
            return {}
        return progress.read_parts(self.rows(progress.parts_query(name)))

    def part(self, name: str, part: str) -> progress.Part | None:
        """Return a part as it is now."""
        return progress.read_parts(self.rows(progress.part_query(name, part))).get(part)


def look_pauses() -> Iterator[float]:
    """Yield how long to wait before each look at a job, without end."""
    pause_s = JOB_LOOK_S
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, JOB_LOOK_S_MAX)


def join_statements(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield texts of several statements, as few as there may be; those of a group stay together,
    since they are done at once only beside the CREATE TABLE that they belong to. Raises Refused
    where a group is too large by itself."""
    gathered: list[str] = []
    for group in groups:
        if gathered and not _fits([*gathered, *group]):
            yield "; ".join(gathered)
            gathered = []
        gathered += group
    if gathered:
        yield "; ".join(gathered)


def _fits(statements: Sequence[str]) -> bool:
    size = sum(len(statement.encode()) + 2 for statement in statements)
    return len(statements) <= STATEMENTS_MAX and size <= _STATEMENT_ROOM


def is_moved_elsewhere(error: LeaseholdError) -> bool:
    """Return whether a refusal may come of a part that was moved by somebody else."""
    return isinstance(error, MOVED_ELSEWHERE)
