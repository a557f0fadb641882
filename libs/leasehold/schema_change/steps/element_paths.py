"""The transition paths of elements: each is the way of one element through a job, before and after
the job's commit step. How the paths of one job share steps: steps.py.

Before the commit step new elements are written, filled and verified, and all of it can be undone.
With it, what was made becomes public, and what is to go stops being so. After it, what is to go is
no longer written, then no longer there, and aliases end.

Every element walks only pairs of adjacent states that are safe (states of `states.py`, Claims 4 to
7).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Kind, find_kind
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
from leasehold.catalog.states import State
from leasehold.rows.defaults import default_of_old_rows
from leasehold.sql.expressions.conversion import Kept
from leasehold.values.types import Type, holds_all_of

NEVER = 1 << 30


class Stage(NamedTuple):
    """A stage of a path, which is what one step does to an element: fields that change, None to
    take it out. After the fence its pairs are filled (`backfill`), and every node checks it as if
    it were public (`verify`). `enforces`: from here on writes are refused that break the
    constraint."""

    change: Mapping[str, Any] | None
    backfill: bool = False
    verify: bool = False
    enforces: bool = False

    @property
    def has_work(self) -> bool:
        """Whether rows are filled or looked at behind its fence."""
        return self.backfill or self.verify


def enforcing_stage(change: Mapping[str, Any]) -> Stage:
    """Return a stage from which on a constraint is enforced; behind its fence every node looks
    through its own rows for what breaks it."""
    return Stage(change, verify=True, enforces=True)


def in_state(state: State, **fields: Any) -> Stage:
    """Return a stage that brings an element to a state."""
    return Stage({"state": state, **fields})


@dataclass(slots=True)
class ElementPath:
    """The path of `element`, which is as it stands, or as it will be made (`new`).
    `irreversible_from`: the stage after the commit that can't be undone once it is published (0:
    the commit step); NEVER: all of it can be. `table_id`: of a table that the job changes beside
    its own, 0 = its own."""

    element: Element | Descriptor
    new: bool = False
    before_commit: tuple[Stage, ...] = ()
    after_commit: tuple[Stage, ...] = ()
    irreversible_from: int = 0
    table_id: int = 0

    @property
    def name(self) -> tuple[Kind, int]:
        if isinstance(self.element, Descriptor):
            return Kind.TABLE, 0
        return find_kind(self.element), self.element.element_id

    @property
    def enforced_at(self) -> int:
        """The stage before the commit that enforces a constraint, -1 without one."""
        return next((n for n, stage in enumerate(self.before_commit) if stage.enforces), -1)

    @property
    def over(self) -> frozenset[int]:
        """The columns of the constraint that is enforced before the commit."""
        match self.element:
            case Index(over=columns) | Check(columns=columns) | ForeignKey(columns=columns):
                return frozenset(columns) if self.enforced_at >= 0 else frozenset()
            case Column(element_id=element_id) if self.enforced_at >= 0:
                return frozenset({element_id})
        return frozenset()


# ------------------------------------------------------------------ the ways of elements

PUBLIC = in_state(State.PUBLIC)
WRITE_ONLY = in_state(State.WRITE_ONLY)
DELETE_ONLY = in_state(State.DELETE_ONLY)
_GOING = {"missing": None}
"""Of a column that is about to be absent: a new row has it no more."""
GONE = Stage(None)
_NO_CONTEXT = {"moment": None, "moment_zone": ""}
UNCHANGED = Stage({})


def add_column(column: Column, *, at_once: bool = True) -> ElementPath:
    """Add a column. Optional: absent → delete-only → public (Claims 4, 5). So is one with a default
    that is the same for all rows there are, and small enough to stand in every descriptor: whoever
    reads a row that lacks the pair knows what it has, so no row has to be touched. `at_once` False:
    not every node knows that, and such rows are filled by key.

    Required: by write-only, filled (Claims 6, 7). ⚠ A nullable column with a default is `filled`
    for one step before it is public: else a writer at the version before would put the default
    where a newer one has put NULL."""
    if not column.required:
        return ElementPath(column, True, (DELETE_ONLY,), (PUBLIC,))
    shown = default_of_old_rows(column)
    missing = None if shown is None or not _small(shown) else Missing(THIS_VERSION, shown)
    if missing is not None and at_once:
        hidden = in_state(State.DELETE_ONLY, missing=missing._replace(at_once=True))
        return ElementPath(column, True, (hidden,), (PUBLIC,))
    change = {"state": State.WRITE_ONLY, "missing": missing}
    backfilling = Stage(change, backfill=True, verify=True)
    if not column.nullable:
        return ElementPath(column, True, (DELETE_ONLY, backfilling), (PUBLIC,))
    filled = Stage({"filled": True})
    return ElementPath(
        column, True, (DELETE_ONLY, backfilling, filled), (in_state(State.PUBLIC, filled=False),)
    )


def show_behind(path: ElementPath, former: ElementPath) -> ElementPath:
    """Return the path of a new column that has the name of another one, `former`, which goes or
    gets another name. ⚠ A version that shows neither is between those that show one: two that may
    be in use would tell two values of one name."""
    shown = tuple(stage for stage in path.after_commit if stage != UNCHANGED)
    waits = (UNCHANGED,) * (_find_letting_stage(former) + 1)
    return replace(path, after_commit=(*waits, *shown))


def is_shown_late(path: ElementPath) -> bool:
    """Say whether a path is that of a new column which the commit step does not show yet."""
    new = path.new and isinstance(path.element, Column)
    return new and path.after_commit[:1] == (UNCHANGED,)


def _find_letting_stage(path: ElementPath) -> int:
    """Return the stage after the commit, from 0, in which no version finds a column any more by the
    name that it had."""
    for number, stage in enumerate(path.after_commit):
        if stage.change is not None and stage.change.get("alias") == "":
            return number
    return find_hiding_stage(path)


def add_required(column: Column) -> tuple[ElementPath, ElementPath]:
    """Add a column that is NOT NULL without a default: every row that is there lacks it, so it is
    for a table without rows. It comes as an optional one, and NOT NULL of it is a constraint: what
    a writer who does not see the column inserts meanwhile is found when the rows are looked
    through."""
    optional = replace(column, nullable=True)
    return add_column(optional), set_not_null(optional)


def _small(value: Any) -> bool:
    data = value.encode() if isinstance(value, str) else value
    return not isinstance(data, bytes) or len(data) <= MISSING_BYTES_MAX


def add_generated(column: Column, missing: Missing | None = None) -> ElementPath:
    """Add a generated column, as a required one; what it holds follows the columns it is computed
    from: first as far as that can be computed, then strictly, so that the verification tells of
    rows where it can't. `missing`: what rows from before have, None = their images tell."""
    assert column.derived is not None, column
    lenient = column.derived._replace(strict=False)
    backfilling = Stage({"state": State.WRITE_ONLY, "missing": missing}, backfill=True)
    strict = Stage({"derived": column.derived}, verify=True)
    return ElementPath(
        column, True, (in_state(State.DELETE_ONLY, derived=lenient), backfilling, strict), (PUBLIC,)
    )


