"""The labels of an enum type: what a value is stored as, and how labels are added and renamed.

A value is stored as the *place* of its label, a whole number: so rows, keys and entries of indexes
are in the order of the labels, and equal values are equal numbers. A label's place is given once
and for ever. Labels are made far apart, and one that comes between two others gets the middle, so
no row has to be touched for it; a new name for a label touches none either.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from leasehold.model.errors import (
    DuplicateType,
    InternalFailure,
    InvalidArgument,
    InvalidName,
    InvalidText,
    OutOfRange,
    WrongType,
)

STEP: Final = 1 << 24
"""Between two labels that are made side by side: as many times as it can be halved a label fits
between the last one and the one beside it. 255 labels fit into 32 bits, which travel as five
bytes."""
LABELS_MAX: Final = 1_000
LABEL_BYTES_MAX: Final = 63
"""PostgreSQL's."""
ALL_LABELS_BYTES_MAX: Final = 16 * 1024
"""Of one type: its labels stand in every version of every table that has a column of it."""
_PLAIN_TYPE_NAME: Final = re.compile(r"[a-z_][a-z0-9_$]*")
KEPT: Final = "enum#"
"""Before the number of a type in the text of an expression that is kept: its name may change."""


class Label(NamedTuple):
    """A label: its text, and the number that stands for it in every value."""

    text: str
    place: int


@dataclass(frozen=True, slots=True)
class Enumeration:
    """An enum type as it was at some moment: `labels` in the order of their places. `type_id` is
    the same for ever; 0: a type that a text names, and nobody has looked up yet, which takes any
    label. `schema`: in which it lies, "" = public; its name begins with that."""

    type_id: int
    name: str
    labels: tuple[Label, ...] = ()
    schema: str = ""
    _places: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)
    _texts: dict[int, str] = field(init=False, repr=False, compare=False, hash=False)
    _hash: int = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_places", {label.text: label.place for label in self.labels})
        object.__setattr__(self, "_texts", {label.place: label.text for label in self.labels})
        object.__setattr__(self, "_hash", hash((self.type_id, self.name, self.labels)))

    def __hash__(self) -> int:
        return self._hash

    @property
    def places(self) -> tuple[int, ...]:
        """The places of all labels, in their order."""
        return tuple([label.place for label in self.labels])

    @property
    def bare_name(self) -> str:
        """Return its name without its schema."""
        return self.name.removeprefix(f"{self.schema}.") if self.schema else self.name

    @property
    def quoted(self) -> str:
        """Return how a text names it."""
        before = f"{quoted_name(self.schema)}." if self.schema else ""
        return before + quoted_name(self.bare_name)

    def has_label(self, text: str) -> bool:
        return text in self._places

    def place_of(self, text: str) -> int:
        """Return what is stored for a label. Raises InvalidText (22P02) in PostgreSQL's words."""
        place = self._places.get(text)
        if place is None:
            if not self.type_id:
                return 0
            raise InvalidText(f'invalid input value for enum {self.quoted}: "{text:.80}"')
        return place

    def text_of(self, place: Any) -> str:
        """Return the label of a stored value. Raises InternalFailure for one that there is not: a
        version that may be in use knows every label that is written."""
        text = self._texts.get(place)
        if text is None and not self.type_id:
            return ""
        if text is None:
            raise InternalFailure(f"enum {self.name} has no label at {place!r:.40}")
        return text

    def fitting(self, value: Any) -> int:
        """Return a stored value of this type under another version of it. Raises InvalidText
        (22P02) for a label that this version has not."""
        if type(value) is not int or value not in self._texts:
            raise InvalidText(
                f"a new label of enum {self.quoted} can't be written yet: the type"
                " change of this column has not ended"
            )
        return value

    def holds_all_of(self, other: Enumeration) -> bool:
        """Say whether it is the same type, and has every label of the other version, so named."""
        return self.type_id == other.type_id and set(other.labels) <= set(self.labels)

    @property
    def kept_name(self) -> str:
        """The name by which texts that are kept know it."""
        return f"{KEPT}{self.type_id}"

    def to_wire(self) -> dict[str, Any]:
        labels = [[label.text, label.place] for label in self.labels]
        schema = {"schema": self.schema} if self.schema else {}
        return {"type_id": self.type_id, "name": self.name, "labels": labels, **schema}

    @classmethod
    def from_wire(cls, body: Mapping[str, Any]) -> Enumeration:
        """Raises KeyError and the like for what is no body of one."""
        labels = tuple(Label(str(text), int(place)) for text, place in body["labels"])
        return cls(body["type_id"], body["name"], labels, body.get("schema", ""))


