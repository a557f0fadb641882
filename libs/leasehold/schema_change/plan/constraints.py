"""Constraints and their indexes: added, validated, dropped."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from leasehold.catalog.descriptor import CHECKS_MAX, FOREIGN_KEYS_MAX, Descriptor
from leasehold.catalog.elements import Check, Column, Constraint, ForeignKey, Index
from leasehold.catalog.names import implied_index_name
from leasehold.catalog.object_names import free_object_name, joined_names
from leasehold.catalog.states import State
from leasehold.model.errors import DuplicateConstraint, DuplicateObject, OutOfRange, UnknownObject
from leasehold.schema_change.plan.definitions import make_index
from leasehold.schema_change.plan.dependents import Doomed
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.foreign_keys import (
    check_actions,
    check_types,
    find_index,
    resolve_delete_sets,
    resolve_referred,
    select_referring,
)
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.expressions.expression import columns_of_expression, compile_condition, zone_kept
from leasehold.sql.syntax.statements import (
    CheckDefinition,
    DropConstraint,
    ForeignKeyDefinition,
    RenameConstraint,
    UniqueDefinition,
    ValidateConstraint,
)


class ConstraintActions:
    """The actions on constraints of one draft."""

    def __init__(self, draft: TableDraft) -> None:
        self._draft = draft

    def add_unique(self, unique: UniqueDefinition) -> None:
        """Add UNIQUE (…): an index of the constraint's name, which is the table's then."""
        columns = [self._draft.column(name, unique.position) for name in unique.columns]
        self._draft.refuse_retyped(columns)
        parts = joined_names(unique.columns)
        name = self._constraint_name(unique.name, parts, "key", self._draft.taken)
        present = sum(isinstance(path.element, Index) for path in self._draft.paths)
        index = make_index(self._draft.table, name, columns, self._draft.new_id(), present=present)
        self._draft.taken.add(name)
        self._draft.names.add(name)
        made = element_paths.add_index(replace(index, constraint=True), unique=True)
        self._draft.take(made, f"constraint {name}")

    def add_check(self, check: CheckDefinition) -> None:
        """Add CHECK (…), over columns there are or that this statement adds."""
        table = replace(self._draft.table, columns=tuple(self._draft.columns.values()))
        compile_condition(check.expression, table, check.zone)
        named = sorted(columns_of_expression(check.expression))
        over = [table.column(name) for name in named]
        self._draft.refuse_retyped(over)
        columns = tuple(sorted(column.element_id for column in over))
        parts = named[0] if len(named) == 1 else ""
        name = self._constraint_name(check.name, parts, "check", set())
        present = sum(path.new and isinstance(path.element, Check) for path in self._draft.paths)
        if len(table.checks) + present >= CHECKS_MAX:
            raise OutOfRange(f"table {table.name!r} has {CHECKS_MAX} checks, the most allowed")
        self._draft.names.add(name)
        zone = zone_kept(check.expression, table, check.zone)
        made = Check(self._draft.new_id(), name, check.expression, columns, zone=zone)
        self._draft.take(
            element_paths.add_check(made, not_valid=check.not_valid), f"constraint {name}"
        )

    def add_foreign_key(self, definition: ForeignKeyDefinition, *, new_table: bool = False) -> None:
        """Add FOREIGN KEY (…) REFERENCES …, with an index over its columns where there is none.
        That of a `new_table` may refer to what is UNIQUE by the same statement."""
        table = self._draft.table
        columns = tuple(
            self._draft.column(name, definition.position) for name in definition.columns
        )
        self._draft.refuse_retyped(columns)
        itself = definition.table in table.names
        if itself:
            parent = self._with_uniques() if new_table else table
        else:
            parent = self._draft.parent(definition.table)
        to = resolve_referred(definition, parent)
        check_types(columns, to, definition.position)
        check_actions(columns, definition)
        parts = joined_names(definition.columns)
        name = self._constraint_name(definition.name, parts, "fkey", set())
        present = sum(
            path.new and isinstance(path.element, ForeignKey) for path in self._draft.paths
        )
        if len(table.foreign_keys) + present >= FOREIGN_KEYS_MAX:
            raise OutOfRange(
                f"table {table.name!r} has {FOREIGN_KEYS_MAX} foreign keys, the most allowed"
            )
        self._draft.names.add(name)
        index, over = self._index_for(columns, name)
        ids = tuple(column.element_id for column in columns)
        to_ids = tuple(column.element_id for column in to.columns)
        key = ForeignKey(
            self._draft.new_id(),
            name,
            ids,
            parent.table_id,
            to_ids,
            to.index_id,
            index,
            on_delete=definition.on_delete,
            on_update=definition.on_update,
            full=definition.full and len(ids) > 1,  # of one column both mean the same
            delete_sets=resolve_delete_sets(columns, definition),
        )
        path = element_paths.add_check(key, not_valid=definition.not_valid)
        self._draft.take(
            path if over is None else element_paths.delay_behind(path, over), f"constraint {name}"
        )
        if not itself:
            self._draft.needs.add(parent.table_id)

    def _with_uniques(self) -> Descriptor:
        """Return the table with the UNIQUE constraints that are made."""
        made = (path.element for path in self._draft.paths if path.new)
        uniques = (
            replace(each, state=State.PUBLIC, unique=True)
            for each in made
            if isinstance(each, Index) and each.constraint
        )
        return replace(self._draft.table, indexes=(*self._draft.table.indexes, *uniques))

    def validate(self, action: ValidateConstraint) -> None:
        found = self._constraint(action.name)
        if found is None:
            raise self._unknown_constraint(action.name, action.position)
        if isinstance(found, Index) or found.state is State.PUBLIC:
            self._draft.notices.append(f"constraint {action.name!r} is valid already")
            return
        self._draft.take(element_paths.validate_check(found), f"constraint {found.name}")

    def drop(self, action: DropConstraint) -> None:
        found = self._constraint(action.name)
        if found is None:
            if not action.if_exists:
                raise self._unknown_constraint(action.name, action.position)
            self._draft.notices.append(
                f"constraint {action.name!r} does not exist, nothing was done"
            )
            return
        match found:
            case ForeignKey():
                self._draft.drop_foreign_key(found)
            case Index():
                self._drop_unique(found, action)
            case Check():
                self._draft.drop_once(
                    element_paths.drop_check(found), found, f"constraint {found.name}"
                )

    def _drop_unique(self, index: Index, action: DropConstraint) -> None:
        table = self._draft.table
        doomed = Doomed(
            f"constraint {index.name} on table {table.name}",
            f"index {index.name}",
            action.cascade,
            action.position,
        )
        waits = self._draft.drop_referring(
            select_referring(self._draft.references(), index), doomed
        )
        own = (k for k in table.foreign_keys if k.element_id not in self._draft.dropped)
        needed = any(key.index == index.element_id for key in own)
        path = (element_paths.hide_index if needed else element_paths.drop_index)(
            index, waits=waits
        )
        self._draft.drop_once(path, index, f"constraint {index.name}")

    def free_names(self, dropped: Set[str]) -> None:
        """Let what the statement adds have the names of what it drops, wherever that is said: as in
        PostgreSQL, which drops first. Here both stand beside each other until the new one is
        public, which harms nobody: constraints are named in DDL and errors alone, and reads by an
        index are told apart (`Descriptor.read_name`)."""
        table = self._draft.table
        uniques = {index.name for index in table.indexes if index.constraint}
        own = uniques | {check.name for check in table.checks}
        own |= {key.name for key in table.foreign_keys}
        self._draft.names -= dropped & own
        self._draft.taken -= dropped & uniques

    def rename(self, action: RenameConstraint) -> None:
        """Rename a constraint. A UNIQUE constraint and its index are one element, hence one
        name."""
        table = self._draft.table
        if action.name == table.key_constraint and not table.hidden_key:
            self._refuse_name(action.to, self._draft.taken)
            self._draft.take(table_paths.rename_key(table, action.to), f"constraint {action.name}")
            return
        found = self._constraint(action.name)
        if found is None:
            raise self._unknown_constraint(action.name, action.position)
        relations = self._draft.taken if isinstance(found, Index) else set()
        self._refuse_name(action.to, relations)
        self._draft.take(element_paths.rename(found, action.to), f"constraint {found.name}")

    def _index_for(
        self, columns: tuple[Column, ...], foreign_key: str
    ) -> tuple[int, ElementPath | None]:
        """Return the id of an index over exactly these columns, and its path if it is made here."""
        there = find_index(self._draft.table, columns)
        if there is not None and there not in self._draft.dropped:
            return there, None
        ids = tuple(column.element_id for column in columns)
        for path in self._draft.paths:
            if path.new and isinstance(path.element, Index) and path.element.columns == ids:
                return path.element.element_id, path
        name = implied_index_name(foreign_key)
        present = sum(isinstance(path.element, Index) for path in self._draft.paths)
        index = make_index(self._draft.table, name, columns, self._draft.new_id(), present=present)
        made = element_paths.add_index(replace(index, implied=True), unique=False)
        self._draft.take(made, f"index {name}")
        return index.element_id, made

    def _constraint_name(self, given: str | None, parts: str, label: str, taken: set[str]) -> str:
        if given is None:
            table = self._draft.table.name
            return free_object_name(table, parts, label, taken | self._draft.names)
        self._refuse_name(given, taken)
        return given

    def _refuse_name(self, name: str, taken: set[str]) -> None:
        """Refuse a name that is taken. Raises DuplicateObject (42P07) for the name of a table or an
        index, DuplicateConstraint (42710) for one of this table's constraints."""
        if name in taken:
            raise DuplicateObject(f"relation {name!r} already exists", constraint=name)
        if name in self._draft.names:
            table = self._draft.table.name
            raise DuplicateConstraint(
                f"constraint {name!r} for relation {table!r} already exists",
                table=table,
                constraint=name,
            )

    def _constraint(self, name: str) -> Constraint | Index | None:
        """Return the constraint of that name, unless this statement has dropped it."""
        check = self._draft.table.check(name) or self._draft.table.foreign_key(name)
        index = self._draft.table.index(name)
        found = check or (index if index is not None and index.constraint else None)
        return None if found is None or found.element_id in self._draft.dropped else found

    def _unknown_constraint(self, name: str, position: int) -> UnknownObject:
        return UnknownObject(
            f"constraint {name!r} of table {self._draft.table.name!r} does not exist",
            table=self._draft.table.name,
            constraint=name,
            position=position,
        )
