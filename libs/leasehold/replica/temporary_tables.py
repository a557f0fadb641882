"""Temporary tables: a session's own, made and changed as a transaction does with tables that it has
made itself, but that no COMMIT sends them, and the session keeps them, with their rows.

Each transaction begins with what the session has; what it leaves is the session's at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import TEMPORARY_FROM, Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import size_of
from leasehold.model.errors import FeatureNotSupported, InvalidDefinition
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.replica.rows_seen import RowName
from leasehold.replica.sequences.session_values import LocalSequence
from leasehold.schema_change.plan.answers import Told, read_all_told
from leasehold.schema_change.plan.rights import check_likes
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import Said, parse_statements
from leasehold.sql.functions.system.session import caller_of
from leasehold.sql.syntax.object_statements import (
    Comment,
    ObjectKind,
)
from leasehold.sql.syntax.statements import (
    AddColumn,
    AddForeignKey,
    AlterTable,
    Change,
    CreateIndex,
    CreateTable,
    DropIndex,
    DropTable,
    Explain,
    ForeignKeyDefinition,
    RenameIndex,
    SequenceStatement,
    Truncate,
)

_SESSION_BITS: Final = 16
_SESSIONS_FROM: Final = 42
"""Ids of a session's tables say which: those of two sessions of a node are told apart."""
MB_MAX: Final = 256
BYTES_MAX: Final = MB_MAX << 20
"""Of a session's temporary tables, by its setting."""
ROW_BYTES: Final = 400
"""Of a row beside its values: about what holds them, twice."""
DROP: Final = "drop"
DELETE: Final = "delete"


def size_of_row(row: Mapping[str, Any] | None) -> int:
    """Return about how many bytes hold a row; None: it is gone."""
    return 0 if row is None else ROW_BYTES + size_of(row.values())


@dataclass(frozen=True, slots=True)
class TemporarySchema:
    """The temporary tables of a session as a transaction has them: a value, which a savepoint
    keeps. `script`: what the statements on them come to, on a catalog without others; None where
    there were none. `at_commit`: what becomes of some, by id, when a transaction commits: DROP, or
    DELETE of their rows."""

    session: int
    script: StatementBatch | None = None
    at_commit: Mapping[int, str] = field(default_factory=dict)

    @property
    def made(self) -> Mapping[str, Descriptor]:
        """The tables, and the sequences of their columns, by name."""
        return {} if self.script is None else {t.name: t for t in self.script.made.values()}

    def concerns(self, change: Change | Explain) -> bool:
        """Return whether a statement is about temporary tables, by the names that it says."""
        if isinstance(change, CreateTable):
            return change.temporary
        made = self.made
        if not made:
            return False
        match change:
            case DropTable(name=name) | AlterTable(table=name) | CreateIndex(table=name):
                return name in made
            case Truncate(tables=tables):
                return any(table.name in made for table in tables)
            case DropIndex(name=name) | RenameIndex(name=name):
                return any(index.name == name for t in made.values() for index in t.indexes)
            case Comment(kind=ObjectKind.TABLE, named=named):
                return named.name in made
        return isinstance(change, SequenceStatement) and change.name in made

    def refuse_reference(self, change: Change) -> None:
        """Raise InvalidDefinition for a foreign key of a shared table that refers to a temporary
        one."""
        keys: list[ForeignKeyDefinition | None] = []
        if isinstance(change, CreateTable):
            keys += change.foreign_keys
        for action in change.actions if isinstance(change, AlterTable) else ():
            if isinstance(action, AddForeignKey):
                keys.append(action.key)
            elif isinstance(action, AddColumn):
                keys.append(action.column.references)
        made = self.made
        for key in keys:
            if key is not None and key.table in made:
                raise InvalidDefinition(
                    "constraints on permanent tables may reference only permanent tables",
                    position=key.position,
                )

    def with_changes(
        self,
        said: Sequence[Said],
        access: Access,
        context: CommitContext,
        shared: Callable[[], Catalog] = Catalog,
    ) -> tuple[TemporarySchema, list[Told]]:
        """Return it with what statements ask for, and what is told of that. `access`: the types
        that there are; `shared` gives the tables of all sessions, which some may be LIKE. Raises
        what `StatementBatch.take` raises, FeatureNotSupported, InsufficientPrivilege."""
        script = self._script(access)
        at_commit = dict(self.at_commit)
        notices: list[Told] = []
        for statement, sql in said:
            assert not isinstance(statement, Truncate | Explain), "neither is a change of one"
            if isinstance(statement, CreateTable) and statement.likes:
                script.shared = shared()
                check_likes(statement, script.shared, caller_of(context).role_id)
            answer = script.take(statement, sql, b"", context, lambda _: -1)
            notices += read_all_told(answer)
            if isinstance(statement, CreateTable) and "table" in answer and statement.on_commit:
                at_commit[answer["table"]] = statement.on_commit
        script.shared = None
        for table in script.made.values():
            if table.foreign_keys:
                raise FeatureNotSupported(
                    f"a foreign key of temporary table {table.name!r} is not supported: join, or"
                    " look with EXISTS, when its rows are used",
                    table=table.name,
                )
        at_commit = {number: what for number, what in at_commit.items() if number in script.made}
        return replace(self, script=script, at_commit=at_commit), notices

    def _script(self, access: Access) -> StatementBatch:
        if self.script is None:
            number = self.session % (1 << _SESSION_BITS)
            ids_from = TEMPORARY_FROM | number << _SESSIONS_FROM
            return StatementBatch.of_temporary(ids_from, access)
        script = self.script.copy()
        script.catalog.access = access
        return script

    def without(self, tables: Iterable[Descriptor], context: CommitContext) -> TemporarySchema:
        """Return it without some of its tables."""
        names = ", ".join(quoted(table.name) for table in tables)
        if not names or self.script is None:
            return self
        said = parse_statements(f"DROP TABLE {names} CASCADE")
        return self.with_changes(said, self.script.catalog.access, context)[0]

    @property
    def local_sequences(self) -> Mapping[int, LocalSequence]:
        """The sequences of its tables, with where they go on."""
        script = self.script
        if script is None:
            return {}
        return {
            each.table_id: LocalSequence(each, *script.start_of(each))
            for each in script.own_sequences
        }

    def with_starts(self, starts: Mapping[int, int]) -> TemporarySchema:
        """Return it with sequences that go on from these numbers."""
        if self.script is None or not starts:
            return self
        script = self.script.copy()
        for number, start in starts.items():
            script.begin_anew(number, start)
        return replace(self, script=script)


