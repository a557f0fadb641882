"""The wire form of an immutable object: plain data for the log, version events and stores.

Each field is described once, in the order in which it is written, and serves both ways. What is
absent from a body (an older release wrote it) is what the object's class has for a default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")
Convert = Callable[[Any], Any]


class Field(NamedTuple):
    """A field of an object, and its `name` in the body ("": the same), where older releases may
    not have written it.

    `required`: a body without it is unreadable (KeyError). `sparse`: left out of the body where it
    is the default, so that older releases read what says nothing new. `spread`: a part that has
    several names in the body; `from_wire` is given the whole body.
    """

    attribute: str
    name: str = ""
    to_wire: Convert | None = None
    from_wire: Convert | None = None
    required: bool = False
    sparse: bool = False
    spread: bool = False


required: Final = partial(Field, required=True)
sparse: Final = partial(Field, sparse=True)
AS_LIST: Final[tuple[Convert, Convert]] = (list, tuple)
"""How a tuple of plain values is written and read."""


def unless_none(convert: Convert) -> Convert:
    """Return `convert` for what is there; None, and an empty part, is None."""
    return lambda value: convert(value) if value else None


class WireForm(Generic[T]):
    """The fields of a class `made`, in wire order."""

    def __init__(self, made: type[T], *wire_fields: Field) -> None:
        self._made = made
        self._fields = [field._replace(name=field.name or field.attribute) for field in wire_fields]
        self._parts = attrgetter(*(field.attribute for field in wire_fields))
        known: Any = fields(made)  # type: ignore[arg-type]
        self._defaults = {field.name: field.default for field in known}

    def to_wire(self, value: T) -> dict[str, Any]:
        """Return the object's body."""
        body: dict[str, Any] = {}
        for field, part in zip(self._fields, self._parts(value), strict=True):
            attribute, name, convert, _, _, sparse, spread = field
            if sparse and part == self._defaults[attribute]:
                continue
            written = part if convert is None else convert(part)
            if spread:
                body |= written
            else:
                body[name] = written
        return body

    def from_wire(self, body: Mapping[str, Any]) -> T:
        """Return the object of a body; names that it does not know are passed over (newer
        writers): whoever keeps what was read reads it by `newer_release.as_written`.

        Raises KeyError for a body that lacks what every one has, and what conversions raise."""
        said: dict[str, Any] = {}
        for attribute, name, _, convert, required, _, spread in self._fields:
            if required or spread or name in body:
                part = body if spread else body[name]
                said[attribute] = part if convert is None else convert(part)
        return self._made(**said)
