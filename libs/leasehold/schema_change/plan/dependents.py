"""The objects that rest on something that is to be dropped: they are named and the drop refused, or
CASCADE takes them along. In PostgreSQL's words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.model.errors import DependentObjects
from leasehold.schema_change.plan.foreign_keys import Referring, find_implied_index
from leasehold.schema_change.steps.element_paths import ElementPath, drop_check, drop_index

HINT: Final = "Use DROP ... CASCADE to drop the dependent objects too."


class Doomed(NamedTuple):
    """An object that is to be dropped. `what` it is called, `needed`: as what others need it."""

    what: str
    needed: str
    cascade: bool = False
    position: int = 1

    def refusal(self, dependents: Iterable[str], **detail: object) -> DependentObjects:
        """Return the refusal that names `dependents`, in words."""
        return DependentObjects(
            f"cannot drop {self.what} because other objects depend on it",
            detail="\n".join(f"{each} depends on {self.needed}" for each in dependents),
            hint=HINT,
            position=self.position,
            **detail,
        )


def describe_constraint(reference: Referring) -> str:
    """Return what a foreign key is called in messages."""
    child, key = reference
    return f"constraint {key.name} on table {child.name}"


def cascade_notice(words: str) -> str:
    """Return the notice that something goes along."""
    return f"drop cascades to {words}"


def drop_along(found: Sequence[Referring]) -> list[ElementPath]:
    """Return the paths of foreign keys of other tables, and of indexes that nothing needs without
    them."""
    paths: dict[tuple[int, int], ElementPath] = {}
    for child, key in found:
        going = {k.element_id for c, k in found if c.table_id == child.table_id}
        index = find_implied_index(child, key, going)
        for path in (drop_check(key), *(() if index is None else (drop_index(index),))):
            element_key = child.table_id, path.name[1]
            paths.setdefault(element_key, replace(path, table_id=child.table_id))
    return list(paths.values())
