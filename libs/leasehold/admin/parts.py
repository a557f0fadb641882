"""What partial replicas hold, as they have told it."""

from __future__ import annotations

from leasehold.admin.view import ClusterView
from leasehold.model.records.acks import PartReport


def part_of(view: ClusterView, node: str) -> PartReport | None:
    """Return what a node has told lately that it holds, None: everything, as far as is known. A
    node that has started again may hold something else."""
    told, known = view.parts.get(node), view.nodes.get(node)
    if told is None or known is None or known.ack.incarnation != told.incarnation:
        return None
    return told


def part_words(view: ClusterView, node: str) -> str:
    """Return what a node holds, for people; "" = everything."""
    told = part_of(view, node)
    if told is None:
        return ""
    shown = [name + (f" ({which})" if which else "") for _, name, which in told.tables]
    return ", ".join(shown) or "no table"


def checks_table(view: ClusterView, node: str, table_id: int) -> bool:
    """Return whether a node answers a check of a table (0: of roles): it has all of its rows, and
    of those that its foreign keys refer to."""
    told = part_of(view, node)
    if told is None or not table_id:
        return True
    whole = {held for held, _, which in told.tables if not which}
    table = view.tables.get(table_id)
    parents = [] if table is None else [key.parent for key in table.descriptor.foreign_keys]
    return whole.issuperset((table_id, *parents))
