"""Judging the nodes' reports on a new element, before it goes public.

Each coherent node compares element and rows in one read snapshot at the log position of the job's
VERIFYING record; in a table too big for one pass a slice of them, slice after slice, each at the
position of a record of its own. The element is complete when all of them say so, and say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Element, ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.catalog.states import State
from leasehold.model.errors import (
    CheckViolation,
    DuplicateKey,
    ForeignKeyViolation,
    NotNullViolation,
    Refused,
)
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.schema_change.job.transitions import FINDINGS_MAX

SLICE_ROWS_MIN: Final = 500
LISTED_MAX: Final = 5
REQUIRED: Final = 2
INTEGRITY: Final = 6
"""Conditions of d ⊨ S: a required pair is there; a constraint holds."""
FINDING_CHARACTERS_MAX: Final = 1_000
"""Of a value of a finding's key, and of its words: a hundred of them are one message, twenty stand
in their job, and a key may have megabytes."""


def tell_no_value(column: Column, key: Key, error: Refused) -> str:
    """Return the sentence of a job that ends at a row which has no value to be filled in."""
    return f"column {column.name}: row {key!r:.200}: {error.message:.1000}"


def make_finding(
    condition: int, element_id: int, key: Key, words: str
) -> tuple[int, int, Key, str]:
    """Return a finding as it is reported, with what is long cut."""
    most = FINDING_CHARACTERS_MAX
    cut = tuple([part[:most] if isinstance(part, str | bytes) else part for part in key])
    return condition, element_id, cut, words[:most]


class Judgement(Enum):
    WAITING = auto()  # somebody has not reported on this position yet
    CLEAN = auto()
    BROKEN = auto()  # a node could not check: no answer about the element
    FOUND = auto()


@dataclass(frozen=True, slots=True)
class Verdict:
    judgement: Judgement
    words: str = ""
    findings: tuple[Any, ...] = ()
    code: str = ""


def make_subject(job: Job) -> bytes:
    """Return the subject of reports on a job's element; a new run is a new subject."""
    return f"job:{job.job_id}:{job.run}".encode()


def parse_subject(subject: bytes) -> tuple[int, int] | None:
    """Return the (job, run) of a report's subject; None when it is about something else."""
    parts = subject.split(b":")
    if len(parts) != 3 or parts[0] != b"job" or not (parts[1] + parts[2]).isdigit():
        return None
    return int(parts[1]), int(parts[2])


def as_if_public(descriptor: Descriptor, elements: Collection[int]) -> Descriptor:
    """Return the descriptor as it will be once `elements` are public, with all that is relied on
    then."""

    def public(element: Any) -> Any:
        if element.element_id not in elements:
            return element
        match element:
            case Column():
                # A default that old rows must show is there for every row before it is public.
                writing = element.state is State.WRITE_ONLY and element.derived is None
                required = element.refuses_null or (writing and element.required)
                return replace(element, state=State.PUBLIC, nullable=not required)
            case Index():
                unique = element.refuses_duplicates
                return replace(element, state=State.PUBLIC, unique=unique)
        return replace(element, state=State.PUBLIC)

    return replace(
        descriptor,
        columns=tuple(map(public, descriptor.columns)),
        indexes=tuple(map(public, descriptor.indexes)),
        checks=tuple(map(public, descriptor.checks)),
        foreign_keys=tuple(map(public, descriptor.foreign_keys)),
    )


def code_of(element: Element | None, condition: int) -> str:
    """Return the SQLSTATE of a row that breaks a constraint; "" for what no row can be blamed
    for."""
    match element:
        case Column() if condition == REQUIRED:
            return NotNullViolation.sqlstate
        case Index() if condition == INTEGRITY:
            return DuplicateKey.sqlstate
        case Check():
            return CheckViolation.sqlstate
        case ForeignKey():
            return ForeignKeyViolation.sqlstate
    return ""


# ------------------------------------------------------------------ slices


def list_parts(job: Job, descriptor: Descriptor) -> tuple[int, ...]:
    """Return what a verification in slices goes through: 0 for the rows, then the entries of each
    index. ⚠ In this order: only when each row has its entry do the entries tell every duplicate."""
    verified = (descriptor.element(e) for e in job.current.verifies)
    return (0, *(e.element_id for e in verified if isinstance(e, Index)))


def next_slice(
    parts: Sequence[int], at: CheckSlice, until: Key | None, rows_max: int
) -> CheckSlice | None:
    """Return the slice after `at`, whose last key was `until`; None: all has been looked at."""
    if until is not None:
        return CheckSlice(at.part, until, rows_max)
    rest = parts[parts.index(at.part) + 1 :]
    return CheckSlice(rest[0], (), rows_max) if rest else None