def drop_expression(column: Column) -> ElementPath:
    """Drop a column's expression. Both that and what a writer gives can't be right at once: so
    nobody relies on the expression any more, then it is gone."""
    assert column.derived is not None, column
    loose = Stage({"derived": column.derived._replace(loose=True)})
    return ElementPath(column, after_commit=(loose, Stage({"derived": None})), irreversible_from=1)


def reword_generated(column: Column, expression: str) -> ElementPath:
    assert column.derived is not None, column
    said = column.derived._replace(expression=expression)
    return ElementPath(column, after_commit=(Stage({"derived": said}),), irreversible_from=NEVER)


def change_type(
    old: Column,
    new: Column,
    forth: Kept,
    back: Kept,
    missing: Missing | None = None,
    *,
    waits: int = 0,
) -> tuple[ElementPath, ElementPath]:
    """Change a column's type: a new column follows the old one, first as far as it goes, then
    strictly, then it takes its place, and the old one follows it until its last readers have
    finished. `forth` and `back` are expressions over the row in which the column has the name that
    both share. `missing`: what rows from before have, None = their images tell. `waits`: 1 where
    something over the old column is enforced for its last readers. ⚠ It is written until nobody
    enforces that any more: else they would meet values that rows have no longer."""
    lenient = Derived(forth.sources, forth.expression, zone=forth.zone)
    change = {"state": State.WRITE_ONLY, "derived": lenient, "missing": missing}
    backfilling = Stage(change, backfill=True)
    strict = Stage(
        {"derived": lenient._replace(strict=True), "not_null_enforced": old.refuses_null},
        verify=True,
    )
    public = in_state(State.PUBLIC, derived=None, nullable=old.nullable, not_null_enforced=False)
    follows = Derived(back.sources, back.expression, strict=True, reverse=True, zone=back.zone)
    after_commit = (
        in_state(State.WRITE_ONLY, derived=follows),
        *(UNCHANGED,) * waits,
        in_state(State.DELETE_ONLY, derived=None, **_GOING),
        GONE,
    )
    return (
        ElementPath(
            new,
            True,
            (in_state(State.DELETE_ONLY, derived=lenient), backfilling, strict),
            (public,),
        ),
        ElementPath(old, after_commit=after_commit),
    )


