"""What a role needs for the rows that a request writes: PostgreSQL's privileges, checked by the
master under the catalog that it decides by.

A row is named by its key whatever a statement said: SELECT on the columns of a WHERE is for who has
read it, the session. So a request of somebody who may write a table, and not read it, tells him by
its count whether a row has a key, and nothing else. What foreign keys do to other tables' rows is
nobody's privilege, as in PostgreSQL.

A session sends each row whole, with the defaults of columns that its statement has not named: these
need no privilege. A default that is a constant is known again; one that is computed is believed of
nodes, which have looked at the statement, and of nobody who signs with a role's own key.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from leasehold.catalog.access import Access, check_privilege
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.privileges import Privilege
from leasehold.model.errors import InsufficientPrivilege, Refused
from leasehold.model.records.requests import Expression, Operation, OperationKind, ReadSet
from leasehold.sql.expressions.expression import columns_of_expression
from leasehold.transaction.sequence_operations import (
    SET,
    WITHIN,
    lacks_sequence_values,
)
from leasehold.values.storage import to_storage

_INSERT, _UPDATE = OperationKind.INSERT, OperationKind.UPDATE
_DELETE, _UPSERT = OperationKind.DELETE, OperationKind.UPSERT
_ANY_OF_ROWS: Final = (Privilege.SELECT, Privilege.INSERT, Privilege.UPDATE, Privilege.DELETE)
_columns_read = lru_cache(1_024)(columns_of_expression)


class Rights:
    """The checks of one request of a role that is no superuser. `own`: so many operations before
    the first of the requester's are the master's. `of_node`: a session on a node asks."""

    def __init__(
        self, catalog: Catalog, role_id: int, own: int = 0, *, of_node: bool = False
    ) -> None:
        self._catalog = catalog
        self._of_node = of_node
        self._access: Access = catalog.access
        self._role_id = role_id
        self._own = own
        # What thousands of operations of one statement say alike is looked at once.
        self._checked: set[tuple[int, int, OperationKind, tuple[object, ...]]] = set()

    def check_reads(self, reads: ReadSet) -> None:
        """Check that the role has something to do with each table that it has read. Raises
        InsufficientPrivilege (42501)."""
        for read in reads.tables:
            table = self._catalog.resolve(read.table, read.version)
            if not any(self._may(table, privilege) for privilege in _ANY_OF_ROWS):
                raise InsufficientPrivilege(f"permission denied for table {table.name}")

    def _may(self, table: Descriptor, privilege: Privilege) -> bool:
        try:
            self._check(table, privilege, ())
        except InsufficientPrivilege:
            return False
        return True

    def check(self, number: int, operation: Operation, table: Descriptor) -> None:
        """Check the operation of that number. Raises InsufficientPrivilege (42501)."""
        if number < self._own:
            return
        names = (*operation.values, *(operation.key if isinstance(operation.key, dict) else ()))
        expressions = tuple(v.text for v in operation.values.values() if type(v) is Expression)
        unsaid = self._unsaid(operation, table) if operation.kind is _INSERT else frozenset()
        seen = tuple(operation.before or ())
        more = (*names, None, *expressions, None, *sorted(unsaid), None, *seen)
        asked = table.table_id, table.version, operation.kind, more
        if asked in self._checked:
            return
        if table.sequence is not None:
            self._check_sequence(operation, table)
        else:
            self._check_rows(operation, table, unsaid)
            for text in expressions:
                self._check(table, Privilege.SELECT, _ids(table, _columns_read(text)))
            if seen:  # whether it is refused tells what the row has
                self._check(table, Privilege.SELECT, _ids(table, seen))
        self._checked.add(asked)

    def _unsaid(self, operation: Operation, table: Descriptor) -> frozenset[int]:
        """Return the columns that a row has the defaults of."""
        found: set[int] = set()
        if self._of_node:
            found.update(c.element_id for c in table.by_name.values() if c.default_expression)
        for name, value in operation.values.items():
            column = table.by_name.get(name) if type(name) is str else None
            if column is not None and not column.default_expression and _is_default(column, value):
                found.add(column.element_id)
        return frozenset(found)

    def _check_rows(self, operation: Operation, table: Descriptor, unsaid: frozenset[int]) -> None:
        kind = operation.kind
        given = _ids(table, operation.values)
        key = table.primary_key
        if kind in (_INSERT, _UPSERT):
            shown = () if table.hidden_key else key
            drawn = lacks_sequence_values(operation, table)
            of_sequences = {column.element_id for column in drawn}
            columns = {*given, *shown} - of_sequences - unsaid
            self._check(table, Privilege.INSERT, columns)
            for column in drawn:
                if not column.identity:
                    self._check_draws(column.draws_from)
        if kind in (_UPDATE, _UPSERT):
            self._check(table, Privilege.UPDATE, {*given} - ({*key} if kind is _UPSERT else set()))
        if kind is _UPSERT:
            self._check(table, Privilege.SELECT, key)
        if kind is _DELETE:
            self._check(table, Privilege.DELETE, ())

    def _check_draws(self, sequence_id: int) -> None:
        sequence = self._catalog.newest(sequence_id)
        self._check_any(sequence, Privilege.USAGE, Privilege.UPDATE)

    def _check_sequence(self, operation: Operation, sequence: Descriptor) -> None:
        """Numbers are taken by who has USAGE, or UPDATE, which setval needs."""
        if SET in operation.values or WITHIN in operation.values:
            self._check_any(sequence, Privilege.UPDATE)
        else:
            self._check_any(sequence, Privilege.USAGE, Privilege.UPDATE)

    def _check_any(self, sequence: Descriptor, *privileges: Privilege) -> None:
        held = self._access.privileges(self._role_id, "sequence", sequence.table_id)
        if not any(held & each for each in privileges):
            raise InsufficientPrivilege(f"permission denied for sequence {sequence.name}")

    def _check(self, table: Descriptor, privilege: Privilege, columns: Iterable[int]) -> None:
        check_privilege(
            self._access,
            self._role_id,
            "table",
            table.table_id,
            columns,
            privilege,
            table.name,
        )


def _is_default(column: Column, value: object) -> bool:
    if value is None or column.default is None:
        return value is column.default
    if isinstance(value, Expression):
        return False
    try:
        return bool(to_storage(column.type)(value) == column.default)
    except Refused:
        return False  # which is said elsewhere


def _ids(table: Descriptor, names: Iterable[object]) -> tuple[int, ...]:
    """Return element ids of columns by name or alias; a name that is none is refused elsewhere."""
    found = (
        table.by_name.get(name) or table.by_alias.get(name) for name in names if type(name) is str
    )
    return tuple(column.element_id for column in found if column is not None)
