"""Tracks: the way of one element through a job. How the tracks of one job share steps: steps.py.

A track *rises* before the job's commit step and *falls* from it on:

    rise      the new elements are written, filled, verified; all of it can be undone
    commit    what was made becomes public; what is to go stops being so
    fall      what is to go is no longer written, then no longer there; aliases end

Every element walks only pairs of adjacent states that are safe (states of `states.py`, Claims 4 to
7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from leasehold.catalog.descriptor import Descriptor, LockMove
from leasehold.catalog.edits import FENCE_BEFORE, Kind, kind_of
from leasehold.catalog.elements import (
    MISSING_BYTES_MAX,
    THIS_VERSION,
    Check,
    Column,
    Constraint,
    Derived,
    Element,
    ForeignKey,
    Index,
    Lock,
    Missing,
)
from leasehold.catalog.sequence import Sequence
from leasehold.catalog.states import State
from leasehold.rows.defaults import default_of_old_rows
from leasehold.sql.expressions.conversion import Kept

NEVER = 1 << 30


class Stage(NamedTuple):
    """What one step does to an element: fields that change, None to take it out. After the fence
    its pairs are filled (`fill`), and every node checks it as if it were public (`verify`).
    `enforces`: from here on writes are refused that break the constraint. `validate`: the rows of
    before are looked through for what breaks it, ahead of the nodes' check."""

    change: Mapping[str, Any] | None
    fill: bool = False
    verify: bool = False
    enforces: bool = False
    validate: bool = False


def _enforced(change: Mapping[str, Any]) -> Stage:
    return Stage(change, verify=True, enforces=True, validate=True)


def _at(state: State, **fields: Any) -> Stage:
    return Stage({"state": state, **fields})


@dataclass(slots=True)
class ElementPath:
    """`element`: as it stands, or as it will be made (`new`). `final`: the stage of the fall that
    can't be undone once it is published (0: the commit step); NEVER: all of it can be.
    `table_id`: of a table that the job changes beside its own, 0 = its own."""

    element: Element | Descriptor
    new: bool = False
    rise: tuple[Stage, ...] = ()
    fall: tuple[Stage, ...] = ()
    final: int = 0
    table_id: int = 0

    @property
    def name(self) -> tuple[Kind, int]:
        if isinstance(self.element, Descriptor):
            return Kind.TABLE, 0
        return kind_of(self.element), self.element.element_id

    @property
    def enforced_at(self) -> int:
        """The stage of the rise that enforces a constraint, -1 without one."""
        return next((n for n, stage in enumerate(self.rise) if stage.enforces), -1)

    @property
    def over(self) -> frozenset[int]:
        """The columns of the constraint that the rise enforces."""
        match self.element:
            case Index(over=columns) | Check(columns=columns) | ForeignKey(columns=columns):
                return frozenset(columns) if self.enforced_at >= 0 else frozenset()
            case Column(element_id=element_id) if self.enforced_at >= 0:
                return frozenset({element_id})
        return frozenset()


# ------------------------------------------------------------------ the ways of elements

_PUBLIC = _at(State.PUBLIC)
_WRITE_ONLY = _at(State.WRITE_ONLY)
_DELETE_ONLY = _at(State.DELETE_ONLY)
GONE = Stage(None)
_NO_MOMENT = {"moment": None, "moment_zone": ""}
UNCHANGED = Stage({})


def add_column(column: Column) -> ElementPath:
    """Optional: absent → delete-only → public (Claims 4, 5). Required: by write-only, filled
    (Claims 6, 7). ⚠ A nullable column with a default is `filled` for one step before it is public:
    else a writer at the version before would put the default where a newer one has put NULL. Rows
    are filled by key where the default is small enough to stand in every descriptor."""
    if not column.required:
        return ElementPath(column, True, (_DELETE_ONLY,), (_PUBLIC,))
    shown = default_of_old_rows(column)
    missing = None if shown is None or not _small(shown) else Missing(THIS_VERSION, shown)
    change = {"state": State.WRITE_ONLY, "missing": missing}
    filling = Stage(change, fill=True, verify=True)
    if not column.nullable:
        return ElementPath(column, True, (_DELETE_ONLY, filling), (_PUBLIC,))
    filled = Stage({"filled": True})
    return ElementPath(
        column, True, (_DELETE_ONLY, filling, filled), (_at(State.PUBLIC, filled=False),)
    )