def slice_rows(at: CheckSlice, took_ms: int, target_ms: int, rows_max: int) -> int:
    """Return how many keys the slice after `at` has, which took `took_ms` on the slowest node, so
    that one takes about `target_ms`: rows are narrow or wide, expressions cheap or dear."""
    fitting = at.rows_max * target_ms // max(1, took_ms)
    return max(1, min(rows_max, 2 * at.rows_max, max(SLICE_ROWS_MIN, fitting)))


# ------------------------------------------------------------------ the verdict


def _is_of(report: CheckReport, lsn: int) -> bool:
    """Say whether a report is on the record at `lsn`, and not of an earlier one, which asked for
    another slice."""
    return report.lsn >= lsn


def _are_at_one_position(reports: Sequence[CheckReport]) -> bool:
    """Say whether all reports are on one position: else equal copies would seem to differ, and
    others to be equal."""
    return len({report.offset for report in reports}) <= 1


def judge(
    job: Job,
    lsn: int,
    reports: Mapping[str, CheckReport],
    nodes: Iterable[str],
) -> Verdict:
    """Return what the reports of `nodes` on the VERIFYING record at `lsn` come to."""
    wanted = sorted(nodes)
    assert wanted, "a verification waits for somebody"
    counted = [reports[n] for n in wanted if n in reports and _is_of(reports[n], lsn)]
    if len(counted) < len(wanted):
        missing = [n for n in wanted if n not in {report.node for report in counted}]
        return Verdict(Judgement.WAITING, f"{', '.join(missing)} to verify {job.subject}")
    if not _are_at_one_position(counted):
        return Verdict(Judgement.WAITING, "all nodes to report on the same log position")
    for report in counted:
        if report.error:
            words = f"node {report.node} could not verify: {report.error}"
            return Verdict(Judgement.BROKEN, words)
    found = next((report for report in counted if report.findings_total), None)
    if found is not None:
        words = _found_words(job, found) + _copies_words(found, counted)
        return Verdict(Judgement.FOUND, words, tuple(found.findings[:FINDINGS_MAX]), found.code)
    first = counted[0]
    for report in counted[1:]:
        if _content(report) != _content(first):
            words = (
                f"nodes {first.node} and {report.node} differ at log offset {first.offset}"
                f" although each is consistent: compare them with `leasehold check`"
            )
            return Verdict(Judgement.FOUND, words)
    return Verdict(Judgement.CLEAN)


def _found_words(job: Job, found: CheckReport) -> str:
    first = found.findings[0] if found.findings else None
    lacks = first is not None and first[0] == REQUIRED and found.code == NotNullViolation.sqlstate
    if first is not None and (first[0] == INTEGRITY or lacks):
        more = "" if job.look is None else " and perhaps more"
        told = [(key, words) for _, _, key, words in found.findings]
        return tell_rows(job, found.findings_total, told, more)
    return (
        f"verification of {job.subject} found {found.findings_total} differences"
        f" on node {found.node}{_first(found)}"
    )


def _copies_words(found: CheckReport, counted: Sequence[CheckReport]) -> str:
    """Return what is said where a node finds something and another one nothing: rows are alike on
    all, so it is a copy that is to blame."""
    clean = next((report.node for report in counted if not report.findings_total), None)
    if clean is None:
        return ""
    return (
        f" (on node {found.node}; node {clean} finds nothing: compare their copies with"
        " `leasehold check`)"
    )


def tell_rows(job: Job, rows: int, told: Sequence[tuple[Key, str]], more: str) -> str:
    """Return in words that so many rows break the job's constraint, the first of `told` by key and
    why; `more`: what else is known of their number."""
    listed = "; ".join(f"row {tuple(key)!r:.200}: {why}" for key, why in told[:LISTED_MAX])
    left_out = " …" if len(told) > LISTED_MAX else ""
    break_it = "row breaks" if rows == 1 else "rows break"
    return f"{rows} {break_it} {job.subject}{more}: {listed}{left_out}"


def _first(report: CheckReport) -> str:
    """Return the first finding in words, so that the job's error says which row was to blame."""
    if not report.findings:
        return ""
    _, _, key, words = report.findings[0]
    return f", the first at key {tuple(key)!r:.200}: {words}"


def _content(report: CheckReport) -> tuple[Any, ...]:
    until = None if report.until is None else tuple(report.until)
    return (report.version, report.rows, dict(report.entries), bytes(report.checksum), until)
