"""Findings of a validation: what the master makes of them, by the real decision.

Spark may name any row, for an image that is stale, and leave any out. What it names is confirmed
row by row; so naming every row and naming none are the two that matter.
"""

from __future__ import annotations

from typing import Any

from leasehold.model.ports import Row as StoredRow
from leasehold.model.records.jobs import Findings
from leasehold.replication.master.findings import confirm
from leasehold.schema_change.job.chunk_acceptance import accept_findings
from tests.models.mutants.schema import JobRules, broken
from tests.schema_change.rules import Rules
from tests.schema_change.timeline import JOB, Position, Run
from tests.schema_change.world import Row

Key = tuple[Any, ...]


class Rows:
    """As much of a store as confirming reads; a row's key is its place."""

    def __init__(self, rows: tuple[Row, ...]) -> None:
        self._rows = rows

    def row(self, descriptor: Any, key: Key) -> StoredRow | None:
        return self._rows[key[0]].stored(key[0])

    def holders(self, descriptor: Any, index_id: int, values: Key, rows_max: int) -> list[Key]:
        own = (index_id, values)
        keys = [[(i, e[: len(values)]) for i, e in row.entries] for row in self._rows]
        return [(n,) for n, known in enumerate(keys) if own in known][:rows_max]


def accepts(position: Position, look: Run, low: int) -> bool:
    """Does the master look at findings of that run now?"""
    return accept_findings(position.catalog(low), _findings(look, 0, ()))


def verdict(position: Position, rows: tuple[Row, ...], low: int, rules: Rules) -> str:
    """What the master says when every row is named to it, "" when it confirms none."""
    job = position.job
    look = Run(job.run, 0, position.newest.version)
    named = tuple((e, (n,)) for e in job.current.validates for n in range(len(rows)))
    findings = _findings(look, len(rows), named)
    with broken(JobRules(findings_confirmed=rules.confirm)):
        return confirm(findings, position.catalog(low), Rows(rows)).words


def _findings(look: Run, rows: int, named: tuple[tuple[int, Key], ...]) -> Findings:
    return Findings(JOB, look.number, 1, look.version, rows, len(named), named)