def add_required(column: Column) -> tuple[ElementPath, ElementPath]:
    """NOT NULL without a default: every row that is there lacks it, so it is for a table without
    rows. It comes as an optional one, and NOT NULL of it is a constraint: what a writer who does
    not see the column inserts meanwhile is found when the rows are looked through."""
    optional = replace(column, nullable=True)
    return add_column(optional), set_not_null(optional)


def _small(value: Any) -> bool:
    data = value.encode() if isinstance(value, str) else value
    return not isinstance(data, bytes) or len(data) <= MISSING_BYTES_MAX


def add_generated(column: Column) -> ElementPath:
    """As a required one; what it holds follows the columns it is computed from: first as far as
    that can be computed, then strictly, so that the verification tells of rows where it can't."""
    assert column.derived is not None, column
    lenient = column.derived._replace(strict=False)
    filling = Stage({"state": State.WRITE_ONLY}, fill=True)
    strict = Stage({"derived": column.derived}, verify=True)
    return ElementPath(
        column, True, (_at(State.DELETE_ONLY, derived=lenient), filling, strict), (_PUBLIC,)
    )


def drop_expression(column: Column) -> ElementPath:
    """Both its expression and what a writer gives can't be right at once: so nobody relies on the
    expression any more, then it is gone."""
    assert column.derived is not None, column
    loose = Stage({"derived": column.derived._replace(loose=True)})
    return ElementPath(column, fall=(loose, Stage({"derived": None})), final=1)


def reword_generated(column: Column, expression: str) -> ElementPath:
    assert column.derived is not None, column
    said = column.derived._replace(expression=expression)
    return ElementPath(column, fall=(Stage({"derived": said}),), final=NEVER)


def change_type(
    old: Column, new: Column, forth: Kept, back: Kept
) -> tuple[ElementPath, ElementPath]:
    """A new column follows the old one: first as far as it goes, then strictly, then it takes its
    place, and the old one follows it until its last readers have finished. `forth` and `back` are
    expressions over the row in which the column has the name that both share."""
    lenient = Derived(forth.sources, forth.expression, zone=forth.zone)
    filling = Stage({"state": State.WRITE_ONLY, "derived": lenient}, fill=True)
    strict = Stage(
        {"derived": lenient._replace(strict=True), "not_null_enforced": old.refuses_null},
        verify=True,
    )
    public = _at(State.PUBLIC, derived=None, nullable=old.nullable, not_null_enforced=False)
    follows = Derived(back.sources, back.expression, strict=True, reverse=True, zone=back.zone)
    fall = (
        _at(State.WRITE_ONLY, derived=follows),
        _at(State.DELETE_ONLY, derived=None),
        GONE,
    )
    return (
        ElementPath(
            new, True, (_at(State.DELETE_ONLY, derived=lenient), filling, strict), (public,)
        ),
        ElementPath(old, fall=fall),
    )


def drop_column(column: Column, *, waits: int = 0) -> ElementPath:
    """The reverse. ⚠ A column with a default, or a generated one, is still written for those who
    read it; `filled`, so that their NULLs stay. A NOT NULL that writers can break loses it first:
    who can't see it any more can't mend it. While it is hidden nothing over it is enforced, and an
    index or a generated column is delete-only no later than the column itself: it is hidden in no
    step before number `waits`, from 0."""
    gone = _at(State.DELETE_ONLY, not_null_enforced=False, filled=False, derived=None)
    loosened = Stage({"nullable": True, "not_null_enforced": True})
    kept = _at(State.WRITE_ONLY, filled=True, not_null_enforced=False)
    way: tuple[Stage, ...] = (gone, GONE)
    if column.generated:
        way = (kept, gone, GONE)
    elif column.has_default:
        way = (_at(State.WRITE_ONLY, filled=True), gone, GONE)
    loses = not column.nullable and not column.has_default
    fall = (*(UNCHANGED,) * (waits - loses), *((loosened,) if loses else ()), *way)
    # ⚠ Once a NOT NULL is not enforced there may be a NULL, even where all else could be undone.
    return ElementPath(
        column, fall=fall, final=len(fall) - (3 if loses and column.generated else 2)
    )


