"""Schema changes among several statements of one text, which in PostgreSQL are one transaction.

If all of them change the schema and it is all or nothing, they are one request. Else they are a
transaction block, with rows among them. What no block can hold is a transaction of its own, and the
client is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, get_args

from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import FeatureNotSupported, Refused, UnknownTable
from leasehold.replica.serving_node import SqlNode
from leasehold.schema_change.plan.joined_alterations import is_all_or_nothing, join_alterations
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import Said
from leasehold.sql.syntax.object_statements import (
    AddLabel,
    Comment,
    CreateEnum,
    CreateView,
    DropEnum,
    DropView,
    RenameEnum,
    RenameLabel,
    RenameView,
    RenameViewColumn,
    SetViewOptions,
)
from leasehold.sql.syntax.session_statements import (
    CopyIn,
    CopyOut,
    CreateTableAs,
    DeclareCursor,
    Do,
    Fetch,
    RowStatement,
    SchemaStatement,
    SessionStatement,
)
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    CreateIndex,
    CreateSequence,
    CreateTable,
    DropIndex,
    DropSequence,
    DropTable,
    Explain,
    RenameIndex,
    RenameSequence,
    RenameTable,
    SequenceStatement,
    Truncate,
)

NOT_ONE: Final = (
    "the statements of this text are not one transaction: what has been done stays done if a later"
    " one fails"
)
WHY: Final = (
    "A transaction block can't hold one of them; sent by itself, between BEGIN and COMMIT, it is"
    " refused with a sentence that says why."
)


class SeveralStatements:
    """The schema changes of one text. `is_done`: they were one request, which has succeeded;
    `is_told_apart`: the client knows that they are not one transaction."""

    def __init__(self, text: str, statements: Sequence[SessionStatement]) -> None:
        # Once for the text: it may have thousands of statements, each of which asks.
        said = [
            Said(each.meaning.change, each.text)
            for each in statements
            if isinstance(each.meaning, SchemaStatement) and not each.meaning.explains
        ]
        self.changes: Sequence[Said] = said if len(said) == len(statements) else ()
        """All of them, if nothing else is in the text; else ()."""
        self.is_done = False
        self.is_told_apart = False
        self.text = text[statements[0].offset :]

    def fits_one_request(self, node: SqlNode) -> bool:
        """Whether the master can make all of it one commit or one job. What it would refuse as a
        whole fits: then nothing is done."""
        changes = self.changes
        if not changes:
            return False
        context = CommitContext(unix_us(), b"")  # nothing of the plan is kept
        with node.single_read().snapshot() as snapshot:
            assert isinstance(snapshot, SqliteSnapshot), "what is newest, in this process"
            catalog = snapshot.planning_catalog()
        script = StatementBatch.on(catalog, provisional=True)
        before: list[Change] = []
        for (change, sql), _ in join_alterations(changes):
            assert not isinstance(change, Explain), "looked at before"
            try:
                script.take(change, sql, b"", context, lambda _: -1)
            except FeatureNotSupported:
                return False  # one by one they may be possible
            except Refused as error:
                return not any(_may_help(each, error) for each in before)
            before.append(change)
        return is_all_or_nothing(script)

    def fits_block(self, change: Change) -> bool:
        """Whether a transaction block may hold it, beside the rows of this text: but for what
        CASCADE takes along, all that says something of tables, indexes and sequences."""
        match change:
            case CreateTable() | Truncate() | CreateView() | Comment():
                return True
            case CreateEnum() | AddLabel() | RenameLabel() | RenameEnum():
                return True
            case (
                DropTable(cascade=cascade)
                | DropSequence(cascade=cascade)
                | DropEnum(cascade=cascade)
            ):
                return not cascade  # rows behind may rest on it, and it is in force at its commit
        known = (
            AlterTable,
            DropView,
            RenameView,
            RenameViewColumn,
            SetViewOptions,
            CreateIndex,
            DropIndex,
            RenameIndex,
            *get_args(SequenceStatement),
        )
        return isinstance(change, known)


def _may_help(before: Change, error: Refused) -> bool:
    """Whether a change that is planned, and not done yet, may be what the refused one behind it
    waits for. A script knows what is made; what jobs do, and names that get free, it does not."""
    if isinstance(error, UnknownTable):
        return isinstance(before, RenameSequence) or (
            isinstance(before, AlterTable)
            and any(isinstance(action, RenameTable) for action in before.actions)
        )
    return not isinstance(before, (CreateTable, CreateSequence))


_DOING: Final = (
    RowStatement,
    SchemaStatement,
    CreateTableAs,
    CopyIn,
    CopyOut,
    DeclareCursor,
    Do,
    Fetch,
)
"""The others say how the session goes on."""


def is_several(statements: Sequence[SessionStatement]) -> bool:
    """Whether a text has several statements that read or write, and changes the schema by one."""
    doing = [each.meaning for each in statements if isinstance(each.meaning, _DOING)]
    return len(doing) > 1 and any(
        isinstance(each, Do) or (isinstance(each, SchemaStatement) and not each.explains)
        for each in doing
    )
