"""DDL statement → plan: what is created at once, or a job and its steps.

The ways of elements are in element_paths.py, names in names.py, the actions of ALTER TABLE in
alter_table.py; `explain.py` shows a plan. Element ids come from the descriptor's `next_element_id`,
which only rises, so that no id is ever used for a second element.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import created, edited
from leasehold.catalog.elements import Check, Column, Derived, ForeignKey, Index, Moment
from leasehold.catalog.job import Job, Phase, Status
from leasehold.catalog.names import references_of, relation_names
from leasehold.catalog.object_names import PRIMARY_KEY_LABEL, free_object_name, joined_names
from leasehold.catalog.sequence_ownership import (
    left_by,
    owned_by,
    refuse_sequence,
    refuse_used_elsewhere,
)
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    DuplicateObject,
    UnknownObject,
    UnknownTable,
)
from leasehold.schema_change.plan.alter_table import Alteration
from leasehold.schema_change.plan.column_sequences import drawn_by
from leasehold.schema_change.plan.definitions import (
    column_of,
    defined_index,
    drawing,
    generated_column,
)
from leasehold.schema_change.plan.dependents import (
    Doomed,
    cascades_to,
    constraint_words,
    dropped_along,
)
from leasehold.schema_change.plan.foreign_keys import (
    referring,
    referring_to,
)
from leasehold.schema_change.plan.primary_key import (
    KeyChange,
    asked_key,
    hidden_column,
    key_columns,
    key_tracks,
    referring_tracks,
)
from leasehold.schema_change.plan.results import (
    NOTHING_GOES,
    Changes,
    CreateTablePlan,
    Going,
    JobPlan,
    NothingToDo,
    Plan,
    RestartPlan,
    TruncatePlan,
    busy_job,
    free_table,
    is_table,
)
from leasehold.schema_change.plan.sequences import (
    altered_beside,
    of_sequence,
    restart_identity,
    take_altered,
)
from leasehold.schema_change.plan.truncate import NOTHING_TO_RESTART, truncated_tables
from leasehold.schema_change.steps.element_paths import (
    add_index,
    drop_index,
    drop_sequence,
    drop_table,
    hide_index,
    rename,
    rename_key,
    show_index,
)
from leasehold.schema_change.steps.steps import steps_of
from leasehold.sql.syntax.statements import (
    AlterSequence,
    AlterTable,
    Change,
    CreateIndex,
    CreateSequence,
    CreateTable,
    DropColumn,
    DropIndex,
    DropSequence,
    DropTable,
    OwnSequence,
    RenameIndex,
    RenameSequence,
    RestartIdentity,
    RestartSequence,
    Truncate,
)

__all__ = [
    "NOTHING_GOES",
    "NO_MOMENT",
    "CreateTablePlan",
    "Going",
    "JobPlan",
    "NothingToDo",
    "Plan",
    "RestartPlan",
    "TruncatePlan",
    "busy_job",
    "moves",
    "moving",
    "next_descriptor",
    "next_descriptors",
    "plan",
]
SETTINGS: Final[Mapping[str, int]] = {
    "rows_per_second": 0,
    "chunk_rows": 5_000,
    "postpone": 0,
    "cancel_blockers_after_ms": 0,
}


NO_MOMENT: Final = Moment(0, b"")
KEY_CHANGE: Final = "change primary key"
KEY_DROP: Final = "drop primary key"


def plan(
    statement: Change,
    catalog: Catalog,
    *,
    sql: str = "",
    request_id: bytes = b"",
    moment: Moment = NO_MOMENT,
    going: Going = NOTHING_GOES,
) -> Plan:
    """What `statement` asks for, on the newest versions of `catalog`, as of `moment`.

    Raises UnknownTable, UnknownColumn, UnknownObject (42704), DuplicateObject (42P07),
    DuplicateColumn (42701), InvalidDefinition (42P16), InvalidObject (42P17),
    NotGenerated (55000), DependentObjects (2BP01), NotNullViolation (23502), TableBusy
    (55006), FeatureNotSupported, OutOfRange (limits), what expressions raise.
    """
    made: Changes | CreateTablePlan | RestartPlan | NothingToDo
    match statement:
        case CreateTable():
            return _create_table(statement, catalog)
        case Truncate():
            return _truncate(statement, catalog)
        case (
            CreateSequence()
            | DropSequence()
            | RestartSequence()
            | OwnSequence()
            | RenameSequence()
            | AlterSequence()
        ):
            made = of_sequence(statement, catalog, going)
        case CreateIndex():
            made = _create_index(statement, catalog)
        case DropTable():
            made = _drop_table(statement, catalog, going)
        case DropIndex():
            made = _drop_index(statement, catalog, going)
        case RenameIndex():
            made = _rename_index(statement, catalog)
        case AlterTable():
            made = _alter_table(statement, catalog, moment, going)
    if isinstance(made, NothingToDo | RestartPlan | CreateTablePlan):
        return made
    job = _job(catalog, made)
    marks = ((0, Phase.PUBLISHING.value, moment.now_us),)
    job = replace(job, sql=sql, request_id=request_id, created_us=moment.now_us, marks=marks)
    return JobPlan(job, made.notices, made.made, made.within)


def _job(catalog: Catalog, made: Changes) -> Job:
    table = made.table
    steps, point = steps_of(made.tracks)
    return Job(
        job_id=catalog.next_job_id(),
        sql="",
        table_id=table.table_id,
        table=table.name,
        request_id=b"",
        kind=made.kind,
        subject=made.subject,
        steps=steps,
        point=point,
        phase=Phase.PUBLISHING,
        status=Status.RUNNING,
        versions=made.versions,
        settings=SETTINGS,
        needs=made.needs,
        joins=made.joins,
    )


def next_descriptor(job: Job, catalog: Catalog) -> Descriptor:
    """The version that the job's current step publishes; a roll-back takes made elements out again
    and leaves everything but `version` and `next_element_id` as it was."""
    return edited(catalog.newest(job.table_id), job.edits_of(job.table_id), job.fence_lsn)


def next_descriptors(job: Job, catalog: Catalog) -> tuple[Descriptor, ...]:
    """Those of all its tables, which it publishes in one commit (D9). A table that it makes is
    there from the step on that has it."""
    made = []
    for table_id in filter(job.publishes, job.tables):
        edits = job.edits_of(table_id)
        if moves(catalog, table_id):
            made.append(edited(catalog.newest(table_id), edits, job.fence_lsn))
        elif edits:
            made.append(created(edits, job.versions[table_id]))
    return tuple(made)


def moving(job: Job, catalog: Catalog) -> tuple[int, ...]:
    """Those of a job's tables whose leases its current step waits for."""
    return tuple(t for t in filter(job.publishes, job.tables) if moves(catalog, t))


