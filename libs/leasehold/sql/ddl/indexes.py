"""CREATE [UNIQUE] INDEX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from leasehold.catalog.object_names import distinct_names, joined_names, object_name
from leasehold.catalog.schema_names import PG_CATALOG
from leasehold.model.errors import FeatureNotSupported, InvalidArgument
from leasehold.sql.ddl.column_types import check_collation
from leasehold.sql.ddl.constraints import keep_text
from leasehold.sql.expressions.default import refuse_changing
from leasehold.sql.expressions.expression import column_of_expression
from leasehold.sql.syntax.accounting import Body, Sentence, handles
from leasehold.sql.syntax.names import name_beside, relation_name, schema_of
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.statement import Expression, Reading, Span, names_of
from leasehold.sql.syntax.statements import (
    CreateIndex,
    IndexExpression,
    IndexOrder,
)

INDEX_COLUMNS_MAX: Final = 32
_METHODS: Final = frozenset({"btree", "hash", "brin"})
"""Each is made as btree, which serves what the others do."""
_PARAMETERS: Final = frozenset(
    {"fillfactor", "deduplicate_items", "buffering", "pages_per_range", "autosummarize"}
)
"""Of how PostgreSQL lays an index out in its files, which is not how entries lie here."""

handles(
    "IndexStmt",
    *("idxname", "relation", "accessMethod", "indexParams", "indexIncludingParams"),
    *("whereClause", "unique", "concurrent", "if_not_exists", "nulls_not_distinct", "options"),
    tableSpace=Sentence("tablespace", "tablespaces are not supported"),
    later=[
        *("excludeOpNames", "idxcomment", "indexOid", "oldNumber", "oldCreateSubid"),
        *("oldFirstRelfilelocatorSubid", "primary", "isconstraint", "iswithoutoverlaps"),
        *("deferrable", "initdeferred", "transformed", "reset_default_tblspc"),
    ],
)
handles(
    "IndexElem",
    *("name", "expr", "ordering", "nulls_ordering", "collation", "opclass"),
    opclassopts="an operator class with parameters",
    later=["indexcolname"],
)


def read_create_index(reading: Reading, body: Body) -> CreateIndex:
    """CREATE [UNIQUE] INDEX [CONCURRENTLY] [[IF NOT EXISTS] i] ON t [USING btree]
    ({column | function(…) | (expression)}, …) [INCLUDE (column, …)] [NULLS [NOT] DISTINCT]
    [WHERE predicate];
    CONCURRENTLY is how every index is built here, so saying it changes nothing."""
    table = relation_name(reading, body["relation"])
    reading.schema = schema_of(reading, body["relation"])
    word_index = reading.at(body["relation"]["location"])
    # What it would be read faster by is no part of what an index means.
    if body["accessMethod"] not in _METHODS:
        raise FeatureNotSupported(
            f"index method {body['accessMethod']!r:.40} is not supported; btree is",
            position=reading.position(reading.next(word_index, "using")),
            hint="Of jsonb index what is asked for: CREATE INDEX ON t ((doc ->> 'key')) is used by"
            " WHERE doc ->> 'key' = 'value'.",
        )
    opening = reading.opening(word_index)
    parts = _parts(reading, body["indexParams"], opening, table)
    closed = reading.closed(opening)
    included: list[tuple[int, str]] = []
    if "indexIncludingParams" in body:
        included = _included(reading, body["indexIncludingParams"], closed + 1)
    reading.read("IndexStmt", body)
    for option in body.get("options", ()):
        said = option["DefElem"]
        if said["defname"] not in _PARAMETERS:
            raise InvalidArgument(
                f"unrecognized parameter {said['defname']!r:.80}",
                position=reading.source.position(said["location"]),
            )
    predicate = None
    if "whereClause" in body:
        where = Span(_where(reading, closed) + 1, reading.span.end)
        predicate = _kept(reading.kept(where), table, reading)
    orders = tuple(order for _, _, order in parts)
    keys = [part for _, part, _ in parts]
    if len(keys) + len(included) > INDEX_COLUMNS_MAX or len(set(keys)) != len(keys):
        reading.refuse(
            f"an index has 1 to {INDEX_COLUMNS_MAX} columns, included ones among them, and no key"
            " twice",
            opening,
        )
    parts_of_name = _names([*keys, *(column for _, column in included)])
    # A column that an entry has already is there once.
    places: dict[str, int] = {}
    for at, column in included:
        if column not in keys:
            places.setdefault(column, at)
    name = name_beside(reading, body, "idxname")
    return CreateIndex(
        derived_name(table, parts_of_name) if name is None else name,
        table,
        tuple(part for _, part, _ in parts),
        bool(body.get("if_not_exists")),
        name is not None,
        bool(body.get("unique")),
        tuple(places),
        predicate,
        (*(position for position, _, _ in parts), *places.values()),
        parts_of_name,
        reading.zone,
        orders if any(order != IndexOrder(position=order.position) for order in orders) else (),
        bool(body.get("nulls_not_distinct")),
    )


def _where(reading: Reading, word_index: int) -> int:
    """The word WHERE, outside of parentheses."""
    while reading.word(word_index) != "where":
        word_index = (
            reading.closed(word_index) if reading.word(word_index) == "(" else word_index + 1
        )
    return word_index


def _parts(
    reading: Reading, nodes: list[Any], opening: int, table: str
) -> list[tuple[int, str | IndexExpression, IndexOrder]]:
    spans = reading.listed(reading.within(opening))
    return [
        (reading.position(span.first), *_part(reading, node["IndexElem"], span, table))
        for node, span in zip(nodes, spans, strict=True)
    ]


def _part(
    reading: Reading, body: Body, span: Span, table: str
) -> tuple[str | IndexExpression, IndexOrder]:
    """A column, a function of the row, or another expression in parentheses, and its order."""
    part: str | IndexExpression
    if "expr" not in body:
        part, end = str(body["name"]), reading.behind_name(span.first)
    elif reading.word(span.first) == "(":
        # (a) is the column a, as in PostgreSQL.
        kept = _kept(reading.enclosed(span.first), table, reading)
        part = column_of_expression(kept.text) or IndexExpression(f"({kept.text})", kept.position)
        end = reading.closed(span.first)
    else:
        end = reading.behind_name(span.first)
        if reading.word(end) == "(":
            end = reading.closed(end)
        part = _kept(reading.kept(Span(span.first, end)), table, reading)
    return part, _order(reading, body, Span(end, span.end))


def _order(reading: Reading, body: Body, span: Span) -> IndexOrder:
    """What stands behind a part; `span` are its words."""
    if "collation" in body:
        check_collation(reading, body["collation"], span.first)
    reading.read("IndexElem", body, near=reading.tokens[span.first - 1].begin)
    nulls = {"SORTBY_NULLS_FIRST": True, "SORTBY_NULLS_LAST": False}.get(body["nulls_ordering"])
    descending = body["ordering"] == "SORTBY_DESC"
    return IndexOrder(
        _operators(names_of(body.get("opclass", []))),
        descending,
        None if nulls is descending else nulls,  # so it is anyway
        reading.position(span.first),
    )


def _operators(names: Sequence[str]) -> str:
    """The operator class that is named, "" = none; all lie in pg_catalog."""
    return ".".join(names[1:] if names[:1] == (PG_CATALOG,) else names)


def _included(reading: Reading, nodes: list[Any], opening: int) -> list[tuple[int, str]]:
    found = []
    for node, span in zip(nodes, reading.listed(reading.within(opening)), strict=True):
        body = node["IndexElem"]
        if "expr" in body:
            sentence = "expressions are not supported in INCLUDE, as in PostgreSQL: name columns"
            reading.refuse(sentence, span.first)
        order = _order(reading, body, Span(reading.behind_name(span.first), span.end))
        if order != IndexOrder(position=order.position):
            sentence = "included columns have no order and no operator class"
            reading.refuse(sentence, reading.behind_name(span.first))
        found.append((reading.position(span.first), str(body["name"])))
    return found


def _kept(said: Expression, table: str, reading: Reading) -> IndexExpression:
    """Raises InvalidObject for what is not the same each time it is computed."""
    with refused_at(said.position):
        refuse_changing(said.text)
    return IndexExpression(keep_text(said, table, reading), said.position)


def _names(parts: Sequence[str | IndexExpression]) -> tuple[str, ...]:
    """What a derived name says of each: the function's name for a function, as PostgreSQL."""
    return distinct_names(
        part if isinstance(part, str) else part.text.partition("(")[0].strip() or "expr"
        for part in parts
    )


def derived_name(table: str, columns: tuple[str, ...], suffix: str = "idx") -> str:
    """PostgreSQL's form `t_a_b_idx`."""
    return object_name(table, joined_names(columns), suffix)
