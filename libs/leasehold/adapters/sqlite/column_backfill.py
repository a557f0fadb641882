"""Values of a column that each row's other columns tell, put by set-wise SQL from the rows as they
are: into those between two keys, or those that are named.

⚠ From the rows as they are, in the statement that writes them: who has written a row since the
column became write-only has put its value himself, and who writes it later will. So it does not
matter when a row is come to, nor whether one is come to twice.
"""

# ruff: noqa: S608 - statement text comes from integer ids alone, values are bound

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from leasehold.adapters.sqlite.backfill import ChangeEntries
from leasehold.adapters.sqlite.layout import column_name
from leasehold.adapters.sqlite.plan import WritePlan
from leasehold.catalog.elements import Column, Computed
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.rows.computed_missing import compile_strictly
from leasehold.rows.derived_as_sql import write_value
from leasehold.rows.filled_by_key import backfill_row


class ColumnBackfill:
    """The statements of one connection, which gets each function once: to give it one is to have
    all that is prepared there prepared anew."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._installed: dict[str, Computed] = {}
        self._has_failed = False
        self.failures: dict[tuple[int, int], tuple[Key, Refused]] = {}
        """By table and element: a row that has no value, and why."""

    def put(self, plan: WritePlan, column: Column, where: str, bindings: Sequence[object]) -> int:
        """Put the values of the rows that ` WHERE …` selects and that have none; count them."""
        own = column_name(column.element_id)
        sets = f"UPDATE {plan.name} AS t SET {own} = {self._value(plan, column)}"
        lacks = f"{where} AND t.{own} IS NULL" if where else f" WHERE t.{own} IS NULL"
        self._has_failed = False
        self._connection.execute(f"{sets}{lacks}", bindings)
        done = self._connection.changes()
        if self._has_failed:
            self._note_failure(plan, column, f"FROM {plan.name} AS t{lacks}", bindings)
        return done

    def _note_failure(
        self, plan: WritePlan, column: Column, clause: str, bindings: Sequence[object]
    ) -> None:
        """Note the first row that `clause` selects and that can't have a value."""
        assert column.missing is not None, column
        assert column.missing.computed is not None, column
        compute = compile_strictly(column.missing.computed)
        ids = (*plan.key_ids, *(source.element_id for source in column.missing.computed.sources))
        shown = ", ".join(map(_of_row, ids))
        for row in self._connection.execute(f"SELECT {shown} {clause}", bindings):
            try:
                compute(dict(zip(ids, row, strict=True)))
            except Refused as error:
                about = plan.descriptor.table_id, column.element_id
                self.failures.setdefault(about, (row[: plan.key_width], error))
                return

    def _value(self, plan: WritePlan, column: Column) -> str:
        """Return the value of a row `t` in SQL."""
        assert column.missing is not None, column
        computed = column.missing.computed
        assert computed is not None, "one value for all rows is put by key"
        written = write_value(computed.expression, computed.type, computed.sources, _of_row)
        if written is not None:
            return written
        name = f"filled{int(plan.descriptor.table_id)}_{int(column.element_id)}"
        ids = tuple(source.element_id for source in computed.sources)
        if self._installed.get(name) != computed:
            compute = compile_strictly(computed)

            def value(*values: Any) -> Any:
                try:
                    return compute(dict(zip(ids, values, strict=True)))
                except Refused:
                    self._has_failed = True
                    return None

            self._connection.create_scalar_function(name, value, numargs=len(ids))
            self._installed[name] = computed
        return f"{name}({', '.join(map(_of_row, ids))})"


def _of_row(element_id: int) -> str:
    return f"t.{column_name(element_id)}"


def backfill_computed(
    connection: apsw.Connection,
    plan: WritePlan,
    column: Column,
    keys: Sequence[Key],
    change_entries: ChangeEntries,
) -> int:
    """Put the values of the rows named by `keys`, each with what an index over the column has of
    it; count them."""
    own = column_name(column.element_id)
    update = f"UPDATE {plan.name} SET {own} = ? WHERE {plan.where_key}"
    done = 0
    for key in dict.fromkeys(keys):
        found: list[tuple[Any, ...]] = connection.execute(plan.get, key).fetchall()
        before = plan.row(found[0]).values if found else None
        after = None if before is None else backfill_row(column, before)
        if after is not None:
            connection.execute(update, (after[column.element_id], *key))
            change_entries(plan, key, before, after)
            done += 1
    return done
