"""An edit: one element of a table before and after a step. A step is edits made in one version.

Both sides are kept, so that turning a job back needs no look at old versions: the reverse of a
step is its edits with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Final, NamedTuple, TypeAlias

from leasehold.catalog.descriptor import Descriptor, LockMove, from_wire
from leasehold.catalog.element_forms import (
    CHECK_FORM,
    COLUMN_FORM,
    FOREIGN_KEY_FORM,
    INDEX_FORM,
    LOCK_FORM,
    state_of,
)
from leasehold.catalog.elements import THIS_VERSION, Check, Column, Element, ForeignKey, Index, Lock
from leasehold.catalog.sequence import sequence_from_wire, sequence_to_wire
from leasehold.catalog.states import State
from leasehold.catalog.wire_form import WireForm

FENCE_BEFORE: Final = -1
"""In a lock move: the LSN of the fence before the version that has the move."""

Body: TypeAlias = Mapping[str, Any]


class Kind(StrEnum):
    TABLE = "table"
    COLUMN = "column"
    INDEX = "index"
    CHECK = "check"
    LOCK = "lock"
    FOREIGN_KEY = "foreign key"


class Edit(NamedTuple):
    """The wire forms of one element before and after; None: it is not there. The table itself has
    element id 0.

    `table_id`: whose element, 0 = of the job's own table. A table that the job makes has its whole
    descriptor for `after`.
    """

    kind: Kind
    element_id: int
    before: Body | None
    after: Body | None
    table_id: int = 0

    @property
    def reversed(self) -> Edit:
        return self._replace(before=self.after, after=self.before)

    @property
    def name(self) -> str:
        body = self.after or self.before
        assert body is not None
        return str(body["name"])

    @property
    def state(self) -> str:
        """The label of the state that the element is in afterwards."""
        return "absent" if self.after is None else str(self.after["state"])

    def to_wire(self) -> list[Any]:
        other = (self.table_id,) if self.table_id else ()
        return [self.kind.value, self.element_id, self.before, self.after, *other]


def edit_from_wire(body: Any) -> Edit:
    kind, element_id, before, after, *other = body
    return Edit(Kind(kind), element_id, before, after, *other)


# ------------------------------------------------------------------ bodies


class _ElementKind(NamedTuple):
    """The class of a kind of element, the field of a descriptor that has it, and its wire form."""

    element: type
    field: str
    form: WireForm[Any]


_ELEMENTS: Final[Mapping[Kind, _ElementKind]] = {
    Kind.COLUMN: _ElementKind(Column, "columns", COLUMN_FORM),
    Kind.INDEX: _ElementKind(Index, "indexes", INDEX_FORM),
    Kind.CHECK: _ElementKind(Check, "checks", CHECK_FORM),
    Kind.LOCK: _ElementKind(Lock, "row_locks", LOCK_FORM),
    Kind.FOREIGN_KEY: _ElementKind(ForeignKey, "foreign_keys", FOREIGN_KEY_FORM),
}
"""What is to be known here of a kind; the table itself is not an element of it."""
_KINDS: Final[Mapping[type, Kind]] = {known.element: kind for kind, known in _ELEMENTS.items()}


def find_kind(element: Element) -> Kind:
    return _KINDS[type(element)]


def make_body(element: Element | Descriptor) -> Body:
    if not isinstance(element, Descriptor):
        return _ELEMENTS[find_kind(element)].form.to_wire(element)
    return {
        "name": element.name,
        "alias": element.alias,
        "state": element.state.label,
        "lock_moves": [list(move) for move in element.lock_moves],
        "twin": element.mirror,
        "key_name": element.key_name,
        **({"key_included": [*element.key_included]} if element.key_included else {}),
        **({} if element.sequence is None else {"sequence": sequence_to_wire(element.sequence)}),
        **({"schema": element.schema} if element.schema else {}),
    }


# ------------------------------------------------------------------ applying


def apply_edits(descriptor: Descriptor, edits: tuple[Edit, ...], fence: int = 0) -> Descriptor:
    """Return the next version: `descriptor` with `edits` made; no edits, an unchanged next version.
    `fence` is the LSN of the fence before it, for lock moves that say FENCE_BEFORE.

    Element ids are raised for good, whatever becomes of the element. One changer per table (D9) is
    why each edit's `before` must be what stands there.
    """
    made = replace(descriptor, version=descriptor.version + 1, modified_us=0, since_lsn=0)
    for edit in edits:
        made = _table(made, edit, fence) if edit.kind is Kind.TABLE else _one(made, edit)
    return made


def _table(descriptor: Descriptor, edit: Edit, fence: int) -> Descriptor:
    before, current = _fenced(edit.before, descriptor, fence), make_body(descriptor)
    assert {name: before[name] for name in current} == current, f"D9: {edit}"
    if edit.after is None:
        # One that the job made: absent again, since it is not forgotten at once.
        return replace(descriptor, state=State.ABSENT, mirror=0)
    after = _fenced(edit.after, descriptor, fence)
    return replace(
        descriptor,
        name=after["name"],
        alias=after["alias"],
        state=state_of(after["state"]),
        lock_moves=tuple(LockMove(*move) for move in after["lock_moves"]),
        mirror=after["twin"],
        key_name=after["key_name"],
        key_included=tuple(after.get("key_included", ())),
        schema=after.get("schema", ""),
        sequence=sequence_from_wire(after.get("sequence")),
    )


def create_from_edits(edits: tuple[Edit, ...], version: int) -> Descriptor:
    """Return the first version of a table that a job makes: one edit that holds all of it."""
    (edit,) = edits
    assert (edit.kind, edit.before) == (Kind.TABLE, None), edit
    assert edit.after is not None, edit
    return replace(from_wire(dict(edit.after)), version=version)


def _fenced(body: Body | None, descriptor: Descriptor, fence: int) -> Body:
    """Fill in the fences of lock moves that were not known when the job was planned."""
    assert body is not None
    # One of an older writer has none of them.
    body = {"twin": 0, "key_name": descriptor.key_name, **body}
    if descriptor.sequence is not None:
        body["sequence"] = list(body.get("sequence") or sequence_to_wire(descriptor.sequence))
    if body.get("key_included"):
        body["key_included"] = list(body["key_included"])
    moves = [list(move) for move in body["lock_moves"]]
    for number, move in enumerate(moves):
        if move[2] == FENCE_BEFORE:
            known = descriptor.lock_moves[number : number + 1]
            move[2] = known[0].fence if known else fence
    return {**body, "lock_moves": moves}


def _one(descriptor: Descriptor, edit: Edit) -> Descriptor:
    current = descriptor.element(edit.element_id)
    # As elements, since a body that has travelled has tuples for lists.
    _, field, form = _ELEMENTS[edit.kind]
    before = None if edit.before is None else _numbered(form.from_wire(edit.before), descriptor)
    assert current == before, f"D9: {current} stands where {before} was expected"
    after = None if edit.after is None else _numbered(form.from_wire(edit.after), descriptor)
    present = getattr(descriptor, field)
    elements = tuple(e for e in present if e.element_id != edit.element_id)
    if after is not None:
        elements = tuple(sorted((*elements, after), key=lambda e: e.element_id))
    changes: dict[str, Any] = {
        field: elements,
        "next_element_id": max(descriptor.next_element_id, edit.element_id + 1),
    }
    return replace(descriptor, **changes)


def _numbered(element: Element, descriptor: Descriptor) -> Element:
    """Fill in the version that was not known when the job was planned: that in which the column
    became one to be filled, which is this one if it is not there already."""
    if not isinstance(element, Column) or element.missing is None:
        return element
    if element.missing.below != THIS_VERSION:
        return element
    current = descriptor.by_id.get(element.element_id)
    known = current.missing if current is not None else None
    below = descriptor.version if known is None else known.below
    return replace(element, missing=element.missing._replace(below=below))
