"""Judging the nodes' reports on a new element, before it goes public.

Each coherent node compares element and rows in one read snapshot at the log position of the job's
VERIFYING record. The element is complete when all of them say so, and say the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Any

from leasehold.model.records import CheckReport
from leasehold.schema.descriptor import Descriptor
from leasehold.schema.elements import Column, Index
from leasehold.schema.job import Job
from leasehold.schema.job_moves import FINDINGS_MAX
from leasehold.schema.states import State


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


def subject_of(job: Job) -> bytes:
    """What reports on a job's element are known by; a new run is a new subject."""
    return f"job:{job.job_id}:{job.run}".encode()


def job_of(subject: bytes) -> tuple[int, int] | None:
    """(job, run) of a report's subject; None when it is about something else."""
    parts = subject.split(b":")
    if len(parts) != 3 or parts[0] != b"job" or not (parts[1] + parts[2]).isdigit():
        return None
    return int(parts[1]), int(parts[2])


def as_if_public(descriptor: Descriptor, elements: Collection[int]) -> Descriptor:
    """The descriptor as it will be once `elements` are public, with all that is relied on then."""

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


def judge(job: Job, lsn: int, reports: Mapping[str, CheckReport], nodes: Iterable[str]) -> Verdict:
    """What the reports of `nodes` on the VERIFYING record at `lsn` come to."""
    wanted = sorted(nodes)
    assert wanted, "a verification waits for somebody"
    counted = [reports[n] for n in wanted if n in reports and reports[n].lsn >= lsn]
    if len(counted) < len(wanted):
        missing = [n for n in wanted if n not in {report.node for report in counted}]
        return Verdict(Judgement.WAITING, f"{', '.join(missing)} to verify {job.subject}")
    if len({report.offset for report in counted}) > 1:
        return Verdict(Judgement.WAITING, "all nodes to report on the same log position")
    for report in counted:
        if report.error:
            words = f"node {report.node} could not verify: {report.error}"
            return Verdict(Judgement.BROKEN, words)
    found = next((report for report in counted if report.findings_total), None)
    if found is not None:
        words = (
            f"verification of {job.subject} found {found.findings_total} differences"
            f" on node {found.node}{_first(found)}"
        )
        return Verdict(Judgement.FOUND, words, tuple(found.findings[:FINDINGS_MAX]))
    first = counted[0]
    for report in counted[1:]:
        if _content(report) != _content(first):
            words = (
                f"nodes {first.node} and {report.node} differ at log offset {first.offset}"
                f" although each is consistent: compare them with `leasehold check`"
            )
            return Verdict(Judgement.FOUND, words)
    return Verdict(Judgement.CLEAN)


def _first(report: CheckReport) -> str:
    """The first finding in words, so that the job's error says which row was to blame."""
    if not report.findings:
        return ""
    _, _, key, words = report.findings[0]
    return f", the first at key {tuple(key)!r:.200}: {words}"


def _content(report: CheckReport) -> tuple[Any, ...]:
    return (report.version, report.rows, dict(report.entries), bytes(report.checksum))
