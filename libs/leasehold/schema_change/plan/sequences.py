"""The plans of statements on sequences: what is made at once, set anew, or a job and its steps.

What they lose or get beside their row is edits of the columns that have them; so most are jobs of a
table, and other tables join in (DESIGN.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.names import relation_names
from leasehold.catalog.sequence import (
    Options,
    Sequence,
    alter_sequence_options,
    check_restart,
    define_sequence,
)
from leasehold.catalog.sequence_ownership import (
    find_drawing_users,
    find_owner_changes,
    find_sequence,
    find_users,
    make_sequence_relation,
    nextval_text,
)
from leasehold.model.errors import DuplicateObject, UnknownTable, WrongIdentity
from leasehold.schema_change.plan.busy_tables import EarlierDrops, free_table, is_table
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice
from leasehold.schema_change.plan.results import (
    Changes,
    CreateTablePlan,
    NothingToDo,
    RestartPlan,
    drop_default_of,
)
from leasehold.schema_change.steps.element_paths import (
    rename,
    reword_drawn,
    set_numbering,
)
from leasehold.schema_change.steps.table_paths import alter_sequence, drop_sequence, drop_table
from leasehold.sql.syntax.statements import (
    AlterSequence,
    CreateSequence,
    DropSequence,
    OwnSequence,
    RenameSequence,
    RestartIdentity,
    RestartSequence,
    SequenceStatement,
)


def plan_sequence(
    statement: SequenceStatement, catalog: Catalog, earlier: EarlierDrops
) -> Changes | CreateTablePlan | RestartPlan | NothingToDo:
    """Plan a statement on one sequence. Raises what `plan` raises."""
    if isinstance(statement, CreateSequence):
        return _create_sequence(statement, catalog)
    try:
        found = find_sequence(catalog, statement.name, statement.position)
    except UnknownTable:
        if not statement.if_exists:
            raise
        return NothingToDo(f"sequence {statement.name!r} does not exist, nothing was done")
    match statement:
        case RestartSequence():
            return _restart_sequence(statement, found)
        case DropSequence():
            return _drop_sequence(statement, found, catalog, earlier)
        case OwnSequence():
            return _own_sequence(statement, found, catalog, earlier)
        case RenameSequence():
            return _rename_sequence(statement, found, catalog)
        case AlterSequence():
            return _alter_sequence(statement, found, catalog, earlier)


def _create_sequence(statement: CreateSequence, catalog: Catalog) -> CreateTablePlan | NothingToDo:
    name = statement.name
    if name in relation_names(catalog):
        if statement.if_not_exists and is_table(catalog, name):
            return NothingToDo(f"relation {name!r} exists already, nothing was done")
        raise DuplicateObject(
            f"relation {name!r} exists already, or is being made or dropped",
            table=name,
            position=statement.position,
        )
    made = make_sequence_relation(
        define_sequence(statement.options), catalog.next_sequence_id(), name
    )
    return CreateTablePlan(replace(made, schema=statement.schema))


def _restart_sequence(statement: RestartSequence, found: Descriptor) -> RestartPlan:
    assert found.sequence is not None, "it is one"
    sequence = found.sequence
    start = sequence.start if statement.start is None else statement.start
    return RestartPlan(found, check_restart(sequence, start, statement.position))


def restart_identity(table: Descriptor, action: RestartIdentity, catalog: Catalog) -> RestartPlan:
    column = table.column(action.column)
    if not column.identity:
        raise WrongIdentity(
            f"column {column.name!r} of relation {table.name!r} is not an identity column",
            column=column.name,
            position=action.position,
        )
    sequence = catalog.newest(column.draws_from)
    restart = RestartSequence(sequence.name, action.start, position=action.position)
    return _restart_sequence(restart, sequence)


def _drop_sequence(
    statement: DropSequence, found: Descriptor, catalog: Catalog, earlier: EarlierDrops
) -> Changes:
    free_table(catalog, found, earlier)
    name = f"sequence {found.name}"
    users = [] if statement.owned else find_drawing_users(catalog, found, statement.position)
    if not users:
        return Changes(found, "drop sequence", name, [drop_table(found)])
    if not statement.cascade:
        doomed = Doomed(name, name, position=statement.position)
        raise doomed.refusal((user.words for user in users), sequence=found.name)
    # Nobody draws any more in the version in which it goes.
    first, *others = {user.table.table_id: user.table for user in users}.values()
    for table in (first, *others):
        free_table(catalog, table)
    gone = (drop_default_of(user, first) for user in users)
    made = Changes(first, "drop sequence", name, (*gone, drop_sequence(found, 1)))
    made.join((*others, found))
    made.notices = tuple(cascade_notice(user.words) for user in users)
    return made


class Altered(NamedTuple):
    """A sequence that is there, and what is to be said of it."""

    before: Descriptor
    said: Sequence

    @property
    def before_plainly(self) -> Sequence:
        assert self.before.sequence is not None, "it is one"
        return self.before.sequence._replace(begins=None)

    @property
    def within(self) -> tuple[Descriptor, ...]:
        """Return it where it may stand beyond its new bounds, which only its row can tell."""
        before, said = self.before_plainly, self.said
        narrower = said.least > before.least or said.most < before.most
        return (replace(self.before, sequence=said),) if narrower and said.begins is None else ()


def _alter_sequence(
    statement: AlterSequence, found: Descriptor, catalog: Catalog, earlier: EarlierDrops
) -> Changes | RestartPlan | NothingToDo:
    assert found.sequence is not None, "it is one"
    said = alter_sequence_options(found.sequence, statement.options)
    owner = statement.options.owner
    if owner is not None and find_owner_changes(catalog, found, owner):
        own = OwnSequence(statement.name, owner, position=statement.position)
        made = _own_sequence(own, found, catalog, earlier)
        assert isinstance(made, Changes), "another column owns it"
        # RESTART, too: at once it would come before the rest.
        if said != found.sequence._replace(begins=None):
            add_altered(made, (Altered(found, said),))
            made.needs = ()
        return made
    if said._replace(begins=None) == found.sequence._replace(begins=None):
        if said.begins is not None:
            return RestartPlan(found, said.begins)
        return NothingToDo(f"sequence {found.name!r} is like that already")
    free_table(catalog, found, earlier)
    path = replace(alter_sequence(found, said), table_id=0)
    made = Changes(found, "alter sequence", f"sequence {found.name}", [path])
    made.within = Altered(found, said).within
    return made


def alter_identities(
    asked: Iterable[tuple[Column, Options]], catalog: Catalog, earlier: EarlierDrops
) -> list[Altered]:
    """Return the sequences of identity columns that a statement on their table alters. Raises
    TableBusy, InvalidArgument."""
    made: dict[int, Altered] = {}
    for column, options in asked:
        found = catalog.newest(column.draws_from)
        assert found.sequence is not None, "it is one"
        before = made.get(found.table_id, Altered(found, found.sequence._replace(begins=None))).said
        said = alter_sequence_options(before, options)
        if said.begins is None and before.begins is not None:  # by an action before this one
            said = said._replace(begins=check_restart(said, before.begins))
        made[found.table_id] = Altered(found, said)
    changed = [a for a in made.values() if a.said != a.before_plainly]
    for each in changed:
        free_table(catalog, each.before, earlier)
    return changed


def add_altered(changes: Changes, others: Iterable[Altered]) -> None:
    """Alter sequences, too; they join in the step that alters them."""
    for each in others:
        changes.paths += (alter_sequence(*each),)
        changes.join((each.before,))
        changes.within += each.within


def _rename_sequence(statement: RenameSequence, found: Descriptor, catalog: Catalog) -> Changes:
    if statement.to in relation_names(catalog):
        raise DuplicateObject(
            f"relation {statement.to!r} exists already, or is being made or dropped",
            table=statement.to,
            position=statement.position,
        )
    users = [user for user in find_users(catalog, found.table_id) if user.draws]
    tables = {user.table.table_id: user.table for user in users}
    for table in (found, *tables.values()):
        free_table(catalog, table)
    text = nextval_text(statement.to)
    shown = (replace(reword_drawn(u.column, text), table_id=u.table.table_id) for u in users)
    paths = (rename(found, statement.to), *shown)
    made = Changes(found, "rename sequence", f"sequence {found.name}", paths)
    made.join(tables.values())
    return made


def _own_sequence(
    statement: OwnSequence, found: Descriptor, catalog: Catalog, earlier: EarlierDrops
) -> Changes | NothingToDo:
    changed = find_owner_changes(catalog, found, statement.owner)
    if not changed:
        return NothingToDo(f"sequence {found.name!r} is owned like that already")
    first, *others = {each.table.table_id: each.table for each in changed}.values()
    for table in (found, first, *others):
        free_table(catalog, table, earlier)
    paths = (
        replace(set_numbering(column, owning), table_id=0 if table is first else table.table_id)
        for table, column, owning in changed
    )
    made = Changes(first, "own sequence", f"sequence {found.name}", paths)
    made.join(others)
    made.needs = (found.table_id,)
    return made


def split_owner(change: CreateSequence) -> tuple[CreateSequence, OwnSequence | None]:
    """Return what makes a sequence, and what says who owns it."""
    owner = change.options.owner
    made = replace(change, options=change.options._replace(owner=None))
    if owner is None or not owner.table:
        return made, None
    return made, OwnSequence(change.name, owner, position=change.position)
