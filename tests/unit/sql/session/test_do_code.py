"""DO's code: what of PL/pgSQL is read, what is refused by name, and where."""

from __future__ import annotations

import random
from typing import Final

import pytest

from leasehold.model.errors import FeatureNotSupported, Refused
from leasehold.sql.session.condition_names import CODES, OTHERS, is_caught
from leasehold.sql.session.text import read_text
from leasehold.sql.syntax.procedural import CodeBlock, If, Raise, Run, statements_in
from leasehold.sql.syntax.session_statements import Do


def read(text: str) -> Do:
    (statement,) = read_text(text)
    assert isinstance(statement.meaning, Do)
    return statement.meaning


def test_the_block_that_catches_an_error() -> None:
    text = (
        "/* é */ DO $it$ BEGIN -- make it\n CREATE TYPE a AS ENUM ('x;y');"
        " EXCEPTION WHEN duplicate_object OR SQLSTATE '42P07' THEN NULL;"
        " WHEN Others THEN RAISE NOTICE 'no ''%%'''; RAISE; END $it$ LANGUAGE plpgsql"
    )
    said = read(text)
    (made,) = said.block.body
    assert isinstance(made, Run)
    assert made.statement.text == "CREATE TYPE a AS ENUM ('x;y')"
    assert text[made.statement.offset :].startswith(made.statement.text)
    first, last = said.block.handlers
    assert (first.conditions, first.body) == (("42710", "42P07"), ())
    assert last.conditions == (OTHERS,)
    assert last.body == (Raise("notice", "no '%'"), Raise("exception"))
    assert said.is_placed


def test_if_and_nested_blocks() -> None:
    said = read(
        "DO 'begin if not exists (select from t where case when a then b end) then"
        " create table t (id int); elsif 1 = 2 then if true then null; end if;"
        " else begin drop table t; exception when undefined_table then null; end; end if;"
        " perform f(''x''); insert into t values (1); end;'"
    )
    chosen, performed, inserted = said.block.body
    assert isinstance(chosen, If)
    tests = [branch.test.text for branch in chosen.branches]
    assert tests == [
        "SELECT CAST((not exists (select from t where case when a then b end)) AS boolean)",
        "SELECT CAST((1 = 2) AS boolean)",
    ]
    assert isinstance(chosen.otherwise[0], CodeBlock)
    assert isinstance(performed, Run)
    assert performed.statement.text == "SELECT f('x')"
    assert performed.performs
    assert isinstance(inserted, Run)
    assert not said.is_placed
    assert [s.text.split()[0] for s in statements_in((said.block,))] == [
        "create",
        "drop",
        "SELECT",
        "insert",
    ]


REFUSED: Final = [
    ("declare x int; begin null; end", "0A000", "declare", "DECLARE in DO"),
    ("begin x := 1; end", "0A000", "x :=", "an assignment in DO"),
    ("begin for r in select 1 loop null; end loop; end", "0A000", "for", "FOR in DO"),
    ("begin execute 'drop table t'; end", "0A000", "execute", "EXECUTE of a text in DO"),
    ("begin null; null; return; end", "0A000", "return", "RETURN in DO"),
    ("begin raise notice 'a %', 1; end", "0A000", ", 1", "RAISE with values in DO"),
    ("begin raise unique_violation; end", "0A000", "unique_", "RAISE of a condition in DO"),
    ("begin commit; end", "0A000", "commit", "COMMIT in DO"),
    ("begin set search_path = a; end", "0A000", "set", "SET in DO"),
    ("<<a>> begin null; end", "0A000", "<<", "a label in DO"),
    ("begin create function f() returns int language sql as 'x'; end", "0A000", "create f", "func"),
    ("begin select 1; end", "42601", "select", "query has no destination"),
    ("begin null end", "42601", "end", "syntax error"),
    ("begin null; end if", "42601", "if", "syntax error"),
    ("begin create tabel x (); end", "42601", "tabel", "syntax error"),
    ("begin if then null; end if; end", "42601", "then", "syntax error"),
    ("begin perform; end", "42601", "; end", "syntax error"),
    ("begin null; exception end", "42601", "end", "syntax error"),
    ("begin null; exception when nobody then null; end", "42704", "nobody", "unrecognized"),
    ("begin raise notice 'a %'; end", "42601", "; end", "too few parameters"),
    ("begin null;", "42601", "", "syntax error at end of input"),
    ("", "42601", "", "syntax error at end of input"),
]


@pytest.mark.parametrize(("code", "sqlstate", "at", "words"), REFUSED)
def test_what_is_refused(code: str, sqlstate: str, at: str, words: str) -> None:
    """By name, at its place in the client's text; of a text in quotes at the statement."""
    before = "select 1; do $$"
    with pytest.raises(Refused) as caught:
        read_text(f"{before}{code}$$")
    error = caught.value
    assert (error.sqlstate, words in error.message) == (sqlstate, True), error.message
    if isinstance(error, FeatureNotSupported) and "DO" in words:
        assert "docs/how-to/do-without.md" in str(error.detail["hint"])
    place = int(str(error.detail["position"])) - 1 - len(before)
    assert code[place:].lstrip().startswith(at.lstrip())
    before = "do language 'plpgsql' '"
    with pytest.raises(Refused) as caught:
        read_text(f"{before}{code.replace(chr(39), chr(39) * 2)}'")
    again = int(str(caught.value.detail["position"])) - 1
    assert again == (0 if "'" in code else place + len(before))


def test_other_languages_and_depth() -> None:
    with pytest.raises(FeatureNotSupported, match="language 'sql'"):
        read_text("do $$select 1$$ language sql")
    deep = "begin " * 60 + "null;" + "end;" * 60
    with pytest.raises(Refused) as caught:
        read_text(f"do $${deep}$$")
    assert caught.value.sqlstate == "54001"


def test_no_code_ends_otherwise_than_by_words() -> None:
    """Words in any order are read, or refused."""
    rng = random.Random(7)
    words = "begin end ; if then else elsif null raise notice 'x' exception when others or ( ) case"
    words += " perform f $1 := select create table t sqlstate '42P07' warning % , using <<"
    for _ in range(3_000):
        code = "begin " + " ".join(rng.choices(words.split(), k=rng.randrange(12)))
        try:
            read_text(f"do $do${code}$do$")
        except Refused:
            continue


def test_conditions() -> None:
    assert CODES["duplicate_object"] == "42710"
    assert CODES["unique_violation"] == "23505"
    assert CODES["raise_exception"] == "P0001"
    assert len(CODES) > 200
    assert is_caught("23505", CODES["integrity_constraint_violation"])
    assert not is_caught("22003", CODES["integrity_constraint_violation"])
    assert is_caught("23505", OTHERS)
    assert not is_caught("57014", OTHERS)
    assert not is_caught("23505", CODES["check_violation"])
