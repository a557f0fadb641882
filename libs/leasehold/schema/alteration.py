"""The actions of one ALTER TABLE (or the constraints of a CREATE TABLE) as tracks of elements.

Later actions see what earlier ones make: a column that is added may be named by a constraint of
the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    NotNullViolation,
    OutOfRange,
    UnknownColumn,
    UnknownObject,
)
from leasehold.schema import tracks as way
from leasehold.schema.descriptor import (
    CHECKS_MAX,
    COLUMNS_MAX,
    FOREIGN_KEYS_MAX,
    INDEXES_MAX,
    LOCKS_MAX,
    Descriptor,
)
from leasehold.schema.elements import (
    DEFAULT_LOCK,
    DEFAULT_LOCK_NAME,
    Check,
    Column,
    Constraint,
    ForeignKey,
    Index,
    Lock,
)
from leasehold.schema.names import constraint_names, free_name
from leasehold.schema.references import (
    References,
    check_types,
    index_over,
    referred,
    refuse_referred_column,
    refuse_referred_index,
)
from leasehold.schema.states import State
from leasehold.schema.tracks import Track
from leasehold.sql.conversion import conversions, converted
from leasehold.sql.expression import (
    columns_of_expression,
    compile_condition,
    compile_expression,
    rename_column_in,
)
from leasehold.sql.literal import default_value
from leasehold.sql.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddLock,
    AddUnique,
    AlterType,
    CheckDefinition,
    ColumnDefinition,
    DropColumn,
    DropConstraint,
    DropLock,
    DropNotNull,
    ForeignKeyDefinition,
    RenameColumn,
    RenameTable,
    SetDefault,
    SetNotNull,
    UniqueDefinition,
    ValidateConstraint,
)


def column_of(definition: ColumnDefinition, element_id: int) -> Column:
    return Column(
        element_id, definition.name, definition.type, definition.nullable, definition.default
    )


def made_index(
    table: Descriptor, name: str, columns: Iterable[Column], element_id: int, *, present: int = 0
) -> Index:
    """An index over `columns`; `present`: indexes made by the same statement.

    Raises FeatureNotSupported, OutOfRange.
    """
    columns = tuple(columns)
    for column in columns:
        if column.type.name == "bytea":
            raise FeatureNotSupported(
                f"column {column.name!r} is bytea, which can't be indexed yet", column=column.name
            )
    if len(table.indexes) + present >= INDEXES_MAX:
        raise OutOfRange(f"table {table.name!r} has {INDEXES_MAX} indexes, the most allowed")
    return Index(element_id, name, tuple(column.element_id for column in columns))


class Alteration:
    """`tracks`, and `notices` for what needed nothing done; `taken` are names of relations,
    `parents` finds a table by its name, `references` the foreign keys that refer to this one.
    `needs`: tables that must stay as they are until it is done."""

    def __init__(
        self,
        table: Descriptor,
        taken: set[str],
        parents: Callable[[str], Descriptor],
        references: References = lambda: (),
    ) -> None:
        self._table = table
        self._parents = parents
        self._references = references
        self._taken = set(taken)
        self._constraints = constraint_names(table)
        self._columns = {c.name: c for c in table.columns if c.state is State.PUBLIC}
        self._next_id = table.next_element_id
        self._words: list[str] = []
        self._dropped: set[int] = set()
        self._retyped: set[int] = set()
        self._locks: list[Lock] = []
        self._moved: set[int] = set()
        self._moves: list[tuple[int, int]] = []
        self._moves_track: Track | None = None
        self.tracks: list[Track] = []
        self.notices: list[str] = []
        self.needs: set[int] = set()
        self.kind = "alter table"

    @property
    def subject(self) -> str:
        """For people: what is changed, `column a` or `column a, constraint b`."""
        return ", ".join(dict.fromkeys(self._words)) or f"table {self._table.name}"

    def add(self, action: Action) -> None:
        """Take one action. Raises what `plan` raises."""
        self.kind = "alter table" if self._words else _KINDS[type(action)]
        match action:
            case AddColumn():
                self._add_column(action)
            case DropColumn():
                self._drop_column(action)
            case RenameColumn():
                self._rename_column(action)
            case RenameTable():
                self._rename_table(action)
            case SetDefault():
                self._set_default(action)
            case AlterType():
                self._alter_type(action)
            case SetNotNull():
                self._set_not_null(action)
            case DropNotNull():
                self._drop_not_null(action)
            case AddUnique(unique):
                self.add_unique(unique)
            case AddCheck(check):
                self.add_check(check)
            case AddForeignKey(key):
                self.add_foreign_key(key)
            case ValidateConstraint():
                self._validate(action)
            case DropConstraint():
                self._drop_constraint(action)
            case AddLock():
                self._add_lock(action)
            case DropLock():
                self._drop_lock(action)

    def _take(self, track: Track, words: str) -> None:
        self.tracks.append(track)
        self._words.append(words)

    def _new_id(self) -> int:
        self._next_id += 1
        return self._next_id - 1

    def _column(self, name: str, position: int = 1) -> Column:
        found = self._columns.get(name) or self._table.by_alias.get(name)
        if found is None:
            raise UnknownColumn(
                f"column {name!r} does not exist in table {self._table.name!r}",
                table=self._table.name,
                column=name,
                position=position,
            )
        return found

    # ------------------------------------------------------------ columns

    def _add_column(self, action: AddColumn) -> None:
        definition = action.column
        table = self._table
        named: dict[str, Any] = {
            "table": table.name,
            "column": definition.name,
            "position": definition.position,
        }
        if definition.name in self._columns:
            if not action.if_not_exists:
                raise DuplicateColumn(
                    f"column {definition.name!r} exists already in table {table.name!r}", **named
                )
            self.notices.append(f"column {definition.name!r} exists already, nothing was done")
            return
        if definition.name in table.by_name:
            # Else a version could show both.
            raise FeatureNotSupported(
                f"column {definition.name!r} is dropped by the same statement: add the new one by"
                " a statement of its own",
                **named,
            )
        if not definition.nullable and definition.default is None:
            raise NotNullViolation(
                f"column {definition.name!r} is NOT NULL and old rows would lack the value:"
                " give a DEFAULT",
                **named,
            )
        if len(table.columns) + len(self.tracks) >= COLUMNS_MAX:
            raise OutOfRange(
                f"table {table.name!r} has {COLUMNS_MAX} columns, the most allowed", **named
            )
        column = column_of(definition, self._new_id())
        self._columns[column.name] = column
        self._take(way.add_column(column), f"column {column.name}")
        if definition.unique is not None:
            self.add_unique(definition.unique)
        for check in definition.checks:
            self.add_check(check)
        if definition.references is not None:
            self.add_foreign_key(definition.references)

    def _drop_column(self, action: DropColumn) -> None:
        if action.if_exists and action.name not in self._columns:
            self.notices.append(f"column {action.name!r} does not exist, nothing was done")
            return
        column = self._column(action.name, action.position)
        if column.element_id in self._table.primary_key:
            raise InvalidDefinition(
                f"column {column.name!r} belongs to the primary key and can't be dropped",
                column=column.name,
                position=action.position,
            )
        if self._table.element(column.element_id) is None:
            raise InvalidDefinition(f"column {column.name!r} is added by the same statement")
        made = self._made_over(column)
        if made:
            raise DependentObjects(
                f"{', '.join(made)} of the same statement rests on column {column.name!r}",
                column=column.name,
                position=action.position,
            )
        refuse_referred_column(self._references, column)
        indexes = [i for i in self._table.indexes if column.element_id in i.columns]
        constraints: tuple[Constraint, ...] = (*self._table.checks, *self._table.foreign_keys)
        checks = [c for c in constraints if column.element_id in c.columns]
        for index in indexes:
            if not any(c.index == index.element_id for c in checks if isinstance(c, ForeignKey)):
                refuse_referred_index(self._references, self._table, index)
            self._drop_once(way.drop_index(index), index, f"index {index.name}")
        for check in checks:
            self._drop_once(way.drop_check(check), check, f"constraint {check.name}")
        del self._columns[column.name]
        track = way.drop_column(column, indexed=bool(indexes), checked=bool(checks))
        self._take(track, f"column {column.name}")

    def _drop_once(self, track: Track, element: Index | Constraint, words: str) -> None:
        """Two dropped columns may share an index."""
        if element.element_id not in self._dropped:
            self._dropped.add(element.element_id)
            self._take(track, words)

    def _rename_column(self, action: RenameColumn) -> None:
        column = self._column(action.name, action.position)
        if action.to in self._columns or action.to in self._table.by_alias:
            raise DuplicateColumn(
                f"column {action.to!r} exists already in table {self._table.name!r}",
                table=self._table.name,
                column=action.to,
                position=action.position,
            )
        self._take(way.rename(column, action.to), f"column {column.name}")
        for check in self._table.checks:
            if column.element_id in check.columns:
                text = rename_column_in(check.expression, column.name, action.to)
                self.tracks.append(way.reword_check(check, text))

    def _set_default(self, action: SetDefault) -> None:
        column = self._column(action.column, action.position)
        value = None if action.value is None else default_value(action.value, column.type)
        if value == column.default:
            self.notices.append(f"column {column.name!r} has that default already")
            return
        self._take(way.set_default(column, value), f"column {column.name}")
        self._columns[column.name] = replace(column, default=value)

    def _alter_type(self, action: AlterType) -> None:
        old = self._column(action.column, action.position)
        if old.type == action.type and action.using is None:
            self.notices.append(f"column {old.name!r} is of type {old.type} already")
            return
        self._refuse_users(old, action.position)
        forth, back = conversions(old.type, action.type, old.name, action.using)
        new = replace(old, element_id=self._new_id(), type=action.type, nullable=True, alias="")
        if old.default is not None:
            new = replace(new, default=converted(old, new, self._table))
        # Whether the expressions fit is seen before anything is written.
        compile_expression(forth, self._table, new)
        as_new = replace(self._table, columns=(*self._others(old), new))
        compile_expression(back, as_new, old)
        for track in way.change_type(old, new, forth, back):
            self.tracks.append(track)
        self._words.append(f"column {old.name}")
        self._columns[old.name] = new
        self._retyped.add(new.element_id)

    def _others(self, column: Column) -> tuple[Column, ...]:
        return tuple(c for c in self._table.columns if c.element_id != column.element_id)

    def _refuse_users(self, column: Column, position: int) -> None:
        """A column's type can't change under what rests on it."""
        users = [f"index {i.name}" for i in self._table.indexes if column.element_id in i.columns]
        users += [f"check {c.name}" for c in self._table.checks if column.element_id in c.columns]
        keys = self._table.foreign_keys
        users += [f"foreign key {k.name}" for k in keys if column.element_id in k.columns]
        users += [
            f"foreign key {k.name} of table {table.name}"
            for table, k in self._references()
            if column.element_id in k.parent_columns
        ]
        users += self._made_over(column)
        if column.element_id in self._table.primary_key:
            users.append("the primary key")
        if users:
            raise FeatureNotSupported(
                f"the type of column {column.name!r} can't be changed while"
                f" {', '.join(users)} rests on it: drop that first, add it again after",
                column=column.name,
                position=position,
            )

    def _refuse_retyped(self, columns: Iterable[Column]) -> None:
        """⚠ A constraint over a new column shows it early (`steps`): beside the old one here."""
        for column in columns:
            if column.element_id in self._retyped:
                raise FeatureNotSupported(
                    f"column {column.name!r} changes its type in the same statement: add the"
                    " constraint by a statement of its own",
                    column=column.name,
                )

    def _made_over(self, column: Column) -> list[str]:
        """Constraints of this very statement that rest on a column."""
        made = [track.element for track in self.tracks if track.new]
        return [
            f"constraint {element.name}"
            for element in made
            if isinstance(element, Index | Check | ForeignKey)
            and column.element_id in element.columns
        ]

    def _set_not_null(self, action: SetNotNull) -> None:
        column = self._column(action.column, action.position)
        if column.refuses_null or column.element_id in self._table.primary_key:
            self.notices.append(f"column {column.name!r} is NOT NULL already")
            return
        self._refuse_retyped([column])
        self._take(way.set_not_null(column), f"column {column.name}")
        self._columns[column.name] = replace(column, nullable=False)

    def _drop_not_null(self, action: DropNotNull) -> None:
        column = self._column(action.column, action.position)
        if column.element_id in self._table.primary_key:
            raise InvalidDefinition(
                f"column {column.name!r} belongs to the primary key, which is NOT NULL",
                column=column.name,
                position=action.position,
            )
        if column.nullable:
            self.notices.append(f"column {column.name!r} is not NOT NULL")
            return
        self._take(way.drop_not_null(column), f"column {column.name}")
        self._columns[column.name] = replace(column, nullable=True)

    # ------------------------------------------------------------ the table

    def _rename_table(self, action: RenameTable) -> None:
        if action.to in self._taken:
            raise DuplicateObject(
                f"{action.to!r} exists already, or is being made",
                table=action.to,
                position=action.position,
            )
        self._take(way.rename(self._table, action.to), f"table {self._table.name}")

    # ------------------------------------------------------------ constraints

    def _constraint_name(self, given: str | None, stem: str, suffix: str, taken: set[str]) -> str:
        if given is None:
            return free_name(stem, suffix, taken | self._constraints)
        if given in taken or given in self._constraints:
            raise DuplicateObject(f"constraint {given!r} exists already", constraint=given)
        return given

    def add_unique(self, unique: UniqueDefinition) -> None:
        """UNIQUE (…): an index of the constraint's name, which is the table's then."""
        columns = [self._column(name, unique.position) for name in unique.columns]
        self._refuse_retyped(columns)
        stem = "_".join((self._table.name, *unique.columns))
        name = self._constraint_name(unique.name, stem, "_key", self._taken)
        present = sum(isinstance(track.element, Index) for track in self.tracks)
        index = made_index(self._table, name, columns, self._new_id(), present=present)
        self._taken.add(name)
        self._constraints.add(name)
        made = way.add_index(replace(index, constraint=True), unique=True)
        self._take(made, f"constraint {name}")

    def add_check(self, check: CheckDefinition) -> None:
        """CHECK (…), over columns there are or that this statement adds."""
        table = replace(self._table, columns=tuple(self._columns.values()))
        compile_condition(check.expression, table)
        named = sorted(columns_of_expression(check.expression))
        over = [table.column(name) for name in named]
        self._refuse_retyped(over)
        columns = tuple(sorted(column.element_id for column in over))
        stem = "_".join((table.name, *named)) if len(named) == 1 else table.name
        name = self._constraint_name(check.name, stem, "_check", set())
        present = sum(track.new and isinstance(track.element, Check) for track in self.tracks)
        if len(table.checks) + present >= CHECKS_MAX:
            raise OutOfRange(f"table {table.name!r} has {CHECKS_MAX} checks, the most allowed")
        self._constraints.add(name)
        made = Check(self._new_id(), name, check.expression, columns)
        self._take(way.add_check(made, not_valid=check.not_valid), f"constraint {name}")

    def add_foreign_key(self, definition: ForeignKeyDefinition) -> None:
        """FOREIGN KEY (…) REFERENCES …; with an index over its columns where there is none."""
        table = self._table
        columns = tuple(self._column(name, definition.position) for name in definition.columns)
        self._refuse_retyped(columns)
        itself = definition.table in table.names
        parent = table if itself else self._parents(definition.table)
        to = referred(definition, parent)
        check_types(columns, to, definition.position)
        stem = "_".join((table.name, *definition.columns))
        name = self._constraint_name(definition.name, stem, "_fkey", set())
        present = sum(track.new and isinstance(track.element, ForeignKey) for track in self.tracks)
        if len(table.foreign_keys) + present >= FOREIGN_KEYS_MAX:
            raise OutOfRange(
                f"table {table.name!r} has {FOREIGN_KEYS_MAX} foreign keys, the most allowed"
            )
        self._constraints.add(name)
        index, over = self._index_for(columns)
        ids = tuple(column.element_id for column in columns)
        to_ids = tuple(column.element_id for column in to.columns)
        key = ForeignKey(self._new_id(), name, ids, parent.table_id, to_ids, to.index_id, index)
        track = way.add_check(key, not_valid=definition.not_valid)
        self._take(track if over is None else way.behind(track, over), f"constraint {name}")
        if not itself:
            self.needs.add(parent.table_id)

    def _index_for(self, columns: tuple[Column, ...]) -> tuple[int, Track | None]:
        """The id of an index over exactly these columns, and its track if it is made here."""
        there = index_over(self._table, columns)
        if there is not None and there not in self._dropped:
            return there, None
        ids = tuple(column.element_id for column in columns)
        for track in self.tracks:
            if track.new and isinstance(track.element, Index) and track.element.columns == ids:
                return track.element.element_id, track
        stem = "_".join((self._table.name, *(column.name for column in columns)))
        name = free_name(stem, "_idx", self._taken)
        self._taken.add(name)
        present = sum(isinstance(track.element, Index) for track in self.tracks)
        index = made_index(self._table, name, columns, self._new_id(), present=present)
        made = way.add_index(index, unique=False)
        self._take(made, f"index {name}")
        return index.element_id, made

    def _constraint(self, name: str) -> Constraint | Index | None:
        """One that this statement has not dropped."""
        check = self._table.check(name) or self._table.foreign_key(name)
        index = self._table.index(name)
        found = check or (index if index is not None and index.constraint else None)
        return None if found is None or found.element_id in self._dropped else found

    def _unknown_constraint(self, name: str, position: int) -> UnknownObject:
        return UnknownObject(
            f"constraint {name!r} of table {self._table.name!r} does not exist",
            table=self._table.name,
            constraint=name,
            position=position,
        )

    def _validate(self, action: ValidateConstraint) -> None:
        found = self._constraint(action.name)
        if found is None:
            raise self._unknown_constraint(action.name, action.position)
        if isinstance(found, Index) or found.state is State.PUBLIC:
            self.notices.append(f"constraint {action.name!r} is valid already")
            return
        self._take(way.validate_check(found), f"constraint {found.name}")

    def _drop_constraint(self, action: DropConstraint) -> None:
        found = self._constraint(action.name)
        if found is None:
            if not action.if_exists:
                raise self._unknown_constraint(action.name, action.position)
            self.notices.append(f"constraint {action.name!r} does not exist, nothing was done")
            return
        if isinstance(found, Index):
            refuse_referred_index(self._references, self._table, found)
        track = way.drop_index(found) if isinstance(found, Index) else way.drop_check(found)
        self._drop_once(track, found, f"constraint {found.name}")

    # ------------------------------------------------------------ locks

    def _add_lock(self, action: AddLock) -> None:
        table = self._table
        if action.name == DEFAULT_LOCK_NAME or table.lock(action.name) is not None:
            raise DuplicateObject(
                f"lock {action.name!r} exists already", lock=action.name, position=action.position
            )
        if len(table.row_locks) + len(self._locks) >= LOCKS_MAX:
            raise OutOfRange(f"table {table.name!r} has {LOCKS_MAX} locks, the most allowed")
        lock = Lock(self._new_id(), action.name)
        self._locks.append(lock)
        columns = [self._column(name, action.position) for name in action.columns]
        for column in columns:
            if column.element_id in table.primary_key:
                raise InvalidDefinition(
                    f"column {column.name!r} belongs to the primary key, which has no lock: it is"
                    " never updated",
                    column=column.name,
                    position=action.position,
                )
        self._take(way.add_lock(lock), f"lock {lock.name}")
        self._move(columns, lock.element_id)

    def _drop_lock(self, action: DropLock) -> None:
        lock = self._table.lock(action.name)
        if lock is None:
            if not action.if_exists:
                raise UnknownObject(
                    f"lock {action.name!r} of table {self._table.name!r} does not exist",
                    lock=action.name,
                    position=action.position,
                )
            self.notices.append(f"lock {action.name!r} does not exist, nothing was done")
            return
        self._take(way.retire_lock(lock), f"lock {lock.name}")
        # Those that a job is dropping are covered too: every column has a lock until it is gone.
        covered = [c for c in self._table.columns if lock.element_id in c.locks]
        self._move(covered, DEFAULT_LOCK)

    def _move(self, columns: Iterable[Column], target: int) -> None:
        """Columns to another lock; one column moves once in a statement."""
        columns = tuple(columns)
        moves = [(target, column.locks[0]) for column in columns]
        for column in columns:
            if column.element_id in self._moved:
                raise FeatureNotSupported(
                    f"column {column.name!r} moves between locks twice in one statement",
                    column=column.name,
                )
            self._moved.add(column.element_id)
            self.tracks.append(way.move_column(column, target))
        self._moves += [move for move in dict.fromkeys(moves) if move not in self._moves]
        self.tracks = [t for t in self.tracks if t is not self._moves_track]
        self._moves_track = way.record_moves(self._table, self._moves)
        self.tracks.append(self._moves_track)


_KINDS: dict[type, str] = {
    AddColumn: "add column",
    AddForeignKey: "add constraint",
    DropColumn: "drop column",
    RenameColumn: "rename column",
    RenameTable: "rename table",
    SetDefault: "set default",
    AlterType: "alter type",
    SetNotNull: "set not null",
    DropNotNull: "drop not null",
    AddUnique: "add constraint",
    AddCheck: "add constraint",
    ValidateConstraint: "validate constraint",
    DropConstraint: "drop constraint",
    AddLock: "add lock",
    DropLock: "drop lock",
}
