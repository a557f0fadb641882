"""The transition paths of whole tables and sequences, and of the foreign keys that refer to a table
which changes its primary key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from leasehold.catalog.descriptor import Descriptor, LockMove
from leasehold.catalog.edits import FENCE_BEFORE
from leasehold.catalog.elements import Column, ForeignKey, Index
from leasehold.catalog.namespaces import bare, qualified
from leasehold.catalog.sequence import Sequence
from leasehold.catalog.states import State
from leasehold.schema_change.steps.element_paths import (
    DELETE_ONLY,
    GONE,
    PUBLIC,
    UNCHANGED,
    WRITE_ONLY,
    ElementPath,
    Stage,
    add_index,
    enforcing_stage,
    in_state,
)


def alter_key(table: Descriptor, name: str, included: tuple[int, ...]) -> ElementPath:
    """Give the primary key and its index a name, and say what it includes. Only DDL, ON CONFLICT ON
    CONSTRAINT and errors name them, each under one version; no row lies otherwise for what a key
    includes."""
    return ElementPath(table, after_commit=(Stage({"key_name": name, "key_included": included}),))


def rename_key(table: Descriptor, name: str) -> ElementPath:
    """Rename the primary key and its index."""
    return ElementPath(table, after_commit=(Stage({"key_name": name}),))


def move_relation(relation: Descriptor, schema: str, name: str) -> ElementPath:
    """Let a table or a sequence lie in another schema, with which its new name begins. Both names
    resolve while two versions live, as where one is renamed."""
    there: dict[str, Any] = {"name": name, "alias": relation.name, "schema": schema}
    if relation.sequence is None and not relation.hidden_key:
        there["key_name"] = qualified(schema, bare(relation.schema, relation.key_constraint))
    return ElementPath(relation, after_commit=(Stage(there), Stage({"alias": ""})))


def drop_table(table: Descriptor) -> ElementPath:
    """Drop a table: a delete-only one takes nothing that names it; then it is absent."""
    return ElementPath(table, after_commit=(DELETE_ONLY, in_state(State.ABSENT)))


def drop_sequence(sequence: Descriptor, waits: int) -> ElementPath:
    """Drop a sequence. ⚠ It is drawn from as long as a version writes a column that has its numbers
    from it: so it goes when the column has gone, or the default."""
    after_commit = (*(UNCHANGED,) * waits, DELETE_ONLY, in_state(State.ABSENT))
    return ElementPath(
        sequence, after_commit=after_commit, irreversible_from=waits, table_id=sequence.table_id
    )


def add_sequence(sequence: Descriptor) -> ElementPath:
    """Add the sequence of a column that is added: it is drawn from by the master alone until both
    are public. Nobody can have used one that was not there, and its row is the one of its first
    version's commit."""
    return ElementPath(sequence, True, (WRITE_ONLY,), (PUBLIC,), 0, sequence.table_id)


def add_table(table: Descriptor) -> ElementPath:
    """Add a table or a sequence that a transaction makes beside changes of others: it has its name
    from the first step on, and is public with them."""
    return ElementPath(table, True, (WRITE_ONLY,), (PUBLIC,), 0, table.table_id)


def alter_sequence(sequence: Descriptor, said: Sequence) -> ElementPath:
    """Alter a sequence's options, from one version to the next. Only the master goes by them, and
    whoever hands numbers out from a block that he has taken; which ends with this version
    (`going_on`)."""
    return ElementPath(
        sequence, after_commit=(Stage({"sequence": said}),), table_id=sequence.table_id
    )


