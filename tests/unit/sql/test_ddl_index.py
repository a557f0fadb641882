"""CREATE [UNIQUE] INDEX, DROP INDEX and ALTER INDEX."""

from __future__ import annotations

import pytest

from leasehold.model.errors import FeatureNotSupported, SyntaxInvalid
from leasehold.sql.ddl import derived_name, parse_ddl
from leasehold.sql.statements import CreateIndex, DropIndex, RenameIndex, Statement
from tests.unit.sql.refusal import Refusal, check_refusal


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
        ('create index "I i" on "T" ("A""a")', CreateIndex("I i", "T", ('A"a',))),
        ("drop index i", DropIndex("i", False, 12)),
        ("drop index concurrently if exists public.i restrict", DropIndex("i", True, 35)),
        ("alter index i rename to j", RenameIndex("i", "j", False, 13)),
        ('alter index if exists public."I" rename to "J j"', RenameIndex("I", "J j", True, 23)),
    ],
)
def test_read(sql: str, expected: Statement) -> None:
    assert parse_ddl(sql) == expected


def test_a_derived_name_is_cut_as_postgresql_does() -> None:
    assert derived_name("t", ("a", "b"), "key") == "t_a_b_key"
    for name in (derived_name("t" * 40, ("c" * 40,)), derived_name("é" * 40, ("c",))):
        assert 62 <= len(name.encode()) <= 63
        assert name.endswith("_idx")


REFUSED: list[Refusal] = [
    ("create index i on t (a desc)", FeatureNotSupported, 24),
    ("create index i on t (a asc nulls first)", FeatureNotSupported, 28),
    ("create index i on t (a nulls first)", FeatureNotSupported, 24),
    ("create index i on t (lower(a))", FeatureNotSupported, 27),
    ("create index i on t ((a + 1))", FeatureNotSupported, 22),
    ("create index i on t (t.a)", FeatureNotSupported, 23),
    ("create index i on t (a) where a > 1", FeatureNotSupported, 25),
    ("create index i on t (a) include (b)", FeatureNotSupported, 25),
    ("create index i on t (a) nulls not distinct", FeatureNotSupported, 25),
    ("create index i on t (a text_ops)", FeatureNotSupported, 24),
    ('create index i on t (a collate "C")', FeatureNotSupported, 24),
    ("create index i on t using hash (a)", FeatureNotSupported, 21),
    ("create index i on t (a) with (fillfactor = 10)", FeatureNotSupported, 25),
    ("create index i on t (a) tablespace x", FeatureNotSupported, 25),
    ("create index i on t (a, a)", FeatureNotSupported, 21),
    (f"create index i on t ({', '.join(f'c{n}' for n in range(33))})", FeatureNotSupported, 21),
    ("create index i on s.t (a)", FeatureNotSupported, 19),
    ("create index s.i on t (a)", SyntaxInvalid, 15),
    ("create index if not exists on t (a)", SyntaxInvalid, 28),
    ("create index i on t", SyntaxInvalid, 20),
    ("create index i on t ()", SyntaxInvalid, 22),
    ("create index i on t (1)", SyntaxInvalid, 22),
    ("create index i t (a)", SyntaxInvalid, 16),
    ("create index i on t (a) b", SyntaxInvalid, 25),
    ("create unique table t (a int)", SyntaxInvalid, 15),
    ("drop index i cascade", FeatureNotSupported, 14),
    ("drop index i, j", FeatureNotSupported, 13),
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