def moves(catalog: Catalog, table_id: int) -> bool:
    """Is a job's table in the log, and not absent for all? One that the job makes comes later, and
    goes earlier where the job is turned back."""
    if not catalog.has(table_id):
        return False
    newest = catalog.newest(table_id)
    return newest.state is not State.ABSENT or catalog.min_version(table_id) < newest.version


# ------------------------------------------------------------------ tables


def _create_table(statement: CreateTable, catalog: Catalog) -> CreateTablePlan | NothingToDo:
    name = statement.name
    if is_table(catalog, name):
        if statement.if_not_exists:
            return NothingToDo(f"table {name!r} exists already, nothing was done")
        raise DuplicateObject(f"table {name!r} exists already", table=name)
    taken = relation_names(catalog)
    if name in taken:
        raise DuplicateObject(
            f"{name!r} is the name of an index, or of something that is being made or dropped",
            table=name,
        )
    columns: list[Column] = []
    sequences: list[Descriptor] = []
    ids: dict[str, int] = {}
    for element_id, definition in enumerate(statement.columns, start=1):
        if definition.name in ids:
            raise DuplicateColumn(
                f"column {definition.name!r} is there twice",
                table=name,
                column=definition.name,
                position=definition.position,
            )
        ids[definition.name] = element_id
        column = column_of(definition, element_id)
        if definition.numbering is not None:
            names = {name, *(s.name for s in sequences), *taken}
            drawn = drawn_by(name, definition, catalog, names, len(sequences))
            if drawn.made is None:
                free_table(catalog, catalog.newest(drawn.numbering.sequence))
            else:
                sequences.append(drawn.made)
            column = drawing(column, drawn)
        columns.append(column)
    primary_key = tuple(ids[column] for column in statement.primary_key)
    if not primary_key:
        columns.append(hidden_column(len(columns) + 1))
        primary_key = (len(columns),)
    table = Descriptor(
        table_id=catalog.next_table_id(),
        name=name,
        version=1,
        columns=tuple(columns),
        primary_key=primary_key,
        next_element_id=len(columns) + 1,
    )
    if not table.hidden_key:
        key_name = free_object_name(name, "", PRIMARY_KEY_LABEL, taken)
        table = replace(table, key_name="" if key_name == table.key_constraint else key_name)
    table = _with_generated(table, statement)
    # A new table has no rows: its constraints hold, and are public with it.
    made = Alteration(table, {name, *taken, *(s.name for s in sequences)}, _parents(catalog))
    for unique in statement.uniques:
        made.constraints.add_unique(unique)
    for check in statement.checks:
        made.constraints.add_check(replace(check, not_valid=False))
    for key in statement.foreign_keys:
        made.constraints.add_foreign_key(replace(key, not_valid=False), new_table=True)
    for parent in made.needs:
        free_table(catalog, catalog.newest(parent))
    return CreateTablePlan(_public_at_once(table, made), sequences=tuple(sequences))


