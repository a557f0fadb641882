"""Versions by what matters of them to operations: all but their number in the job's sequence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.states import READABLE, State
from leasehold.model.records.log import DescriptorWrite


@dataclass(frozen=True, eq=False)
class Version:
    """`descriptor` under a number of its own; made by `version_of`, so equal ones are the same."""

    descriptor: Descriptor

    @cached_property
    def catalog(self) -> Catalog:
        """One that knows this version alone."""
        catalog = Catalog()
        body = self.descriptor.to_wire()
        catalog.apply(DescriptorWrite(1, self.descriptor.version, body), 0, 0)
        return catalog

    @cached_property
    def looks_at_others(self) -> bool:
        """May a write of one row be refused because of another one?"""
        return bool(self.descriptor.enforced_uniques or self.descriptor.enforced_foreign_keys)

    @cached_property
    def relates_rows(self) -> bool:
        """Does it rely on no two rows being equal somewhere, or on one being there for another?"""
        unique = any(i.unique and i.state in READABLE for i in self.descriptor.indexes)
        return unique or any(f.state in READABLE for f in self.descriptor.foreign_keys)

    @cached_property
    def public(self) -> tuple[Column, ...]:
        """Columns that may be named, outside the primary key; none where the table may not be."""
        readable = self.descriptor.state in READABLE
        named = self.descriptor.by_name.values() if readable else ()
        return tuple(c for c in named if c.element_id not in self.descriptor.primary_key)

    @cached_property
    def by_name(self) -> dict[str, int]:
        """Element ids of `public`."""
        return {column.name: column.element_id for column in self.public}

    @cached_property
    def words(self) -> str:
        """What is not plainly public in it."""
        table = self.descriptor
        said = [] if table.state is State.PUBLIC else [f"table {table.state.label}"]
        said += [f"table {table.name} alias {table.alias}"] if table.alias else []
        for element in table.elements:
            words = [] if element.state is State.PUBLIC else [element.state.label]
            for flag in ("not_null_enforced", "filled", "unique_enforced"):
                words += [flag.replace("_", " ")] if getattr(element, flag, False) else []
            alias = getattr(element, "alias", "")
            words += [f"alias {alias}"] if alias else []
            kind, narrow = (getattr(element, name, None) for name in ("type", "narrow"))
            words += [f"{kind}, {narrow} is written"] if narrow else []
            said += [f"{element.name} {', '.join(words)}"] if words else []
        names = ", ".join(element.name for element in table.elements)
        return "; ".join(said) or f"all public: {names}"


_KNOWN: Final[dict[Descriptor, Version]] = {}


def content(descriptor: Descriptor) -> Descriptor:
    return replace(descriptor, version=0, modified_us=0, next_element_id=0)


def version_of(descriptor: Descriptor) -> Version:
    """The Version of a descriptor's content; each has its own number, so that no cache that goes
    by numbers takes one for another."""
    key = content(descriptor)
    if key not in _KNOWN:
        _KNOWN[key] = Version(replace(key, version=1_000 + len(_KNOWN)))
    return _KNOWN[key]