def hidden_at(track: ElementPath) -> int:
    """The step of its fall, from 0, that takes a column out of sight."""
    hidden = (State.WRITE_ONLY, State.DELETE_ONLY)
    return next(n for n, s in enumerate(track.fall) if s.change and s.change.get("state") in hidden)


def add_index(index: Index, *, unique: bool) -> ElementPath:
    """An index is filled in write-only; a unique one is also a constraint: enforced only when its
    entries are complete, then looked through for duplicates, then public."""
    filling = Stage({"state": State.WRITE_ONLY}, fill=True, verify=True)
    if not unique:
        return ElementPath(index, True, (_DELETE_ONLY, filling), (_PUBLIC,))
    enforced = _enforced({"unique_enforced": True})
    public = _at(State.PUBLIC, unique=True, unique_enforced=False)
    return ElementPath(index, True, (_DELETE_ONLY, filling, enforced), (public,))


def drop_index(index: Index, *, waits: int = 0) -> ElementPath:
    """`waits`: 1 where foreign keys that refer to it go along. ⚠ They go first: who still enforces
    one finds the row that it refers to by its entry, which a new row has in write-only, not in
    delete-only."""
    loosened = _at(State.WRITE_ONLY, unique=False, unique_enforced=index.refuses_duplicates)
    gone = _at(State.DELETE_ONLY, unique_enforced=False)
    return ElementPath(index, fall=(*(UNCHANGED,) * waits, loosened, gone, GONE), final=waits + 1)


def show_index(index: Index, name: str) -> ElementPath:
    """A foreign key has it already: it is filled, and gets the name by which it is asked for."""
    return ElementPath(index, fall=(Stage({"implied": False, "name": name}),))


def hide_index(index: Index, *, waits: int = 0) -> ElementPath:
    """A foreign key of its table goes on needing it. What is UNIQUE is that no more, as
    `drop_index` has it."""
    hidden: dict[str, Any] = {"implied": True, "constraint": False}
    if not index.refuses_duplicates:
        return ElementPath(index, fall=(Stage(hidden),))
    loosened = Stage({**hidden, "unique": False, "unique_enforced": True})
    plain = Stage({"unique_enforced": False})
    return ElementPath(index, fall=(*(UNCHANGED,) * waits, loosened, plain), final=waits + 1)


def add_check(check: Constraint, *, not_valid: bool) -> ElementPath:
    """absent → write-only → validated → public; NOT VALID stays write-only."""
    if not_valid:
        return ElementPath(check, True, fall=(_WRITE_ONLY,))
    enforced = _enforced({"state": State.WRITE_ONLY})
    return ElementPath(check, True, (enforced,), (_PUBLIC,))


def behind(track: ElementPath, index: ElementPath) -> ElementPath:
    """A constraint that needs an index is enforced when the index has been filled."""
    return replace(track, rise=(*(UNCHANGED,) * len(index.rise), *track.rise))


def validate_check(check: Constraint) -> ElementPath:
    return ElementPath(check, rise=(Stage({}, verify=True, validate=True),), fall=(_PUBLIC,))


def drop_check(check: Constraint) -> ElementPath:
    fall = (_WRITE_ONLY, GONE) if check.state is State.PUBLIC else (GONE,)
    return ElementPath(check, fall=fall, final=len(fall) - 1)


def set_not_null(column: Column) -> ElementPath:
    enforced = _enforced({"not_null_enforced": True})
    return ElementPath(
        column, rise=(enforced,), fall=(Stage({"nullable": False, "not_null_enforced": False}),)
    )


def drop_not_null(column: Column) -> ElementPath:
    loosened = Stage({"nullable": True, "not_null_enforced": True})
    return ElementPath(column, fall=(loosened, Stage({"not_null_enforced": False})), final=1)


def set_default(column: Column, default: Any, expression: str = "") -> ElementPath:
    said = {"default": default, "default_expression": expression, **_NO_MOMENT}
    return ElementPath(column, fall=(Stage(said),))


def undrawn(column: Column) -> Column:
    """Without the sequence that it draws from, as with DROP DEFAULT; others stay its own."""
    left = (sequence for sequence in column.own_sequences if sequence != column.draws_from)
    return replace(column.with_numbers(0, left), default_expression="")


