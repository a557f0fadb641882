"""The elements of a table: columns, indexes, constraints and locks, each with a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.sequence import Numbering
from leasehold.catalog.states import State
from leasehold.model.keys import Key
from leasehold.values.types import Type

DEFAULT_LOCK: Final = 0
DEFAULT_LOCK_NAME: Final = "row"
ALL_ROWS: Final = -1
"""Instead of an element id, in what a job fills and verifies: the rows of the table's mirror."""
HIDDEN_NAME: Final = ""
"""Of a hidden key: no statement and no request can say it."""
NEXTVAL: Final = "nextval("
"""How the text of a default begins that draws from a sequence."""
EXPRESSION: Final = 0
"""Where an index has an expression in the place of a column; no element has this id."""


class CommitContext(NamedTuple):
    """The moment that expressions which change from call to call are computed from, decided by the
    master: `now_us` in unix µs; `seed` for random values, which differ by row
    (`sql/expressions/default.py`)."""

    now_us: int
    seed: bytes


class Derived(NamedTuple):
    """The value of a column that is `expression` over the row, and changes with the columns
    `sources`.

    While a column changes its type, the new one follows the old, then the old one the new; neither
    is public meanwhile. `generated`: it is GENERATED ALWAYS AS (…) STORED, and stays so. `strict`:
    a write whose value can't be computed is refused; else the pair is left out and the verification
    finds it. `reverse`: it is the old column, kept for readers who finish. `loose`: its expression
    is being dropped; followed as before, and not relied on. `zone`: the time zone in which it is
    computed, that of the session whose statement said it; "" = UTC.
    """

    sources: tuple[int, ...]
    expression: str
    strict: bool = False
    reverse: bool = False
    generated: bool = False
    loose: bool = False
    zone: str = ""


class Missing(NamedTuple):
    """The meaning of a row's image that was made under a version below `below` and lacks the
    pair: the row has `value`, a storage value, all the same, or what is `computed` of the image. A
    backfill has put it there without an image; or, `at_once`, the store did when version `below`
    brought the column, without touching a row (`rows/filled_by_key.py`)."""

    below: int
    value: Any
    at_once: bool = False
    computed: Computed | None = None


class Computed(NamedTuple):
    """A value over other columns of a row, said so that it can be computed for good: whatever the
    table is like by then, and wherever. `expression` is computed in UTC, as a value of `type`."""

    expression: str
    type: Type
    sources: tuple[Source, ...]


class Source(NamedTuple):
    """A column that an expression names, as it was when the expression was said. `missing`: what an
    image has of it that lacks its pair."""

    element_id: int
    name: str
    type: Type
    missing: Missing | None = None


