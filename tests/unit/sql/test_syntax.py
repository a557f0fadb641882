"""Goal: what PostgreSQL's parser says is taken whole, and no text ends the process. Method: each
field of its nodes has a line; tables of texts with statements, codes and places; texts that are
nested or that its tree would hold many times over."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from postgast.pg_query_pb2 import DESCRIPTOR

import leasehold.sql.ddl
import leasehold.sql.session
import leasehold.sql.syntax
from leasehold.model.errors import Refused, TooComplex
from leasehold.sql.syntax import queries, tree
from leasehold.sql.syntax.accounting import NODES, Fields
from leasehold.sql.syntax.depth import TOKENS_DEEP_MAX, refuse_depth
from leasehold.sql.syntax.kept import expression_of
from leasehold.sql.syntax.parsing import parse
from leasehold.sql.syntax.reading import read_statement
from leasehold.sql.syntax.scanning import kinds_of
from leasehold.sql.syntax.source import Source
from leasehold.sql.syntax.tree import SELECTV

for _package in (leasehold.sql.syntax, leasehold.sql.ddl, leasehold.sql.session):
    for _module in pkgutil.iter_modules(_package.__path__):
        importlib.import_module(f"{_package.__name__}.{_module.name}")


@pytest.mark.parametrize("kind", sorted(NODES))
def test_each_field_of_a_node_is_read_or_refused(kind: str) -> None:
    """So a newer libpg_query brings nothing that is read over."""
    fields = {field.json_name for field in DESCRIPTOR.message_types_by_name[kind].fields}
    line = NODES[kind]
    assert line.read | line.refused.keys() == fields
    assert not line.read & line.refused.keys()
    assert all(line.refused.values()), "what is refused has words"


def test_a_field_without_a_line_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Fields(NODES["SelectStmt"].read - {"havingClause"})
    monkeypatch.setitem(NODES, "SelectStmt", line)
    monkeypatch.setattr(queries, "_SELECT", line.read)
    with pytest.raises(Refused) as caught:
        read_statement("SELECT a FROM t GROUP BY a HAVING b > 1")
    assert (caught.value.sqlstate, caught.value.detail["position"]) == ("0A000", 37)
    assert "havingClause" in caught.value.message


REFUSED: list[tuple[str, str, int | None]] = [
    # PostgreSQL's words of an error decide its code.
    ("SELECT 1 FROM", "42601", 14),
    ("SELECT 'é' FROM", "42601", 16),
    ("SELECT '😀é', FROM t", "42601", 14),
    ("SELECT 'a", "42601", 8),
    ('SELECT ""', "42601", 8),
    ("SELECT 1a", "42601", 8),
    ("SELECT /* a", "42601", 8),
    ("SELECT $a$ b", "42601", 8),
    ("SELECT * FROM t LIMIT 1, 2", "42601", 17),
    ("SELECT E'\\u12'", "22025", 10),
    ("SELECT E'\\xff'", "22021", None),
    ("SELECT E'\\000'", "22021", None),
    ("SELECT U&'\\d800'", "42601", 16),
    ("SELECT 1::float(0)", "22023", 17),
    ("SELECT sum(a) OVER (ROWS UNBOUNDED FOLLOWING) FROM t", "42P20", 26),
    ("SELECT 1\0", "42601", 9),
    ("SELECT '\ud800'", "42601", 9),
    ("SELECT 1; SELECT 2", "42601", 11),
    (" ; -- nothing\n", "42601", 1),
    (f"SELECT {'x' * 64}", "22003", 8),
    (f'SELECT 1 AS é, "{"é" * 32}"', "22003", 16),
    # What the tree holds and is not known here, at its place.
    ("MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE RETURNING 1", "0A000", 65),
    ("MERGE INTO t USING u ON true WHEN NOT MATCHED BY SOURCE THEN DELETE", "0A000", 12),
    ("WITH m AS (MERGE INTO t USING u ON true WHEN MATCHED THEN DELETE) SELECT 1", "0A000", 6),
    ("SELECT * FROM (WITH w AS (DELETE FROM t) SELECT 1) s", "0A000", 21),
    ("SELECT * FROM (SELECT 1 FROM t FOR UPDATE) s", "0A000", 32),
    ("SELECT a INTO u FROM t", "0A000", 15),
    ("SELECT xmlelement(name a)", "0A000", 8),
    ("SELECT json_object('a': 1)", "0A000", 8),
    ("SELECT X'1f'", "0A000", 8),
    ("SELECT a FROM t ORDER BY a USING <", "0A000", 34),
    ("SELECT f(VARIADIC a) FROM t", "0A000", 8),
    ("SELECT f(b => 1)", "0A000", 10),
    ("SELECT rank(1) WITHIN GROUP (ORDER BY a) FROM t", "0A000", 8),
    ("SELECT (a).b FROM t", "0A000", 9),
    ("SELECT a.b.c.d FROM t", "0A000", 8),
    ("SELECT s.f(1)", "0A000", 8),
    ("SELECT 1::s.t.u", "0A000", 11),
    ("SELECT '{}'::int[][]", "0A000", 14),
    ("SELECT a OPERATOR(s.+) 1 FROM t", "0A000", 10),
    ("SELECT * FROM ROWS FROM (f(1), g(2)) AS x", "0A000", 26),
    ("SELECT * FROM f(1) AS x(a int)", "0A000", 25),
    ("SELECT * FROM d.s.t", "0A000", 15),
    ("SELECT * FROM (t JOIN u ON true) AS x", "0A000", 16),
    ("SELECT * FROM t JOIN u USING (a) AS x", "0A000", 15),
    ("SELECT * FROM t FETCH FIRST ROW WITH TIES", "42601", 33),
    ("SELECT * FROM t ORDER BY a FETCH FIRST 2 ROWS WITH TIES", "0A000", 40),
    ("SELECT * FROM t FOR UPDATE FOR SHARE", "0A000", 17),
    ("SELECT * FROM (SELECT * FROM t FOR UPDATE) x", "0A000", 32),
    ("WITH RECURSIVE w(a) AS (SELECT 1) SEARCH DEPTH FIRST BY a SET b SELECT 1", "0A000", 35),
    ("INSERT INTO t VALUES (1) ON CONFLICT (lower(a)) DO NOTHING", "0A000", 26),
    ("INSERT INTO t VALUES (1) ON CONFLICT (a) WHERE b DO NOTHING", "0A000", 48),
    ("UPDATE t SET a[1] = 2", "0A000", 16),
    ("UPDATE t SET (a, b) = f(1)", "0A000", 15),
    ("UPDATE t SET (a, b) = (1, 2, 3)", "42601", 15),
    ("DELETE FROM t RETURNING WITH (OLD AS o) a", "0A000", 31),
    ("EXPLAIN CREATE TABLE t AS SELECT 1", "0A000", 34),
    ("CREATE VIEW v AS SELECT 1", "0A000", 13),
    ("SELECT $0", "42601", 8),
    ("SELECT $1001", "42601", 8),
    # What is nested deeper than anybody reads, and what would end the process.
    ("SELECT " + "(" * 1_000_000, "54001", 8007),
    ("SELECT " + "NOT " * 100_000 + "true", "54001", 32_004),
    ("SELECT " + "CASE WHEN " * 80_000, "54001", 79_998),
    ("SELECT " + "(SELECT " * 100_000, "54001", 32_001),
    ("SELECT " + "1+" * 100_000 + "1", "54001", 8007),
    ("SELECT 1" + "::int" * 100_000, "54001", None),
    ("SELECT 1" + " UNION SELECT 1" * 60_000, "54001", None),
    ("SELECT 1 FROM a" + " JOIN b ON x AND y" * 50_000, "54001", None),
    ("SELECT a" + " ISNULL BETWEEN b AND c" * 40_000, "54001", None),
    ("SELECT " + "CASE WHEN a.end AND b.and + " * 30_000, "54001", None),
    ("SELECT 1" + "+1" * (TOKENS_DEEP_MAX // 2 - 10), "54001", None),
    ("SELECT 1" + "+1" * 110, "54001", None),
    ("SELECT 1" + " UNION SELECT 1" * 401, "54001", None),
    ("SELECT " + "(SELECT " * 60 + "1" + ")" * 60, "54001", None),
    ("SELECT 1 GROUP BY " + "GROUPING SETS (" * 30 + "1" + ")" * 30, "54001", None),
    ("SELECT '" + "x" * (1 << 20) + "'", "22003", None),
    # The tree would hold the right side once for each column.
    (f"UPDATE t SET ({'a, ' * 1_500}a) = ({'1, ' * 1_500}1)", "54001", 14),
    (f"UPDATE t SET {'(a, b) = (1, 2), ' * 60_000}c = 1", "54001", None),
]


@pytest.mark.parametrize(("text", "code", "position"), REFUSED, ids=[t[:40] for t, *_ in REFUSED])
def test_refused_with_code_and_place(text: str, code: str, position: int | None) -> None:
    with pytest.raises(Refused) as caught:
        read_statement(text)
    assert caught.value.sqlstate == code
    if position is not None:
        assert caught.value.detail.get("position") == position
    assert len(caught.value.message) < 300


CHAINS = [
    ("SELECT 1", "+1"),
    ("SELECT 1", "::int"),
    ("SELECT 1", " UNION SELECT 1, 2"),
    ("SELECT 1 FROM a", " JOIN b ON x AND y"),
    ("SELECT a", " ISNULL BETWEEN b AND c"),
    ("SELECT ", "CASE WHEN a AND "),
    ("SELECT a", " + a.case + a.end + a.and + a.or + a.between"),
    ("SELECT ", "f(1, "),
    ("SELECT ", "(SELECT "),
    ("SELECT ", "ARRAY["),
    ("SELECT ", "CASE WHEN a THEN 1 END + "),
]


@pytest.mark.parametrize(("begin", "link"), CHAINS)
def test_a_chain_of_anything_is_measured(begin: str, link: str) -> None:
    source = Source(begin + link * TOKENS_DEEP_MAX)
    with pytest.raises(TooComplex):
        refuse_depth(kinds_of(source), source)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    forms = [
        *("({0})", "{0} + {1}", "NOT {0}", "- {0}", "{0} ISNULL", "{0}::int", "{0} AND {1}"),
        *("{0} OR {1}", "{0} BETWEEN {1} AND {2}", "f({0}, {1})", "({0}, {1})", "ARRAY[{0}, {1}]"),
        *("CASE WHEN {0} THEN {1} END", "CASE {0} WHEN {1} THEN {2} ELSE {0} END"),
        *("(SELECT {0} UNION SELECT {1})", "(SELECT {0} FROM t JOIN u ON {1} WHERE {2})"),
        *("{0} IN ({1}, {2})", "EXISTS (SELECT {0}, {1})", "{0} COLLATE c"),
    ]
    return st.builds(str.format, st.sampled_from(forms), inner, inner, inner)


@settings(max_examples=300)
@given(st.recursive(st.sampled_from(["a", "1", "a.case", "a.end", "a.and"]), _grown, max_leaves=40))
def test_no_tree_is_deeper_than_was_measured(expression: str) -> None:
    """By three levels for each that is counted."""
    text = f"SELECT {expression}"
    try:
        (parsed,) = parse(text)
    except Refused:
        return  # operators that don't stand beside each other
    source = Source(text)
    with pytest.raises(TooComplex):
        refuse_depth(kinds_of(source), source, _levels(parsed.body) // 3 - 1)


def _levels(body: object) -> int:
    if isinstance(body, list):
        return max(map(_levels, body), default=0)
    if isinstance(body, dict):
        is_node = len(body) == 1 and next(iter(body))[:1].isupper()
        return is_node + max(map(_levels, body.values()), default=0)
    return 0


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1 WHERE " + "a AND (b OR c) OR " * 20_000 + "d",
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT 1" + "+1" * 90,
        "SELECT 1" + " UNION SELECT 1" * 400,
        "VALUES " + ", ".join(["(1, 'a', f(x) + 1)"] * 20_000),
        "SELECT 1 FROM t WHERE a IN (" + ", ".join(["1"] * 100_000) + ")",
        "UPDATE t SET a = CASE b" + " WHEN 1 THEN 2" * 20_000 + " END",
        "INSERT INTO t VALUES (1) ON CONFLICT DO NOTHING",
        f"UPDATE t SET ({'a, ' * 50}a) = ({'1, ' * 50}1)",
        "UPDATE t SET (a, b) = (1, 2) WHERE " + " AND ".join(["(a, b) = (1, 2)"] * 20_000),
    ],
    ids=lambda text: text[:40],
)
def test_what_is_long_and_not_deep_is_read(text: str) -> None:
    read_statement(text)


def test_statements_of_one_text_know_where_they_stand() -> None:
    text = " ;; SELECT 'é' ; /* c */ UPDATE t SET a = ';' -- d\n ;DELETE FROM t"
    found = [(one.kind, one.text, one.source.position(one.begin)) for one in parse(text)]
    assert found == [
        ("SelectStmt", "SELECT 'é'", 5),
        ("UpdateStmt", "UPDATE t SET a = ';' -- d", 26),
        ("DeleteStmt", "DELETE FROM t", 54),
    ]


VERIFIED: list[tuple[str, int | None]] = [
    ("SELECTV a FROM t", 1),
    ("selectv*FROM t", 1),
    ("EXPLAIN SELECTV 1", 9),
    ("EXPLAIN (READS) SELECTV 1", 17),
    ("WITH a(x) AS (SELECT 1), b AS (SELECT ')') SELECTV 1", 44),
    ("SELECTV 1 UNION ALL SELECTV 2", 1),
    ("SELECTV 'é', selectv FROM selectv", 1),
    ("SELECT selectv FROM selectv", None),
    ("SELECT 1 FROM (SELECT 1) selectv", None),
    ("SELECT 1 AS selectv UNION SELECT 2", None),
    ("WITH selectv AS (SELECT 1) SELECT 1 FROM selectv", None),
    ('SELECT 1 "SELECTV"', None),
]


@pytest.mark.parametrize(("text", "position"), VERIFIED)
def test_selectv_is_a_word_where_a_statement_begins(text: str, position: int | None) -> None:
    statement, _ = read_statement(text)
    query = statement.statement if isinstance(statement, tree.Explain) else statement
    assert isinstance(query, tree.Query)
    assert query.visits == (None if position is None else tree.Visits(position, SELECTV))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("SELECT 1 UNION SELECTV 2", 16),
        ("SELECTV (SELECTV 1)", 18),
        ("(SELECTV 1)", 2),
        ("SELECTV 1 FOR UPDATE", 11),
    ],
)
def test_selectv_is_no_word_elsewhere(text: str, position: int) -> None:
    with pytest.raises(Refused) as caught:
        read_statement(text)
    assert caught.value.detail["position"] == position


ALONE: list[tuple[str, int]] = [
    ("", 1),
    ("a b", 3),
    ("a AS b", 3),
    ("a, b", 2),
    ("é, b", 2),
    ("a FROM t", 3),
    ("a; b", 4),
    ("a) + (b", 2),
    ("SELECT 1", 1),
    ("1 +", 4),
    ("a -- c", 0),
    ("(a)", 0),
    ("a;", 0),
]


@pytest.mark.parametrize(("text", "position"), ALONE)
def test_an_expression_stands_alone(text: str, position: int) -> None:
    """`position` 0: it does."""
    if not position:
        assert expression_of(text) == tree.Name(text.index("a") + 1, ("a",))
        return
    with pytest.raises(Refused) as caught:
        expression_of(text)
    assert (caught.value.sqlstate, caught.value.detail["position"]) == ("42601", position)


NUMBERS = [("0x1F", "31"), ("1_000", "1000"), ("0b101_0", "10"), ("0xFFFFFFFFFF", "1099511627775")]
NUMBERS += [("-1_0.5_0", "-10.50"), ("- 3", "-3"), ("1e3", "1e3"), (".5", ".5"), ("1.", "1.")]


@pytest.mark.parametrize(("text", "digits"), NUMBERS)
def test_numbers_are_in_digits(text: str, digits: str) -> None:
    assert expression_of(text) == tree.Constant(1, "number", digits)
