"""The foreign keys and UNIQUE constraints that a transaction leaves to its COMMIT (SET
CONSTRAINTS)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from leasehold.catalog.elements import ForeignKey, Index


@dataclass(frozen=True, slots=True)
class DeferredKeys:
    """The keys that are left to COMMIT. `every`: all foreign keys (`leasehold.foreign_keys`), else
    what was made DEFERRABLE INITIALLY DEFERRED; `immediate`: none of either, since SET CONSTRAINTS
    ALL IMMEDIATE. `named`: what was said since of some, by name. `deferrable`: all that was made
    DEFERRABLE, since SET CONSTRAINTS ALL DEFERRED."""

    every: bool = False
    immediate: bool = False
    named: Mapping[str, bool] = field(default_factory=dict)
    deferrable: bool = False

    def has(self, key: ForeignKey) -> bool:
        """Return whether a foreign key is looked at when the transaction commits."""
        if self.every:
            return self.named.get(key.name, not self.immediate)
        return self._has(key.name, key.deferral)

    def has_unique(self, index: Index) -> bool:
        """Return whether a UNIQUE constraint is looked at when the transaction commits."""
        return self._has(index.name, index.deferrable)

    def may_defer(self, key: ForeignKey) -> bool:
        """Return whether SET CONSTRAINTS may name a foreign key to be deferred."""
        return self.every or bool(key.deferral)

    def _has(self, name: str, initially: str) -> bool:
        if not initially:
            return False
        said = self.named.get(name)
        if said is not None:
            return said
        return not self.immediate and (self.deferrable or initially == "deferred")

    def with_said(self, names: Collection[str], *, deferred: bool) -> DeferredKeys:
        """Return what SET CONSTRAINTS of these (none: ALL) makes of it."""
        if not names:
            return DeferredKeys(self.every, not deferred, deferrable=deferred)
        named = {**self.named, **dict.fromkeys(names, deferred)}
        return replace(self, named=named)


AS_DEFINED: Final = DeferredKeys()
ALL_DEFERRED: Final = DeferredKeys(every=True)