class TemporaryTables:
    """What a session has of temporary tables between its transactions: their `rows`, which come to
    so many `bytes`; `images` has rows as stores have them, with what they were made of. `claims`:
    keys of unique indexes that its rows have, or had (`sql_session/constraint_check.py`)."""

    def __init__(self, session: int) -> None:
        """Begin with none, for the session of that number."""
        self._session = 2 * abs(session) + (session < 0)  # those that embed a node count down
        self.drop_all()

    @property
    def is_empty(self) -> bool:
        return self.schema.script is None or not self.schema.script.made

    def drop_all(self) -> None:
        """Forget all tables."""
        self.schema = TemporarySchema(self._session)
        self.rows: dict[RowName, dict[str, Any] | None] = {}
        self.bytes = 0
        self.images: dict[RowName, tuple[dict[str, Any], Descriptor, Image]] = {}
        self.claims: dict[tuple[int, int, Key], list[Key]] = {}

    def keep(
        self,
        schema: TemporarySchema,
        rows: Mapping[RowName, dict[str, Any] | None],
        held: int,
        starts: Mapping[int, int],
        context: CommitContext,
    ) -> None:
        """Take over what a committed transaction leaves. `rows` may be of other tables, too; `held`
        is what those of temporary ones come to in bytes; `starts`: from where sequences go on that
        it has drawn from."""
        at_commit = schema.at_commit
        made = schema.made.values()
        schema = schema.without((t for t in made if at_commit.get(t.table_id) == DROP), context)
        schema = schema.with_starts({n: s for n, s in starts.items() if _has(schema, n)})
        kept = {t.table_id for t in schema.made.values() if at_commit.get(t.table_id) != DELETE}
        self.rows = {name: row for name, row in rows.items() if name[0] in kept and row is not None}
        self.images = {name: each for name, each in self.images.items() if name in self.rows}
        if len(kept) < len(made):
            self.claims = {name: has for name, has in self.claims.items() if name[0] in kept}
            held = sum(size_of_row(row) for row in self.rows.values())
        self.bytes = held
        self.schema = schema


def _has(schema: TemporarySchema, table_id: int) -> bool:
    return schema.script is not None and table_id in schema.script.made
