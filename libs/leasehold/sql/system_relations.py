"""System relations: what a query may name beside tables. Their columns are fixed; their rows are
computed for one statement, of descriptors and of what its node knows, and can't be written.

To add one: its shape into RELATIONS (`catalog_shape.py`), its rows where `System` asks for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, Final, NoReturn

from leasehold.model.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    UnknownTable,
)
from leasehold.schema.descriptor import Descriptor
from leasehold.sql.catalog_rows import SystemCatalog
from leasehold.sql.catalog_shape import INFORMATION_SCHEMA, PG_CATALOG, RELATIONS, Relation

PUBLIC: Final = "public"
_POSTGRESQLS: Final = frozenset({PG_CATALOG, INFORMATION_SCHEMA})

Row = Mapping[str, Any]
Found = Mapping[tuple[Any, ...], list[tuple[Any, ...]]]


def relation_of(schema: str, name: str) -> Relation | None:
    """`schema` "": by the search path, where pg_catalog stands first. None: a table is meant.

    Raises FeatureNotSupported for what PostgreSQL has there, UnknownTable for other schemas.
    """
    found = RELATIONS.get((schema or PG_CATALOG, name))
    if found is not None or schema in ("", PUBLIC):
        return found
    if schema in _POSTGRESQLS:
        raise FeatureNotSupported(f"the system relation {schema}.{name} is not supported")
    raise UnknownTable(f"relation {f'{schema}.{name}'!r} does not exist", table=name)


def refuse_write(relation: Relation) -> NoReturn:
    raise InsufficientPrivilege(
        f"permission denied: {relation.name!r} is a system relation, which can't be written"
    )


class System:
    """What one statement is told of the database and of its node; the same throughout.

    `tables`: the descriptors of its snapshot. `of_node`: rows of a relation of any other schema,
    each by the columns that say something.
    """

    def __init__(
        self,
        tables: Callable[[], Iterable[Descriptor]],
        database: str,
        user: str,
        settings: Mapping[str, str] | None = None,
        of_node: Callable[[Relation], Iterable[Row]] | None = None,
    ) -> None:
        self._tables = tables
        self._database, self._user, self._settings = database, user, settings
        self._of_node = of_node
        self._rows: dict[Relation, list[tuple[Any, ...]]] = {}
        self._found: dict[tuple[Relation, tuple[int, ...]], Found] = {}

    @cached_property
    def catalog(self) -> SystemCatalog:
        return SystemCatalog(self._tables(), self._database, self._user, self._settings)

    def rows(self, relation: Relation) -> list[tuple[Any, ...]]:
        """Storage values for all columns."""
        rows = self._rows.get(relation)
        if rows is None:
            rows = self._rows[relation] = self._made(relation)
        return rows

    def found(self, relation: Relation, places: tuple[int, ...]) -> Found:
        """The rows by their values in the columns at `places`."""
        found = self._found.get((relation, places))
        if found is None:
            by: dict[tuple[Any, ...], list[tuple[Any, ...]]] = defaultdict(list)
            for row in self.rows(relation):
                by[tuple(row[place] for place in places)].append(row)
            found = self._found[relation, places] = dict(by)
        return found

    def _made(self, relation: Relation) -> list[tuple[Any, ...]]:
        if relation.schema in _POSTGRESQLS:
            return self.catalog.rows(relation.schema, relation.name)
        assert self._of_node is not None, f"nobody tells the rows of {relation.name}"
        return [relation.whole(row) for row in self._of_node(relation)]
