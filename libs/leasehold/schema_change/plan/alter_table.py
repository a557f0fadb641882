"""The actions of one ALTER TABLE (or the constraints of a CREATE TABLE) as tracks of elements.

Later actions see what earlier ones make: a column that is added may be named by a constraint of
the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from leasehold.catalog.descriptor import (
    Descriptor,
)
from leasehold.catalog.elements import Column, Moment
from leasehold.catalog.sequence import Options
from leasehold.model.errors import DuplicateObject, FeatureNotSupported
from leasehold.schema_change.plan.columns import ColumnActions
from leasehold.schema_change.plan.constraints import ConstraintActions
from leasehold.schema_change.plan.draft import DrawnBy, TableDraft
from leasehold.schema_change.plan.foreign_keys import (
    References,
    Referring,
)
from leasehold.schema_change.plan.identity import IdentityActions
from leasehold.schema_change.plan.locks import LockActions
from leasehold.schema_change.steps import element_paths as way
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddLock,
    AddPrimaryKey,
    AddUnique,
    AlterIdentity,
    AlterType,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropLock,
    DropNotNull,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    RestartIdentity,
    SetDefault,
    SetIdentity,
    SetNotNull,
    ValidateConstraint,
)


class Alteration:
    """Reads actions into a draft; `constraints` for those of a new table."""

    def __init__(
        self,
        table: Descriptor,
        taken: set[str],
        parents: Callable[[str], Descriptor],
        references: References = lambda: (),
        moment: Moment | None = None,
        drawn_by: DrawnBy | None = None,
    ) -> None:
        self._draft = TableDraft(table, taken, parents, references, moment, drawn_by)
        self.constraints = ConstraintActions(self._draft)
        self._columns = ColumnActions(self._draft, self.constraints)
        self._identities = IdentityActions(self._draft)
        self._locks = LockActions(self._draft)
        self.kind = "alter table"

    @property
    def tracks(self) -> list[ElementPath]:
        return self._draft.tracks

    @property
    def notices(self) -> list[str]:
        return self._draft.notices

    @property
    def needs(self) -> set[int]:
        return self._draft.needs

    @property
    def subject(self) -> str:
        """For people: what is changed, `column a` or `column a, constraint b`."""
        return ", ".join(dict.fromkeys(self._draft.words)) or f"table {self._draft.table.name}"

    @property
    def along(self) -> list[Referring]:
        """Foreign keys of other tables that go with what is dropped."""
        return self._draft.along

    @property
    def sequences(self) -> list[Descriptor]:
        """Those that new columns bring."""
        return self._draft.sequences

    @property
    def altered(self) -> list[tuple[Column, Options]]:
        """Identity columns whose sequences are to be otherwise."""
        return self._draft.altered

    @property
    def drew(self) -> set[int]:
        """Sequences that columns drew from which do so no more."""
        return self._draft.drew

    @property
    def unnumbered(self) -> dict[int, int]:
        """Columns that lose their sequence, and stay; with that."""
        return self._draft.unnumbered

    def going(
        self, actions: Iterable[Action], gone: frozenset[tuple[int, int]] = frozenset()
    ) -> None:
        """All that will be added: what is dropped with what rests on it may come before that.
        `gone`: what else the same request takes away."""
        actions = tuple(actions)
        self._draft.gone = gone
        self._draft.going = {action.name for action in actions if isinstance(action, DropColumn)}
        dropped = {action.name for action in actions if isinstance(action, DropConstraint)}
        self.constraints.free_names(dropped)

    def add(self, action: Action) -> None:
        """Take one action. Raises what `plan` raises."""
        self.kind = "alter table" if self._draft.words else _KINDS[type(action)]
        match action:
            case AddColumn():
                self._columns.add(action)
            case DropColumn():
                self._columns.drop(action)
            case RenameColumn():
                self._columns.rename(action)
            case RenameTable():
                self._rename_table(action)
            case SetDefault():
                self._columns.set_default(action)
            case DropExpression():
                self._columns.drop_expression(action)
            case AddIdentity():
                self._identities.add(action)
            case SetIdentity():
                self._identities.set(action)
            case AlterIdentity():
                self._identities.alter(action)
            case DropIdentity():
                self._identities.drop(action)
            case RestartIdentity():
                raise FeatureNotSupported(
                    "RESTART moves a sequence and changes no table: it stands alone in its"
                    " ALTER TABLE",
                    position=action.position,
                )
            case AlterType():
                self._columns.alter_type(action)
            case SetNotNull():
                self._columns.set_not_null(action)
            case DropNotNull():
                self._columns.drop_not_null(action)
            case AddUnique(unique):
                self.constraints.add_unique(unique)
            case AddCheck(check):
                self.constraints.add_check(check)
            case AddForeignKey(key):
                self.constraints.add_foreign_key(key)
            case ValidateConstraint():
                self.constraints.validate(action)
            case DropConstraint():
                self.constraints.drop(action)
            case RenameConstraint():
                self.constraints.rename(action)
            case AddPrimaryKey():
                raise AssertionError("a primary key is changed by a statement of its own")
            case AddLock():
                self._locks.add(action)
            case DropLock():
                self._locks.drop(action)

    def _rename_table(self, action: RenameTable) -> None:
        if action.to in self._draft.taken:
            raise DuplicateObject(
                f"{action.to!r} exists already, or is being made",
                table=action.to,
                position=action.position,
            )
        self._draft.take(
            way.rename(self._draft.table, action.to), f"table {self._draft.table.name}"
        )


_KINDS: dict[type, str] = {
    AddColumn: "add column",
    AddForeignKey: "add constraint",
    DropColumn: "drop column",
    RenameColumn: "rename column",
    RenameConstraint: "rename constraint",
    RenameTable: "rename table",
    SetDefault: "set default",
    DropExpression: "drop expression",
    AddIdentity: "add identity",
    SetIdentity: "set identity",
    RestartIdentity: "restart identity",
    AlterIdentity: "alter identity",
    DropIdentity: "drop identity",
    AlterType: "alter type",
    SetNotNull: "set not null",
    DropNotNull: "drop not null",
    AddPrimaryKey: "change primary key",
    AddUnique: "add constraint",
    AddCheck: "add constraint",
    ValidateConstraint: "validate constraint",
    DropConstraint: "drop constraint",
    AddLock: "add lock",
    DropLock: "drop lock",
}
