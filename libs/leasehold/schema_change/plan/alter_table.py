"""ALTER TABLE: its actions, read one after the other, as paths of elements.

Later actions see what earlier ones make: a column that is added may be named by a constraint of
the same statement.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.names import relation_names
from leasehold.catalog.namespaces import qualified
from leasehold.catalog.sequence_ownership import (
    find_existing,
    find_used_elsewhere,
    refuse_used_elsewhere,
)
from leasehold.model.errors import (
    DuplicateObject,
    FeatureNotSupported,
    UnknownObject,
    UnknownTable,
)
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table
from leasehold.schema_change.plan.columns import (
    add_column,
    alter_type,
    drop_column,
    drop_expression,
    drop_not_null,
    rename_column,
    set_default,
    set_not_null,
)
from leasehold.schema_change.plan.constraints import (
    add_check,
    add_foreign_key,
    add_unique,
    alter_constraint,
    drop_constraint,
    free_names,
    rename_constraint,
    validate_constraint,
)
from leasehold.schema_change.plan.dependents import cascade_notice
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.enums import set_enum
from leasehold.schema_change.plan.identity import (
    add_identity,
    alter_identity,
    drop_identity,
    set_identity,
)
from leasehold.schema_change.plan.index_constraints import add_unique_by_index
from leasehold.schema_change.plan.locks import add_lock, drop_lock
from leasehold.schema_change.plan.primary_key import plan_key_change, read_key_change
from leasehold.schema_change.plan.results import (
    Changes,
    NothingToDo,
    RestartPlan,
    drop_default_of,
    find_table,
)
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
    AddUniqueByIndex,
    AlterConstraint,
    AlterIdentity,
    AlterTable,
    AlterType,
    DropColumn,
    DropConstraint,
    DropExpression,
    DropIdentity,
    DropLock,
    DropNotNull,
    HasNoEffect,
    RenameColumn,
    RenameConstraint,
    RenameTable,
    RestartIdentity,
    SetDefault,
    SetEnum,
    SetIdentity,
    SetNotNull,
    ValidateConstraint,
)

_FIRST: Final = (DropColumn, DropConstraint, DropNotNull, DropIdentity, DropExpression)


def read_actions(
    draft: TableDraft, actions: Sequence[Action], gone: frozenset[tuple[int, int]] = frozenset()
) -> str:
    """Read the actions of one statement into a draft; return the kind of its job. `gone`: what
    earlier statements of the same request take away. Raises what `plan` raises."""
    draft.gone = gone
    # Known from the start: an action may drop something with what rests on it before that is
    # dropped itself, and what is added may have the name of what is dropped, wherever that is said.
    draft.going = {action.name for action in actions if isinstance(action, DropColumn)}
    draft.retyping = {action.column for action in actions if isinstance(action, AlterType)}
    free_names(draft, {action.name for action in actions if isinstance(action, DropConstraint)})
    kind = "alter table"
    for action in _in_order(actions, draft.going):
        own_kind, read = _READERS[type(action)]
        kind = "alter table" if draft.words else own_kind
        read(draft, action)
    return kind


def _in_order(actions: Sequence[Action], going: set[str]) -> Sequence[Action]:
    """Return the actions as they stand, foreign keys behind what they refer to, and what is said of
    constraints behind those; where that makes a difference (another type, a column under the name
    of one that goes) in PostgreSQL's order: what goes, types, all else."""
    again = any(isinstance(a, AddColumn) and a.column.name in going for a in actions)
    if not again and not any(isinstance(action, AlterType) for action in actions):
        return sorted(actions, key=lambda action: max(2, _pass(action)))
    return sorted(actions, key=_pass)


def _pass(action: Action) -> int:
    if isinstance(action, SetDefault) and action.value is None:
        return 0
    if isinstance(action, _FIRST):
        return 0
    if isinstance(action, AlterType):
        return 1
    if isinstance(action, AddForeignKey):
        return 3
    return 4 if isinstance(action, ValidateConstraint | AlterConstraint) else 2


def _rename_table(draft: TableDraft, action: RenameTable) -> None:
    if action.to in draft.taken:
        raise DuplicateObject(
            f"{action.to!r} exists already, or is being made",
            table=action.to,
            position=action.position,
        )
    draft.take(element_paths.rename(draft.table, action.to), f"table {draft.table.name}")


def _do_nothing(draft: TableDraft, action: HasNoEffect) -> None:
    if action.column:
        draft.column(action.column, action.position)
    name = qualified(draft.table.schema, action.index)
    if action.index and name not in draft.table.index_names:
        raise UnknownObject(
            f"index {action.index!r} for table {draft.table.name!r} does not exist",
            index=action.index,
            position=action.position,
        )
    draft.notices.append(action.words)


