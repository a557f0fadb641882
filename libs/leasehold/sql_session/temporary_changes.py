"""Changes of a session's temporary tables within its transaction."""

from __future__ import annotations

from leasehold.adapters.sqlite.snapshot import SqliteSnapshot
from leasehold.adapters.sqlite.write import RowWrite
from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import FeatureNotSupported, NotNullViolation
from leasehold.replica.pending_changes import PendingChanges
from leasehold.schema_change.plan.answers import Told
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.enum_names import EnumNames
from leasehold.sql_session.constraint_check import ConstraintCheck
from leasehold.values.time_zone import zone_at


class TemporaryChanges:
    """The temporary tables as one transaction changes them, in its pending changes."""

    def __init__(self, pending: PendingChanges, constraints: ConstraintCheck) -> None:
        """Begin. `constraints` checks rows that are there against what a change demands."""
        self._pending = pending
        self._constraints = constraints

    def change(
        self, text: str, now: SqliteSnapshot, access: Access, context: CommitContext
    ) -> list[Told] | None:
        """Run a change of temporary tables, and return what is told; None: it is of others. Raises
        what `TemporarySchema.with_changes` raises, and what rows that are there break."""
        enums = EnumNames(access.find_enum, lambda _: 0)
        said = parse_statements(text, (zone_at(context).key,), enums)
        schema = self._pending.temporary
        concerned = [schema.concerns(each.statement) for each in said]
        if not any(concerned):
            return None
        if not all(concerned):
            raise FeatureNotSupported(
                "one statement on temporary tables and on others is not supported: say two"
            )
        schema, told = schema.with_changes(said, access, context, lambda: self._shared(now))
        before = {table.table_id: table for table in self._pending.temporary.made.values()}
        mark = self._pending.mark()
        self._pending.change_temporary(schema)
        try:
            for table in schema.made.values():
                if table is not before.get(table.table_id):
                    self._check(table, now)
        except BaseException:
            self._pending.back_to(mark)
            raise
        return told

    def _shared(self, now: SqliteSnapshot) -> Catalog:
        """Return the tables of all sessions, as the transaction has them."""
        script = self._pending.schema.script
        return now.planning_catalog() if script is None else script.catalog

    def _check(self, table: Descriptor, now: SqliteSnapshot) -> None:
        """Check the rows of a temporary table that was changed against what it demands now. Raises
        NotNullViolation, CheckViolation, DuplicateKey."""
        images = self._pending.images((table.table_id,))[table.table_id][1]
        writes = [
            RowWrite(key, {}, image, None, frozenset())  # no INSERT, of which the key is told first
            for key, image in images.items()
            if image is not None
        ]
        for column in table.by_name.values():
            demanded = column.refuses_null or column.element_id in table.primary_key
            if demanded and any(w.after.get(column.element_id) is None for w in writes if w.after):
                raise NotNullViolation(
                    f'column "{column.name}" of relation "{table.name}" contains null values',
                    table=table.name,
                    column=column.name,
                )
        if writes:
            self._constraints.remember(table, self._constraints.check(table, writes, now))

    def drop_text(self) -> str:
        """Return the statement that drops all temporary tables, "" for none."""
        made = self._pending.temporary.made.values()
        names = [quoted(table.name) for table in made if table.sequence is None]
        return f"DROP TABLE {', '.join(names)} CASCADE" if names else ""
