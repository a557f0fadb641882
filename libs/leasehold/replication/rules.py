"""Switches for ⚠ rules of what a master decides, so that models and the simulation can turn one off
and see the harm. A service never passes anything but the default. Those of replication itself and
of a job's way have none: `tests/models/mutants` breaks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from leasehold.transaction.verify import VerifyRules


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    verify: VerifyRules = field(default_factory=VerifyRules)


RULES: Final = ReplicationRules()