def _parents(catalog: Catalog) -> Callable[[str], Descriptor]:
    return lambda name: refuse_sequence(catalog.resolve(name))


def _with_generated(table: Descriptor, statement: CreateTable) -> Descriptor:
    """A generated column may stand before those that it is computed from."""
    said = {c.name: c.generated for c in statement.columns if c.generated is not None}
    unknown = Derived((), "", generated=True)
    marked = tuple(replace(c, derived=unknown) if c.name in said else c for c in table.columns)
    seen = replace(table, columns=marked)
    made = (generated_column(c, said[c.name], seen) if c.name in said else c for c in marked)
    return replace(table, columns=tuple(made))


def _public_at_once(table: Descriptor, made: Alteration) -> Descriptor:
    elements = [track.element for track in made.tracks]
    indexes = (
        replace(e, state=State.PUBLIC, unique=e.constraint)
        for e in elements
        if isinstance(e, Index)
    )
    keys = (replace(e, state=State.PUBLIC) for e in elements if isinstance(e, ForeignKey))
    checks = (replace(e, state=State.PUBLIC) for e in elements if isinstance(e, Check))
    return replace(
        table,
        indexes=tuple(indexes),
        checks=tuple(checks),
        foreign_keys=tuple(keys),
        next_element_id=table.next_element_id + len(elements),
    )


def _drop_table(statement: DropTable, catalog: Catalog, going: Going) -> Changes | NothingToDo:
    try:
        table = catalog.resolve(statement.name)
    except UnknownTable:
        if statement.if_exists:
            return NothingToDo(f"table {statement.name!r} does not exist, nothing was done")
        raise
    refuse_sequence(table, statement.position)
    free_table(catalog, table, going)
    ids = {column.element_id for column in table.columns}
    refuse_used_elsewhere(catalog, table, ids, {*owned_by(table)}, statement.beside)
    made = Changes(table, "drop table", f"table {table.name}", [drop_table(table)])
    found = [
        (child, key)
        for child, key in referring(lambda: references_of(catalog, table.table_id), table)
        if child.name not in statement.beside
        and (child.table_id, key.element_id) not in going.elements
    ]
    if found and not statement.cascade:
        what = f"table {table.name}"
        words = map(constraint_words, found)
        raise Doomed(what, what, position=statement.position).refused(words, table=table.name)
    made.take_along(found, catalog, going)
    made.notices = tuple(cascades_to(constraint_words(each)) for each in found)
    return made


def _truncate(statement: Truncate, catalog: Catalog) -> TruncatePlan:
    # ⚠ First of all: while a primary key changes there is a table more that foreign keys refer to.
    for named in statement.tables:
        free_table(catalog, catalog.resolve(named.name))
    tables, notices = truncated_tables(statement, catalog)
    for table in tables:
        free_table(catalog, table)
    restarted: tuple[Descriptor, ...] = ()
    if statement.restart:
        restarted = left_by(dict.fromkeys(s for t in tables for s in owned_by(t)), catalog)
    if statement.restart and not restarted:
        notices += (NOTHING_TO_RESTART,)
    return TruncatePlan(tables, notices, restarted)


