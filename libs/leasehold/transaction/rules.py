"""⚠ Rules of verification for models to switch off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from leasehold.transaction.read_set import ReadRules


@dataclass(frozen=True, slots=True)
class VerifyRules(ReadRules):
    master_composes: bool = True  # T0: after-images come from the master's own row
    min_version_fences: bool = True  # D5
    genids_are_verified: bool = True  # T1
    pinned_is_checked: bool = True  # D3: a statement reads rows two versions ahead of its own
    fill_leaves_genids: bool = True  # ⚠ chunks: a schema change gives writers verify errors
    twin_follows: bool = True  # a write goes to both tables while a primary key changes
    uncommittable_is_recognised: bool = True  # T2: what can never commit is replayed for ever
    arbiters_are_verified: bool = True  # ⚠ T1: what ON CONFLICT has not found is not there now
    uncomputable_runs_again: bool = True  # ⚠ T2: what was told to be computed is found out
    setting_begins_an_epoch: bool = True  # ⚠ blocks from before a RESTART are nobody's any more
    altering_begins_an_epoch: bool = True  # ⚠ nor those of before another INCREMENT
    given_back_in_its_lap: bool = True  # ⚠ a lap later a sequence stands where it stood
    actions_when_enforced: bool = True  # a foreign key acts from write-only on, not once public
    move_carries_all: bool = True  # ⚠ move: pairs that its writer can't see go along
    moved_is_new: bool = True  # a row under another key is looked at as if it were inserted


RULES: Final = VerifyRules()
