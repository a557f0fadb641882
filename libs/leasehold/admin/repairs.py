"""What a check's reports prove about repairs. PURE.

An entry of an index is what its row says. So an entry can be put right where the row is right, and
a node's rows are right when they are those of every other node at the same log position: each has
applied the same log by itself. Anything else (rows that differ, a broken constraint, left-overs) is
for people: which copy is the wrong one can't be told from here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from leasehold.model.records.acks import CheckReport

OF_ENTRIES: Final = frozenset({4, 5})
"""Conditions of d ⊨ S that are about an entry and its row: it lacks, it differs, it has no row."""


class Proof(NamedTuple):
    """The `nodes` whose entries may be put right; `reasons` say why others are not among them."""

    nodes: tuple[str, ...]
    reasons: tuple[str, ...]


def proof_of(reports: Sequence[CheckReport]) -> Proof:
    """Judge all nodes' reports on one table at one log position."""
    nodes, reasons = [], []
    told = [report for report in reports if not report.error]
    for report in sorted(told, key=lambda report: report.node):
        if not report.findings_total:
            continue
        if not any(condition in OF_ENTRIES for condition, *_ in report.findings):
            reasons.append(f"node {report.node}: no finding is about an index entry")
            continue
        why = _unproven(report, [other for other in told if other.node != report.node])
        if why:
            reasons.append(f"node {report.node}: {why}")
        else:
            nodes.append(report.node)
    return Proof(tuple(nodes), tuple(reasons))


def _unproven(report: CheckReport, others: Sequence[CheckReport]) -> str:
    if not report.rows_checksum:
        return "it runs an earlier program, which does not sum its rows by themselves"
    there = [other for other in others if other.offset == report.offset and other.rows_checksum]
    if not there:
        return (
            "no other node reported on this log position, so nothing tells that its rows are right"
        )
    unlike = [other.node for other in there if other.rows_checksum != report.rows_checksum]
    if unlike:
        return (
            f"its rows are not those of {', '.join(sorted(unlike))}; one of them is wrong and has"
            " to begin again from a snapshot (stop it, remove its store)"
        )
    return ""
