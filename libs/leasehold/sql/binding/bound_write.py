"""A statement that writes, with names resolved: what finds its rows, and what is in their way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, Index
from leasehold.catalog.physical_names import column_name, lock_name
from leasehold.catalog.states import READABLE
from leasehold.sql.binding.bound_tree import (
    Access,
    Bound,
    BoundQuery,
    BoundSelect,
    BoundValues,
    Field,
    Native,
    Slot,
    SubSource,
    TableSource,
    Value,
    join_parts,
)
from leasehold.sql.binding.bound_tree import Column as ResultColumn
from leasehold.sql.binding.from_clause import row_fields
from leasehold.sql.binding.typing import as_key
from leasehold.sql.functions.function import BIGINT, BOOLEAN

GENIDS: Final = BIGINT


@dataclass(frozen=True, slots=True)
class BoundConflict:
    """The ON CONFLICT of an INSERT. `arbiters` are the indexes that are looked at, 0 for the
    primary key, () for all unique ones. `update` is None for DO NOTHING; else a query over the
    slots of the row that is there, then of the one that was to be inserted, which gives true and
    the values of `assigned`, and no row where WHERE does not hold."""

    arbiters: tuple[int, ...]
    assigned: tuple[Column, ...]
    update: BoundQuery | None


@dataclass(frozen=True, slots=True)
class BoundAction:
    """A WHEN of a MERGE. `kind` is INSERT, UPDATE, DELETE or NOTHING, for a row that is `matched`
    with one of the table or is not. `condition` and `values` are queries over the slots of the
    table's row, then of what `find` gives beside it; `values` has those of `given`, and is None
    where nothing is given."""

    kind: str
    matched: bool
    condition: BoundQuery | None
    given: tuple[Column, ...]
    values: BoundQuery | None


@dataclass(frozen=True)
class BoundWrite:
    """An INSERT, UPDATE or DELETE. For an INSERT `find` gives a value for each of `given`. For the
    others it gives the values of `columns` before, a genid for each lock of the table (NULL where
    there is none, or the row is the transaction's own), then for UPDATE the new values of `given`.

    `extra` more values follow, of other tables, for `returning`, whose slots are numbered behind
    the statement's parameters: `columns` as they are after the write (before it for DELETE), then
    those. `parts` are an UPDATE's new values before they were brought to their columns' types.

    For a MERGE `find` gives the values of `columns` and genids, all NULL where the row of the
    source has no match, and `extra` values of the source; `actions` say what is done.
    """

    kind: str
    descriptor: Descriptor
    columns: tuple[Column, ...]
    given: tuple[Column, ...]
    find: BoundQuery
    extra: int
    returning: BoundQuery | None
    conflict: BoundConflict | None
    parts: tuple[Bound, ...] = ()
    actions: tuple[BoundAction, ...] = ()

    @property
    def later(self) -> Iterator[BoundQuery]:
        """Yield what is run for each row that is written."""
        if self.returning is not None:
            yield self.returning
        if self.conflict is not None and self.conflict.update is not None:
            yield self.conflict.update
        for action in self.actions:
            if action.condition is not None:
                yield action.condition
            if action.values is not None:
                yield action.values

    @cached_property
    def required(self) -> tuple[int, ...]:
        """Element ids of `columns` that a row must have a value of."""
        keys = self.descriptor.primary_key
        return tuple(c.element_id for c in self.columns if c.refuses_null or c.element_id in keys)

    @cached_property
    def plain_rows(self) -> tuple[tuple[Slot | Value, ...], ...] | None:
        """Return, of an INSERT of parameters and constants as they are, what each of its rows has
        for each of `given`. None where anything is computed or found."""
        body = self.find.body
        if (
            self.kind != "INSERT"
            or not isinstance(body, BoundSelect)
            or not isinstance(body.source, SubSource)
            or self.find != BoundQuery(self.find.columns, body)
            or body != BoundSelect(body.outputs, body.source)
        ):
            return None
        source = body.source
        if not isinstance(source.query.body, BoundValues):
            return None
        if source.query != BoundQuery(source.query.columns, source.query.body):
            return None
        rows = []
        for values in source.query.body.rows:
            by_name = {f"o{n}": value for n, value in enumerate(values)}
            row = [_plain_value(output, source.relation, by_name) for output in body.outputs]
            plain = [value for value in row if value is not None]
            if len(plain) < len(row):
                return None
            rows.append(tuple(plain))
        return tuple(rows)


def _plain_value(output: Bound, relation: int, by_name: Mapping[str, Bound]) -> Slot | Value | None:
    """Return the parameter or the constant that an output is; None where it is neither."""
    if isinstance(output, Field) and output.relation == relation:
        value = by_name[output.name]
        if isinstance(value, Slot | Value) and value.kind == output.kind:
            return value
        return None
    return output if isinstance(output, Value) else None


def query_of(body: BoundSelect) -> BoundQuery:
    columns = tuple(ResultColumn(f"v{n}", o.kind) for n, o in enumerate(body.outputs))
    return BoundQuery(columns, body)


def is_whole(index: Index) -> bool:
    return not index.computed


def rows_in_the_way(bound: BoundWrite, conflict: BoundConflict) -> Iterator[tuple[int, BoundQuery]]:
    """Give for each arbiter the query for rows that have the key of the row in the slots 1 … n
    (`columns` of the plan): their columns, then their genids."""
    descriptor = bound.descriptor
    uniques = [i for i in descriptor.indexes if i.unique and i.state in READABLE]
    relation = 1  # a query of its own, with nothing beside the table
    ordinal = {c.element_id: n for n, c in enumerate(bound.columns, 1)}
    for arbiter in conflict.arbiters or (0, *(i.element_id for i in uniques if is_whole(i))):
        index = next((i for i in uniques if i.element_id == arbiter), None)
        key = descriptor.primary_key if index is None else index.columns
        parts = [
            (descriptor.by_id[e].type, Slot(ordinal[e], descriptor.by_id[e].type), e) for e in key
        ]
        equal_nulls = index is not None and index.equal_nulls
        sign = "same as" if equal_nulls else "="
        tests: list[Bound] = [
            Native(sign, (as_key(Field(relation, column_name(e), kind)), as_key(slot)), BOOLEAN)
            for kind, slot, e in parts
        ]
        where = join_parts("and", tests)
        access = None
        if index is not None:
            equal = tuple(as_key(slot) for _, slot, _ in parts)
            access = Access(index, equal, equal_nulls=equal_nulls)
        genids = [Field(relation, lock_name(lock), GENIDS) for lock in descriptor.locks]
        source = TableSource(relation, descriptor, "", access)
        outputs = (*row_fields(descriptor, relation), *genids)
        body = BoundSelect(outputs, source, where)
        yield arbiter, query_of(body)
