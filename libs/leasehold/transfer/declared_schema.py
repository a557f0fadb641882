"""A declared schema and a node: reads the living schema at one LSN, and runs a plan request by
request, under an advisory lock so that two who do that don't meet."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgpack

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model.errors import (
    FeatureNotSupported,
    LeaseholdError,
    OutcomeUnknown,
    TableBusy,
    UnknownTable,
    refused,
)
from leasehold.pgwire.messages.client_replies import Columns, Row, Told
from leasehold.schema_change.declared.catalog_rows import LivingSchema, read_living_schema
from leasehold.schema_change.declared.schema_plan import PlannedRequest
from leasehold.transfer.quoting import quote_text

LOCK: Final = 0x6C73_7363_6865_6D61
"""The key of the advisory lock: "lsschema" in ASCII."""
LOOK_S: Final = 0.5
"""How often a job is looked at while it goes on."""
_JOBS: Final = (
    "SELECT job, table_name, status, phase, step, steps, target, doing, waits_for, fraction,"
    " rows_done, rows_total, rows_per_second, eta_s FROM leasehold.jobs"
)


class JobSeen(NamedTuple):
    """A job that goes on. `words`: what it does now."""

    job: int
    table: str
    fraction: float
    words: str


class SchemaNode:
    """The schema of a database, asked for and changed over a node's SQL port. `connect` makes a
    connection there; `zone` is the time zone of what is said, "" = UTC."""

    def __init__(self, connect: Callable[[], SqlConnection], zone: str = "") -> None:
        self._connect = connect
        self._zone = zone
        self._connection = connect()
        self._watch: SqlConnection | None = None
        self._is_locked = False
        self._run(f"SET timezone = {quote_text(zone or 'UTC')}")

    def close(self) -> None:
        """Close the connections, and give the lock back before: the node takes it from a session
        that has gone a moment after that, when the next apply may have begun."""
        if self._is_locked:
            with suppress(LeaseholdError, OSError):
                self._rows(f"SELECT pg_advisory_unlock({LOCK})")
        for connection in (self._connection, self._watch):
            if connection is not None:
                connection.close()

    def read(self) -> LivingSchema:
        """Return the schema as it is at one LSN. Raises FeatureNotSupported for a node of a release
        that does not tell it."""
        try:
            rows = self._rows("SELECT * FROM leasehold.catalog")
        except UnknownTable as error:
            raise FeatureNotSupported(
                "the node is of an earlier release, which does not tell its schema",
                hint="Ask a node of this release, or upgrade this one.",
            ) from error
        numbers = ("object_id", "element_id", "lsn", "rows_about")
        told = [
            {name: _value(text, name in numbers, name == "body") for name, text in row.items()}
            for row in rows
        ]
        return read_living_schema(told, _unpack)

    def lock(self) -> None:
        """Take the lock until the connection is closed. Raises TableBusy where another one has
        it."""
        (row,) = self._rows(f"SELECT pg_try_advisory_lock({LOCK}) AS got")
        if row["got"] != "t":
            raise TableBusy(
                "another schema apply runs on this database",
                hint="Run this one again when that has ended; pg_locks shows who holds the advisory"
                f" lock {LOCK}.",
            )
        self._is_locked = True

    def run(self, request: PlannedRequest, tell: Callable[[JobSeen], None]) -> None:
        """Run a request, and return when all of it is done and this node's reads see it; `tell` is
        called while its job goes on. Raises what it is refused with or fails with."""
        errors: list[BaseException] = []

        def work() -> None:
            try:
                self._run(request.sql)
            except BaseException as error:  # noqa: BLE001 - it is raised where it was asked for
                errors.append(error)

        thread = threading.Thread(target=work, name="schema apply", daemon=True)
        thread.start()
        try:
            while thread.is_alive():
                thread.join(LOOK_S)
                if thread.is_alive() and request.table:
                    self._tell_job(request.table, tell)
        except BaseException:
            # Whoever stops waiting stops no job: it goes on, and the next apply waits for it.
            self._connection.cancel()
            thread.join()
            raise
        if errors:
            raise errors[0]

    def running(self) -> list[JobSeen]:
        """Return the jobs that go on, as far as that can be seen."""
        with suppress(LeaseholdError):
            if self._watch is None:
                self._watch = self._connect()
            rows = self._rows(f"{_JOBS} WHERE status NOT IN ('succeeded', 'failed', 'cancelled')")
            return [_seen(row) for row in rows]
        return []

    def _tell_job(self, table: str, tell: Callable[[JobSeen], None]) -> None:
        for job in self.running():
            if job.table == table:
                tell(job)

    def _rows(self, query: str) -> list[dict[str, str | None]]:
        connection = self._watch if query.startswith(_JOBS) else self._connection
        assert connection is not None, "made by who asks"
        names: list[str] = []
        found: list[dict[str, str | None]] = []
        for said in _ask(connection, query):
            if isinstance(said, Columns):
                names = [field.name for field in said.fields]
            elif isinstance(said, Row):
                found.append(dict(zip(names, said.values, strict=True)))
        return found

    def _run(self, text: str) -> None:
        _ask(self._connection, text)


def _ask(connection: SqlConnection, text: str) -> list[Any]:
    """Return what is answered. Raises the Refused that it is refused with, OutcomeUnknown."""
    found: list[Any] = []
    failed: Mapping[str, str] | None = None
    for said in connection.ask(text):
        if isinstance(said, Told):
            failed = said.fields if said.failed else failed
        else:
            found.append(said)
    if failed is None:
        return found
    code = failed.get("C", "")
    words = failed.get("M", "no reason was given")
    if code == OutcomeUnknown.sqlstate:
        raise OutcomeUnknown(words)
    more = {name: failed[key] for key, name in (("D", "detail"), ("H", "hint")) if key in failed}
    raise refused(code, words, more)


def _value(text: str | None, is_number: bool, is_bytes: bool) -> Any:
    if text is None:
        return None
    if is_bytes:
        return bytes.fromhex(text.removeprefix("\\x"))
    return int(text) if is_number else text


def _unpack(body: bytes) -> Any:
    return msgpack.unpackb(body, strict_map_key=False)


def _seen(row: Mapping[str, str | None]) -> JobSeen:
    words = f"step {row['step']}/{row['steps']}: {row['doing']}"
    if row["phase"] in ("backfilling", "validating"):
        words += f", {int(row['rows_done'] or 0):,} of about {int(row['rows_total'] or 0):,} rows"
    if row["eta_s"]:
        words += f", about {float(row['eta_s']):.0f} s left"
    if row["waits_for"]:
        words += f", waits: {row['waits_for']}"
    return JobSeen(
        int(row["job"] or 0), row["table_name"] or "", float(row["fraction"] or 0), words
    )