def drop_numbering(column: Column) -> ElementPath:
    made = undrawn(column)
    said = {"default_expression": "", "numbering": made.numbering, "owns": made.owns}
    return ElementPath(column, fall=(Stage(said),))


def set_drawn(column: Column, made: Column) -> ElementPath:
    """Its default is the next number of a sequence from here on."""
    said = {
        "default": None,
        "default_expression": made.default_expression,
        **_NO_MOMENT,
        "numbering": made.numbering,
        "owns": made.owns,
    }
    return ElementPath(column, fall=(Stage(said),))


def reword_drawn(column: Column, text: str) -> ElementPath:
    """What it draws from is called otherwise; which one that is its id says."""
    return ElementPath(column, fall=(Stage({"default_expression": text}),), final=NEVER)


def set_numbering(column: Column, made: Column) -> ElementPath:
    """Which sequences go with it, or how it is an identity; what it draws from stays."""
    return ElementPath(column, fall=(Stage({"numbering": made.numbering, "owns": made.owns}),))


def rename(element: Column | Index | Constraint | Descriptor, name: str) -> ElementPath:
    """Both names resolve while two versions live. A check or a foreign key is named in DDL alone,
    which goes by the newest version: it needs no alias."""
    if isinstance(element, Check | ForeignKey):
        return ElementPath(element, fall=(Stage({"name": name}),))
    both = Stage({"name": name, "alias": element.name})
    if isinstance(element, Descriptor) and element.sequence is None and not element.hidden_key:
        # As in PostgreSQL, the key of a table that is renamed is called as before.
        both = Stage({"name": name, "alias": element.name, "key_name": element.key_constraint})
    return ElementPath(element, fall=(both, Stage({"alias": ""})))


def rename_key(table: Descriptor, name: str) -> ElementPath:
    """The primary key and its index. Only DDL, ON CONFLICT ON CONSTRAINT and errors name them, each
    under one version."""
    return ElementPath(table, fall=(Stage({"key_name": name}),))


def reword_check(check: Check, expression: str) -> ElementPath:
    return ElementPath(check, fall=(Stage({"expression": expression}),), final=NEVER)


def reword_index(index: Index, expressions: tuple[str, ...], predicate: str) -> ElementPath:
    stage = Stage({"expressions": expressions, "predicate": predicate})
    return ElementPath(index, fall=(stage,), final=NEVER)


def drop_table(table: Descriptor) -> ElementPath:
    """A delete-only table takes nothing that names it; then it is absent."""
    return ElementPath(table, fall=(_DELETE_ONLY, _at(State.ABSENT)))


def drop_sequence(sequence: Descriptor, waits: int) -> ElementPath:
    """⚠ It is drawn from as long as a version writes a column that has its numbers from it: so it
    goes when the column has gone, or the default."""
    fall = (*(UNCHANGED,) * waits, _DELETE_ONLY, _at(State.ABSENT))
    return ElementPath(sequence, fall=fall, final=waits, table_id=sequence.table_id)


def add_sequence(sequence: Descriptor) -> ElementPath:
    """Of a column that is added: drawn from by the master alone until both are public. Nobody can
    have used one that was not there, and its row is the one of its first version's commit."""
    return ElementPath(sequence, True, (_WRITE_ONLY,), (_PUBLIC,), 0, sequence.table_id)


def alter_sequence(sequence: Descriptor, said: Sequence) -> ElementPath:
    """Its options, from one version to the next. Only the master goes by them, and whoever hands
    numbers out from a block that he has taken; which ends with this version (`going_on`)."""
    return ElementPath(sequence, fall=(Stage({"sequence": said}),), table_id=sequence.table_id)


