"""Schema changes among several statements of one text, which in PostgreSQL are one transaction.

If all of them change the schema and it is all or nothing, they are one request. If it can't be, as
where one of several jobs may fail after the others have ended, each is a transaction of its own as
before, and the client is told so, before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from leasehold.adapters.clock import unix_us
from leasehold.adapters.sqlite_snapshot import SqliteSnapshot
from leasehold.client.serving_node import SqlNode
from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.schema.catalog import Catalog
from leasehold.schema.elements import Moment
from leasehold.schema.joined_alterations import is_all_or_nothing, join_alterations
from leasehold.schema.script import Script
from leasehold.sql.ddl import Said
from leasehold.sql.session_statements import SchemaStatement, SessionStatement
from leasehold.sql.statements import (
    AlterTable,
    Change,
    DropConstraint,
    DropIndex,
    DropTable,
    Explain,
)

NOT_ONE: Final = (
    "the statements of this text are not one transaction: what has been done stays done if a later"
    " one fails"
)
WHY: Final = (
    "A change of a table that is there is a job, which goes on after its commit. Several changes of"
    " one table are one job as neighbours, or as one ALTER TABLE with several actions."
)


class SeveralStatements:
    """The schema changes of one text. `is_done`: they were one request, which has succeeded;
    `is_told_apart`: the client knows that they are not one transaction."""

    def __init__(self, text: str, statements: Sequence[SessionStatement]) -> None:
        self._statements = statements
        self.is_done = False
        self.is_told_apart = False
        self.text = text[statements[0].offset :]

    @property
    def changes(self) -> Sequence[Said]:
        """All of them, if nothing else is in the text; else ()."""
        found = []
        for statement in self._statements:
            meaning = statement.meaning
            if not isinstance(meaning, SchemaStatement) or isinstance(meaning.change, Explain):
                return ()
            found.append(Said(meaning.change, statement.text))
        return found

    def fits_one_request(self, node: SqlNode) -> bool:
        """Whether the master can make all of it one commit or one job. What it would refuse as a
        whole fits: then nothing is done."""
        changes = self.changes
        if not changes:
            return False
        moment = Moment(unix_us(), b"")  # nothing of the plan is kept
        with node.single_read().snapshot() as snapshot:
            assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
            stored = snapshot.stored_catalog()
        min_versions = dict(stored.min_versions)
        catalog = Catalog.load(stored.descriptors, min_versions, stored.jobs, stored.ledger_run)
        script = Script.on(catalog, provisional=True)
        for (change, sql), _ in join_alterations(changes):
            assert not isinstance(change, Explain), "looked at before"
            try:
                script.take(change, sql, b"", moment, lambda _: -1)
            except FeatureNotSupported:
                return False  # one by one they may be possible
            except Refused:
                # ⚠ What an earlier one does by a job is not there yet for this one.
                altered = {job.table for job in script.jobs.values()}
                return getattr(change, "table", "") not in altered
        return is_all_or_nothing(script)


def frees_rows(change: Change) -> bool:
    """Whether a change takes a constraint or an index from a table that stays. Rows behind it in
    the same text may rest on that, and it is in force until their commit."""
    match change:
        case DropIndex() | DropTable(cascade=True):
            return True
        case AlterTable(actions=actions):
            return any(isinstance(action, DropConstraint) for action in actions)
    return False


def is_several(statements: Sequence[SessionStatement]) -> bool:
    """Whether a text has several statements and changes the schema by one of them."""
    return len(statements) > 1 and any(
        isinstance(each.meaning, SchemaStatement) and not each.meaning.explains
        for each in statements
    )