def another_key(
    table: Descriptor, other: Descriptor, key: Index, not_null: Iterable[Column]
) -> list[ElementPath]:
    """Hand the rows and the name of `table` over to `other`, which has them under another key.

    First the new key is made sure of: a unique index in `table`, filled and verified, and NOT NULL.
    From then on no two rows can meet in one of `other`, which is delete-only, then written with
    every write and filled, then takes the name, while `table` follows it for those who read the
    version before. What is new in `table` goes with it.
    """
    before_commit = add_index(key, unique=True).before_commit
    waits = (UNCHANGED,) * (len(before_commit) - 1)
    enforced = enforcing_stage({"not_null_enforced": True})
    mirror = Stage({"mirror": other.table_id})
    backfilling = Stage({"state": State.WRITE_ONLY}, backfill=True, verify=True)
    hidden = [column for column in other.columns if column.hidden]
    # ⚠ A hidden key goes when no row of `table` is found by it any more but those that are there.
    longer = (UNCHANGED,) if hidden else ()
    own = (WRITE_ONLY, DELETE_ONLY, *longer, in_state(State.ABSENT, mirror=0))
    others = ElementPath(
        other,
        True,
        (*waits, DELETE_ONLY, backfilling),
        (PUBLIC, UNCHANGED, *longer, Stage({"mirror": 0})),
        0,
        other.table_id,
    )
    # ⚠ Written for one step more: for the version before every row has it.
    goes = (UNCHANGED, WRITE_ONLY, DELETE_ONLY, GONE)
    return [
        *(ElementPath(column, after_commit=goes, table_id=other.table_id) for column in hidden),
        ElementPath(key, True, before_commit),
        *(ElementPath(column, before_commit=(*waits, enforced)) for column in not_null),
        ElementPath(table, before_commit=(*waits, mirror), after_commit=own),
        others,
    ]


def hidden_key(table: Descriptor, other: Descriptor, hidden: Column) -> list[ElementPath]:
    """Hand a table over as `another_key` does, to the key of a table that has none. Nobody gives
    it, so nothing is to be made sure of first: while `other` comes, so does the column of `table`
    that has it. ⚠ It is filled first: a row of `other` is found by it."""
    backfilling = Stage({"state": State.WRITE_ONLY}, backfill=True, verify=True)
    mirror = Stage({"mirror": other.table_id})
    own = (WRITE_ONLY, DELETE_ONLY, in_state(State.ABSENT, mirror=0))
    others = (PUBLIC, UNCHANGED, Stage({"mirror": 0}))
    return [
        ElementPath(hidden, True, (DELETE_ONLY, backfilling)),
        ElementPath(table, before_commit=(mirror,), after_commit=own),
        ElementPath(other, True, (DELETE_ONLY, backfilling), others, 0, other.table_id),
    ]


def lost_reference(key: ForeignKey, steps: int, table_id: int) -> ElementPath:
    """Drop a foreign key that does not follow the rows that it refers to into another table. ⚠ It
    is gone in the very version in which that takes the name, and not relied on in the one before: a
    version later the old table has not all rows, and who enforced it would not find them."""
    if key.state is not State.PUBLIC:
        return ElementPath(key, after_commit=(GONE,), table_id=table_id)
    before_commit = (*(UNCHANGED,) * (steps - 1), WRITE_ONLY)
    return ElementPath(key, before_commit=before_commit, after_commit=(GONE,), table_id=table_id)


def refer_to(key: ForeignKey, parent: int, parent_index: int, table_id: int) -> ElementPath:
    """Let a foreign key follow the rows that it refers to into another table. ⚠ In the very
    version in which that takes the name: before, it has not all rows; a version later, the old
    one has not."""
    there = Stage({"parent": parent, "parent_index": parent_index})
    return ElementPath(key, after_commit=(there,), table_id=table_id)


def record_moves(table: Descriptor, moves: Iterable[tuple[int, int]]) -> ElementPath:
    """Record that columns move between locks. ⚠ With the commit step a column's new lock takes over
    what the old one knows of writes up to the fence of the dual state, which is only known then.
    `moves`: (target, source)."""
    made = tuple(LockMove(target, source, FENCE_BEFORE) for target, source in moves)
    return ElementPath(table, after_commit=(Stage({"lock_moves": (*table.lock_moves, *made)}),))
