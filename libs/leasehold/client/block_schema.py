"""The schema changes of a transaction block: collected, planned as the master will plan them, and
sent with its rows at COMMIT.

A block takes what is whole at its commit: tables that it makes, all that is said of those, and
tables that go. What a job would do to a table that was there goes on after the commit, and may
fail then, when COMMIT has been answered: that is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from leasehold.model.errors import FeatureNotSupported, RequestTooLarge, UnknownTable
from leasehold.model.ports import StoredCatalog
from leasehold.schema.catalog import Catalog
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Moment
from leasehold.schema.names import references_of
from leasehold.schema.script import Script
from leasehold.sql.catalog_text import quoted
from leasehold.sql.ddl import STATEMENTS_MAX, parse_statements
from leasehold.sql.parse import STATEMENT_BYTES_MAX
from leasehold.sql.statements import Change, CreateTable, DropTable, Explain

HINT: Final = "Drivers have a mode for it: autocommit, isolation level AUTOCOMMIT."

TEXT_BYTES_MAX: Final = STATEMENT_BYTES_MAX // 2
"""The rest of a request's text is for TRUNCATE."""


@dataclass(frozen=True, slots=True)
class BlockSchema:
    """A value, which a savepoint keeps. `texts`: the statements that the request will hold.
    `script`: what they come to, on the catalog of the block's first one, with provisional ids for
    its tables; None before that."""

    texts: tuple[str, ...] = ()
    script: Script | None = None

    @property
    def made(self) -> Mapping[str, Descriptor]:
        """Tables of this block, by name."""
        return {} if self.script is None else {t.name: t for t in self.script.made.values()}

    @property
    def dropped(self) -> Mapping[str, Descriptor]:
        """Tables that were there and are gone for this block, by name."""
        return {} if self.script is None else _dropped(self.script)

    def taking(
        self, text: str, stored: Callable[[], StoredCatalog], moment: Moment
    ) -> tuple[BlockSchema, list[str]]:
        """With what `text` asks for, and the notices of it. Raises what `Script.take` raises,
        FeatureNotSupported, RequestTooLarge (54000)."""
        if self.script is None:
            script = Script(_catalog(stored()).copy(provisional=True))
        else:
            script = self.script.copy()
        texts, notices = list(self.texts), []
        for statement, sql in parse_statements(text):
            assert not isinstance(statement, Explain), "that changes nothing"
            if _is_gone(statement, script):
                notices.append(f"table {_name(statement)!r} does not exist, nothing was done")
                continue
            _check(statement, script)
            answer = script.take(statement, sql, b"", moment, lambda _: -1)
            _refuse_jobs(script)
            if "notice" in answer:
                notices.append(str(answer["notice"]))
            if answer.keys() != {"notice"}:
                # Of those that one text drops each is looked at by itself.
                drops = isinstance(statement, DropTable)
                texts.append(f"DROP TABLE {quoted(_name(statement))}" if drops else sql)
        if len(texts) >= STATEMENTS_MAX or _bytes(texts) > TEXT_BYTES_MAX:
            raise RequestTooLarge(
                f"a transaction block has at most {STATEMENTS_MAX - 1} schema changes, of"
                f" {TEXT_BYTES_MAX} bytes in all: COMMIT more often"
            )
        return BlockSchema(tuple(texts), script), notices


def _catalog(stored: StoredCatalog) -> Catalog:
    min_versions = dict(stored.min_versions)
    return Catalog.load(stored.descriptors, min_versions, stored.jobs, stored.ledger_run)


def _dropped(script: Script) -> dict[str, Descriptor]:
    tables = (script.catalog.newest(table_id) for table_id in script.dropped)
    return {table.name: table for table in tables}


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _name(statement: Change) -> str:
    return statement.name if isinstance(statement, CreateTable | DropTable) else ""


def _is_gone(statement: Change, script: Script) -> bool:
    """Does it drop, if it exists, what this block has dropped? Raises UnknownTable."""
    if not isinstance(statement, DropTable) or statement.name not in _dropped(script):
        return False
    if not statement.if_exists:
        name = statement.name
        raise UnknownTable(f"table {name!r} does not exist", table=name)
    return True


def _check(statement: Change, script: Script) -> None:
    """What has to wait until a table that this block drops has gone, on all nodes."""
    name = _name(statement)
    if isinstance(statement, CreateTable) and name in _dropped(script):
        raise FeatureNotSupported(
            f"table {name!r} is dropped by this very transaction, and its name is free when that"
            " has ended: COMMIT before it is made anew, or TRUNCATE it",
            table=name,
        )
    if not isinstance(statement, DropTable) or not script.dropped:
        return
    try:
        table = script.catalog.resolve(name)
    except UnknownTable:
        return
    children = {child.table_id for child, _ in references_of(script.catalog, table.table_id)}
    if children & script.dropped:
        raise FeatureNotSupported(
            f"table {name!r} is referred to by a table that this very transaction drops, and that"
            " has to be gone first: COMMIT in between",
            hint=HINT,
            table=name,
        )


def _refuse_jobs(script: Script) -> None:
    for job in script.jobs.values():
        if job.table_id not in script.dropped:
            raise FeatureNotSupported(
                f"table {job.table!r} was there before this transaction: such a change ({job.kind})"
                " is a job, which goes on after its commit and may fail then; send it outside of"
                " BEGIN",
                hint=HINT,
                table=job.table,
            )