THIS_VERSION: Final = 0
"""As `Missing.below` in an edit: the version that the edit makes, which no plan can know."""
MISSING_BYTES_MAX: Final = 256
"""Of a text or bytes that images may leave to the descriptor: it travels in every version event,
where it can't be left out. Rows that get a longer one are filled by images."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column. `element_id` names the physical column, so a re-added name never meets old data.

    `default` is a storage value, None = no constant default; `default_text`: what PostgreSQL shows
    of a number that was written otherwise than it is stored, "" = nothing else;
    `default_expression` is the text of one that changes from call to call, "" = none. `moment`: at
    which one such was added, so what old rows have of it, in the time zone `moment_zone` ("" =
    UTC). A column is *required* when
    every row must have its pair: NOT NULL, or a default that old rows must show. NOT NULL is a
    constraint with states of its own: `not_null_enforced` is write-only (checked on writes, not
    relied on yet or any more), `nullable` False is public. `filled`: every row has had its pair of
    a write-only column, so what lacks one was set to NULL. `alias` is the name before a rename, as
    long as a version that knows it may be in use. `locks` are the ids of those that cover it: one,
    or two while it moves between them (Claim 8). `missing`: rows have (or had) its value without an
    image of their own; None: they were filled by images, or not at all. `hidden`: it is the key of
    rows that have none of their own (T7); each row has its pair, and nobody can name it or is shown
    it. `numbering`: from which sequence its default draws. `owns`: the sequences that go with it,
    in the order in which it got them; (): what `numbering` says of its own. `ordinal`: the element
    id in whose place it stands among the columns that a query sees, since it was made instead of
    that one; 0 = in its own. `narrow`: the type that what is written is of, too: that which it
    had before it was widened, as long as a version that has it may be in use; or that which it is
    about to have, while rows are looked through for values that one lacks. `demanded`: a row must
    have its pair whatever version inserts it, since no row lacks it any more.
    """

    element_id: int
    name: str
    type: Type
    nullable: bool = True
    default: Any = None
    state: State = State.PUBLIC
    not_null_enforced: bool = False
    filled: bool = False
    alias: str = ""
    locks: tuple[int, ...] = (DEFAULT_LOCK,)
    derived: Derived | None = None
    missing: Missing | None = None
    default_expression: str = ""
    moment: CommitContext | None = None
    hidden: bool = False
    numbering: Numbering | None = None
    owns: tuple[int, ...] = ()
    ordinal: int = 0
    moment_zone: str = ""
    narrow: Type | None = None
    demanded: bool = False
    default_text: str = ""

    @property
    def written_type(self) -> Type:
        """The type that a value must be of to be written."""
        return self.narrow or self.type

    @property
    def position(self) -> int:
        """The number by which the columns of a table are ordered for whoever sees them."""
        return self.ordinal or self.element_id

    @property
    def draws_from(self) -> int:
        """The id of the sequence whose next number is its default, 0 = none."""
        if self.numbering is None or not self.default_expression.startswith(NEXTVAL):
            return 0
        return self.numbering.sequence

    @property
    def identity(self) -> str:
        """ "a": ALWAYS, "d": BY DEFAULT, "": it is no identity column."""
        return "" if self.numbering is None else self.numbering.identity

    @property
    def own_sequences(self) -> tuple[int, ...]:
        """The ids of the sequences that go when it goes."""
        if self.owns or self.numbering is None or not self.numbering.owned:
            return self.owns
        return (self.numbering.sequence,)

    def with_sequence_default(self, draws: int, own: Iterable[int], identity: str = "") -> Column:
        """Return the column drawing from `draws`, 0: from none; `own` go with it."""
        kept = tuple(dict.fromkeys(own))
        first = draws or next(iter(kept), 0)
        if not first:
            return replace(self, numbering=None, owns=())
        numbering = Numbering(first, first in kept, identity)
        return replace(self, numbering=numbering, owns=() if kept == (first,) else kept)

    @property
    def has_default(self) -> bool:
        return self.default is not None or bool(self.default_expression)

    @property
    def required(self) -> bool:
        return not self.nullable or self.has_default

    @property
    def generated(self) -> bool:
        """Whether it is GENERATED ALWAYS AS (…) STORED."""
        return self.derived is not None and self.derived.generated

    @property
    def refuses_null(self) -> bool:
        """Whether a write is refused that leaves a row without the pair."""
        return not self.nullable or self.not_null_enforced