def widen_type(column: Column, wide: Type) -> ElementPath:
    """Change a column's type to one that holds every value of it, in the same storage form: no
    value has to change. ⚠ But who reads by the version before knows the old type alone, so a value
    that it can't hold is written only when that version is drained: a constraint that is loosened,
    as a NOT NULL is. Where both hold the same values nobody sees a difference."""
    if holds_all_of(column.type, wide):
        return ElementPath(column, after_commit=(Stage({"type": wide}),))
    held = Stage({"type": wide, "narrow": column.type})
    return ElementPath(column, after_commit=(held, Stage({"narrow": None})), irreversible_from=1)


def narrow_type(column: Column, narrow: Type) -> ElementPath:
    """Change a column's type to one that has some of its values, in the same storage form: those
    that are there stay as they are. It is a constraint, then a type: first what is written has to
    be one of the narrower type, while readers have the wider one, and every node looks through its
    rows for others. ⚠ Only then it is what readers rely on."""
    held = enforcing_stage({"narrow": narrow})
    public = Stage({"type": narrow, "narrow": None})
    return ElementPath(column, before_commit=(held,), after_commit=(public,))


def rename_labels(column: Column, renamed: Type) -> ElementPath:
    """Give labels of an enum type other names: what is stored is the same, and each version reads
    and writes it by the names that it knows."""
    return ElementPath(column, after_commit=(Stage({"type": renamed}),), irreversible_from=NEVER)


def delay_default(path: ElementPath) -> ElementPath:
    """Return the path of a default of a column that is widened by the same statement: ⚠ it may be a
    value that the type before can't hold."""
    return replace(path, after_commit=(UNCHANGED, *path.after_commit))


def drop_column(column: Column, *, waits: int = 0) -> ElementPath:
    """Drop a column, the reverse of adding one. ⚠ A column with a default, or a generated one, is
    still written for those who read it; `filled`, so that their NULLs stay. A NOT NULL that writers
    can break loses it first: who can't see it any more can't mend it. While it is hidden nothing
    over it is enforced, and an index or a generated column is delete-only no later than the column
    itself: it is hidden in no step before number `waits`, from 0."""
    hidden = {"not_null_enforced": False, "filled": False, "derived": None, **_GOING}
    gone = in_state(State.DELETE_ONLY, **hidden)
    loosened = Stage({"nullable": True, "not_null_enforced": True})
    kept = in_state(State.WRITE_ONLY, filled=True, not_null_enforced=False)
    way: tuple[Stage, ...] = (gone, GONE)
    if column.generated:
        way = (kept, gone, GONE)
    elif column.has_default:
        way = (in_state(State.WRITE_ONLY, filled=True), gone, GONE)
    loses = not column.nullable and not column.has_default
    after_commit = (*(UNCHANGED,) * (waits - loses), *((loosened,) if loses else ()), *way)
    # ⚠ Once a NOT NULL is not enforced there may be a NULL, even where all else could be undone.
    return ElementPath(
        column,
        after_commit=after_commit,
        irreversible_from=len(after_commit) - (3 if loses and column.generated else 2),
    )


