"""The tables of metrics, from their declarations."""

from __future__ import annotations

from infra.reference.markdown import code, table
from leasehold.model.metrics import GROUPS

_HEADS = ("metric", "kind", "labels", "meaning")


def metrics() -> str:
    """Return one table for each group of metrics."""
    parts: list[str] = []
    for group in GROUPS:
        rows = [
            (code(each.name), each.kind.value, ", ".join(map(code, each.labels)), each.help)
            for each in group.metrics
        ]
        parts.append(f"### {group.title}\n\n{table(_HEADS, rows)}")
    return "\n\n".join(parts)
