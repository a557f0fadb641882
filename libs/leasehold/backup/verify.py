"""Verifies backups: every object is read and held to its digest, each store is brought back into a
temporary file and checked table by table, and the log behind it applied."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from leasehold.adapters.objects.pace import Pace
from leasehold.backup.chain import NEWEST, Plan, chain_of
from leasehold.backup.manifest import Kind, Manifest
from leasehold.backup.rebuild import rebuild_store
from leasehold.backup.repository import Repository
from leasehold.backup.told import NOBODY, Told
from leasehold.model.errors import BackupDamaged


class Verdict(NamedTuple):
    """What was found of one backup; `trouble` "" = it can be restored. `tables`: how many were
    compared by checksum at the LSN it ends at."""

    manifest: Manifest
    trouble: str
    tables: int = 0


def verify_backups(
    repository: Repository,
    manifests: Sequence[Manifest],
    *,
    wanted: Sequence[Manifest] = (),
    work: Path | None = None,
    pace: Pace | None = None,
    told: Told = NOBODY,
) -> list[Verdict]:
    """Verify `wanted` with all that they rest on (none: all); `manifests` are those that lie
    there. Raises ConfigurationError for a key that is missing or wrong, BackupUnavailable."""
    by_id = {manifest.id: manifest for manifest in manifests}
    found: dict[str, Verdict] = {}
    chosen = wanted or manifests
    # The longest chains first: what lies within one of them is verified with it.
    for manifest in sorted(chosen, key=lambda each: each.end.offset, reverse=True):
        if manifest.id not in found:
            _verify(repository, manifest, by_id, found, work, pace or Pace(), told)
    return [found[manifest.id] for manifest in manifests if manifest.id in found]


def _verify(
    repository: Repository,
    manifest: Manifest,
    by_id: dict[str, Manifest],
    found: dict[str, Verdict],
    work: Path | None,
    pace: Pace,
    told: Told,
) -> None:
    try:
        chain = chain_of(manifest, by_id)
    except BackupDamaged as error:
        found[manifest.id] = Verdict(manifest, error.message)
        return
    for each in chain:
        trouble = _trouble_of_objects(repository, each, told) if each.id not in found else ""
        if trouble:
            found[each.id] = Verdict(each, trouble)
    broken = next((each for each in chain if each.id in found and found[each.id].trouble), None)
    if broken is not None:
        for each in chain[chain.index(broken) :]:
            words = f"it rests on {broken.id}, which is damaged"
            found.setdefault(each.id, Verdict(each, words))
        whole = chain[: chain.index(broken)]
        if whole and whole[-1].id not in found:
            _verify(repository, whole[-1], by_id, found, work, pace, told)
        return
    with tempfile.TemporaryDirectory(prefix="leasehold-verify-", dir=work) as folder:
        plan = Plan(chain[0], chain[1:], NEWEST)
        try:
            rebuilt = rebuild_store(
                repository, plan, Path(folder) / "store.db", pace=pace, told=told
            )
        except BackupDamaged as error:
            found[manifest.id] = Verdict(manifest, error.message)
            whole = chain[:-1]
            if whole and whole[-1].id not in found:
                _verify(repository, whole[-1], by_id, found, work, pace, told)
            return
    for each in chain:
        found.setdefault(each.id, Verdict(each, "", len(rebuilt.tables)))


def _trouble_of_objects(repository: Repository, manifest: Manifest, told: Told) -> str:
    """Read every object of a backup; return what is wrong with it, "" = nothing."""
    key = repository.key_of(manifest)
    try:
        repository.private(manifest)
        if manifest.kind is Kind.LOG:
            told.begin(f"reading {manifest.id}", manifest.size_bytes)
        for each in manifest.objects if manifest.kind is Kind.LOG else ():
            repository.read(manifest, each, key)
            told.add(each.size_bytes)
    except BackupDamaged as error:
        return error.message
    return ""