def find_hiding_stage(path: ElementPath) -> int:
    """Return the stage after the commit, from 0, that takes a column out of sight."""
    hidden = (State.WRITE_ONLY, State.DELETE_ONLY)
    return next(
        n for n, s in enumerate(path.after_commit) if s.change and s.change.get("state") in hidden
    )


def add_index(index: Index, *, unique: bool) -> ElementPath:
    """Add an index, which is filled in write-only; a unique one is also a constraint: enforced only
    when it has been filled. Then its entries are verified, which tells duplicates, too: they are
    neighbours. Nobody has to read the rows for them."""
    backfilling = Stage({"state": State.WRITE_ONLY}, backfill=True, verify=not unique)
    if not unique:
        return ElementPath(index, True, (DELETE_ONLY, backfilling), (PUBLIC,))
    enforced = Stage({"unique_enforced": True}, verify=True, enforces=True)
    public = in_state(State.PUBLIC, unique=True, unique_enforced=False)
    return ElementPath(index, True, (DELETE_ONLY, backfilling, enforced), (public,))


def drop_index(index: Index, *, waits: int = 0) -> ElementPath:
    """Drop an index. `waits`: 1 where foreign keys that refer to it go along. ⚠ They go first: who
    still enforces one finds the row that it refers to by its entry, which a new row has in
    write-only, not in delete-only."""
    loosened = in_state(State.WRITE_ONLY, unique=False, unique_enforced=index.refuses_duplicates)
    gone = in_state(State.DELETE_ONLY, unique_enforced=False)
    return ElementPath(
        index,
        after_commit=(*(UNCHANGED,) * waits, loosened, gone, GONE),
        irreversible_from=waits + 1,
    )


def show_index(index: Index, name: str) -> ElementPath:
    """Show the index of a foreign key: it is filled already, and gets the name by which it is asked
    for."""
    return ElementPath(index, after_commit=(Stage({"implied": False, "name": name}),))


_BEHIND_COLUMN: Final = (UNCHANGED, UNCHANGED)
"""Until the column that another one is followed by is filled and strict (`change_type`)."""


def remake_index(old: Index, new: Index) -> tuple[ElementPath, ElementPath]:
    """Make an index anew over the column that takes the place of one of its own (`change_type`):
    filled behind that, shown with it. ⚠ Two rows may be unlike in the one column and alike in the
    other: both are enforced as long as anybody relies on either."""
    made, gone = add_index(replace(new, unique=False), unique=old.unique), drop_index(old)
    if old.refuses_duplicates:
        loosened, delete_only, absent = gone.after_commit
        plain = Stage({"unique_enforced": False})
        gone = replace(gone, after_commit=(loosened, plain, delete_only, absent))
    # Writers see the column under its name, though not this one yet.
    stages = [stage._replace(enforces=False) for stage in made.before_commit]
    return replace(made, before_commit=(*_BEHIND_COLUMN, *stages)), gone


def remake_check(old: Check, new: Check) -> tuple[ElementPath, ElementPath]:
    """Make a CHECK anew as `remake_index` makes an index."""
    made = add_check(new, not_valid=old.state is not State.PUBLIC)
    stages = [stage._replace(enforces=False) for stage in made.before_commit]
    waits = (*_BEHIND_COLUMN, UNCHANGED) if stages else ()
    return replace(made, before_commit=(*waits, *stages)), drop_check(old)


def constrain_by(index: Index, name: str, deferrable: str = "") -> ElementPath:
    """Make an index that is there that of a UNIQUE constraint, which gives it its name."""
    made: dict[str, Any] = {"constraint": True, "deferrable": deferrable}
    if name == index.name:
        return ElementPath(index, after_commit=(Stage(made),))
    named = Stage({**made, "name": name, "alias": index.name})
    return ElementPath(index, after_commit=(named, Stage({"alias": ""})))


