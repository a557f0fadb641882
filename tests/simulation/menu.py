"""The whole menu of schema changes at random on tables of its own, with writers on them.

Every statement ends in success or in a SQLSTATE that can be foreseen for its kind, every job in
success, in a cancel, or in a failure that names rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Constraint, Index
from leasehold.catalog.job import Job, Status
from leasehold.catalog.states import State
from leasehold.model.errors import DiskNearlyFull, RequestFromFuture, TooComplex, UnknownTable
from leasehold.model.records.requests import Outcome
from leasehold.replication.master.attempts import LOST_MAX
from tests.simulation.harm import demand
from tests.simulation.workloads import SchemaChanger

TABLES: Final = ("things", "others")
NAMES: Final = (*TABLES, "thingsx", "othersx")
KEYS: Final = 8
COLUMNS_MAX: Final = 7
ROOMY_BYTES: Final = 100_000
# What a statement may be refused with: names come and go beside it, one job at a time per table.
BY_NAME: Final = {"42P01", "42P07", "42701", "42703", "42704", "2BP01", "42P16", "55006", "0A000"}
OF_GENERATED: Final = "42P17"
BY_VALUE: Final = {"23502", "22P02", "22003", "22001", "42804", "42883"}
OF_NUMBERS: Final = {"22023", "42601", "55000", "2200H"}  # what a column, or a sequence, can't be
DDL_CODES: Final = BY_NAME | BY_VALUE | OF_NUMBERS | {"42830", OF_GENERATED}
ROW_CODES: Final = {
    "42P01",
    "42703",
    "23503",
    "23505",
    "23514",
    "40001",
    "22023",
    "22012",
    "08P01",
    "428C9",
    "0A000",  # a row is named, and its table has no key any more
} | BY_VALUE
DECIDED: Final = ("timestamptz", "uuid")  # types of columns that the master gives a value
# Kinds of jobs that rows can make fail, and what else in a statement says so.
MAY_FAIL: Final = ("unique", "constraint", "not null", "type", "alter table", "primary key")
SAYS_SO: Final = (" unique", "/")
# Keys of indexes, and what may stand behind them.
_NUMBER_KEYS: Final[tuple[str, ...]] = ("{}", "{}", "abs({})", "({} % 3)", "(10 / {})")
_TEXT_KEYS: Final[tuple[str, ...]] = ("{}", "{}", "lower({})", "({} || 'x')")
_TAILS: Final = ("", "", "", " include ({})", " where {} is not null")
_NUMBER_TAILS: Final[tuple[str, ...]] = (*_TAILS, " where {} < 50", " where 10 / {} > 1")
_TEXT_TAILS: Final[tuple[str, ...]] = (*_TAILS, " where upper({}) > '5'")


class Menu(SchemaChanger):
    """A statement on one act in three, rows on the others."""

    def setup(self) -> None:
        super().setup()
        self.statements = 0
        self.succeeded: dict[str, int] = {}
        for name in TABLES:
            self._ddl(f"create table {name} (id bigint primary key, a int, b text)")

    def act(self) -> None:
        way = self.rng.random()
        if way < 0.35:
            self._ddl(self._statement())
        elif way < 0.42:
            self._number += 1
            self._both()
        else:
            self._row()

    # ------------------------------------------------------------ statements

    def _ddl(self, sql: str) -> None:
        self.statements += 1

        def done(outcome: Outcome) -> None:
            demand(
                bool(outcome.lsn) or outcome.code in DDL_CODES | self._by_faults(),
                "menu",
                f"{sql} was refused with {outcome.code}: {outcome.message}",
            )
            self._accepted(outcome)

        self.client.ask({"sql": sql}, done=done)

    def _both(self) -> None:
        """Statements and rows in one request: all of it, or nothing."""
        name = self.rng.choice(NAMES)
        if self._newest(name) is None:
            unique = self.rng.choice(("", "unique "))
            index = f"create {unique}index i{self._number} on {name} (a)"
            sql = f"create table {name} (id bigint primary key, a int, b text); {index}"
            rows = [self._new_row(name) for _ in range(3)]
        elif self.rng.random() < 0.3:
            sql, rows = f"truncate {name}", [self._new_row(name) for _ in range(2)]
        else:
            sql = "; ".join(self._statement() for _ in range(self.rng.choice((1, 1, 2))))
            rows = [self._fields(self.rng.choice(NAMES)) for _ in range(self.rng.choice((0, 1, 3)))]
        fields: dict[str, Any] = {"sql": sql}
        rows = [each for each in rows if each is not None]
        if rows:
            fields["transaction"] = rows

        def done(outcome: Outcome) -> None:
            known = DDL_CODES | ROW_CODES | self._too_large() | self._by_faults()
            words = f"{fields} was refused with {outcome.code}: {outcome.message}"
            demand(bool(outcome.lsn) or outcome.code in known, "menu", words)
            self._accepted(outcome)

        on_conflict = self.rng.choice(("retry", "fail"))
        self.client.ask({**fields, "on_conflict": on_conflict}, done=done)

    def _by_faults(self) -> set[str]:
        """Where disks get full, whatever needs room may be refused. And where hours have passed
        that the log knows nothing of, a master whose clock is set back takes what is fresh for what
        comes from the future. And two terms may end, by whatever it is, while their masters decide
        the same message alone (L10)."""
        codes = {DiskNearlyFull.sqlstate} if self.sim.plan.machines else set()
        if self.sim.reference.position.epoch > LOST_MAX:
            codes.add(TooComplex.sqlstate)
        if self.sim.chaos.has_idled:
            codes.add(RequestFromFuture.sqlstate)
        return codes

    def _too_large(self) -> set[str]:
        """Where records are small, statements and rows together may not fit one."""
        batch = self.sim.plan.shape.master.batch
        return {"54000"} if batch.record_bytes_max < ROOMY_BYTES else set()

    def _new_row(self, name: str) -> dict[str, Any] | None:
        table = self._newest(name)
        values = {"a": self.rng.randrange(95)}
        if table is not None and table.hidden_key:
            return {"table": name, "op": "insert", "values": values}
        key = {"id": self.rng.randrange(KEYS)} if table is None else self._key_of(table)
        return {"table": name, "op": "upsert", "key": key, "values": values}

    def _tables(self) -> Sequence[Descriptor]:
        """The newest descriptors, sequences among them."""
        return self.sim.reference.catalog.tables()

    def _newest(self, name: str) -> Descriptor | None:
        return next((t for t in self._tables() if name in t.names), None)

    def _statement(self) -> str:
        # By number, so that two statements of one block make no two things of one name.
        self._number += 1
        name = self.rng.choice(NAMES)
        table = self._newest(name)
        if table is None:
            return f"create table {name} (id bigint primary key, a int, b text, check (a < 90))"
        columns = self._columns(table)
        if not columns:
            return self._add_column(table)
        made = self.rng.choice(_KINDS)(self, table, self.rng.choice(columns))
        return made if made is not None else self._add_column(table)

    def _columns(self, table: Descriptor) -> list[Column]:
        keys = table.primary_key
        return [c for c in table.by_name.values() if c.element_id not in keys]

    def _add_column(self, table: Descriptor, column: Column | None = None) -> str:
        new = f"c{self._number}"
        if column is not None and len(self._columns(table)) >= COLUMNS_MAX:
            return f"alter table {table.name} drop column {column.name}"
        form = self.rng.choice(
            (
                "int",
                "text",
                "int not null",
                "int not null default 5",
                "int default 6",
                "int unique",
                "text default 'x'",
                "timestamptz default now()",
                "timestamptz not null default now()",
                "uuid default gen_random_uuid() unique",
                "serial",
                "bigserial unique",
                "bigint generated by default as identity (start 5 increment 3)",
                "int generated always as identity",
            )
        )
        return f"alter table {table.name} add column {new} {form}"

    def _generated(self, table: Descriptor, column: Column) -> str | None:
        expression = {"integer": f"coalesce({column.name}, 3) + 1", "text": f"upper({column.name})"}
        kind = column.type.name
        if kind not in expression or len(self._columns(table)) >= COLUMNS_MAX:
            return None
        form = self.rng.choice(("", "", " not null", " unique"))
        return (
            f"alter table {table.name} add column g{self._number} {kind}"
            f" generated always as ({expression[kind]}) stored{form}"
        )

    def _sequence(self, table: Descriptor, column: Column) -> str | None:
        """One of its own, columns that draw and draw no more, and what becomes of what they draw
        from."""
        if self.rng.random() < 0.3:
            column = next((c for c in self._columns(table) if c.draws_from), column)
        named = f"s{self.rng.randrange(2)}"
        drawn = (t.name for t in self._tables() if t.table_id == column.draws_from)
        name = next(drawn, named)
        alter = f"alter table {table.name} alter {column.name}"
        if column.identity:
            return self.rng.choice(
                (
                    f"{alter} drop identity",
                    f"{alter} set generated always",
                    f"{alter} restart",
                    f"{alter} set increment 3 set generated by default",
                    f"{alter} set increment 2 set start 5 restart",
                )
            )
        return self.rng.choice(
            (
                f"create sequence if not exists {name}",
                f"drop sequence if exists {name}",
                f"drop sequence if exists {name} cascade",
                f"alter sequence {name} restart with 7",
                f"alter sequence {name} increment {self.rng.choice((1, 2, 5))} cache 3",
                f"alter sequence {name} minvalue -3 start 2 restart",
                f"alter sequence {name} rename to s{self.rng.randrange(2)}",
                f"alter sequence {name} owned by {table.name}.{column.name}",
                f"alter sequence {name} owned by none",
                f"alter sequence {name} cycle owned by {table.name}.{column.name} increment 2",
                f"{alter} set default nextval('{name}')",
                f"{alter} set default nextval('{name}')",
                f"{alter} drop identity if exists",
                f"{alter} set not null, alter {column.name} add generated by default as identity",
            )
        )

    def _drop_generated(self, table: Descriptor, column: Column) -> str | None:
        """Its expression, or the column with all that it is computed from."""
        made = self.rng.choice([c for c in self._columns(table) if c.generated] or [None])
        if made is None or made.derived is None:
            return None
        if self.rng.random() < 0.5:
            return f"alter table {table.name} alter {made.name} drop expression"
        going = [table.by_id[e] for e in made.derived.sources if e not in table.primary_key]
        dropped = ", ".join(f"drop column {c.name}" for c in (*going, made))
        return f"alter table {table.name} {dropped}"

    def _drop_column(self, table: Descriptor, column: Column) -> str | None:
        way = self.rng.choice(("", " cascade"))
        return f"alter table {table.name} drop column if exists {column.name}{way}"

    def _drop_unique(self, table: Descriptor, column: Column) -> str | None:
        """With what refers to it."""
        found = [i for i in table.indexes if i.refuses_duplicates]
        if not found:
            return f"alter table {table.name} add unique ({column.name})"
        index = self.rng.choice(found)
        if not index.constraint:
            return f"drop index {index.name} cascade"
        return f"alter table {table.name} drop constraint {index.name} cascade"

    def _index(self, table: Descriptor, column: Column) -> str | None:
        unique = self.rng.choice(("", "", "unique "))
        forms = _TEXT_KEYS if column.type.name == "text" else _NUMBER_KEYS
        key = self.rng.choice(forms).format(column.name)
        other = self.rng.choice(self._columns(table))
        tails = _TEXT_TAILS if other.type.name == "text" else _NUMBER_TAILS
        tail = self.rng.choice(tails).format(other.name)
        return f"create {unique}index i{self._number} on {table.name} ({key}){tail}"

    def _drop_index(self, table: Descriptor, column: Column) -> str | None:
        indexes = [i for i in table.indexes if not i.constraint]
        return f"drop index if exists {self.rng.choice(indexes).name}" if indexes else None

    def _rename(self, table: Descriptor, column: Column) -> str | None:
        way = self.rng.random()
        if way < 0.3:
            return f"alter table {table.name} rename to {self.rng.choice(NAMES)}"
        if table.indexes and way < 0.65:
            return f"alter index {self.rng.choice(table.indexes).name} rename to j{self._number}"
        named: list[Constraint | Index] = [
            *table.checks,
            *table.foreign_keys,
            *(i for i in table.indexes if i.constraint),
        ]
        if named and way < 0.85:
            constraint = self.rng.choice(named).name
            return f"alter table {table.name} rename constraint {constraint} to n{self._number}"
        return f"alter table {table.name} rename {column.name} to r{self._number}"

    def _not_null(self, table: Descriptor, column: Column) -> str | None:
        verb = "set" if column.nullable else "drop"
        return f"alter table {table.name} alter {column.name} {verb} not null"

    def _default(self, table: Descriptor, column: Column) -> str | None:
        if column.generated:
            return f"alter table {table.name} alter {column.name} drop expression if exists"
        timed = "set default now()" if column.type.name == "timestamptz" else "set default 3"
        what = self.rng.choice((timed, "drop default"))
        return f"alter table {table.name} alter {column.name} {what}"

    def _constraint(self, table: Descriptor, column: Column) -> str | None:
        if (table.checks or table.foreign_keys) and self.rng.random() < 0.5:
            constraints: tuple[Constraint, ...] = (*table.checks, *table.foreign_keys)
            check = self.rng.choice(constraints)
            verb = "drop" if check.state is State.PUBLIC else "validate"
            return f"alter table {table.name} {verb} constraint {check.name}"
        if column.type.name == "text":
            return None
        if self.rng.random() < 0.45:
            way = self.rng.choice(("", " not valid"))
            parent = self._referred()
            return (
                f"alter table {table.name} add foreign key ({column.name}) references {parent}{way}"
            )
        form = self.rng.choice((f"check ({column.name} < 80)", f"unique ({column.name})"))
        late = " not valid" if "check" in form and self.rng.random() < 0.6 else ""
        return f"alter table {table.name} add constraint k{self._number} {form}{late}"

    def _referred(self) -> str:
        """A table, by its primary key or by a column of it that is UNIQUE."""
        name = self.rng.choice(NAMES)
        table = self._newest(name)
        indexes = () if table is None else table.indexes
        unique = [i.columns[0] for i in indexes if i.unique and len(i.columns) == 1]
        if table is None or not unique or self.rng.random() < 0.5:
            return name
        column = table.by_id.get(self.rng.choice(unique))
        return name if column is None else f"{name} ({column.name})"

    def _several(self, table: Descriptor, column: Column) -> str | None:
        new = f"d{self._number}"
        return (
            f"alter table {table.name} add column {new} int not null default 2,"
            f" drop column {column.name}, add check ({new} < 70)"
        )

    def _type(self, table: Descriptor, column: Column) -> str | None:
        other = "int" if column.type.name == "text" else "text"
        using = f" using cast({column.name} as int)" if other == "int" else ""
        return f"alter table {table.name} alter {column.name} type {other}{using}"

    def _lock(self, table: Descriptor, column: Column) -> str | None:
        locks = [k.name for k in table.row_locks]
        if locks and self.rng.random() < 0.5:
            return f"alter table {table.name} drop lock if exists {self.rng.choice(locks)}"
        return f"alter table {table.name} add lock k{self._number} covering ({column.name})"

    def _primary_key(self, table: Descriptor, column: Column) -> str | None:
        """To a key of one column or two, or none, sooner or later back to the first one."""
        others = [c.name for c in self._columns(table) if not c.generated]
        made = (
            ["id"] if others == [] else [*self.rng.choice((("id",), ())), self.rng.choice(others)]
        )
        named = ", ".join(dict.fromkeys(made))
        if table.hidden_key:
            return f"alter table {table.name} add primary key ({named})"
        way = self.rng.choice(("", f", add primary key ({named})", f", add primary key ({named})"))
        if self.rng.random() < 0.4:
            way += f", add unique ({', '.join(c.name for c in table.key_columns)})"
        return f"alter table {table.name} drop constraint {table.name}_pkey{way}"

    def _key_of(self, table: Descriptor) -> dict[str, Any]:
        """A key that a row may have."""
        return {
            c.name: self._value(replace(c, nullable=False))
            if c.type.name == "text"
            else self.rng.randrange(KEYS)
            for c in table.key_columns
            if not c.hidden
        }

    def _truncate(self, table: Descriptor, column: Column) -> str | None:
        others = [name for name in NAMES if self.rng.random() < 0.3]
        way = self.rng.choice(("", " cascade"))
        return f"truncate {', '.join((table.name, *others))}{way}"

    def _drop_table(self, table: Descriptor, column: Column) -> str | None:
        return f"drop table {table.name}" if self.rng.random() < 0.3 else None

    # ------------------------------------------------------------ rows

    def _row(self) -> None:
        fields = self._fields(self.rng.choice(NAMES))
        if fields is not None:
            way = self.rng.choice(("retry", "fail"))
            self.client.ask({**fields, "on_conflict": way}, done=self._row_done)

    def _fields(self, name: str) -> dict[str, Any] | None:
        table = self._seen_table(name)
        if table is None:
            return None
        kind = self.rng.choice(("insert", "insert", "update", "update", "delete", "upsert"))
        fields: dict[str, Any] = {"table": name, "op": kind, "key": self._key_of(table)}
        if table.hidden_key:
            # Without a key that could be named rows are inserted, and nothing else.
            fields = {"table": name, "op": "insert"}
            kind = "insert"
        if kind != "delete":
            fields["values"] = {
                c.name: self._value(c)
                for c in self._columns(table)
                if self.rng.random() < (0.05 if c.generated or c.type.name in DECIDED else 0.7)
            }
        if self.rng.random() < 0.6:
            fields["schema_version"] = table.version
        return fields

    def _seen_table(self, name: str) -> Descriptor | None:
        """As some coherent replicant shows it now."""
        snapshot = self.sim.read()
        try:
            return None if snapshot is None else snapshot.newest(name)
        except UnknownTable:
            return None

    def _value(self, column: Column) -> Any:
        if column.nullable and self.rng.random() < 0.2:
            return None
        number = self.rng.randrange(self.rng.choice((KEYS, 100)))
        return str(number) if column.type.name == "text" else number

    def _row_done(self, outcome: Outcome) -> None:
        demand(
            bool(outcome.lsn) or outcome.code in ROW_CODES | self._by_faults(),
            "menu",
            f"a row was refused with {outcome.code}: {outcome.message}",
        )


_KINDS: Final = (
    Menu._add_column,
    Menu._add_column,
    Menu._generated,
    Menu._generated,
    Menu._sequence,
    Menu._sequence,
    Menu._drop_generated,
    Menu._drop_column,
    Menu._index,
    Menu._index,
    Menu._drop_index,
    Menu._drop_unique,
    Menu._rename,
    Menu._rename,
    Menu._not_null,
    Menu._default,
    Menu._constraint,
    Menu._constraint,
    Menu._several,
    Menu._type,
    Menu._lock,
    Menu._primary_key,
    Menu._truncate,
    Menu._drop_table,
)


def demand_ended_well(job: Job, terms: int = 1) -> None:
    """A failure says which rows were to blame, and only where rows can be. Or so many terms have
    ended that two of them may have over the same message of the job (L10)."""
    demand(job.status.ended, "jobs", f"{job.sql} never ended: {job.status}, {job.phase}")
    if terms > LOST_MAX and job.status is Status.FAILED and job.code == TooComplex.sqlstate:
        return
    if job.status is Status.FAILED and "its transaction" not in job.error:
        blamed = any(word in job.kind for word in MAY_FAIL)
        blamed = blamed or any(word in job.sql for word in SAYS_SO)
        blamed |= "not null" in job.sql and ("generated" in job.sql or "default" not in job.sql)
        demand(blamed and bool(job.findings), "jobs", f"{job.sql} failed: {job.error}")