def _refuse_restart(_: TableDraft, action: RestartIdentity) -> None:
    raise FeatureNotSupported(
        "RESTART moves a sequence and changes no table: it stands alone in its ALTER TABLE",
        position=action.position,
    )


_READERS: Final[Mapping[type, tuple[str, Callable[[TableDraft, Any], None]]]] = {
    AddColumn: ("add column", add_column),
    DropColumn: ("drop column", drop_column),
    RenameColumn: ("rename column", rename_column),
    RenameTable: ("rename table", _rename_table),
    SetDefault: ("set default", set_default),
    DropExpression: ("drop expression", drop_expression),
    AddIdentity: ("add identity", add_identity),
    SetIdentity: ("set identity", set_identity),
    AlterIdentity: ("alter identity", alter_identity),
    DropIdentity: ("drop identity", drop_identity),
    RestartIdentity: ("restart identity", _refuse_restart),
    AlterType: ("alter type", alter_type),
    SetEnum: ("alter type", set_enum),
    SetNotNull: ("set not null", set_not_null),
    DropNotNull: ("drop not null", drop_not_null),
    AddUnique: ("add constraint", lambda draft, action: add_unique(draft, action.unique)),
    AddUniqueByIndex: ("add constraint", add_unique_by_index),
    AddCheck: ("add constraint", lambda draft, action: add_check(draft, action.check)),
    AddForeignKey: ("add constraint", lambda draft, action: add_foreign_key(draft, action.key)),
    ValidateConstraint: ("validate constraint", validate_constraint),
    AlterConstraint: ("alter constraint", alter_constraint),
    DropConstraint: ("drop constraint", drop_constraint),
    RenameConstraint: ("rename constraint", rename_constraint),
    AddLock: ("add lock", add_lock),
    DropLock: ("drop lock", drop_lock),
    HasNoEffect: ("alter table", _do_nothing),
}
"""The kind of a job with one action of that type, and what reads such an action into a draft. A
primary key is changed by a statement of its own (`read_key_change`)."""


def plan_alter_table(
    statement: AlterTable,
    catalog: Catalog,
    context: CommitContext,
    earlier: EarlierDrops,
    *,
    in_place: bool = True,
    computed: bool = True,
    narrows: bool = True,
) -> Changes | RestartPlan | NothingToDo:
    table = find_table(catalog, statement.table, statement)
    if isinstance(table, NothingToDo):
        return table
    match statement.actions:
        case (RestartIdentity() as restarted,):
            return restart_identity(table, restarted, catalog)
    key = read_key_change(table, statement.actions)
    if key is not None:
        return plan_key_change(table, key, catalog, context)
    made = TableDraft(table, relation_names(catalog), catalog, context)
    made.in_place, made.computed, made.narrows = in_place, computed, narrows
    earlier = earlier.for_actions(statement)
    kind = read_actions(made, statement.actions, earlier.elements)
    others = alter_identities(made.altered, catalog, earlier)
    if not made.paths and not others:
        return NothingToDo("; ".join(made.notices) or "nothing was done")
    free_table(catalog, table, earlier)
    names = {action.name for action in statement.actions if isinstance(action, DropColumn)}
    dropped = [column for column in table.by_name.values() if column.name in names]
    ids = {column.element_id for column in dropped} | made.unnumbered.keys()
    own = dict.fromkeys(s for column in dropped for s in column.own_sequences)
    own |= dict.fromkeys(made.unnumbered.values())
    cascading = {
        sequence
        for action in statement.actions
        if isinstance(action, DropColumn) and action.cascade and action.name in table.by_name
        for sequence in table.by_name[action.name].own_sequences
    }
    users = find_used_elsewhere(catalog, table, ids, own)
    refuse_used_elsewhere(
        catalog, table, (user for user in users if user.column.draws_from not in cascading)
    )
    for user in users:
        free_table(catalog, user.table)
    made.notices += [cascade_notice(user.words) for user in users]
    sequences = find_existing(own, catalog)
    for sequence in sequences:
        free_table(catalog, sequence)
        if sequence.table_id in made.needs:  # by a default that the same statement gives
            raise UnknownTable(
                f"sequence {sequence.name!r} goes with a column that the same statement drops,"
                " and a default of it draws from there: drop the column by a statement of its"
                " own, or draw from another sequence",
                table=sequence.name,
            )
    steps = max((len(path.after_commit) for path in made.paths), default=0)
    gone = (drop_sequence(sequence, steps) for sequence in sequences)
    defaults = (drop_default_of(user, table) for user in users)
    changes = Changes(table, kind, made.subject, (*made.paths, *defaults, *gone))
    changes.join(user.table for user in users if user.table.table_id != table.table_id)
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