def _alter_table(
    statement: AlterTable, catalog: Catalog, moment: Moment, going: Going
) -> Changes | RestartPlan | NothingToDo:
    try:
        table = catalog.resolve(statement.table)
    except UnknownTable:
        if statement.if_exists:
            return NothingToDo(f"table {statement.table!r} does not exist, nothing was done")
        raise
    refuse_sequence(table, statement.position)
    match statement.actions:
        case (RestartIdentity() as restarted,):
            return restart_identity(table, restarted, catalog)
    key = asked_key(table, statement.actions)
    if key is not None:
        return _another_key(table, key, catalog)
    made = Alteration(
        table,
        relation_names(catalog),
        _parents(catalog),
        lambda: references_of(catalog, table.table_id),
        moment,
        lambda column, taken, before: drawn_by(table.name, column, catalog, taken, before),
    )
    going = going.for_actions(statement)
    made.going(statement.actions, going.elements)
    for action in statement.actions:
        made.add(action)
    others = altered_beside(made.altered, catalog, going)
    if not made.tracks and not others:
        return NothingToDo("; ".join(made.notices) or "nothing was done")
    free_table(catalog, table, going)
    names = {action.name for action in statement.actions if isinstance(action, DropColumn)}
    dropped = [column for column in table.by_name.values() if column.name in names]
    ids = {column.element_id for column in dropped} | made.unnumbered.keys()
    own = dict.fromkeys(s for column in dropped for s in column.own_sequences)
    own |= dict.fromkeys(made.unnumbered.values())
    refuse_used_elsewhere(catalog, table, ids, own)
    sequences = left_by(own, catalog)
    for sequence in sequences:
        free_table(catalog, sequence)
        if sequence.table_id in made.needs:  # by a default that the same statement gives
            raise UnknownTable(
                f"sequence {sequence.name!r} goes with a column by the same statement",
                table=sequence.name,
            )
    steps = max((len(track.fall) for track in made.tracks), default=0)
    gone = (drop_sequence(sequence, steps) for sequence in sequences)
    changes = Changes(table, made.kind, made.subject, (*made.tracks, *gone))
    changes.versions |= {s.table_id: s.version + 1 for s in sequences}
    # What is made goes on from the table's numbers, step by step.
    changes.versions |= {s.table_id: table.version + 1 for s in made.sequences}
    changes.made = tuple(made.sequences)
    take_altered(changes, others)
    changes.take_along(made.along, catalog, going)
    # ⚠ Whoever is at the version before draws from what a column drew from, until that is drained.
    needs = made.needs | (made.drew - changes.versions.keys())
    for parent in needs:
        free_table(catalog, catalog.newest(parent))
    changes.notices = tuple(made.notices)
    changes.needs = tuple(sorted(needs))
    return changes


def _another_key(table: Descriptor, asked: KeyChange, catalog: Catalog) -> Changes | NothingToDo:
    key = asked.key
    columns = () if key is None else key_columns(table, key)
    kind = KEY_CHANGE if columns else KEY_DROP
    said = ", ".join(column.name for column in columns or table.key_columns)
    if tuple(column.element_id for column in columns) == table.primary_key:
        return NothingToDo(f"({said}) is the primary key already")
    free_table(catalog, table)
    referring = references_of(catalog, table.table_id)
    others = {child.table_id: child for child, _ in referring if child is not table}
    for child in others.values():
        free_table(catalog, child)
    other_id = catalog.next_table_id()
    tracks = key_tracks(table, columns, other_id, relation_names(catalog), asked)
    of_referring, lost = referring_tracks(referring, table, tracks, asked)
    tracks += of_referring
    changes = Changes(table, kind, f"primary key ({said})", tracks)
    # It goes on from this one's numbers, step by step.
    changes.versions[other_id] = table.version + 1
    changes.versions |= {child.table_id: child.version + 1 for child in others.values()}
    changes.joins = tuple(sorted(others))
    changes.notices = tuple(cascades_to(constraint_words(each)) for each in lost)
    return changes


# ------------------------------------------------------------------ indexes


def _create_index(statement: CreateIndex, catalog: Catalog) -> Changes | NothingToDo:
    table = refuse_sequence(catalog.resolve(statement.table))
    taken = relation_names(catalog)
    name = statement.name
    shown = _implied(statement, table)
    if not statement.named:
        parts = joined_names(statement.parts_of_name)
        name = free_object_name(statement.table, parts, "idx", taken)
    elif name in taken:
        # An index that a job is still building is not there yet: "nothing to do" would be a lie.
        if statement.if_not_exists and _is_public(catalog, name):
            return NothingToDo(f"index {name!r} exists already, nothing was done")
        raise DuplicateObject(f"{name!r} exists already, or is being made", index=name)
    index = defined_index(statement, table, name)
    free_table(catalog, table)
    if shown is not None:
        return Changes(table, "create index", f"index {name}", [show_index(shown, name)])
    kind = "create unique index" if statement.unique else "create index"
    return Changes(table, kind, f"index {name}", [add_index(index, unique=statement.unique)])


