"""Judges uses of descriptor versions, as agents themselves wrote them down. PURE."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Use(NamedTuple):
    """At `at_ns` the agent used this version of the table, and its lease was valid."""

    at_ns: int
    agent: str
    table: int
    version: int


def judge_versions(uses: Iterable[Use]) -> list[str]:
    """Return the uses of a version after somebody had used one by two newer (D1, D2): the versions
    in use at any moment are two neighbours at most."""
    newest: dict[int, Use] = {}
    found = []
    for use in sorted(uses):
        before = newest.get(use.table)
        if before is not None and use.version < before.version - 1:
            late_ms = (use.at_ns - before.at_ns) // 1_000_000
            found.append(
                f"versions: {use.agent} used version {use.version} of table {use.table}, {late_ms}"
                f" ms after {before.agent} had used {before.version}"
            )
        if before is None or use.version > before.version:
            newest[use.table] = use
    return found
