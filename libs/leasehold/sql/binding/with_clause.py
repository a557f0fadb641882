"""The binder of WITH, recursive queries among it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from leasehold.model.errors import (
    DuplicateAlias,
    FeatureNotSupported,
    InvalidColumnReference,
    InvalidRecursion,
    SyntaxInvalid,
    WrongType,
)
from leasehold.sql.binding.bound_tree import (
    OPEN,
    Aggregate,
    BoundCte,
    BoundQuery,
    BoundSelect,
    BoundSet,
    BoundSource,
    CteSource,
    JoinSource,
)
from leasehold.sql.binding.order import check_grouped
from leasehold.sql.binding.scope import KnownCte, Scope
from leasehold.sql.binding.typing import KEYED, ORDER_KEYED, common_type
from leasehold.sql.binding.walk import own_level, walk
from leasehold.sql.functions.function import TEXT
from leasehold.sql.syntax import tree

if TYPE_CHECKING:
    from leasehold.sql.binding.bound_write import BoundWrite
    from leasehold.sql.binding.queries import Binder


class Ctes:
    """The binder of one statement's queries of WITH."""

    def __init__(self, binder: Binder) -> None:
        self._binder = binder
        self._count = 0

    def new_number(self) -> int:
        self._count += 1
        return self._count

    def bind(self, ctes: tree.With | None, scope: Scope) -> tuple[BoundCte, ...]:
        """Bind the queries of WITH, of which none writes, and let `scope` know their names."""

        def refuse(write: tree.Write) -> BoundWrite:
            raise FeatureNotSupported(
                "views must not contain data-modifying statements in WITH", position=write.at
            )

        made: list[BoundCte] = []
        for cte in ctes.ctes if ctes is not None else ():
            _, one = self.bind_one(cte, scope, ctes, refuse)
            assert isinstance(one, BoundCte), "others are refused"
            made.append(one)
        return tuple(made)

    def bind_one(
        self,
        cte: tree.Cte,
        scope: Scope,
        within: tree.With | None,
        bind_write: Callable[[tree.Write], BoundWrite],
    ) -> tuple[int, BoundCte | BoundWrite]:
        """Return the number of a query of WITH and the query, or the statement that writes, which
        `bind_write` binds; `scope` knows its name then."""
        if cte.name in scope.ctes:
            raise DuplicateAlias(
                f"WITH query name {cte.name!r} specified more than once", position=cte.at
            )
        recursive = within is not None and within.recursive
        number = self.new_number()
        if not isinstance(cte.query, tree.Query):
            if recursive and _names(replace(cte.query, table=None), cte.name):  # type: ignore[arg-type]
                raise InvalidRecursion(
                    f"recursive query {cte.name!r} must not contain data-modifying statements",
                    position=cte.at,
                )
            write = bind_write(cte.query)
            returning = write.returning
            if returning is None:
                scope.ctes[cte.name] = KnownCte(number, (), returns=False)
                return number, write
            write = replace(write, returning=_renamed(returning, cte.columns, cte.name, cte.at))
            assert write.returning is not None
            columns = tuple(replace(c, nullable=True) for c in write.returning.columns)
            scope.ctes[cte.name] = KnownCte(number, columns)
            return number, write
        if recursive and _names(cte.query, cte.name):
            query = self._recursive(cte, cte.query, number, scope)
            made = BoundCte(number, query, True, None)
        else:
            query = self._binder.bind_query(cte.query, scope)
            query = _renamed(query, cte.columns, cte.name, cte.at)
            made = BoundCte(number, query, False, cte.materialized)
        scope.ctes[cte.name] = KnownCte(number, query.columns)
        return number, made

    def _recursive(self, cte: tree.Cte, query: tree.Query, number: int, scope: Scope) -> BoundQuery:
        body = query.body
        at = cte.at
        if not isinstance(body, tree.SetOperation) or body.word != "union":
            raise InvalidRecursion(
                f"recursive query {cte.name!r} does not have the form"
                " non-recursive-term UNION [ALL] recursive-term",
                position=at,
            )
        if query.order or query.limit is not None or query.offset is not None or query.ctes:
            raise FeatureNotSupported(
                "ORDER BY, LIMIT, OFFSET or WITH in a recursive query are not supported",
                position=at,
            )
        if _names(body.left, cte.name):
            raise InvalidRecursion(
                f"recursive reference to query {cte.name!r} must not appear within its"
                " non-recursive term",
                position=body.left.at,
            )
        opened = self._binder.bind_open(body.left, scope)
        left = self._binder.settle(opened, body.left.at)
        left = _renamed(left, cte.columns, cte.name, at)
        inner = Scope(scope.parent, ctes=dict(scope.ctes))
        columns = tuple(replace(c, origin=None, nullable=True) for c in left.columns)
        inner.ctes[cte.name] = KnownCte(number, columns)
        right = self._binder.bind_open(body.right, inner)
        self._check_recursive(right, number, cte)
        if len(left.columns) != len(right.columns):
            raise SyntaxInvalid(
                "each UNION query must have the same number of columns", position=body.right.at
            )
        if not isinstance(opened.body, BoundSelect):
            opened = left  # only a SELECT's own constants are open here
        pairs = list(zip(opened.columns, right.columns, strict=True))
        kinds = [common_type([a.kind, b.kind], body.right.at, "UNION") for a, b in pairs]
        overalls = [TEXT if kind == OPEN else kind for kind in kinds]
        self._binder.convert_columns(
            opened, overalls, body.left.at
        )  # open ones are read as that first
        for n, (a, overall) in enumerate(zip(left.columns, overalls, strict=True), 1):
            if overall != a.kind:  # in length and precision too, which would cut what comes
                raise WrongType(
                    f"recursive query {cte.name!r} column {n} has type {a.kind} in non-recursive"
                    f" term but type {overall} overall; CAST the non-recursive term",
                    position=body.left.at,
                )
        right = self._binder.convert_columns(right, [c.kind for c in left.columns], body.right.at)
        if not body.every:
            for column in columns:
                check_grouped(column.kind, "UNION", at)
                if column.kind.name in ORDER_KEYED:
                    raise FeatureNotSupported(
                        f"a recursive UNION over {column.kind} is not supported", position=at
                    )
                if column.kind.name in KEYED and column.kind.scale is None:
                    raise FeatureNotSupported(  # SQLite finds equal rows by itself here
                        f"a recursive UNION over {column.kind} is not supported: CAST it, a numeric"
                        " to numeric(p, s)",
                        position=at,
                    )
        return BoundQuery(columns, BoundSet("union", body.every, left, right))

    def _check_recursive(self, right: BoundQuery, number: int, cte: tree.Cte) -> None:
        body = right.body

        def refuse(sentence: str) -> NoReturn:
            raise InvalidRecursion(
                f"recursive reference to query {cte.name!r} must not appear {sentence}",
                position=cte.at,
            )

        mentions = [n for n in walk(right) if isinstance(n, CteSource) and n.cte == number]
        if len(mentions) != 1:
            refuse("more than once")
        if not isinstance(body, BoundSelect) or body.source is None:
            raise FeatureNotSupported(
                "a recursive term that is no plain SELECT is not supported", position=cte.at
            )
        if not any(n is mentions[0] for n in _plain_sources(body.source)):
            refuse("within a subquery or an outer join")
        if body.aggregated or any(isinstance(n, Aggregate) for n in walk(body, own_level)):
            raise InvalidRecursion(
                "aggregate functions are not allowed in a recursive query's recursive term",
                position=cte.at,
            )
        if body.distinct is not None or right.order or right.limit or right.offset or right.ctes:
            raise FeatureNotSupported(
                "DISTINCT, ORDER BY, LIMIT or WITH in a recursive term are not supported",
                position=cte.at,
            )


def _renamed(query: BoundQuery, names: tuple[str, ...], alias: str, at: int) -> BoundQuery:
    if len(names) > len(query.columns):
        raise InvalidColumnReference(
            f"WITH query {alias!r} has {len(query.columns)} columns available but {len(names)}"
            " columns specified",
            position=at,
        )
    columns = tuple(
        replace(c, name=names[n]) if n < len(names) else c for n, c in enumerate(query.columns)
    )
    return replace(query, columns=columns)


def _plain_sources(source: BoundSource) -> list[BoundSource]:
    """Return the sources that no outer join may leave out."""
    if not isinstance(source, JoinSource):
        return [source]
    left = _plain_sources(source.left) if source.kind not in ("right", "full") else []
    right = _plain_sources(source.right) if source.kind not in ("left", "full") else []
    return left + right


def _names(node: object, name: str) -> bool:
    """Return whether a tree mentions a table of that name."""
    if isinstance(node, tree.TableName):
        return node.name == name and not node.schema
    if isinstance(node, tuple):
        return any(_names(item, name) for item in node)
    fields = getattr(type(node), "__dataclass_fields__", None)
    return fields is not None and any(_names(getattr(node, f), name) for f in fields)
