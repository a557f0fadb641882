"""Plans over the manifests of a place: which backups a restore needs, which one an increment
goes on from, which ones retention removes. PURE.

A full backup and the increments behind it are a chain: each increment goes on exactly where its
parent ends. A restore to LSN X takes the full backup nearest below X whose chain reaches X.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from leasehold.backup.manifest import Kind, Manifest
from leasehold.model.errors import BackupDamaged, ConfigurationError


class Target(NamedTuple):
    """Up to where is restored: an LSN, or a time of the log (unix µs); neither: to the end."""

    lsn: int | None = None
    time_us: int | None = None

    @property
    def words(self) -> str:
        if self.lsn is not None:
            return f"LSN {self.lsn}"
        return "that time" if self.time_us is not None else "its end"

    def lies_behind(self, lsn: int, time_us: int) -> bool:
        """Return whether a place with that LSN and time of the log lies before the target, or is
        it."""
        if self.lsn is not None:
            return lsn <= self.lsn
        return self.time_us is None or time_us <= self.time_us

    def is_reached(self, lsn: int, time_us: int) -> bool:
        """Return whether nothing behind such a place belongs to what is restored."""
        if self.lsn is not None:
            return lsn >= self.lsn
        return self.time_us is not None and time_us >= self.time_us


NEWEST = Target()


class Plan(NamedTuple):
    """A full backup, and the increments to apply to it in their order, up to `target`."""

    full: Manifest
    increments: tuple[Manifest, ...]
    target: Target

    @property
    def last(self) -> Manifest:
        return (self.full, *self.increments)[-1]


def chain_of(manifest: Manifest, by_id: Mapping[str, Manifest]) -> tuple[Manifest, ...]:
    """Return a backup with those it rests on, the full one first. Raises BackupDamaged where one is
    missing, or does not end where the next begins."""
    chain = [manifest]
    while chain[0].kind is Kind.LOG:
        child = chain[0]
        parent = by_id.get(child.parent)
        if parent is None:
            raise BackupDamaged(
                f"backup {child.id} goes on from {child.parent}, which is not there or not whole:"
                " neither can be used",
                backup=child.id,
            )
        if parent.end != child.begin or len(chain) > len(by_id):
            raise BackupDamaged(
                f"backup {child.id} does not begin where {parent.id} ends", backup=child.id
            )
        chain.insert(0, parent)
    return tuple(chain)


def usable_chains(manifests: Iterable[Manifest]) -> list[tuple[Manifest, ...]]:
    """Return the chain of each backup that has a whole one, oldest backup first."""
    by_id = {manifest.id: manifest for manifest in manifests}
    chains = []
    for manifest in sorted(by_id.values(), key=_age):
        try:
            chains.append(chain_of(manifest, by_id))
        except BackupDamaged:
            continue
    return chains


def newest(manifests: Iterable[Manifest]) -> Manifest | None:
    """Return the newest backup with a whole chain: where an increment goes on. None: there is
    none."""
    chains = usable_chains(manifests)
    return chains[-1][-1] if chains else None


def plan_restore(
    manifests: Sequence[Manifest], target: Target = NEWEST, backup: str | None = None
) -> Plan:
    """Return what to restore for a target; with `backup` only by that one and those it rests on.
    Raises ConfigurationError for what no backup reaches, or a backup that is not there."""
    chains = usable_chains(manifests)
    if backup is not None:
        chains = [chain for chain in chains if chain[-1].id == backup]
        if not chains:
            raise ConfigurationError(f"there is no whole backup {backup!r}: see the list")
    if not chains:
        raise ConfigurationError("there is no whole backup")
    fitting = [chain for chain in chains if _fits(chain, target)]
    if not fitting:
        raise ConfigurationError(f"no backup reaches {target.words}: {_reach_words(chains)}")
    if target == NEWEST:
        chain = fitting[-1]
    else:
        # The nearest full backup below, the newest of several; then as few increments as will do.
        chain = max(fitting, key=lambda c: (c[0].end.lsn, _age(c[0]), -len(c)))
    return Plan(chain[0], chain[1:], target)


def _fits(chain: Sequence[Manifest], target: Target) -> bool:
    full, last = chain[0], chain[-1]
    if not target.lies_behind(full.end.lsn, full.end.time_us):
        return False
    return target == NEWEST or target.is_reached(last.end.lsn, last.end.time_us)


def _reach_words(chains: Sequence[Sequence[Manifest]]) -> str:
    reach: dict[str, tuple[int, int]] = {}
    for chain in chains:
        first = chain[0].end.lsn
        reach[chain[0].id] = first, max(chain[-1].end.lsn, reach.get(chain[0].id, (0, 0))[1])
    spans = (
        f"LSN {low}" if low == high else f"LSN {low} to {high}" for low, high in reach.values()
    )
    return f"there is {', '.join(spans)}"


def to_remove(manifests: Iterable[Manifest], keep: int) -> list[Manifest]:
    """Return what goes if the newest `keep` full backups stay, with all that rests on them:
    increments before what they rest on, so that what is left at any moment is whole."""
    assert keep >= 1, keep
    there = sorted(manifests, key=_age)
    fulls = [manifest.id for manifest in there if manifest.kind is Kind.FULL]
    kept = frozenset(fulls[-keep:])
    return [manifest for manifest in reversed(there) if manifest.root not in kept]


def _age(manifest: Manifest) -> tuple[int, str]:
    """Return the key by which backups are sorted, oldest first. An increment is made after what it
    goes on from, whatever clocks did (`made_after`)."""
    return manifest.made_us, manifest.id


def made_after(parent: Manifest | None, now_us: int) -> int:
    """Return the time that a backup made now is said to be of: behind that of its parent."""
    return now_us if parent is None else max(now_us, parent.made_us + 1)