def another_key(
    table: Descriptor, other: Descriptor, key: Index, not_null: Iterable[Column]
) -> list[ElementPath]:
    """`table` hands its rows and its name over to `other`, which has them under another key.

    First the new key is made sure of: a unique index in `table`, filled and verified, and NOT NULL.
    From then on no two rows can meet in one of `other`, which is delete-only, then written with
    every write and filled, then takes the name, while `table` follows it for those who read the
    version before. What is new in `table` goes with it."""
    rise = add_index(key, unique=True).rise
    waits = (UNCHANGED,) * (len(rise) - 1)
    enforced = _enforced({"not_null_enforced": True})
    twin = Stage({"twin": other.table_id})
    filling = Stage({"state": State.WRITE_ONLY}, fill=True, verify=True)
    hidden = [column for column in other.columns if column.hidden]
    # ⚠ A hidden key goes when no row of `table` is found by it any more but those that are there.
    longer = (UNCHANGED,) if hidden else ()
    own = (_WRITE_ONLY, _DELETE_ONLY, *longer, _at(State.ABSENT, twin=0))
    others = ElementPath(
        other,
        True,
        (*waits, _DELETE_ONLY, filling),
        (_PUBLIC, UNCHANGED, *longer, Stage({"twin": 0})),
        0,
        other.table_id,
    )
    # ⚠ Written for one step more: for the version before every row has it.
    goes = (UNCHANGED, _WRITE_ONLY, _DELETE_ONLY, GONE)
    return [
        *(ElementPath(column, fall=goes, table_id=other.table_id) for column in hidden),
        ElementPath(key, True, rise),
        *(ElementPath(column, rise=(*waits, enforced)) for column in not_null),
        ElementPath(table, rise=(*waits, twin), fall=own),
        others,
    ]


def hidden_key(table: Descriptor, other: Descriptor, hidden: Column) -> list[ElementPath]:
    """As `another_key`, to the key of a table that has none. Nobody gives it, so nothing is to be
    made sure of first: while `other` comes, so does the column of `table` that has it. ⚠ It is
    filled first: a row of `other` is found by it."""
    filling = Stage({"state": State.WRITE_ONLY}, fill=True, verify=True)
    twin = Stage({"twin": other.table_id})
    own = (_WRITE_ONLY, _DELETE_ONLY, _at(State.ABSENT, twin=0))
    others = (_PUBLIC, UNCHANGED, Stage({"twin": 0}))
    return [
        ElementPath(hidden, True, (_DELETE_ONLY, filling)),
        ElementPath(table, rise=(twin,), fall=own),
        ElementPath(other, True, (_DELETE_ONLY, filling), others, 0, other.table_id),
    ]


def lost_reference(key: ForeignKey, steps: int, table_id: int) -> ElementPath:
    """A foreign key that does not follow the rows that it refers to into another table. ⚠ It is
    gone in the very version in which that takes the name, and not relied on in the one before: a
    version later the old table has not all rows, and who enforced it would not find them."""
    if key.state is not State.PUBLIC:
        return ElementPath(key, fall=(GONE,), table_id=table_id)
    rise = (*(UNCHANGED,) * (steps - 1), _WRITE_ONLY)
    return ElementPath(key, rise=rise, fall=(GONE,), table_id=table_id)


def refer_to(key: ForeignKey, parent: int, parent_index: int, table_id: int) -> ElementPath:
    """A foreign key follows the rows that it refers to into another table. ⚠ In the very version in
    which that takes the name: before, it has not all rows; a version later, the old one has not."""
    there = Stage({"parent": parent, "parent_index": parent_index})
    return ElementPath(key, fall=(there,), table_id=table_id)


def add_lock(lock: Lock) -> ElementPath:
    return ElementPath(lock, True, (_PUBLIC,))


def retire_lock(lock: Lock) -> ElementPath:
    """It covers nothing from the commit step on; its genids still tell of writes from before."""
    return ElementPath(lock, fall=(_DELETE_ONLY,))


def move_column(column: Column, target: int) -> ElementPath:
    """Claim 8: from one lock to another through a state in which both are verified and written."""
    both = Stage({"locks": (*column.locks, target)})
    return ElementPath(column, rise=(both,), fall=(Stage({"locks": (target,)}),))


def record_moves(table: Descriptor, moves: Iterable[tuple[int, int]]) -> ElementPath:
    """⚠ With the commit step a column's new lock takes over what the old one knows of writes up
    to the fence of the dual state, which is only known then. `moves`: (target, source)."""
    made = tuple(LockMove(target, source, FENCE_BEFORE) for target, source in moves)
    return ElementPath(table, fall=(Stage({"lock_moves": (*table.lock_moves, *made)}),))
