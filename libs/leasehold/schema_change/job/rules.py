"""⚠ rules of a job's way as switches, so that models and tests can turn one off and see the harm.
A service never passes anything but the default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class JobRules:
    """One boolean per rule; the comment names the invariant and what breaks without it."""

    intent_before_publish: bool = True  # D2: after a crash nobody knows why the ledger is ahead
    publish_checks_holders: bool = True  # D2: three versions live at once
    ledger_ahead_is_adopted: bool = True  # D2: a number published for nobody blocks for ever
    drain_before_fence: bool = True  # D4, D5: users of v are cut off while they hold leases
    fence_before_next: bool = True  # D5: a write under v is accepted when v+2 is out
    chunk_names_run: bool = True  # a late chunk of an earlier run counts for this one
    findings_confirmed: bool = True  # a job fails for a row that was mended, or never was so
    verify_before_public: bool = True  # an element goes public with pairs missing
    slices_at_one_position: bool = True  # equal copies seem to differ, others to be equal
    reports_of_this_slice: bool = True  # what was said of another slice counts for this one
    every_slice_by_all: bool = True  # a node serves rows that it has never compared
    slices_join: bool = True  # rows between two slices are looked at by nobody
    rows_before_entries: bool = True  # a duplicate whose entry comes later is never seen


RULES: Final = JobRules()
