"""Descriptor: one version of one table's schema, its elements and their states."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

from leasehold.catalog.element_forms import (
    CHECK_FORM,
    COLUMN_FORM,
    FOREIGN_KEY_FORM,
    INDEX_FORM,
    LOCK_FORM,
    state_label,
    state_of,
)
from leasehold.catalog.elements import (
    DEFAULT_LOCK,
    EXPRESSION,
    Check,
    Column,
    Element,
    ForeignKey,
    Index,
    Lock,
    Missing,
)
from leasehold.catalog.object_names import primary_key_name
from leasehold.catalog.sequence import Sequence, sequence_from_wire, sequence_to_wire
from leasehold.catalog.states import READABLE, WRITTEN, State
from leasehold.catalog.wire_form import AS_LIST, Convert, Field, WireForm, required, sparse
from leasehold.model.errors import MalformedRequest, UnknownColumn
from leasehold.values.types import DATES_AND_TIMESTAMPS, element_of

PROVISIONAL_FROM: Final = 1 << 40
"""Ids of tables that a transaction makes and that no log has given a number yet."""
TEMPORARY_FROM: Final = 1 << 41
"""Those of temporary tables, which no log ever gives a number."""
COLUMNS_MAX: Final = 1_000
INDEXES_MAX: Final = 64
CHECKS_MAX: Final = 64
LOCKS_MAX: Final = 16
FOREIGN_KEYS_MAX: Final = 32


_BY_ID: Final = "\0"
"""No name holds it."""


class LockMove(NamedTuple):
    """A move of columns from the lock `source` to `target`; every write since the LSN `fence` that
    concerned them has set both, or `target` alone (Claim 8)."""

    target: int
    source: int
    fence: int


@dataclass(frozen=True)
class Descriptor:
    """Version `version` of table `table_id`. Immutable; elements in order of their ids.

    `modified_us` is the commit time that published it (the seed's ModificationTime), 0 before.
    `since_lsn` is the LSN of that commit, 0 where it is not known; it says where the version stands
    and not what it is, so equal versions may differ in it.
    `next_element_id` only grows, over all versions: element ids are never used again.
    `mirror`: the table that has the same rows under another primary key, version by version, while
    a job goes over from one to the other, 0 = none. `former`: the table that this one took rows and
    name from, 0 = none; its numbers go on from that one's. `replaces`: the table of which it took
    the name alone, or waits for it, with rows of its own; its numbers go on likewise.
    `sequence`: it is one, and no table, though it lies in the store as one.
    `ahead`: as a transaction sees it that has not committed, with what rows that are there have in
    columns that no store has, by element id.
    `key_name`: of the primary key where it is not the one that follows from the table's name, as
    after a rename of either.
    `key_included`: the columns that the primary key was said to INCLUDE, each by its position,
    which outlasts a change of its type. A row lies under its key with all of its columns, so this
    is only shown.
    `schema`: the one that it lies in, with which its name begins (`namespaces.py`), "" = public.
    """

    table_id: int
    name: str
    version: int
    columns: tuple[Column, ...]
    primary_key: tuple[int, ...]
    indexes: tuple[Index, ...] = ()
    next_element_id: int = 1
    modified_us: int = 0
    state: State = State.PUBLIC
    checks: tuple[Check, ...] = ()
    alias: str = ""
    row_locks: tuple[Lock, ...] = ()
    lock_moves: tuple[LockMove, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    mirror: int = 0
    former: int = 0
    replaces: int = 0
    sequence: Sequence | None = None
    key_name: str = ""
    key_included: tuple[int, ...] = ()
    schema: str = ""
    since_lsn: int = field(default=0, compare=False)
    ahead: Mapping[int, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def key_constraint(self) -> str:
        """The name of the primary key, and of its index."""
        return self.key_name or primary_key_name(self.name)

    @cached_property
    def locks(self) -> tuple[int, ...]:
        """The ids of all locks that a row has a genid of, the default one first."""
        return (DEFAULT_LOCK, *(lock.element_id for lock in self.row_locks))

    @cached_property
    def one_lock(self) -> bool:
        """Whether the default lock is the only one, for all columns."""
        return not self.row_locks and not self.moves_locks

    @cached_property
    def moves_locks(self) -> bool:
        """Whether a lock has taken columns over, or one is about to."""
        return bool(self.lock_moves) or any(len(c.locks) > 1 for c in self.columns)

    @cached_property
    def in_place(self) -> tuple[Column, ...]:
        """The columns, in the order in which people see them: one that took over from another,
        whose type was changed, stands where that one stood."""
        return tuple(sorted(self.columns, key=lambda column: (column.position, column.element_id)))

    @cached_property
    def by_name(self) -> dict[str, Column]:
        """The public columns by name, in their order: what a query or a writer at this version may
        name."""
        return {c.name: c for c in self.in_place if c.state in READABLE and not c.hidden}

    @cached_property
    def dated_columns(self) -> tuple[Column, ...]:
        """The columns of dates and timestamps, or of arrays of them, which may be infinite."""
        return tuple(
            c for c in self.columns if (element_of(c.type) or c.type).name in DATES_AND_TIMESTAMPS
        )

    @cached_property
    def by_alias(self) -> dict[str, Column]:
        """The public columns by the name they had before a rename that is not over yet."""
        return {c.alias: c for c in self.columns if c.alias and c.state in READABLE}

    @cached_property
    def enforced_checks(self) -> tuple[Check, ...]:
        return tuple(c for c in self.checks if c.state in WRITTEN)

    @cached_property
    def enforced_foreign_keys(self) -> tuple[ForeignKey, ...]:
        return tuple(k for k in self.foreign_keys if k.state in WRITTEN)

    @cached_property
    def enforced_uniques(self) -> tuple[Index, ...]:
        return tuple(i for i in self.indexes if i.refuses_duplicates and i.state in WRITTEN)

    @cached_property
    def named_indexes(self) -> tuple[Index, ...]:
        """The indexes that users know of."""
        return tuple(index for index in self.indexes if not index.implied)

    @cached_property
    def index_names(self) -> frozenset[str]:
        """The names of its indexes that others can't have, with that of its primary key's."""
        names = {name for index in self.named_indexes for name in (index.name, index.alias) if name}
        if not self.hidden_key and self.sequence is None:
            names.add(self.key_constraint)
        return frozenset(names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the table at this version; none when it is not public."""
        return _names(self.state, self.name, self.alias)

    @property
    def has_own_rows(self) -> bool:
        """Whether it is public, or only waits for its name. (One that is to take another's place
        under another primary key follows that one's rows.)"""
        return self.state is State.PUBLIC or (self.state is State.WRITE_ONLY and not self.mirror)

    @cached_property
    def by_id(self) -> dict[int, Column]:
        return {c.element_id: c for c in self.columns}

    @cached_property
    def public_ids(self) -> frozenset[int]:
        return frozenset(c.element_id for c in self.by_name.values())

    @property
    def provisional(self) -> bool:
        """Whether it is made by a transaction that has not committed, so that no store has it."""
        return self.table_id >= PROVISIONAL_FROM

    @property
    def temporary(self) -> bool:
        """Whether it is a session's own, which is never committed."""
        return self.table_id >= TEMPORARY_FROM

    @cached_property
    def hidden_key(self) -> bool:
        """Whether the table has no primary key, so that rows have one that nobody sees (T7)."""
        return any(c.hidden for c in self.key_columns)

    @cached_property
    def row_columns(self) -> tuple[Column, ...]:
        """The columns that a write has to know of a row: public ones, and the key, hidden or
        not."""
        return (*self.by_name.values(), *(c for c in self.key_columns if c.hidden))

    @cached_property
    def written(self) -> tuple[Column, ...]:
        """The columns whose pair an insert at this version writes."""
        return tuple(c for c in self.columns if c.state in WRITTEN)

    @cached_property
    def defaulted(self) -> tuple[Column, ...]:
        """The written columns that have a default and follow from no other."""
        return tuple(c for c in self.written if c.derived is None and c.has_default)

    @cached_property
    def numbered(self) -> tuple[Column, ...]:
        """The written columns that draw their default from a sequence."""
        return tuple(c for c in self.defaulted if c.draws_from)

    @cached_property
    def numbers_old_rows(self) -> bool:
        """Whether an update may find a row that has to draw a number: one from before a column
        that is being added. ⚠ Or, where a required one goes, one that was made under the next
        version."""
        hidden = (c for c in self.numbered if c.state is State.WRITE_ONLY)
        return any(not c.filled or not c.nullable for c in hidden)

    @cached_property
    def defaults_change(self) -> bool:
        """Whether there is a default that changes from call to call."""
        return any(c.default_expression for c in self.defaulted)

    @cached_property
    def has_derived(self) -> bool:
        return any(c.derived is not None for c in self.columns)

    @cached_property
    def missing(self) -> dict[int, Missing]:
        """The columns that images of older versions may lack, by element id."""
        return {c.element_id: c.missing for c in self.columns if c.missing is not None}

    @cached_property
    def at_once(self) -> tuple[Column, ...]:
        """The columns of which every row has the default although no writer can see them yet."""
        hidden = (c for c in self.columns if c.state is State.DELETE_ONLY)
        return tuple(c for c in hidden if c.missing is not None and c.missing.at_once)

    @cached_property
    def filled_apart(self) -> frozenset[int]:
        """The columns whose values each node puts at its own pace, while nobody can read them: so
        long, and where their job turns back, no two nodes have the same."""
        hidden = (c for c in self.columns if c.state not in READABLE)
        return frozenset(
            c.element_id for c in hidden if c.missing is not None and c.missing.computed is not None
        )

    @cached_property
    def generated(self) -> tuple[Column, ...]:
        """The generated columns whose pair is written, whether or not a writer can see them."""
        return tuple(c for c in self.written if c.generated)

    def changed_with(self, element_ids: Iterable[int]) -> set[int]:
        """Return these columns, and the generated ones that change when they do."""
        found = set(element_ids)
        for column in self.generated:
            assert column.derived is not None
            if not found.isdisjoint(column.derived.sources):
                found.add(column.element_id)
        return found

    @cached_property
    def key_columns(self) -> tuple[Column, ...]:
        return tuple(self.by_id[e] for e in self.primary_key)

    @cached_property
    def included_columns(self) -> tuple[Column, ...]:
        """The public columns that the primary key includes, in the order in which they were
        said."""
        there = {column.position: column for column in self.by_name.values()}
        return tuple(there[each] for each in self.key_included if each in there)

    def column(self, name: str) -> Column:
        """Return a public column. Raises UnknownColumn (an element that is not public does not
        exist)."""
        found = self.by_name.get(name) or self.by_alias.get(name)
        if found is None:
            raise UnknownColumn(
                f"column {name!r} does not exist in table {self.name!r} at version {self.version}",
                table=self.name,
                column=name,
            )
        return found

    def index(self, name: str) -> Index | None:
        """Return an index by its name or the one before a rename that is not over yet: the public
        one, where one statement drops it and adds another of its name. One that only goes with a
        foreign key has no name that anybody could mean."""
        found = [i for i in self.indexes if name in (i.name, i.alias) and not i.implied]
        return next((i for i in found if i.state in READABLE), found[0] if found else None)

    def read_name(self, index: Index) -> str:
        """Return how a transaction that has read by `index` names it (`ReadRange.by`): by its name,
        but by its id where another one has that name."""
        others = (other for other in self.indexes if other is not index)
        shared = any(index.name in (other.name, other.alias) for other in others)
        return f"{_BY_ID}{index.element_id}" if shared else index.name

    def read_index(self, name: str) -> Index | None:
        """Return the index that `read_name` names so, whether or not users know of it."""
        if name.startswith(_BY_ID):
            return next((i for i in self.indexes if f"{_BY_ID}{i.element_id}" == name), None)
        implied = (i for i in self.indexes if i.implied)
        return self.index(name) or next((i for i in implied if name in (i.name, i.alias)), None)

    def key_words(self, index: Index) -> tuple[str, ...]:
        """Return the parts of an index's key as a person would write them."""
        texts, names = iter(index.expressions), self.by_id
        return tuple(
            next(texts, "…") if column == EXPRESSION else names[column].name
            for column in index.columns
            if column == EXPRESSION or column in names
        )

    def lock(self, name: str) -> Lock | None:
        return next((k for k in self.row_locks if k.name == name and k.state in READABLE), None)

    def foreign_key(self, name: str) -> ForeignKey | None:
        return next((k for k in self.foreign_keys if k.name == name), None)

    def check(self, name: str) -> Check | None:
        return next((c for c in self.checks if c.name == name), None)

    @property
    def elements(self) -> tuple[Element, ...]:
        return (
            *self.columns,
            *self.indexes,
            *self.checks,
            *self.foreign_keys,
            *self.row_locks,
        )

    def element(self, element_id: int) -> Element | None:
        return next((e for e in self.elements if e.element_id == element_id), None)

    def showing(self, element_ids: Collection[int]) -> Descriptor:
        """Return this version as if these columns were public: for expressions that name them,
        while they are not public yet or no longer. One of the same name is not, then: the one has
        taken the other's place, or is about to."""
        names = {self.by_id[e].name for e in element_ids if e in self.by_id}

        def shown(column: Column) -> Column:
            if column.element_id in element_ids:
                return replace(column, state=State.PUBLIC)
            taken = column.name in names and column.state in READABLE
            return replace(column, state=State.WRITE_ONLY) if taken else column

        return replace(self, columns=tuple(map(shown, self.columns)))

    def to_wire(self) -> dict[str, Any]:
        """Return plain data for the log, version events and the store."""
        return DESCRIPTOR_FORM.to_wire(self)


def _names(state: State, name: str, alias: str) -> tuple[str, ...]:
    if state not in READABLE:
        return ()
    return (name, alias) if alias else (name,)


def names_in_wire(body: Mapping[str, Any]) -> tuple[str, ...]:
    """Return `names` of the Descriptor that `from_wire` would make."""
    return _names(state_of(body["state"]), body["name"], body.get("alias", ""))


def _elements(form: WireForm[Any]) -> tuple[Convert, Convert]:
    """Return what writes and what reads the elements of one kind."""
    return (
        lambda elements: [form.to_wire(element) for element in elements],
        lambda bodies: tuple([form.from_wire(body) for body in bodies]),
    )


DESCRIPTOR_FORM: Final = WireForm(
    Descriptor,
    required("table_id", "id"),
    required("name"),
    required("version"),
    required("state", "", state_label, state_of),
    required("modified_us"),
    required("next_element_id"),
    required("primary_key", "", *AS_LIST),
    required("columns", "", *_elements(COLUMN_FORM)),
    required("indexes", "", *_elements(INDEX_FORM)),
    Field("checks", "", *_elements(CHECK_FORM)),
    Field("alias"),
    Field("row_locks", "locks", *_elements(LOCK_FORM)),
    Field(
        "lock_moves",
        "",
        lambda moves: [list(move) for move in moves],
        lambda moves: tuple([LockMove(*move) for move in moves]),
    ),
    Field("foreign_keys", "", *_elements(FOREIGN_KEY_FORM)),
    sparse("mirror", "twin"),
    sparse("former"),
    sparse("replaces"),
    sparse("key_name"),
    sparse("key_included", "", *AS_LIST),
    sparse("schema"),
    sparse("sequence", "", sequence_to_wire, sequence_from_wire),
    sparse("since_lsn"),
)
from_wire: Final = DESCRIPTOR_FORM.from_wire


def read_descriptor(body: Any) -> Descriptor:
    """Return what `from_wire` makes of a body that came from outside. Raises MalformedRequest, and
    nothing else, for what is no descriptor."""
    try:
        return from_wire(body)
    except Exception as error:  # whatever it is: nobody can read this body
        words = f"a table's description can't be read ({type(error).__name__}: {str(error)[:200]})"
        raise MalformedRequest(words) from error