def unresolved(name: str) -> Enumeration:
    """Return what stands for a type that nobody has looked up."""
    return Enumeration(0, name)


def quoted_name(name: str) -> str:
    """Return a type's name as PostgreSQL writes it."""
    if _PLAIN_TYPE_NAME.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def make_labels(texts: Sequence[str]) -> tuple[Label, ...]:
    """Return the labels of a new type, in the order in which they are given. Raises
    DuplicateType (42710), InvalidName, OutOfRange."""
    made: list[Label] = []
    for number, text in enumerate(texts, 1):
        check_label(text)
        if any(text == label.text for label in made):
            raise DuplicateType(f'enum label "{text}" used more than once')
        made.append(Label(text, number * STEP))
    _check_size(made)
    return tuple(made)


def check_label(text: str) -> None:
    """Raises InvalidName (42602) for a label that is too long."""
    if len(text.encode()) > LABEL_BYTES_MAX:
        raise InvalidName(
            f'invalid enum label "{text:.80}"',
            detail=f"Labels must be {LABEL_BYTES_MAX} bytes or less.",
        )


def add_label(
    enumeration: Enumeration, text: str, beside: str = "", *, before: bool = False
) -> Enumeration:
    """Return a type with one more label: behind or before the one it is to stand `beside`, "" = at
    the end. Raises DuplicateType (42710), InvalidArgument (22023) for a neighbour that there is
    not, OutOfRange where there are too many, or no number is left between its neighbours."""
    labels = enumeration.labels
    check_label(text)
    if enumeration.has_label(text):
        raise DuplicateType(f'enum label "{text}" already exists')
    position = len(labels)
    if beside:
        found = [n for n, label in enumerate(labels) if label.text == beside]
        if not found:
            raise InvalidArgument(f'"{beside}" is not an existing enum label')
        position = found[0] + (not before)
    place = _place_between(
        labels[position - 1].place if position else None,
        labels[position].place if position < len(labels) else None,
    )
    if place is None:
        raise OutOfRange(
            f"no number is left between labels {labels[position - 1].text!r} and"
            f" {labels[position].text!r} of enum {enumeration.quoted}: put it elsewhere, or make"
            " another type and change the columns to it"
        )
    made = (*labels[:position], Label(text, place), *labels[position:])
    _check_size(made)
    return replace(enumeration, labels=made)


def _place_between(low: int | None, high: int | None) -> int | None:
    if low is None:
        return STEP if high is None else high - STEP
    if high is None:
        return low + STEP
    middle = (low + high) // 2
    return middle if low < middle < high else None


def rename_label(enumeration: Enumeration, text: str, to: str) -> Enumeration:
    """Return a type of which one label is called otherwise. Raises InvalidArgument (22023),
    DuplicateType (42710), InvalidName."""
    check_label(to)
    if not enumeration.has_label(text):
        raise InvalidArgument(f'"{text}" is not an existing enum label')
    if enumeration.has_label(to):
        raise DuplicateType(f'enum label "{to}" already exists')
    renamed = tuple(
        label._replace(text=to) if label.text == text else label for label in enumeration.labels
    )
    _check_size(renamed)
    return replace(enumeration, labels=renamed)


def _check_size(labels: Sequence[Label]) -> None:
    total = sum(len(label.text.encode()) for label in labels)
    if len(labels) > LABELS_MAX or total > ALL_LABELS_BYTES_MAX:
        raise OutOfRange(
            f"an enum type has at most {LABELS_MAX} labels, of {ALL_LABELS_BYTES_MAX} bytes in all"
        )


def to_place(enumeration: Enumeration, value: Any) -> int:
    """Return what is stored for a label that a program gives. Raises InvalidText, WrongType."""
    if not isinstance(value, str):
        raise WrongType(f"a {type(value).__name__} can't be stored as {enumeration.quoted}")
    return enumeration.place_of(value)
