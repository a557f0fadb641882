"""A view: a query under a name. It has no rows, entries or states, and so needs no versions and no
leases: a statement takes it as it is when the statement is planned, and uses the tables behind it
under the versions that it has of them, as if it had named them itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.element_forms import COLUMN_FORM
from leasehold.catalog.elements import Column

VIEWS_FROM: Final = 1 << 29
"""Ids of views, among those of tables."""
VIEWS_MAX: Final = 1_000
TEXT_BYTES_MAX: Final = 32 * 1024
NAMES_MAX: Final = 16
"""Of one table that are remembered: reads of the past find it by those of then."""


class ViewTable(NamedTuple):
    """A table that a view's text names. `called`: by that name; `names`: those that the table has
    since, the newest last. `columns`: the columns that it had then, name by element id; `used`: the
    ids of those that the view rests on."""

    called: str
    names: tuple[str, ...]
    table_id: int
    columns: Mapping[int, str]
    used: frozenset[int]


KEPT: Final = "view#"
"""Stands before the id of a view, for who looks for it by that."""


class View(NamedTuple):
    """A view. `text` is its query as it was said; `columns` as it shows them, with their places for
    ids. `views`: the ids of other views that the text names, by the names that they had. `schema`:
    in which it lies, "" = public; its name begins with that. `options`: what WITH (…) says of it.
    `known`: of views among `views` that show other columns since, those of then, name by place."""

    table_id: int
    name: str
    text: str
    columns: tuple[Column, ...]
    tables: tuple[ViewTable, ...]
    views: Mapping[str, int]
    schema: str = ""
    options: tuple[str, ...] = ()
    known: Mapping[int, Mapping[int, str]] = {}

    def to_wire(self) -> dict[str, Any]:
        more: dict[str, Any] = {"schema": self.schema} if self.schema else {}
        if self.options:
            more["options"] = list(self.options)
        if self.known:
            more["known"] = [[number, _pairs(names)] for number, names in self.known.items()]
        return more | {
            "name": self.name,
            "text": self.text,
            "columns": [COLUMN_FORM.to_wire(column) for column in self.columns],
            "tables": [
                [t.called, list(t.names), t.table_id, _pairs(t.columns), sorted(t.used)]
                for t in self.tables
            ],
            "views": dict(self.views),
        }

    @classmethod
    def from_wire(cls, view_id: int, body: Mapping[str, Any]) -> View:
        """Raises KeyError and the like for what is no body of one."""
        columns = tuple(COLUMN_FORM.from_wire(column) for column in body["columns"])
        tables = tuple(
            ViewTable(called, tuple(names), table_id, dict(known), frozenset(used))
            for called, names, table_id, known, used in body["tables"]
        )
        views, schema = dict(body["views"]), body.get("schema", "")
        options = tuple(map(str, body.get("options", ())))
        known = {number: dict(names) for number, names in body.get("known", ())}
        text = body["text"]
        return cls(view_id, body["name"], text, columns, tables, views, schema, options, known)

    @property
    def asks_invoker(self) -> bool:
        """Whether it reads with the privileges of who names it, and not of its owner."""
        return _has_option(self.options, "security_invoker")

    @property
    def is_barrier(self) -> bool:
        """Whether conditions of who names it are computed of the rows that it shows alone."""
        return _has_option(self.options, "security_barrier")

    def with_known(self, other: View) -> View:
        """Return it remembering the columns of another view that it names, as they are now."""
        if other.table_id in self.known:
            return self
        names = {column.element_id: column.name for column in other.columns}
        return self._replace(known={**self.known, other.table_id: names})

    def rests_on(self, table_id: int, element_id: int = 0) -> bool:
        """Return whether its query needs a table, or a column of it."""
        return any(
            table.table_id == table_id and (not element_id or element_id in table.used)
            for table in self.tables
        )

    def with_name(self, table_id: int, name: str) -> View:
        """Return it knowing one more name of a table."""
        tables = (
            t._replace(names=(*(n for n in t.names if n != name), name)[-NAMES_MAX:])
            if t.table_id == table_id
            else t
            for t in self.tables
        )
        return self._replace(tables=tuple(tables))

    @property
    def relation(self) -> Descriptor:
        """Return it in the form of a table, for who tells of relations."""
        return Descriptor(self.table_id, self.name, 1, self.columns, (), schema=self.schema)


def _has_option(options: Iterable[str], name: str) -> bool:
    said = [option.partition("=") for option in options]
    return any(word == name and read_boolean(value) for word, _, value in said)


def read_boolean(text: str) -> bool | None:
    """Return what a text says of an option as PostgreSQL reads it, None for no boolean."""
    said = text.lower()
    if said in ("1", "on") or (said and ("true".startswith(said) or "yes".startswith(said))):
        return True
    no = said in ("0", "of", "off") or (
        bool(said) and ("false".startswith(said) or "no".startswith(said))
    )
    return False if no else None


def is_view_id(table_id: int) -> bool:
    return bool(table_id & VIEWS_FROM) and table_id < 2 * VIEWS_FROM


def _pairs(names: Mapping[int, str]) -> list[list[Any]]:
    return [[number, name] for number, name in names.items()]
