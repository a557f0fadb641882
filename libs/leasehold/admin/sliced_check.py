"""A check of one table in slices: which comes next, and what all of them say together. PURE.

One slice at a time, each at a log position of its own, which is the same on every node. Copies that
are equal in each slice are equal at the last one's position, since equal contents and the same
records make equal contents (L6); adapters/DESIGN.md has the whole argument.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import DELETED
from leasehold.model.keys import Key
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.schema_change.coordinator.verification import next_slice

FINDINGS_KEPT_MAX = 100


class SlicedCheck:
    """Ask `wanted` for the next slice, and `take` the reports of every node on it, until None."""

    def __init__(self, table: Descriptor, nodes: Sequence[str], rows_max: int) -> None:
        self._table = table
        self._nodes = sorted(nodes)
        indexes = [i.element_id for i in table.indexes if i.state in DELETED]
        self._parts = [0, *indexes]  # the rows first
        self.wanted: CheckSlice | None = CheckSlice(0, (), rows_max)
        self.slices = 0
        self.troubles: list[str] = []
        self.findings: list[tuple[str, Any]] = []
        self.rows = dict.fromkeys(self._nodes, 0)
        self.entries = dict.fromkeys(self._nodes, 0)
        self.findings_total = dict.fromkeys(self._nodes, 0)
        self.took_ms = dict.fromkeys(self._nodes, 0)
        if not self._nodes:
            self._stop("no live node: nobody can check")

    def take(self, reports: Sequence[CheckReport]) -> None:
        """Every node's on the slice wanted; what is missing or unlike ends the check."""
        told = {report.node: report for report in reports if report.node in self._nodes}
        at = self.wanted
        assert at is not None, "nothing was asked for"
        self.slices += 1
        for node, report in sorted(told.items()):
            self._count(node, report)
        if not self._may_go_on(told):
            return
        until = next(iter(told.values())).until
        self.wanted = next_slice(self._parts, at, until, at.rows_max)

    def _count(self, node: str, report: CheckReport) -> None:
        self.rows[node] += report.rows
        self.entries[node] += sum(report.entries.values())
        self.took_ms[node] += report.took_ms
        self.findings_total[node] += report.findings_total
        room = FINDINGS_KEPT_MAX - len(self.findings)
        self.findings += [(node, finding) for finding in report.findings[: max(0, room)]]

    def _may_go_on(self, told: dict[str, CheckReport]) -> bool:
        silent = [node for node in self._nodes if node not in told]
        if silent:
            return self._stop(f"{', '.join(silent)} did not report on {self._where()}")
        failed = [f"node {node}: {r.error}" for node, r in sorted(told.items()) if r.error]
        if failed:
            return self._stop(f"{self._where()} could not be checked: {'; '.join(failed)}")
        versions = {report.version for report in told.values()}
        if versions != {self._table.version}:
            return self._stop(
                f"table {self._table.name!r} came to version {max(versions)} while version"
                f" {self._table.version} was checked: begin again"
            )
        groups: dict[tuple[bytes, Key | None], list[str]] = {}
        for node, report in sorted(told.items()):
            groups.setdefault((report.checksum, report.until), []).append(node)
        if len(groups) > 1:
            apart = " against ".join(", ".join(nodes) for nodes in groups.values())
            return self._stop(f"{self._where()} differ: {apart}; what follows was not compared")
        return True

    def _where(self) -> str:
        assert self.wanted is not None, "it ends with the slice that it is at"
        part, after, _ = self.wanted
        index = self._table.element(part)
        what = f"entries of index {index.name!r}" if index is not None else "rows"
        return f"{what} of table {self._table.name!r} above key {after!r:.200}"

    def _stop(self, trouble: str) -> bool:
        self.troubles.append(trouble)
        self.wanted = None
        return False

    def verdict(self) -> list[str]:
        """Sentences on what is not right."""
        found = [
            f"node {node} has {total:,} findings in {self._table.name}"
            for node, total in self.findings_total.items()
            if total
        ]
        return [*self.troubles, *found]