def _implied(statement: CreateIndex, table: Descriptor) -> Index | None:
    """The index of a foreign key that is just what the statement asks for."""
    if statement.unique or statement.included or statement.predicate is not None:
        return None
    for index in table.indexes:
        columns = tuple(table.by_id[e].name for e in index.columns if e in table.by_id)
        if index.implied and index.state is State.PUBLIC and columns == statement.columns:
            return index
    return None


def _is_public(catalog: Catalog, name: str) -> bool:
    if is_table(catalog, name):
        return True
    found = (table.index(name) for table in catalog.tables())
    return any(index is not None and index.state is State.PUBLIC for index in found)


def _index_named(catalog: Catalog, name: str) -> tuple[Descriptor, Index] | None:
    for table in catalog.tables():
        index = table.index(name)
        if index is not None and index.state is State.PUBLIC and not index.implied:
            return table, index
    return None


def _table_of_key(catalog: Catalog, name: str) -> Descriptor | None:
    """The table whose primary key, and its index, are called so."""
    named = (t for t in catalog.tables() if t.key_constraint == name and not t.hidden_key)
    return next((t for t in named if t.sequence is None and t.state is State.PUBLIC), None)


def _unknown_index(name: str, position: int) -> UnknownObject:
    return UnknownObject(f"index {name!r} does not exist", index=name, position=position)


def _drop_index(statement: DropIndex, catalog: Catalog, going: Going) -> Changes | NothingToDo:
    found = _index_named(catalog, statement.name)
    if found is None:
        keyed = _table_of_key(catalog, statement.name)
        if keyed is not None:
            raise _index_of_constraint(keyed, statement.name, statement.position)
        if statement.if_exists:
            return NothingToDo(f"index {statement.name!r} does not exist, nothing was done")
        raise _unknown_index(statement.name, statement.position)
    table, index = found
    if index.constraint:
        raise _index_of_constraint(table, index.name, statement.position)
    free_table(catalog, table, going)
    return _index_dropped(statement, table, index, catalog, going)


def _index_of_constraint(table: Descriptor, name: str, position: int) -> DependentObjects:
    constraint = f"constraint {name} on table {table.name}"
    return DependentObjects(
        f"cannot drop index {name} because {constraint} requires it",
        hint=f"You can drop {constraint} instead.",
        index=name,
        position=position,
    )


def _index_dropped(
    statement: DropIndex, table: Descriptor, index: Index, catalog: Catalog, going: Going
) -> Changes:
    """⚠ Of its own foreign keys one may refer to it, which goes, and another find its rows by it,
    for which it stays without its name."""
    found = referring_to(lambda: references_of(catalog, table.table_id), index)
    left = [(t, k) for t, k in found if (t.table_id, k.element_id) not in going.elements]
    if left and not statement.cascade:
        what = f"index {index.name}"
        doomed = Doomed(what, what, position=statement.position)
        raise doomed.refused(map(constraint_words, left), index=index.name)
    others = [(t, k) for t, k in left if t.table_id != table.table_id]
    own = [(t, k) for t, k in left if t.table_id == table.table_id]
    gone = {k.element_id for _, k in own} | {e for t, e in going.elements if t == table.table_id}
    staying = (key for key in table.foreign_keys if key.element_id not in gone)
    needed = any(key.index == index.element_id for key in staying)
    track = (hide_index if needed else drop_index)(index, waits=int(bool(found)))
    along = (replace(t, table_id=0) for t in dropped_along(own))
    kept = (each for each in along if each.name != track.name)
    made = Changes(table, "drop index", f"index {index.name}", (track, *kept))
    made.take_along(others, catalog, going)
    made.notices = tuple(cascades_to(constraint_words(each)) for each in left)
    return made


def _rename_index(statement: RenameIndex, catalog: Catalog) -> Changes | NothingToDo:
    found = _index_named(catalog, statement.name)
    keyed = None if found is not None else _table_of_key(catalog, statement.name)
    if found is None and keyed is None:
        if statement.if_exists:
            return NothingToDo(f"index {statement.name!r} does not exist, nothing was done")
        # PostgreSQL looks for any relation here, and for an index in DROP INDEX.
        raise UnknownTable(
            f"relation {statement.name!r} does not exist",
            index=statement.name,
            position=statement.position,
        )
    if statement.to in relation_names(catalog):
        raise DuplicateObject(f"{statement.to!r} exists already, or is being made")
    if keyed is not None:
        free_table(catalog, keyed)
        words = f"index {statement.name}"
        return Changes(keyed, "rename index", words, [rename_key(keyed, statement.to)])
    assert found is not None
    table, index = found
    free_table(catalog, table)
    return Changes(table, "rename index", f"index {index.name}", [rename(index, statement.to)])
