"""What becomes of a schema of PostgreSQL: statements for the target, and what can't be kept.

PURE. Each statement is planned by the master's own planner on a catalog that holds nothing else, so
what this release takes is what is taken here, and a refusal has its own words. A type is tried as
the source has it first; only what is not taken is looked up in `column_types.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import Refused
from leasehold.schema_change.plan.enums import enum_names
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import parse_statements
from leasehold.sql.syntax.statements import (
    Explain,
)
from leasehold.transfer.column_types import find_other
from leasehold.transfer.quoting import quote_name, quote_names, quote_text
from leasehold.transfer.source_tables import (
    SourceColumn,
    SourceSchema,
    SourceSequence,
    SourceTable,
)

OWN_PREFIX: Final = "leasehold_"
"""Of tables that an import keeps in the target: the source may have none of that name."""
_CONTEXT: Final = CommitContext(1_700_000_000_000_000, bytes(16))


class Kind(StrEnum):
    """What is told of a thing that is not as it was. CHANGED: the data are all there, under
    another type; LEFT_OUT: rows are there, and something that goes with them is not; REFUSED: the
    table can't be had."""

    CHANGED = "changed"
    LEFT_OUT = "left out"
    REFUSED = "refused"


class Finding(NamedTuple):
    kind: Kind
    what: str
    words: str


class PlannedColumn(NamedTuple):
    """A column of the target. `read`: the source's expression for it; `computed`: by the target."""

    name: str
    type: str
    read: str
    computed: bool = False


class PlannedTable(NamedTuple):
    """A table to be copied. `before`: statements that make it; `after`: by name, those of its
    indexes and constraints, once its rows are there. `key_types`: the source's, to compare by."""

    name: str
    columns: Sequence[PlannedColumn]
    key: tuple[str, ...]
    key_types: tuple[str, ...]
    before: Sequence[str]
    after: Mapping[str, str]
    partitioned: bool
    rows_about: int
    bytes_about: int
    follow_refusal: str = ""

    @property
    def copied(self) -> list[PlannedColumn]:
        """Return the columns that take values, the key's first."""
        written = [column for column in self.columns if not column.computed]
        return sorted(written, key=lambda column: self._place(column.name))

    def _place(self, name: str) -> int:
        return self.key.index(name) if name in self.key else len(self.key)


class Plan(NamedTuple):
    """A schema's translation. `sequences`: names of those that get their numbers at the end."""

    tables: Sequence[PlannedTable]
    sequences: Sequence[SourceSequence]
    findings: Sequence[Finding]

    def of_kind(self, kind: Kind) -> list[Finding]:
        return [finding for finding in self.findings if finding.kind is kind]

    @property
    def digest(self) -> str:
        """Return what changes with the tables, their columns and keys: a later run compares it. An
        index more changes nothing that is under way."""
        made = blake2b(digest_size=16)
        for table in self.tables:
            made.update(repr((table.name, tuple(table.columns), table.key)).encode())
        return made.hexdigest()


def plan_schema(
    schema: SourceSchema,
    *,
    only: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_text: bool = False,
) -> Plan:
    """Return what becomes of `schema`, or of the tables `only`, without those of `exclude`.
    `as_text`: columns of types that there are not here are taken as text."""
    return _Planner(schema, frozenset(only), frozenset(exclude), as_text=as_text).plan()


class _Trial:
    """Statements planned one behind the other, on a catalog that holds nothing else."""

    def __init__(self) -> None:
        self.batch = StatementBatch.on(Catalog(), provisional=True)

    def take(self, text: str) -> None:
        """Plan a text behind those that were taken. Raises Refused, and takes nothing of it
        then."""
        ahead = self.batch.copy()
        for statement, sql in parse_statements(text, enums=enum_names(ahead.catalog)):
            assert not isinstance(statement, Explain), "it was put together here"
            ahead.take(statement, sql, b"", _CONTEXT, lambda _: -1)
        self.batch = ahead

    def refusal(self, text: str) -> str:
        """Return why a text is not taken, "" where it is."""
        try:
            self.take(text)
        except Refused as error:
            return error.message
        return ""