def hide_index(index: Index, *, waits: int = 0) -> ElementPath:
    """Hide an index that a foreign key of its table goes on needing. What is UNIQUE is that no
    more, as `drop_index` has it."""
    hidden: dict[str, Any] = {"implied": True, "constraint": False}
    if not index.refuses_duplicates:
        return ElementPath(index, after_commit=(Stage(hidden),))
    loosened = Stage({**hidden, "unique": False, "unique_enforced": True})
    plain = Stage({"unique_enforced": False})
    return ElementPath(
        index, after_commit=(*(UNCHANGED,) * waits, loosened, plain), irreversible_from=waits + 1
    )


def add_check(check: Constraint, *, not_valid: bool) -> ElementPath:
    """Add a constraint: absent → write-only → verified → public; NOT VALID stays write-only."""
    if not_valid:
        return ElementPath(check, True, after_commit=(WRITE_ONLY,))
    enforced = enforcing_stage({"state": State.WRITE_ONLY})
    return ElementPath(check, True, (enforced,), (PUBLIC,))


def defer(key: ForeignKey, initially: str) -> ElementPath:
    """Change when sessions look at a foreign key, INITIALLY what it is then; "" = it is not
    deferrable. The master looks at it whatever they do."""
    made = deferred(key, initially)
    change = {"deferred": made.deferred, "deferrable": made.deferrable}
    return ElementPath(key, after_commit=(Stage(change),), irreversible_from=NEVER)


def deferred(key: ForeignKey, initially: str) -> ForeignKey:
    """Return the foreign key as `defer` leaves it."""
    deferrable = initially == "immediate"
    return replace(key, deferred=initially == "deferred", deferrable=deferrable)


def delay_behind(path: ElementPath, indexes: Iterable[ElementPath]) -> ElementPath:
    """Return the path of a constraint that needs indexes which come with it: it is enforced when
    they have been filled."""
    stages = path.before_commit
    waited = path.enforced_at if path.enforced_at >= 0 else len(stages)
    longest = max((len(index.before_commit) for index in indexes), default=0)
    return replace(path, before_commit=(*(UNCHANGED,) * (longest - waited), *stages))


def validate_check(check: Constraint) -> ElementPath:
    return ElementPath(check, before_commit=(Stage({}, verify=True),), after_commit=(PUBLIC,))


def validates(path: ElementPath) -> bool:
    """Say whether a path is that of `validate_check`."""
    constraint = isinstance(path.element, Check | ForeignKey)
    return constraint and not path.new and path.after_commit == (PUBLIC,)


def stays_not_valid(path: ElementPath) -> bool:
    """Say whether a path is that of a constraint that is made NOT VALID."""
    constraint = isinstance(path.element, Check | ForeignKey)
    return constraint and path.new and path.after_commit == (WRITE_ONLY,)


def make_valid(path: ElementPath, element: Constraint) -> ElementPath:
    """Return the path of a constraint that one statement makes NOT VALID and the same one, or a
    later one of its request, validates: nobody sees it between, so it is made valid."""
    made = add_check(element, not_valid=False)
    return replace(
        made,
        before_commit=(*path.before_commit, *made.before_commit),
        table_id=path.table_id,
    )


def drop_check(check: Constraint) -> ElementPath:
    after_commit = (WRITE_ONLY, GONE) if check.state is State.PUBLIC else (GONE,)
    return ElementPath(check, after_commit=after_commit, irreversible_from=len(after_commit) - 1)


def set_not_null(column: Column) -> ElementPath:
    enforced = enforcing_stage({"not_null_enforced": True})
    return ElementPath(
        column,
        before_commit=(enforced,),
        after_commit=(Stage({"nullable": False, "not_null_enforced": False}),),
    )


