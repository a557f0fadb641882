"""Computed parts of index entries as functions of SQL, so that what is done set-wise with plain
indexes (fill, check) is done set-wise with these.

The same compiled expressions as everywhere, not expressions of SQLite, whose lower() knows ASCII
only. Statement text is made from integer ids alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import apsw

from leasehold.adapters.sqlite.layout import column_name
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Index
from leasehold.model.records.events import Image
from leasehold.rows.index_entries import entry_of
from leasehold.sql.binding.typing import KEYED
from leasehold.sql.planning.key_text import key_text


class EntryFunctions:
    """The computed parts of one index's entries. `held` is SQL that is 1 for a row `t` with an
    entry, else 0; "" where each row has one."""

    def __init__(self, descriptor: Descriptor, index: Index) -> None:
        self._descriptor = descriptor
        self._index = index
        self._name = f"entry{int(descriptor.table_id)}_{int(index.element_id)}"
        self._ids = index.mentioned  # what else is in an entry is not computed
        self._keyed = {c.element_id: c.type for c in descriptor.columns if c.type.name in KEYED}
        self.held = self._call("held") if index.computed else ""

    def part(self, number: int, column: int) -> str:
        """SQL for a part of the key, NULL where it is NULL or can't be computed."""
        if column == EXPRESSION:
            return self._call(f"k{number}")
        value = f"t.{column_name(column)}"
        return key_text(self._keyed[column], value) if column in self._keyed else value

    def _call(self, what: str) -> str:
        return f"{self._name}_{what}({', '.join(f't.{column_name(e)}' for e in self._ids)})"

    def install(self, connection: apsw.Connection) -> None:
        """A connection that had them for another version gets them anew: they mean the same."""
        if not self._index.computed:
            return
        ids, entry = self._ids, entry_of(self._descriptor, self._index)

        def image(values: tuple[Any, ...]) -> Image:
            return {e: v for e, v in zip(ids, values, strict=True) if v is not None}

        def made(number: int) -> Callable[..., Any]:
            def part(*values: Any) -> Any:
                found = entry(image(values))
                return None if found is None else found[number]

            return part

        functions: dict[str, Callable[..., Any]] = {
            f"k{number}": made(number)
            for number, column in enumerate(self._index.columns)
            if column == EXPRESSION
        }
        functions["held"] = lambda *values: int(entry(image(values)) is not None)
        for what, function in functions.items():
            connection.create_scalar_function(
                f"{self._name}_{what}", function, numargs=len(ids), deterministic=True
            )
