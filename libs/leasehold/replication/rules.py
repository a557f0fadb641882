"""⚠ rules of replication as switches, so that models and the simulation can turn one off and see
the harm. A service never passes anything but the default."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from leasehold.replication.coherency import CoherencyRules
from leasehold.replication.election import ElectionRules
from leasehold.replication.fast_path.log import FastLogRules
from leasehold.replication.fast_path.own_appends import OwnAppendsRules
from leasehold.replication.fast_path.requests import FastRequestRules
from leasehold.replication.log.admission import LogRules
from leasehold.schema_change.job.rules import JobRules
from leasehold.transaction.verify import VerifyRules


@dataclass(frozen=True, slots=True)
class ReplicationRules:
    log: LogRules = field(default_factory=LogRules)
    fast_log: FastLogRules = field(default_factory=FastLogRules)
    fast_requests: FastRequestRules = field(default_factory=FastRequestRules)
    own_appends: OwnAppendsRules = field(default_factory=OwnAppendsRules)
    coherency: CoherencyRules = field(default_factory=CoherencyRules)
    election: ElectionRules = field(default_factory=ElectionRules)
    verify: VerifyRules = field(default_factory=VerifyRules)
    jobs: JobRules = field(default_factory=JobRules)
    epoch_given_up_after_error: bool = True  # L4
    own_record_by_incarnation: bool = True  # L4
    repeats_wait_too: bool = True  # C1
    unanswered_given_again: bool = True  # L7
    attempts_are_counted: bool = True  # L10


RULES: Final = ReplicationRules()
