"""Views in FROM: their queries in the place of their names, in which names mean what they meant
when the view was made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.namespaces import Namespace
from leasehold.catalog.schema_names import PUBLIC
from leasehold.catalog.view import KEPT, View, ViewTable
from leasehold.model.errors import Refused, TooComplex, UnknownTable
from leasehold.sql.binding.bound_tree import BoundQuery
from leasehold.sql.syntax.positions import with_position
from leasehold.sql.syntax.reading import read_query
from leasehold.values.enums import Enumeration

if TYPE_CHECKING:
    from leasehold.sql.binding.queries import Binder

Named: TypeAlias = View | Enumeration | Namespace
"""What a statement names that is no table: its plan holds as long as it is the same."""
FindNamed: TypeAlias = Callable[[str], Named | None]
DEEP_MAX: Final = 32
"""Views that stand in each other."""


def no_names(name: str) -> Named | None:
    """Return None: there is no view and no enum type."""
    return None


class Views:
    """The views of one statement. `used`: those that it names, by that name, and those that are
    within them; `named_tables` and `named_views` are what it names itself. While the query of one
    is bound, `within` is that one."""

    def __init__(self, binder: Binder, find: FindNamed) -> None:
        self._binder, self._find = binder, find
        self.used: dict[str, View] = {}
        self.named_tables: dict[str, Descriptor] = {}
        self.named_views: dict[str, View] = {}
        self._around: list[View] = []

    @property
    def within(self) -> View | None:
        return self._around[-1] if self._around else None

    def find(self, name: str) -> View | None:
        """Return the view that a name means here, None where it means none."""
        around = self.within
        if around is not None:
            number = around.views.get(name)
            # By its id: it may be called otherwise since.
            return None if number is None else self._look_up(f"{KEPT}{number}")
        found = None if name.startswith(KEPT) else self._look_up(name)
        if found is not None:
            self.named_views[name] = found
        return found

    def _look_up(self, name: str) -> View | None:
        found = self._find(name)
        if not isinstance(found, View):
            return None
        self.used[name] = found
        return found

    def columns_known(self, view: View) -> tuple[tuple[int, str], ...]:
        """Return the places, from 0, of the columns of a view that are meant where it is named, and
        their names there: within another view those of when that was made."""
        known = None if self.within is None else self.within.known.get(view.table_id)
        if known is None:
            return tuple((n, column.name) for n, column in enumerate(view.columns))
        return tuple((place - 1, name) for place, name in known.items())

    def table(self, name: str, at: int, schema: str) -> tuple[Descriptor, ViewTable | None]:
        """Return the table that a name means here; within a view with what that knows of it, and
        never a temporary one. Raises UnknownTable."""
        around = self.within
        if around is None:
            named = self.named_tables[name] = self._binder.descriptor(name, at, schema)
            return named, None
        known = next((table for table in around.tables if table.called == name), None)
        missing: Refused = UnknownTable(
            f"relation {name!r} of view {around.name!r} does not exist", table=name, position=at
        )
        for each in () if known is None else known.names[::-1]:
            try:
                found = self._binder.descriptor(each, at, PUBLIC)
            except UnknownTable as error:
                missing = error
                continue
            # Under another primary key it is another table with the same columns.
            if known is not None and (found.table_id == known.table_id or found.former):
                return found, known
        raise missing

    def bind(self, view: View, at: int) -> BoundQuery:
        """Return the query of a view, with its columns' names. Raises what it raises, at the place
        where the view is named."""
        if len(self._around) >= DEEP_MAX:
            raise TooComplex(f"views stand in each other more than {DEEP_MAX} deep", position=at)
        try:
            with self._inside(view):
                query = self._binder.bind_query(read_query(view.text), None)
        except Refused as error:
            raise with_position(error, at, f"in view {view.name!r}: ") from error
        columns = zip(query.columns, view.columns, strict=False)
        return replace(query, columns=tuple(replace(c, name=of.name) for c, of in columns))

    @contextmanager
    def _inside(self, view: View) -> Iterator[None]:
        needs = self._binder.needs
        before = needs.view
        needs.view = 0 if view.asks_invoker else view.table_id
        self._around.append(view)
        try:
            yield
        finally:
            self._around.pop()
            needs.view = before
