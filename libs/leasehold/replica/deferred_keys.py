"""The foreign keys that a transaction leaves to its COMMIT (SET CONSTRAINTS)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from leasehold.catalog.elements import ForeignKey


@dataclass(frozen=True, slots=True)
class DeferredKeys:
    """The keys that are left to COMMIT. `every`: all (`leasehold.foreign_keys`), else those that
    were made DEFERRABLE INITIALLY DEFERRED; `immediate`: none of either, since SET CONSTRAINTS ALL
    IMMEDIATE. `named`: what was said since of some, by name."""

    every: bool = False
    immediate: bool = False
    named: Mapping[str, bool] = field(default_factory=dict)

    def has(self, key: ForeignKey) -> bool:
        """Return whether a foreign key is looked at when the transaction commits."""
        said = self.named.get(key.name)
        if said is not None:
            return said
        return not self.immediate and (self.every or key.deferred)

    def with_said(self, names: Collection[str], *, deferred: bool) -> DeferredKeys:
        """Return what SET CONSTRAINTS of these (none: ALL) makes of it."""
        if not names:
            return DeferredKeys(self.every, not deferred)
        named = {**self.named, **dict.fromkeys(names, deferred)}
        return DeferredKeys(self.every, self.immediate, named)


AS_DEFINED: Final = DeferredKeys()
ALL_DEFERRED: Final = DeferredKeys(every=True)
