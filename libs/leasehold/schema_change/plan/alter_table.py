"""The actions of one ALTER TABLE (or the constraints of a CREATE TABLE) as tracks of elements.

Later actions see what earlier ones make: a column that is added may be named by a constraint of
the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Moment
from leasehold.catalog.names import relation_names
from leasehold.catalog.sequence_ownership import find_existing, refuse_used_elsewhere
from leasehold.model.errors import DuplicateObject, FeatureNotSupported, UnknownTable
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table
from leasehold.schema_change.plan.columns import ColumnActions
from leasehold.schema_change.plan.constraints import ConstraintActions
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.identity import IdentityActions
from leasehold.schema_change.plan.locks import LockActions
from leasehold.schema_change.plan.primary_key import plan_key_change, read_key_change
from leasehold.schema_change.plan.results import Changes, NothingToDo, RestartPlan, find_table
from leasehold.schema_change.plan.sequences import add_altered, alter_identities, restart_identity
from leasehold.schema_change.steps import element_paths
from leasehold.schema_change.steps.table_paths import drop_sequence
from leasehold.sql.syntax.statements import (
    Action,
    AddCheck,
    AddColumn,
    AddForeignKey,
    AddIdentity,
    AddLock,
    AddUnique,
    AlterIdentity,
    AlterTable,
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
    """The actions of one statement, read into a draft one after the other."""

    def __init__(
        self, table: Descriptor, taken: set[str], catalog: Catalog, moment: Moment | None = None
    ) -> None:
        self.draft = TableDraft(table, taken, catalog, moment)
        self.constraints = ConstraintActions(self.draft)
        self.columns = ColumnActions(self.draft, self.constraints)
        self.identities = IdentityActions(self.draft)
        self.locks = LockActions(self.draft)
        self.kind = "alter table"

    @property
    def subject(self) -> str:
        """What is changed, in words for people: `column a` or `column a, constraint b`."""
        return ", ".join(dict.fromkeys(self.draft.words)) or f"table {self.draft.table.name}"

    def announce_drops(
        self, actions: Iterable[Action], gone: frozenset[tuple[int, int]] = frozenset()
    ) -> None:
        """Let the draft know what the statement drops, before any action is read: an action may
        drop something with what rests on it before that is dropped itself. `gone`: what earlier
        statements of the same request take away."""
        actions = tuple(actions)
        self.draft.gone = gone
        self.draft.going = {action.name for action in actions if isinstance(action, DropColumn)}
        dropped = {action.name for action in actions if isinstance(action, DropConstraint)}
        self.constraints.free_names(dropped)

    def add(self, action: Action) -> None:
        """Read one action into the draft. Raises what `plan` raises."""
        kind, read = _READERS[type(action)]
        self.kind = "alter table" if self.draft.words else kind
        read(self, action)


def _rename_table(made: Alteration, action: RenameTable) -> None:
    table = made.draft.table
    if action.to in made.draft.taken:
        raise DuplicateObject(
            f"{action.to!r} exists already, or is being made",
            table=action.to,
            position=action.position,
        )
    made.draft.take(element_paths.rename(table, action.to), f"table {table.name}")


def _refuse_restart(_: Alteration, action: RestartIdentity) -> None:
    raise FeatureNotSupported(
        "RESTART moves a sequence and changes no table: it stands alone in its ALTER TABLE",
        position=action.position,
    )


_READERS: Final[Mapping[type, tuple[str, Callable[[Alteration, Any], None]]]] = {
    AddColumn: ("add column", lambda made, action: made.columns.add(action)),
    DropColumn: ("drop column", lambda made, action: made.columns.drop(action)),
    RenameColumn: ("rename column", lambda made, action: made.columns.rename(action)),
    RenameTable: ("rename table", _rename_table),
    SetDefault: ("set default", lambda made, action: made.columns.set_default(action)),
    DropExpression: ("drop expression", lambda made, action: made.columns.drop_expression(action)),
    AddIdentity: ("add identity", lambda made, action: made.identities.add(action)),
    SetIdentity: ("set identity", lambda made, action: made.identities.set(action)),
    AlterIdentity: ("alter identity", lambda made, action: made.identities.alter(action)),
    DropIdentity: ("drop identity", lambda made, action: made.identities.drop(action)),
    RestartIdentity: ("restart identity", _refuse_restart),
    AlterType: ("alter type", lambda made, action: made.columns.alter_type(action)),
    SetNotNull: ("set not null", lambda made, action: made.columns.set_not_null(action)),
    DropNotNull: ("drop not null", lambda made, action: made.columns.drop_not_null(action)),
    AddUnique: ("add constraint", lambda made, action: made.constraints.add_unique(action.unique)),
    AddCheck: ("add constraint", lambda made, action: made.constraints.add_check(action.check)),
    AddForeignKey: (
        "add constraint",
        lambda made, action: made.constraints.add_foreign_key(action.key),
    ),
    ValidateConstraint: (
        "validate constraint",
        lambda made, action: made.constraints.validate(action),
    ),
    DropConstraint: ("drop constraint", lambda made, action: made.constraints.drop(action)),
    RenameConstraint: ("rename constraint", lambda made, action: made.constraints.rename(action)),
    AddLock: ("add lock", lambda made, action: made.locks.add(action)),
    DropLock: ("drop lock", lambda made, action: made.locks.drop(action)),
}
"""The kind of a job with one action of that type, and what reads such an action into a draft. A
primary key is changed by a statement of its own (`read_key_change`)."""


def plan_alter_table(
    statement: AlterTable, catalog: Catalog, moment: Moment, earlier: EarlierDrops
) -> Changes | RestartPlan | NothingToDo:
    table = find_table(catalog, statement.table, statement)
    if isinstance(table, NothingToDo):
        return table
    match statement.actions:
        case (RestartIdentity() as restarted,):
            return restart_identity(table, restarted, catalog)
    key = read_key_change(table, statement.actions)
    if key is not None:
        return plan_key_change(table, key, catalog)
    alteration = Alteration(table, relation_names(catalog), catalog, moment)
    made = alteration.draft
    earlier = earlier.for_actions(statement)
    alteration.announce_drops(statement.actions, earlier.elements)
    for action in statement.actions:
        alteration.add(action)
    others = alter_identities(made.altered, catalog, earlier)
    if not made.paths and not others:
        return NothingToDo("; ".join(made.notices) or "nothing was done")
    free_table(catalog, table, earlier)
    names = {action.name for action in statement.actions if isinstance(action, DropColumn)}
    dropped = [column for column in table.by_name.values() if column.name in names]
    ids = {column.element_id for column in dropped} | made.unnumbered.keys()
    own = dict.fromkeys(s for column in dropped for s in column.own_sequences)
    own |= dict.fromkeys(made.unnumbered.values())
    refuse_used_elsewhere(catalog, table, ids, own)
    sequences = find_existing(own, catalog)
    for sequence in sequences:
        free_table(catalog, sequence)
        if sequence.table_id in made.needs:  # by a default that the same statement gives
            raise UnknownTable(
                f"sequence {sequence.name!r} goes with a column by the same statement",
                table=sequence.name,
            )
    steps = max((len(path.after_commit) for path in made.paths), default=0)
    gone = (drop_sequence(sequence, steps) for sequence in sequences)
    changes = Changes(table, alteration.kind, alteration.subject, (*made.paths, *gone))
    changes.versions |= {s.table_id: s.version + 1 for s in sequences}
    # What is made goes on from the table's numbers, step by step.
    changes.versions |= {s.table_id: table.version + 1 for s in made.sequences}
    changes.made = tuple(made.sequences)
    add_altered(changes, others)
    changes.take_along(made.along, catalog, earlier)
    # ⚠ Whoever is at the version before draws from what a column drew from, until that is drained.
    needs = made.needs | (made.drew - changes.versions.keys())
    for parent in needs:
        free_table(catalog, catalog.newest(parent))
    changes.notices = tuple(made.notices)
    changes.needs = tuple(sorted(needs))
    return changes
