"""The whole of `CHECK TABLE` on a store: the consistency of one table's pairs with its schema, at
one LSN.

The conditions are those of F1's definition of a consistent database, numbered as the project's
schema-change design numbers them:

1 every column pair lies in a row and belongs to a column of the schema; 2 every row has all its
public required columns; 3 every entry belongs to an index of the schema; 4 every public index has
an entry for each row; 5 every entry's columns exist and agree with its row; 6 public constraints
hold; 7 nothing is there beyond what 1 and 3 allow.

One row of a physical table holds all pairs of a row, so a pair without its row can't be there.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.checking.checksum import Checksum, LineSum, sum_lines
from leasehold.adapters.sqlite.checking.findings import FINDINGS_MAX, Findings, TableFindings
from leasehold.adapters.sqlite.checking.value_forms import (
    install_form_check,
    write_entry_key,
    wrong_value,
)
from leasehold.adapters.sqlite.dead_elements import brief_of, dead_elements, element_ids_of
from leasehold.adapters.sqlite.layout import (
    column_name,
    element_ids,
    entries_name,
    entries_tables,
    lock_name,
    physical_columns,
    table_name,
)
from leasehold.adapters.sqlite.plan import EntriesPlan
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import (
    ALL_ROWS,
    DEFAULT_LOCK,
    Check,
    Column,
    Derived,
    ForeignKey,
    Index,
    Source,
)
from leasehold.catalog.states import DELETED, READABLE
from leasehold.model.errors import Refused
from leasehold.model.ids import GENID_POSITION_BITS
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.rows.check_as_sql import write_condition
from leasehold.rows.check_constraints import condition_of, explain_violation
from leasehold.rows.derived_as_sql import write_value
from leasehold.rows.duplicated_keys import show_value, tell_duplicated
from leasehold.rows.generated import explain_difference, is_relied_on, value_of
from leasehold.rows.index_entries import exact_entry, explain_failure
from leasehold.schema_change.coordinator.verification import INTEGRITY, as_if_public
from leasehold.sql.expressions.key_types import key_types
from leasehold.values.storage import keep_stored
from leasehold.values.types import Type, words_of

FUNCTION_COLUMNS_MAX: Final = 100
"""SQLite gives a function 127 values at most."""


_NO_VALUE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def _show(kind: Type, value: Any) -> str:
    """Return a value as errors show it, or as it is where it is none of its type."""
    try:
        return show_value(kind, value)
    except _NO_VALUE:
        return words_of(kind, value)


class TableCheck:
    """The check of one table in the read snapshot that `connection` has open.

    `versions` are the kept versions, oldest first; the newest is the schema S of the conditions.
    An element of an older version alone, or a `collected` one, is a known left-over; one of no
    version is a finding. `unmerged`: indexes that each node fills at its own pace, so that of their
    entries nothing is summed that is to be equal on all. `parents`: what tables that foreign keys
    refer to are called.
    """

    def __init__(
        self,
        connection: apsw.Connection,
        versions: Sequence[Descriptor],
        min_version: int,
        collected: frozenset[int],
        lsn: int,
        findings_max: int = FINDINGS_MAX,
        repairs_max: int = 0,
        unmerged: frozenset[int] = frozenset(),
        parents: Mapping[int, str] = MappingProxyType({}),
    ) -> None:
        assert versions, "a table has a version"
        self._connection = connection
        self._newest = versions[-1]
        self._known = collected.union(*map(element_ids_of, versions))
        self._dead = dead_elements(map(brief_of, versions), min_version, collected)
        self._lsn = lsn
        self._found = Findings(connection, self._newest, findings_max, repairs_max)
        self._table = table_name(self._newest.table_id)
        self._keys = tuple(column_name(e) for e in self._newest.primary_key)
        self._physical = physical_columns(connection, self._table)
        self._entry_tables = entries_tables(connection, self._newest.table_id)
        self._unmerged = unmerged
        self._parents = parents
        self._entries: dict[int, int] = {}
        self._sums: dict[int, LineSum] = {}  # of an index's entries

    def run(self, elements: Sequence[int] = ()) -> TableFindings:
        """Check everything, or with `elements` those that are about to become public. Raises
        LookupError for an element that the newest version does not have."""
        rows = self._rows_of(self._table) if self._physical else 0
        rows_sum, whole_sum = self._checksum(elements)
        if elements:
            self._some(elements, rows)
        else:
            self._rows()
            self._unknown()
            self._row_by_row(self._newest, elements)
            for index in self._newest.indexes:
                if index.state in DELETED:
                    self._index(index, rows, complete=index.state in READABLE)
            self._entries = {i: n for i, n in self._entries.items() if i not in self._unmerged}
        return self._found.result(rows, self._entries, whole_sum, rows_sum)

    def _row_by_row(self, wanted: Descriptor, elements: Sequence[int]) -> None:
        """Check what follows from others, CHECK and FOREIGN KEY: all that are relied on, or
        `elements`."""
        for column in filter(is_relied_on, wanted.columns):
            if not elements or column.element_id in elements:
                self._derived(column)
        for column in wanted.columns:
            if column.element_id in elements and column.narrow is not None:
                self._narrowed(column, column.narrow)
        for check in wanted.checks:
            if check.element_id in elements or (not elements and check.state in READABLE):
                self._check(check)
        for key in wanted.foreign_keys:
            if key.element_id in elements or (not elements and key.state in READABLE):
                self._foreign_key(key)

    def _some(self, elements: Sequence[int], rows: int) -> None:
        public = self._as_public(elements)
        for element_id in elements:
            if element_id == ALL_ROWS:
                self._mirror(rows)
                continue
            match public.element(element_id):
                case Index() as index:
                    self._index(index, rows, complete=True)
                case Column() as column:
                    if is_relied_on(column):  # first: it says why there is no value
                        self._derived(column)
                    if column.narrow is not None:
                        self._narrowed(column, column.narrow)
                    self._columns([column])
                case Check() as check:
                    self._check(check)
                case ForeignKey() as key:
                    self._foreign_key(key)

    def _as_public(self, elements: Sequence[int]) -> Descriptor:
        """Return the schema that `elements` are checked by: the newest version with those public.
        Raises LookupError where it has no such element."""
        for element_id in elements:
            if element_id != ALL_ROWS and self._newest.element(element_id) is None:
                raise LookupError(
                    f"version {self._newest.version} of table {self._newest.name!r}"
                    f" has no element {element_id}"
                )
        return as_if_public(self._newest, elements)

    # ------------------------------------------------------------ the same rows in two tables

    def _mirror(self, rows: int) -> None:
        """Check condition 4 as if the mirror's rows were entries of an index: each row has exactly
        its own there, equal in all that it holds, genids included."""
        newest = self._newest
        mirror = table_name(newest.mirror)
        there = physical_columns(self._connection, mirror)
        pairs = [column_name(column.element_id) for column in newest.columns]
        genids = [lock_name(lock) for lock in newest.locks]
        same = " AND ".join(
            [
                *(f"u.{n} IS t.{n} AND typeof(u.{n}) = typeof(t.{n})" for n in pairs),
                *(f"ifnull(u.{n}, 0) = ifnull(t.{n}, 0)" for n in genids if n in there),
            ]
        )
        by_key = [c for c in self._mirror_keys(mirror) if c in pairs]
        match = " AND ".join(f"u.{n} = t.{n}" for n in by_key)
        joined = f"FROM {self._table} AS t LEFT JOIN {mirror} AS u ON {match}"
        gone = f"u.{by_key[0]} IS NULL"
        keys = tuple(f"t.{name}" for name in self._keys)
        held = (*pairs, *(f"ifnull({name}, 0)" for name in genids if name in there))
        sums = [
            sum_lines(self._connection, self._table, self._keys, held, "1"),
            sum_lines(self._connection, mirror, by_key, held, "1"),
        ]
        # Two scans tell that all are equal, in less time than looking each row up does.
        if sums[0] != sums[1] or not sums[0].exact:
            words = "the row is not there under the other key"
            self._found.add_selected(4, ALL_ROWS, f"{joined} WHERE {gone}", keys, words)
            words = "the row under the other key differs"
            differs = f"{joined} WHERE NOT {gone} AND NOT ({same})"
            self._found.add_selected(5, ALL_ROWS, differs, keys, words)
        total = self._rows_of(mirror)
        self._entries[ALL_ROWS] = total
        if total > rows:
            self._found.add(
                7, ALL_ROWS, (), f"{total - rows} rows under the other key belong to no row"
            )

    def _mirror_keys(self, mirror: str) -> tuple[str, ...]:
        found = self._connection.execute(
            "SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", (mirror,)
        )
        return tuple(name for (name,) in found)

    # ------------------------------------------------------------ rows (conditions 1 and 2)

    def _rows(self) -> None:
        self._columns(self._newest.columns)
        for lock in self._newest.locks:
            name = lock_name(lock)
            if name not in self._physical:
                continue
            # A row that was not written since a lock was made has no genid of it.
            missing = f"{name} IS NULL" if lock == DEFAULT_LOCK else "0"
            wrong = f"{missing} OR ({name} >> {GENID_POSITION_BITS}) > lsn OR lsn > {self._lsn}"
            self._report_rows(1, lock, wrong, "genid or image LSN is missing or too new")

    def _columns(self, columns: Sequence[Column]) -> None:
        """Check types (1) and required pairs (2): NOT NULL tells what a row must have."""
        faults: list[tuple[int, int, str, str]] = []
        for column in columns:
            name = column_name(column.element_id)
            where = f"column {column.name!r}"
            required = not column.nullable and column.state in READABLE
            if name not in self._physical:
                if required:
                    faults.append((2, column.element_id, "1", f"{where} has no physical column"))
                continue
            faults.append(
                (
                    1,
                    column.element_id,
                    wrong_value(column.type, name),
                    f"{where} is no {column.type}",
                )
            )
            if required:
                faults.append((2, column.element_id, f"{name} IS NULL", f"{where} is NULL"))
        if not faults or not self._physical:
            return
        for column in columns:
            install_form_check(self._connection, column.type)
        sums = ", ".join(f"total({wrong})" for _, _, wrong, _ in faults)
        counts = self._one(f"SELECT {sums} FROM {self._table}")
        for count, (condition, element, wrong, words) in zip(counts, faults, strict=True):
            if count:
                self._report_rows(condition, element, wrong, words)

    def _report_rows(self, condition: int, element: int, wrong: str, words: str) -> None:
        if self._physical:
            self._found.add_selected(
                condition, element, f"FROM {self._table} WHERE {wrong}", self._keys, words
            )

    # ------------------------------------------------------------ indexes (3 to 6)

    def _index(self, index: Index, rows: int, *, complete: bool) -> None:
        statements = EntriesPlan(self._newest, index)
        statements.install(self._connection)
        held = statements.held or "1"
        if statements.held and self._physical:
            having = int(self._one(f"SELECT total({held}) FROM {self._table} AS t")[0])
            if complete and (index.predicate or having != rows):
                self._computable(index)
            rows = having
        if index.element_id not in self._entry_tables or not self._physical:
            self._entries[index.element_id] = 0
            if complete and rows:
                self._lacking(index, statements, f"FROM {self._table} AS t WHERE {held}")
            return
        if complete and self._has_its_entries(statements, held):
            self._entries[index.element_id] = rows
        else:
            self._compare(index, statements, held, rows, complete=complete)
        if complete and index.unique:
            self._unique(index, statements)

    def _has_its_entries(self, statements: EntriesPlan, held: str) -> bool:
        """Say whether an index has the very entries of its rows, as far as two sums tell. What
        differs, and whether something does where they tell nothing, is told by `_compare`."""
        entries = self._sums.get(statements.index.element_id)
        if entries is None or not entries.exact:
            return False
        shown = dict(
            zip(
                (*statements.columns, *statements.included),
                (*statements.from_row, *statements.primary_of_row, *statements.included_of_row),
                strict=True,
            )
        )
        parts = physical_columns(self._connection, statements.name)
        if set(parts) != shown.keys():
            return False
        of_rows = [shown[part] for part in parts]
        return (
            sum_lines(self._connection, f"{self._table} AS t", self._keys, of_rows, held) == entries
        )

    def _compare(
        self, index: Index, statements: EntriesPlan, held: str, rows: int, *, complete: bool
    ) -> None:
        """Compare each entry with its row, and report what differs; with `complete` each row's
        entry is wanted, too."""
        where = f"index {index.name!r}"
        values = zip(
            (*statements.keys, *statements.included),
            (*statements.from_row, *statements.included_of_row),
            strict=True,
        )
        same = f"{held} AND " + " AND ".join(
            f"x.{key} IS {value} AND typeof(x.{key}) = typeof({value})" for key, value in values
        )
        match = " AND ".join(
            f"{row} = x.{key}"
            for key, row in zip(statements.primary, statements.primary_of_row, strict=True)
        )
        joined = f"FROM {statements.name} AS x LEFT JOIN {self._table} AS t ON {match}"
        gone = f"{statements.primary_of_row[0]} IS NULL"
        total, orphans, wrong = self._one(
            f"SELECT count(*), total({gone}), total(NOT ({same}) AND NOT {gone}) {joined}"
        )
        self._entries[index.element_id] = total
        primary = tuple(f"x.{name}" for name in statements.primary)
        if orphans:
            words = f"entry of {where} belongs to no row"
            self._found.add_selected(5, index.element_id, f"{joined} WHERE {gone}", primary, words)
            self._found.remember_wrong(index.element_id, statements, f"{joined} WHERE {gone}")
        if wrong:
            words = f"entry of {where} differs from its row"
            clause = f"{joined} WHERE NOT ({same}) AND NOT {gone}"
            self._found.add_selected(5, index.element_id, clause, primary, words)
            self._found.remember_wrong(index.element_id, statements, clause)
        # No two entries are equal, so each row agrees with at most one: when as many entries
        # agree as there are rows, none is missing.
        if complete and total - orphans - wrong != rows:
            clause = self._lacking_clause(statements)
            self._lacking(index, statements, clause)
            self._found.remember_lacking(index.element_id, statements.primary_of_row, clause)

    def _lacking(self, index: Index, statements: EntriesPlan, clause: str) -> None:
        """Report rows that `clause` selects as having no entry (condition 4)."""
        shown, words = statements.primary_of_row, f"index {index.name!r} lacks the row's entry"
        self._found.add_selected(4, index.element_id, clause, shown, words)

    def _lacking_clause(self, statements: EntriesPlan) -> str:
        """Return FROM … WHERE of the rows that should have an entry and don't: one look-up in the
        entries for each."""
        # "+": as a value without a type of its own. A key of type INTEGER would else be compared
        # as a number, the look-up would end before it, and go through all entries of equal keys.
        values = (*statements.from_row, *(f"+{name}" for name in statements.primary_of_row))
        same = " AND ".join(
            f"x.{name} = {value}" for name, value in zip(statements.columns, values, strict=True)
        )
        return (
            f"FROM {self._table} AS t WHERE {statements.held or '1'} AND NOT EXISTS"
            f" (SELECT 1 FROM main.{statements.name} AS x WHERE {same})"
        )

    def _unique(self, index: Index, statements: EntriesPlan) -> None:
        """Check condition 6 of keys; a key with a NULL in it equals no other unless the index says
        so, as in PostgreSQL."""
        keys = ", ".join(statements.keys)
        parts = zip(statements.keys, statements.null_texts, strict=True)
        distinct = () if index.equal_nulls else parts
        full = " AND ".join(f"{key} <> {null}" for key, null in distinct) or "1"
        twice = (
            f"SELECT {keys} FROM {statements.name} WHERE {full} GROUP BY {keys} HAVING count(*) > 1"
        )
        if not self._one(f"SELECT EXISTS ({twice})")[0]:
            return
        clause = f"FROM {statements.name} WHERE ({keys}) IN ({twice})"
        primary = statements.primary
        names = ", ".join(self._newest.key_words(index))

        def words(values: Key) -> str:
            nulls = statements.nulls if index.equal_nulls else (None,) * len(values)
            parts = zip(values, nulls, strict=False)
            key = tuple(None if part == null else part for part, null in parts)
            kinds = key_types(self._newest, index)
            shown = ", ".join(map(_show, kinds, key))
            return tell_duplicated(index.name, names, shown)

        # By value, so that the rows of a duplicate are listed together.
        self._found.add_selected(
            6, index.element_id, clause, (*statements.keys, *primary), words, len(primary)
        )

    def _computable(self, index: Index) -> None:
        """Check condition 6 of a computed index: each row's entry can be computed."""
        exact = exact_entry(self._newest, index)
        where = f"index {index.name!r}"
        why = partial(explain_failure, exact)
        self._each_row(6, index.element_id, tuple(index.over), exact, why, where)

    # ------------------------------------------------------------ foreign keys (6)

    def _foreign_key(self, key: ForeignKey) -> None:
        """Find rows that refer to none, by the parent's primary key or by its index's entries. ⚠ A
        table that a transaction has yet to fill may come before the index that it refers to."""
        if not self._physical or not self._has_rows():
            return
        own = [f"t.{column_name(column)}" for column in key.columns]
        sought = own
        if key.parent_index:
            parent = f"main.{entries_name(key.parent, key.parent_index)}"
            theirs = [f"p.k{number}" for number in range(len(own))]
            kinds = (self._newest.by_id[column].type for column in key.columns)
            sought = [
                write_entry_key(self._connection, *each) for each in zip(kinds, own, strict=True)
            ]
        else:
            parent = f"main.{table_name(key.parent)}"
            theirs = [f"p.{column_name(column)}" for column in key.parent_columns]
        given = " AND ".join(f"{column} IS NOT NULL" for column in own)
        same = " AND ".join(f"{a} = {b}" for a, b in zip(theirs, sought, strict=True))
        mixed = ""
        if key.full:
            mixed = f" OR NOT ({' AND '.join(f'{c} IS NULL' for c in own)} OR {given})"
        clause = (
            f"FROM {self._table} AS t WHERE ({given}"
            f" AND NOT EXISTS (SELECT 1 FROM {parent} AS p WHERE {same})){mixed}"
        )
        shown = (*own, *(f"t.{column}" for column in self._keys))
        self._found.add_selected(
            6,
            key.element_id,
            clause,
            shown,
            partial(self._explain_reference, key),
            len(self._keys),
            by_key=True,
        )

    def _explain_reference(self, key: ForeignKey, values: Key) -> str:
        where = f"foreign key {key.name!r}"
        if None in values:
            return f"{where}: it is NULL in parts"
        columns = [self._newest.by_id[column] for column in key.columns]
        names = ", ".join(column.name for column in columns)
        shown = ", ".join(
            words_of(column.type, value) for column, value in zip(columns, values, strict=True)
        )
        parent = self._parents.get(key.parent)
        there = "the table that it refers to" if parent is None else f"table {parent!r}"
        return f"{where}: ({names}) = ({shown}) is not in {there}"

    # ------------------------------------------------------------ computed (2 and 6)

    def _check(self, check: Check) -> None:
        holds = condition_of(self._newest, check)
        where = f"check {check.name!r}"
        why = partial(explain_violation, holds)
        condition = write_condition(self._newest, check, self._value_in_sql)
        broken = "" if condition is None else f"NOT {condition}"
        self._each_row(6, check.element_id, check.columns, holds, why, where, broken)

    def _value_in_sql(self, element_id: int) -> str:
        name = column_name(element_id)
        return f"t.{name}" if name in self._physical else "NULL"

    def _narrowed(self, column: Column, narrow: Type) -> None:
        """Check condition 6 of a column that is to be of a narrower type: it has no value which
        that type lacks."""
        own = column.element_id
        keep = keep_stored(narrow)

        def compute(image: Image) -> Any:
            return keep(image.get(own))

        def why(image: Image) -> str:
            try:
                compute(image)
            except Refused as error:
                shown = words_of(column.type, image.get(own))
                return f"{shown} is no {narrow} ({error.message})"
            return ""

        install_form_check(self._connection, narrow)
        broken = wrong_value(narrow, self._value_in_sql(own))
        where = f"column {column.name!r}"
        self._each_row(INTEGRITY, own, (own,), compute, why, where, broken)

    def _derived(self, column: Column) -> None:
        """Check condition 2 of a column that follows from others: it has what its expression
        gives."""
        assert column.derived is not None, column
        own = column.element_id
        compute = value_of(self._newest, column)
        why = partial(explain_difference, compute, element_id=own)
        where = f"column {column.name!r}, computed from others"
        broken = self._differs_in_sql(column, column.derived)
        self._each_row(2, own, (*column.derived.sources, own), compute, why, where, broken)

    def _differs_in_sql(self, column: Column, derived: Derived) -> str:
        """Return SQL that is true for a row `t` which has not what the expression gives, "" where
        it takes the compiled expression to say so."""
        by_id = self._newest.by_id
        named = [by_id[e] for e in derived.sources if e in by_id]
        sources = [Source(c.element_id, c.name, c.type) for c in named]
        value = write_value(derived.expression, column.type, sources, self._value_in_sql)
        own = self._value_in_sql(column.element_id)
        return "" if value is None else f"{own} IS NOT {value}"

    def _each_row(
        self,
        condition: int,
        element: int,
        columns: Sequence[int],
        compute: Callable[[Image], object],
        why: Callable[[Image], str],
        where: str,
        broken: str = "",
    ) -> None:
        """Add a finding for each row of which `why` says something, and what `compute` raises.
        `broken`: SQL that is true for all such rows `t`, where there is any; else a function of SQL
        asks `why`."""
        if not self._physical:
            return
        broken = broken or self._install_look(element, columns, why)
        for key, image in self._images(columns, broken):
            words = why(image)
            if words:
                self._found.note_raised(compute, image)
                self._found.add(condition, element, key, f"{where}: {words}")

    def _install_look(
        self, element: int, columns: Sequence[int], why: Callable[[Image], str]
    ) -> str:
        """Give the connection a function that says of a row whether `why` does, and return its
        call: rows of which there is nothing to say are never made in Python. One of more columns
        than a function takes is asked of each."""
        there = element_ids(self._physical)
        ids = tuple(e for e in dict.fromkeys(columns) if e in there)
        if len(ids) > FUNCTION_COLUMNS_MAX:
            return "1"

        def look(*values: Any) -> int:
            return int(bool(why(dict(zip(ids, values, strict=True)))))

        name = f"broken{int(self._newest.table_id)}_{int(element)}"
        self._connection.create_scalar_function(name, look, numargs=len(ids), deterministic=True)
        return f"{name}({', '.join(f't.{column_name(e)}' for e in ids)})"

    def _images(self, columns: Sequence[int], where: str) -> Iterator[tuple[Key, dict[int, Any]]]:
        """Yield key and some columns of every row `t` that `where` selects, in order of keys."""
        there = element_ids(self._physical)
        ids = tuple(e for e in dict.fromkeys((*self._newest.primary_key, *columns)) if e in there)
        shown = ", ".join(f"t.{column_name(e)}" for e in ids)
        order = ", ".join(f"t.{name}" for name in self._keys)
        width = len(self._keys)
        for row in self._connection.execute(
            f"SELECT {shown} FROM {self._table} AS t WHERE {where} ORDER BY {order}"
        ):
            yield row[:width], dict(zip(ids, row, strict=True))

    # ------------------------------------------------------------ left-overs (3 and 7)

    def _unknown(self) -> None:
        for element in element_ids(self._physical):
            if element not in self._known:
                wrong = f"{column_name(element)} IS NOT NULL"
                self._report_rows(1, element, wrong, "pair of a column that no version names")
                self._found.add(7, element, (), "physical column that no version names")
        for index_id in self._entry_tables:
            if index_id not in self._known:
                name = entries_name(self._newest.table_id, index_id)
                primary = [c for c in physical_columns(self._connection, name) if c[0] == "p"]
                words = "entry of an index that no version names"
                self._found.add_selected(3, index_id, f"FROM {name}", tuple(primary), words)
                self._found.add(7, index_id, (), "entries table that no version names")

    # ------------------------------------------------------------ results

    def _checksum(self, elements: Sequence[int]) -> tuple[bytes, bytes]:
        """Return the sums of the rows, and of rows and entries, over everything live or over
        `elements`. Dead elements are left out on purpose, and what each node fills at its own pace
        unless it is asked for."""
        total = Checksum(self._connection)
        left_out = self._dead if elements else self._dead | self._newest.filled_apart
        columns = sorted(
            e for e in element_ids(self._physical) if e in self._known and e not in left_out
        )
        indexed = self._known - self._dead - self._unmerged
        indexes: Sequence[int] = [e for e in self._entry_tables if e in indexed]
        shown = [column_name(e) for e in columns]
        shown += sorted(name for name in self._physical if name[0] == "g")
        if elements:
            wanted = [column_name(e) for e in columns if e in elements]
            shown = [*self._keys, *wanted] if wanted else []
            indexes = [e for e in indexes if e in elements]
        if shown and self._physical:
            total.add(self._table, self._keys, shown if elements else [*shown, "lsn"])
        rows_sum = total.digest()
        for index_id in indexes:
            name = entries_name(self._newest.table_id, index_id)
            parts = physical_columns(self._connection, name)
            keys = tuple(part for part in parts if part[0] in "kp")
            self._sums[index_id] = total.add_summed(name, keys, parts)
        return rows_sum, total.digest()

    def _rows_of(self, table: str) -> int:
        """Count the rows of a table. ⚠ Without a condition SQLite counts all pages in one step,
        which no progress handler interrupts: tens of milliseconds of a processor, on every node at
        the same moment."""
        rows: int = self._one(f"SELECT count(*) FROM {table} WHERE +1")[0]
        return rows

    def _has_rows(self) -> bool:
        return bool(self._one(f"SELECT EXISTS (SELECT 1 FROM {self._table})")[0])

    def _one(self, text: str) -> Any:
        return self._connection.execute(text).fetchall()[0]
