"""CREATE [UNIQUE] INDEX, DROP INDEX and ALTER INDEX."""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.model.errors import (
    FeatureNotSupported,
    InvalidArgument,
    InvalidObject,
    SyntaxInvalid,
    UnknownTable,
)
from leasehold.sql.ddl.indexes import derived_name
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    CreateIndex,
    DropIndex,
    IndexOrder,
    RenameIndex,
    Statement,
)
from leasehold.sql.syntax.statements import (
    IndexExpression as Expr,
)
from tests.support.sql.refusal import Refusal, check_refusal


def over(*parts: str | Expr) -> CreateIndex:
    return CreateIndex("i", "t", parts)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("create index i on t (a)", CreateIndex("i", "t", ("a",))),
        (
            "create index concurrently if not exists i on only public.t using btree (b, a)",
            CreateIndex("i", "t", ("b", "a"), True, True),
        ),
        ("create unique index i on t (a)", CreateIndex("i", "t", ("a",), unique=True)),
        (
            "create unique index on t (a)",
            CreateIndex("t_a_idx", "t", ("a",), named=False, unique=True),
        ),
        ("create index on t (a, b)", CreateIndex("t_a_b_idx", "t", ("a", "b"), named=False)),
        (
            "create index i on t (a asc, b asc nulls last, c nulls last)",
            CreateIndex("i", "t", ("a", "b", "c")),
        ),
        (
            "create index i on t (a desc, lower(b) text_ops desc nulls last, c nulls first, d)",
            replace(
                over("a", Expr("lower(b)"), "c", "d"),
                orders=(
                    IndexOrder(descending=True, position=24),
                    IndexOrder("text_ops", True, False, 39),
                    IndexOrder(nulls_first=True, position=67),
                    IndexOrder(position=81),
                ),
            ),
        ),
        ("create index i on t (lower(t.a) asc)", over(Expr("lower(a)"))),
        ("create index i on t ((A + 1), b)", over(Expr("(a + 1)"), "b")),
        ("create index i on t ((a))", over("a")),
        ("create index i on t (((a)), (b))", over("a", "b")),
        (
            "create index i on t (a) include (b, c)",
            replace(over("a"), included=("b", "c")),
        ),
        (
            "create index i on t (a) where t.b IS NOT  NULL",
            replace(over("a"), predicate=Expr("b is not null")),
        ),
        (
            "create unique index i on t (coalesce(a, 'x')) include (b) where (a > 1) or b",
            replace(
                over(Expr("coalesce(a, 'x')")),
                unique=True,
                included=("b",),
                predicate=Expr("(a > 1) or b"),
            ),
        ),
        ('create index i on t (("now" + 1), random)', over(Expr('("now" + 1)'), "random")),
        ('create index "I i" on "T" ("A""a")', CreateIndex("I i", "T", ('A"a',))),
        ("drop index i", DropIndex("i", False, 12)),
        ("drop index i cascade", DropIndex("i", False, 12, cascade=True)),
        ("drop index concurrently if exists public.i restrict", DropIndex("i", True, 35)),
        ("alter index i rename to j", RenameIndex("i", "j", False, 13)),
        ('alter index if exists public."I" rename to "J j"', RenameIndex("I", "J j", True, 23)),
    ],
)
def test_read(sql: str, expected: Statement) -> None:
    assert parse_ddl(sql) == expected


@pytest.mark.parametrize(
    ("parts", "name"),
    [
        ("(lower(a))", "t_lower_idx"),
        ("((a + 1), (b || 'x'), a)", "t_expr_expr1_a_idx"),
        ("(lower(a), lower(b), (c + 1))", "t_lower_lower1_expr_idx"),
        ("((a)) include (b)", "t_a_b_idx"),
    ],
)
def test_a_derived_name_tells_of_expressions_as_postgresqls_does(parts: str, name: str) -> None:
    made = parse_ddl(f"create index on t {parts}")
    assert isinstance(made, CreateIndex)
    assert (made.name, made.named) == (name, False)


def test_where_parts_stand() -> None:
    made = parse_ddl("create index i on t (a, (b + 1)) include (c) where d")
    assert isinstance(made, CreateIndex)
    assert made.positions == (22, 25, 43)
    part = made.columns[1]
    assert isinstance(part, Expr)
    assert made.predicate is not None
    assert (part.position, made.predicate.position) == (26, 52)