def demand(column: Column) -> ElementPath:
    """Set a column NOT NULL that rows of the job's transaction fill: when they are committed no row
    lacks it, which the master makes sure of. ⚠ So there is no row to be looked through, and whoever
    is at the version before can't leave it empty from then on: not where the same job adds the
    column, which he can't name, and not where it was there."""
    demanded = Stage({"not_null_enforced": True, "demanded": True})
    sure = Stage({"nullable": False, "not_null_enforced": False, "demanded": False})
    return ElementPath(column, after_commit=(demanded, sure))


def drop_not_null(column: Column) -> ElementPath:
    loosened = Stage({"nullable": True, "not_null_enforced": True})
    return ElementPath(
        column, after_commit=(loosened, Stage({"not_null_enforced": False})), irreversible_from=1
    )


def set_default(column: Column, default: Any, expression: str = "", text: str = "") -> ElementPath:
    said = {
        "default": default,
        "default_expression": expression,
        "default_text": text,
        **_NO_CONTEXT,
    }
    return ElementPath(column, after_commit=(Stage(said),))


def without_sequence(column: Column) -> Column:
    """Return the column without the sequence that it draws from, as with DROP DEFAULT; others stay
    its own."""
    left = (sequence for sequence in column.own_sequences if sequence != column.draws_from)
    return replace(column.with_sequence_default(0, left), default_expression="")


def drop_numbering(column: Column) -> ElementPath:
    made = without_sequence(column)
    said = {"default_expression": "", "numbering": made.numbering, "owns": made.owns}
    return ElementPath(column, after_commit=(Stage(said),))


def set_drawn(column: Column, made: Column) -> ElementPath:
    """Let a column draw its default from a sequence from here on."""
    said = {
        "default": None,
        "default_text": "",
        "default_expression": made.default_expression,
        **_NO_CONTEXT,
        "numbering": made.numbering,
        "owns": made.owns,
    }
    return ElementPath(column, after_commit=(Stage(said),))


def reword_drawn(column: Column, text: str) -> ElementPath:
    """Reword the default of a column whose sequence is called otherwise; which one that is its id
    says."""
    return ElementPath(
        column, after_commit=(Stage({"default_expression": text}),), irreversible_from=NEVER
    )


def set_numbering(column: Column, made: Column) -> ElementPath:
    """Change which sequences go with a column, or how it is an identity; what it draws from
    stays."""
    return ElementPath(
        column, after_commit=(Stage({"numbering": made.numbering, "owns": made.owns}),)
    )


def rename(element: Column | Index | Constraint | Descriptor, name: str) -> ElementPath:
    """Rename an element or a table. Both names resolve while two versions live. A check or a
    foreign key is named in DDL alone, which goes by the newest version: it needs no alias."""
    if isinstance(element, Check | ForeignKey):
        return ElementPath(element, after_commit=(Stage({"name": name}),))
    both = Stage({"name": name, "alias": element.name})
    if isinstance(element, Descriptor) and element.sequence is None and not element.hidden_key:
        # As in PostgreSQL, the key of a table that is renamed is called as before.
        both = Stage({"name": name, "alias": element.name, "key_name": element.key_constraint})
    return ElementPath(element, after_commit=(both, Stage({"alias": ""})))


def reword_check(check: Check, expression: str) -> ElementPath:
    return ElementPath(
        check, after_commit=(Stage({"expression": expression}),), irreversible_from=NEVER
    )


def reword_index(index: Index, expressions: tuple[str, ...], predicate: str) -> ElementPath:
    stage = Stage({"expressions": expressions, "predicate": predicate})
    return ElementPath(index, after_commit=(stage,), irreversible_from=NEVER)


def add_lock(lock: Lock) -> ElementPath:
    return ElementPath(lock, True, (PUBLIC,))


def retire_lock(lock: Lock) -> ElementPath:
    """Retire a lock: it covers nothing from the commit step on; its genids still tell of writes
    from before."""
    return ElementPath(lock, after_commit=(DELETE_ONLY,))


def move_column(column: Column, target: int) -> ElementPath:
    """Move a column from one lock to another, through a state in which both are verified and
    written (Claim 8)."""
    both = Stage({"locks": (*column.locks, target)})
    return ElementPath(column, before_commit=(both,), after_commit=(Stage({"locks": (target,)}),))