@dataclass(frozen=True, slots=True)
class Index:
    """An index. `columns` are element ids in key order; entries are (key columns, primary key), and
    beside them the columns `included`, which say nothing about order or uniqueness.

    EXPRESSION among `columns` stands for the next of `expressions`; only rows that make `predicate`
    true have an entry ("": all). `mentioned` are the columns that these texts name. A row whose
    entry can't be computed has none, and is refused where the index is written.

    Uniqueness is a constraint with states of its own: `unique_enforced` is write-only, `unique` is
    public. `constraint`: made by UNIQUE of a table, so it is dropped as a constraint. `implied`:
    there for a foreign key alone, and shown to nobody, since PostgreSQL makes none.

    `orders`: what is said behind each column of the key (`DESC NULLS LAST`, an operator class), ()
    = of none anything. Entries are in ascending order whatever it says, and read from either end.
    `equal_nulls`: NULLs are equal in its keys, where they are unique (NULLS NOT DISTINCT).
    `deferrable`: of a constraint, INITIALLY what it is: "immediate", "deferred", "" = it is not.
    """

    element_id: int
    name: str
    columns: tuple[int, ...]
    unique: bool = False
    state: State = State.PUBLIC
    unique_enforced: bool = False
    constraint: bool = False
    alias: str = ""
    expressions: tuple[str, ...] = ()
    predicate: str = ""
    included: tuple[int, ...] = ()
    mentioned: tuple[int, ...] = ()
    implied: bool = False
    orders: tuple[str, ...] = ()
    equal_nulls: bool = False
    deferrable: str = ""

    @property
    def over(self) -> frozenset[int]:
        """The columns that an entry depends on."""
        return frozenset((*self.columns, *self.included, *self.mentioned)) - {EXPRESSION}

    @property
    def computed(self) -> bool:
        """Whether an entry is more than the values of columns."""
        return bool(self.expressions or self.predicate)

    @property
    def refuses_duplicates(self) -> bool:
        """Whether a write is refused that makes two rows with equal keys."""
        return self.unique or self.unique_enforced

    def can_collide(self, key: Key | None) -> bool:
        """Say whether another row may not have this key of an entry, where it is unique; None: the
        row has no entry. A NULL equals no other unless that was said."""
        return key is not None and (self.equal_nulls or None not in key)


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint. `columns` are the element ids it mentions, `expression` its text, which
    is computed in the time zone `zone`, that of the session whose statement said it; "" = UTC.

    Write-only: enforced on new writes, not relied on; NOT VALID is to stay there until VALIDATE.
    """

    element_id: int
    name: str
    expression: str
    columns: tuple[int, ...]
    state: State = State.PUBLIC
    zone: str = ""


class OnChange(StrEnum):
    """The actions on rows that refer to one which goes, or to values which it loses."""

    NO_ACTION = "no action"
    RESTRICT = "restrict"
    CASCADE = "cascade"
    SET_NULL = "set null"
    SET_DEFAULT = "set default"

    @property
    def acts(self) -> bool:
        """Whether those rows are changed; else the request is refused that leaves them behind."""
        return self not in (OnChange.NO_ACTION, OnChange.RESTRICT)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A FOREIGN KEY constraint. `columns` of a row, unless one of them is NULL, are those
    `parent_columns` of a row of table `parent` (MATCH SIMPLE). `full`: all of them are NULL or none
    (MATCH FULL). `on_delete`, `on_update`: what becomes of the row when that one goes, or loses
    these values; `delete_sets`: the columns that a delete sets, () = all. `deferred`: it was said
    to be DEFERRABLE INITIALLY DEFERRED, so that what actions of other keys do counts before it;
    `deferrable`: DEFERRABLE INITIALLY IMMEDIATE, which SET CONSTRAINTS may defer.

    `parent_index` finds the parent row, `index` the rows that refer to one; 0: the primary key.
    """

    element_id: int
    name: str
    columns: tuple[int, ...]
    parent: int
    parent_columns: tuple[int, ...]
    parent_index: int = 0
    index: int = 0
    state: State = State.PUBLIC
    on_delete: OnChange = OnChange.NO_ACTION
    on_update: OnChange = OnChange.NO_ACTION
    full: bool = False
    delete_sets: tuple[int, ...] = ()
    deferred: bool = False
    deferrable: bool = False

    @property
    def deferral(self) -> str:
        """INITIALLY what it is, "immediate" or "deferred"; "" = it is not deferrable."""
        return "deferred" if self.deferred else "immediate" if self.deferrable else ""

    @property
    def acts(self) -> bool:
        return self.on_delete.acts or self.on_update.acts

    def is_mixed(self, image: Mapping[int, Any]) -> bool:
        """Say whether some of the columns are NULL and some not, where that breaks it."""
        if not self.full:
            return False
        return len({image.get(column) is None for column in self.columns}) > 1


@dataclass(frozen=True, slots=True)
class Lock:
    """A row lock over some columns beside the default one, which covers all others: writers of
    columns under different locks don't collide. Delete-only: it covers nothing any more, its
    genids still tell of writes from before."""

    element_id: int
    name: str
    state: State = State.PUBLIC


Constraint: TypeAlias = Check | ForeignKey
Element: TypeAlias = Column | Index | Check | ForeignKey | Lock