def test_a_derived_name_is_cut_as_postgresql_does() -> None:
    assert derived_name("t", ("a", "b"), "key") == "t_a_b_key"
    for name in (derived_name("t" * 40, ("c" * 40,)), derived_name("é" * 40, ("c",))):
        assert 62 <= len(name.encode()) <= 63
        assert name.endswith("_idx")


REFUSED: list[Refusal] = [
    ("create index i on t (a text_ops (x = 1))", FeatureNotSupported, 34),
    ("create index i on t (a) include (b desc)", FeatureNotSupported, 36),
    ("create index i on t (lower(u.a))", UnknownTable, 22),
    ("create index i on t (a, (now()))", InvalidObject, 26),
    ("create index i on t (random())", InvalidObject, 22),
    ("create index i on t ((current_user || a))", InvalidObject, 23),
    ("create index i on t (a) where b > now()", InvalidObject, 31),
    ("create index i on t (lower(a)", SyntaxInvalid, 30),
    ("create index i on t (lower(a)), b", SyntaxInvalid, 31),
    ("create index i on t (a + 1)", SyntaxInvalid, 24),
    ("create index i on t (lower(a), lower(a))", FeatureNotSupported, 21),
    ("create index i on t ((a), a)", FeatureNotSupported, 21),
    ("create index i on t (a, a) include (b)", FeatureNotSupported, 21),
    ("create index i on t (a) include ((b + 1))", FeatureNotSupported, 34),
    ("create index i on t (a) include (lower(b))", FeatureNotSupported, 34),
    ("create index i on t (a) include ()", SyntaxInvalid, 34),
    ("create index i on t (a) where", SyntaxInvalid, 30),
    ("create index i on t (a) where a > 1 include (b)", SyntaxInvalid, 37),
    ("create index i on t (t.a)", SyntaxInvalid, 25),
    ('create index i on t (a collate "de")', FeatureNotSupported, 24),
    ("create index i on t using gist (a)", FeatureNotSupported, 21),
    ("create index i on t (a) with (nothing = 10)", InvalidArgument, 31),
    ("create index i on t (a) tablespace x", FeatureNotSupported, 25),
    ("create index i on t (a, a)", FeatureNotSupported, 21),
    (f"create index i on t ({', '.join(f'c{n}' for n in range(33))})", FeatureNotSupported, 21),
    ("create index i on pg_catalog.t (a)", FeatureNotSupported, 19),
    ("create index s.i on t (a)", SyntaxInvalid, 15),
    ("create index if not exists on t (a)", SyntaxInvalid, 28),
    ("create index i on t", SyntaxInvalid, 20),
    ("create index i on t ()", SyntaxInvalid, 22),
    ("create index i on t (1)", SyntaxInvalid, 22),
    ("create index i t (a)", SyntaxInvalid, 16),
    ("create index i on t (a) b", SyntaxInvalid, 25),
    ("create unique table t (a int)", SyntaxInvalid, 15),
    ("drop index concurrently i, j", FeatureNotSupported, 26),
    ("drop index", SyntaxInvalid, 11),
    ("drop index i on t", SyntaxInvalid, 14),
    ("alter index i set (fillfactor = 10)", FeatureNotSupported, 15),
    ("alter index i alter column 1 set statistics 1", FeatureNotSupported, 15),
    ("alter index i rename j", SyntaxInvalid, 22),
    ("alter index i rename to s.j", SyntaxInvalid, 26),
    ("alter index i", SyntaxInvalid, 14),
]


@pytest.mark.parametrize("refusal", REFUSED)
def test_refused(refusal: Refusal) -> None:
    check_refusal(*refusal)


@pytest.mark.parametrize("method", ["gin", "gist", "spgist"])
def test_another_method_is_refused_by_its_name_with_a_hint(method: str) -> None:
    with pytest.raises(FeatureNotSupported, match=f"index method '{method}'") as refused:
        parse_ddl(f"create index i on t using {method} (doc)")
    assert "->>" in str(refused.value.detail["hint"])
    assert refused.value.detail["position"] == 21