class _Planner:
    def __init__(
        self,
        schema: SourceSchema,
        only: frozenset[str],
        exclude: frozenset[str],
        *,
        as_text: bool,
    ) -> None:
        self._schema = schema
        self._only, self._exclude = only, exclude
        self._as_text = as_text
        self._trial = _Trial()
        self._findings: list[Finding] = []
        self._types: dict[str, str | None] = {}
        self._enums: dict[str, str] = {}

    def plan(self) -> Plan:
        tables = [table for table in self._schema.tables if self._wanted(table.name)]
        for name in sorted(self._only | self._exclude):
            if name not in {table.name for table in self._schema.tables}:
                self._find(Kind.REFUSED, f"table {name}", "there is no such table in the source")
        sequences = [s for s in self._schema.sequences if self._has_sequence(s, tables)]
        made: dict[str, list[str]] = {}
        for sequence in sequences:
            if not sequence.identity:
                made.setdefault(sequence.table, []).extend(self._make_sequence(sequence))
        planned = {t.name: p for t in tables if (p := self._plan_table(t, sequences, made))}
        for table in tables:
            if table.name in planned:
                self._plan_foreign_keys(table, planned[table.name])
        if made.get("") and planned:
            first = next(iter(planned))
            table_of_first = planned[first]
            planned[first] = table_of_first._replace(before=[*made[""], *table_of_first.before])
        for other in self._schema.others:
            self._find(Kind.LEFT_OUT, other, "only tables and sequences are imported")
        kept = [s for s in sequences if not s.table or s.table in planned]
        return Plan(list(planned.values()), kept, self._findings)

    def _wanted(self, name: str) -> bool:
        return (not self._only or name in self._only) and name not in self._exclude

    def _has_sequence(self, sequence: SourceSequence, tables: Sequence[SourceTable]) -> bool:
        """Return whether a sequence comes along: with its table, or, without one, with the whole
        schema or a column that draws from it."""
        if sequence.table:
            return any(table.name == sequence.table for table in tables)
        if not self._only:
            return True
        drawn = f"nextval('{sequence.name}'"
        return any(drawn in (c.default or "") for table in tables for c in table.columns)

    def _find(self, kind: Kind, what: str, words: str) -> None:
        self._findings.append(Finding(kind, what, words))

    def _make_sequence(self, sequence: SourceSequence) -> list[str]:
        text = (
            f"CREATE SEQUENCE {quote_name(sequence.name)} AS {sequence.type}"
            f" INCREMENT BY {sequence.increment} MINVALUE {sequence.least}"
            f" MAXVALUE {sequence.most} START WITH {sequence.start} CACHE {sequence.cache}"
            f"{' CYCLE' if sequence.cycles else ' NO CYCLE'}"
        )
        why = self._trial.refusal(text)
        if why:
            self._find(Kind.LEFT_OUT, f"sequence {sequence.name}", why)
        return [] if why else [text]

    # ------------------------------------------------------------ tables

    def _plan_table(
        self,
        table: SourceTable,
        sequences: Sequence[SourceSequence],
        made: Mapping[str, list[str]],
    ) -> PlannedTable | None:
        where = f"table {table.name}"
        if table.name.startswith(OWN_PREFIX):
            self._find(Kind.REFUSED, where, f"names that begin with {OWN_PREFIX} are taken here")
            return None
        enums = list(self._make_enums(table))
        columns = [self._plan_column(table, column) for column in table.columns]
        if None in columns:
            return None
        planned = [column for column in columns if column is not None]
        clauses = [
            self._clause(table, column, its, sequences)
            for column, its in zip(table.columns, planned, strict=True)
        ]
        if table.key:
            clauses.append(f"PRIMARY KEY ({quote_names(table.key)})")
        create = f"CREATE TABLE {quote_name(table.name)} ({', '.join(clauses)})"
        why = self._trial.refusal(create)
        if why:
            self._find(Kind.REFUSED, where, why)
            return None
        before = [*enums, *made.get(table.name, ()), create]
        before += self._owners(table, sequences)
        before += self._checks(table, planned)
        computed = {its.name for its in planned if self._is_computed(its.name)}
        planned = [its._replace(computed=its.name in computed) for its in planned]
        if table.partitioned:
            self._find(Kind.CHANGED, where, "it has partitions, and becomes one table")
        for thing in table.more:
            self._find(Kind.LEFT_OUT, f"{where}, {thing}", "there is nothing like it here")
        types = {column.name: column.type for column in table.columns}
        return PlannedTable(
            table.name,
            planned,
            table.key,
            tuple(types[name] for name in table.key),
            before,
            dict(self._indexes(table)),
            table.partitioned,
            table.rows_about,
            table.bytes_about,
            self._follow_refusal(table, planned),
        )

    def _make_enums(self, table: SourceTable) -> Iterator[str]:
        """Yield what makes the enum types of a table's columns that no table before has."""
        for column in table.columns:
            name = column.type.removesuffix("[]")
            if not column.labels or name in self._enums:
                continue
            text = f"CREATE TYPE {name} AS ENUM ({', '.join(map(quote_text, column.labels))})"
            # What refuses it will refuse the column, which may become text then.
            self._enums[name] = "" if self._trial.refusal(text) else text
            if self._enums[name]:
                yield text

    def _plan_column(self, table: SourceTable, column: SourceColumn) -> PlannedColumn | None:
        read = quote_name(column.name)
        if self._type_refusal(column.type) is None:
            return PlannedColumn(column.name, column.type, read)
        where = f"table {table.name}, column {column.name}"
        other = find_other(column)
        if other is not None and self._type_refusal(other.type) is None:
            self._find(Kind.CHANGED, where, f"{column.type} becomes {other.type}{other.words}")
            return PlannedColumn(column.name, other.type, other.read(read))
        if self._as_text:
            self._find(Kind.CHANGED, where, f"{column.type} becomes text, as PostgreSQL writes it")
            return PlannedColumn(column.name, "text", read)
        why = self._type_refusal(column.type)
        self._find(Kind.REFUSED, where, f"{why} (--as-text takes such columns as text)")
        return None

    def _type_refusal(self, name: str) -> str | None:
        if name not in self._types:
            try:
                trial = _Trial()
                made = self._enums.get(name.removesuffix("[]"))
                if made:
                    trial.take(made)
                trial.take(f"CREATE TABLE t (c {name})")
            except Refused as error:
                self._types[name] = error.message.removeprefix("column 'c': ")
            else:
                self._types[name] = None
        return self._types[name]

    def _clause(
        self,
        table: SourceTable,
        column: SourceColumn,
        planned: PlannedColumn,
        sequences: Sequence[SourceSequence],
    ) -> str:
        """Return what CREATE TABLE says of a column, without what is not taken of it."""
        plain = f"{quote_name(column.name)} {planned.type}"
        more = " NOT NULL" if column.not_null else ""
        for said, what in _given(column, sequences, table.name):
            if self._refuses_clause(f"{plain}{more}{said}", column, table):
                words = self._why_clause(f"{plain}{more}{said}", column, table)
                where = f"table {table.name}, column {column.name}, {what}"
                self._find(Kind.LEFT_OUT, where, words)
            else:
                more += said
        return plain + more

    def _refuses_clause(self, clause: str, column: SourceColumn, table: SourceTable) -> bool:
        return bool(self._why_clause(clause, column, table))

    def _why_clause(self, clause: str, column: SourceColumn, table: SourceTable) -> str:
        """Return why a table with this column is not taken; other columns stand there plainly,
        since a generated one may name them."""
        others = [
            f"{quote_name(other.name)} {kind}"
            for other in table.columns
            if other.name != column.name and (kind := self._plain_type(other)) is not None
        ]
        before = self._trial.batch
        try:
            return self._trial.refusal(
                f"CREATE TABLE leasehold_tried ({', '.join([clause, *others])})"
            )
        finally:
            self._trial.batch = before

    def _plain_type(self, column: SourceColumn) -> str | None:
        if self._type_refusal(column.type) is None:
            return column.type
        other = find_other(column)
        if other is not None and self._type_refusal(other.type) is None:
            return other.type
        return "text" if self._as_text else None

    def _is_computed(self, name: str) -> bool:
        newest = list(self._trial.batch.made.values())[-1]
        column = newest.by_name.get(name)
        return column is not None and bool(column.generated)

    def _owners(self, table: SourceTable, sequences: Sequence[SourceSequence]) -> Iterator[str]:
        for sequence in sequences:
            if sequence.table != table.name or sequence.identity:
                continue
            owner = f"{quote_name(table.name)}.{quote_name(sequence.column)}"
            text = f"ALTER SEQUENCE {quote_name(sequence.name)} OWNED BY {owner}"
            if not self._trial.refusal(text):
                yield text

    def _checks(self, table: SourceTable, planned: Sequence[PlannedColumn]) -> Iterator[str]:
        """Yield the CHECKs of a table, and those that stand for the labels of an enum."""
        into = f"ALTER TABLE {quote_name(table.name)} ADD CONSTRAINT "
        for constraint in table.constraints:
            if constraint.kind != "c":
                continue
            text = f"{into}{quote_name(constraint.name)} {constraint.definition}"
            why = self._trial.refusal(text)
            if why:
                where = f"table {table.name}, check {constraint.name}"
                self._find(Kind.LEFT_OUT, where, why)
            else:
                yield text
        for column, its in zip(table.columns, planned, strict=True):
            if column.labels and its.type == "text":
                labels = ", ".join(map(quote_text, column.labels))
                name = quote_name(f"{table.name}_{column.name}_labels"[:60])
                text = f"{into}{name} CHECK ({quote_name(column.name)} IN ({labels}))"
                why = self._trial.refusal(text)
                if why:
                    where = f"table {table.name}, labels of column {column.name}"
                    self._find(Kind.LEFT_OUT, where, why)
                else:
                    yield text

    def _indexes(self, table: SourceTable) -> Iterator[tuple[str, str]]:
        """Yield what is made once the rows are there, but for foreign keys: UNIQUE first, which
        foreign keys need."""
        into = f"ALTER TABLE {quote_name(table.name)} ADD CONSTRAINT "
        for constraint in table.constraints:
            if constraint.kind in ("u", "x"):
                text = f"{into}{quote_name(constraint.name)} {constraint.definition}"
                yield from self._later(table, constraint.name, text)
        for index in table.indexes:
            yield from self._later(table, index.name, index.definition)

    def _plan_foreign_keys(self, table: SourceTable, planned: PlannedTable) -> None:
        into = f"ALTER TABLE {quote_name(table.name)} ADD CONSTRAINT "
        for constraint in table.constraints:
            if constraint.kind == "f":
                text = f"{into}{quote_name(constraint.name)} {constraint.definition}"
                assert isinstance(planned.after, dict)
                planned.after.update(self._later(table, constraint.name, text))

    def _later(self, table: SourceTable, name: str, text: str) -> Iterator[tuple[str, str]]:
        why = self._trial.refusal(text)
        if why:
            self._find(Kind.LEFT_OUT, f"table {table.name}, {name}", why)
        else:
            yield name, text

    def _follow_refusal(self, table: SourceTable, planned: Sequence[PlannedColumn]) -> str:
        if not table.key:
            return "it has no primary key, by which a changed row would be found"
        if table.replica_identity in ("i", "n"):
            return "its REPLICA IDENTITY is not its primary key (ALTER TABLE … DEFAULT makes it so)"
        for column, its in zip(table.columns, planned, strict=True):
            if column.generated and not its.computed:
                return f"its column {column.name} is generated, and is not sent with changes"
        return ""


def _given(
    column: SourceColumn, sequences: Sequence[SourceSequence], table: str
) -> Iterator[tuple[str, str]]:
    """Yield what a column says beside its type: the clause, and what it is called."""
    if column.generated and column.default is not None:
        yield f" GENERATED ALWAYS AS ({column.default}) STORED", "generated expression"
    elif column.identity:
        how = "ALWAYS" if column.identity == "a" else "BY DEFAULT"
        its = next((s for s in sequences if (s.table, s.column) == (table, column.name)), None)
        options = ""
        if its is not None:
            options = (
                f" (INCREMENT BY {its.increment} MINVALUE {its.least} MAXVALUE {its.most}"
                f" START WITH {its.start} CACHE {its.cache}{' CYCLE' if its.cycles else ''})"
            )
        yield f" GENERATED {how} AS IDENTITY{options}", "identity"
    elif column.default is not None:
        yield f" DEFAULT {column.default}", "default"
