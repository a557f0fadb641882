"""Goal: the whole of the language that is stated means over the wire what it means in PostgreSQL.

Method: random statements of many families (`wide_cases.py`), each by libpq to a session here and to
a real PostgreSQL: same types, values, tags, SQLSTATE classes; of statements that write the same
table afterwards; and each value as a parameter, in text and binary, there and back. What is refused
with 0A000 is counted, and may be no more than a part of each family.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

import psycopg
import pytest
from psycopg import pq

from leasehold.dev.database import DevDatabase
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from tests.support.every_third import every_third_seed
from tests.support.postgres.postgres_server import postgres_server
from tests.support.postgres.wide_cases import Wide
from tests.support.postgres.wide_tables import KINDS, VALUES, Schema, Statement, schema

pytestmark = [pytest.mark.integration, pytest.mark.slow]

FIRST_SEED: Final = int(os.environ.get("WIDE_SEED", "1"))
SEEDS: Final = int(os.environ.get("WIDE_SEEDS", "6"))
STATEMENTS: Final = int(os.environ.get("WIDE_STATEMENTS", "12"))
"""Of each family and seed."""
NUMERIC: Final = 1700
LIMIT: Final = "set statement_timeout = '30s'"
TABLES: Final = ("w", "u", "n", "t")


class Told(NamedTuple):
    """What came: an SQLSTATE, or a tag with the columns' types and the rows."""

    code: str
    tag: str = ""
    types: tuple[int, ...] = ()
    rows: tuple[tuple[bytes | None, ...], ...] = ()
    words: str = ""

    def same(self, other: Told, *, ordered: bool) -> bool:
        if self.code or other.code:
            return self.code[:2] == other.code[:2]
        if (self.tag, self.types) != (other.tag, other.types):
            return False
        if ordered:
            return self.plain() == other.plain()
        return sorted(map(repr, self.rows)) == sorted(map(repr, other.rows)) or (
            sorted(map(repr, self.plain())) == sorted(map(repr, other.plain()))
        )

    def plain(self) -> list[tuple[bytes | None, ...]]:
        """Numerics that are equal look the same: which of them stands for all, and how those
        that are equal follow each other, is nobody's promise."""
        return [
            tuple(_shortest(v) if t == NUMERIC else v for v, t in zip(row, self.types, strict=True))
            for row in self.rows
        ]


def _shortest(value: bytes | None) -> bytes | None:
    try:
        return None if value is None else str(Decimal(value.decode()).normalize() + 0).encode()
    except InvalidOperation:
        return value


class Server:
    """One of the two, by libpq."""

    def __init__(self, port: int, user: str, database: str) -> None:
        self._connection = psycopg.connect(
            host="127.0.0.1", port=port, user=user, dbname=database, autocommit=True
        )
        self._pg = self._connection.pgconn

    def ask(self, text: str) -> Told:
        return self._told(self._pg.exec_(text.encode()))

    def given(self, text: str, kind: int, value: bytes | None, form: int, back: int) -> Told:
        """One parameter, in text or binary."""
        return self._told(
            self._pg.exec_params(text.encode(), [value], [kind], [pq.Format(form)], pq.Format(back))
        )

    def _told(self, result: pq.abc.PGresult) -> Told:
        if result.status in (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE):
            code = result.error_field(pq.DiagnosticField.SQLSTATE) or b"?"
            return Told(code.decode(), words=result.error_message.decode())
        wide = range(result.nfields)
        rows = tuple(
            tuple(result.get_value(row, column) for column in wide) for row in range(result.ntuples)
        )
        tag = (result.command_status or b"").decode()
        return Told("", tag, tuple(result.ftype(column) for column in wide), rows)

    def must(self, text: str) -> Told:
        told = self.ask(text)
        assert not told.code, (text, told)
        return told

    def close(self) -> None:
        self._connection.close()


class Pair:
    def __init__(self, ours: Server, theirs: Server) -> None:
        self.ours, self.theirs = ours, theirs

    def both(self, text: str) -> tuple[Told, Told]:
        return self.ours.ask(text), self.theirs.ask(text)

    def make(self, made: Schema) -> None:
        for server in (self.ours, self.theirs):
            server.must("set statement_timeout = 0")
            for table in TABLES:
                server.must(f"drop table if exists {table}")
            for text in (*made.ddl, *made.rows):
                server.must(text)
            server.must(LIMIT)

    def again(self, made: Schema, table: str) -> None:
        """The rows of a table as they were."""
        begins = f"insert into {table} values "
        rows = ", ".join(r.removeprefix(begins) for r in made.rows if r.startswith(begins))
        for server in (self.ours, self.theirs):
            server.must(f"delete from {table}")
            server.must(begins + rows)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with servers(tmp_path_factory.mktemp("wide")) as made:
        yield made


@contextmanager
def servers(folder: Path) -> Iterator[Pair]:
    database = DevDatabase(folder)
    try:
        database.wait_ready()
        node = database.sql_node()
        listener = SqlListener(node, PgwireSettings())
        try:
            with postgres_server() as port:
                ours = Server(listener.port, "me", node.database)
                theirs = Server(port, "postgres", "postgres")
                yield Pair(ours, theirs)
                ours.close()
                theirs.close()
        finally:
            listener.close()
    finally:
        database.close()


def on_purpose(statement: Statement, mine: Told, theirs: Told) -> str:
    """Why the two may differ here, "" where they may not."""
    text = statement.text
    if "w_a_key" in theirs.words and not mine.code:
        return "keys are looked at when all rows are there (T3)"
    if (mine.code, theirs.code) == ("21000", "23505"):
        return "keys are looked at when all rows are there (T3)"
    if mine.code == "22008" and (" BC" in str(theirs.rows) or "1 to 9999" in mine.words):
        return "the years are 1 to 9999"
    if "trailing junk after numeric literal" in theirs.words and not mine.code:
        return "numbers are read as PostgreSQL 16 does: 0x1F, 1_000"
    if theirs.code[:2] == "22" and not mine.code and any(w in text for w in ("sect", "except")):
        return "where one side of a set operation settles it the other one is not computed"
    text_or_varchar = {(25, 1043), (1043, 25)}
    if mine.types != theirs.types and not mine.code and not theirs.code:
        differ = {p for p in zip(mine.types, theirs.types, strict=True) if p[0] != p[1]}
        if differ <= text_or_varchar and any(word in text for word in ("union", "sect", "except")):
            return "an open constant takes the type of the outer set operation, too"
    if theirs.code == "42804" and " types " in theirs.words and "cannot be matched" in theirs.words:
        return "an open constant takes the type of the outer set operation, too"
    if "to_date" in text or "to_timestamp('" in text:
        return "a template reads what it says, and no more"
    return ""


def compared(pair: Pair, made: Schema, statement: Statement) -> tuple[Told, Told, bool]:
    mine, theirs = pair.both(statement.text)
    same = mine.same(theirs, ordered=statement.ordered)
    if statement.writes and (not mine.code or not theirs.code):
        table = "t" if statement.text.startswith(("update t ", "insert into t ")) else "w"
        if same:
            left, right = pair.both(f"select * from {table} order by id")
            same = left.same(right, ordered=True)
            if not same:
                mine, theirs = left, right
        pair.again(made, table)
    return mine, theirs, same


@pytest.mark.parametrize("seeds", every_third_seed(FIRST_SEED, SEEDS))
def test_the_language_means_the_same(pair: Pair, seeds: range) -> None:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    refusals: Counter[str] = Counter()
    failures: list[str] = []
    codes: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        random = Random(seed)
        made = schema(random)
        pair.make(made)
        wide = Wide(random)
        for family in wide.families:
            for _ in range(STATEMENTS):
                statement = wide.statement(family)
                mine, theirs, same = compared(pair, made, statement)
                if mine.code == "0A000":
                    counts[family]["refused"] += theirs.code == ""
                    refusals[f"{family}: {mine.words.strip()[:110]}"] += theirs.code == ""
                    continue
                counts[family]["error" if theirs.code else "rows"] += 1
                if same:
                    if mine.code != theirs.code:
                        codes[mine.code, theirs.code] += 1
                    continue
                why = on_purpose(statement, mine, theirs)
                if why:
                    counts[family][why] += 1
                    continue
                failures.append(
                    f"seed {seed}, {family}: {statement.text}\n   ours   {shown(mine)}"
                    f"\n   theirs {shown(theirs)}"
                )
    for family, count in counts.items():
        print(f"{family}: {dict(count)}")
    if "WIDE_REFUSALS" in os.environ:
        print(f"other codes: {dict(codes)}", *map(str, refusals.most_common(150)), sep="\n")
    assert not failures, f"{len(failures)} differ:\n" + "\n".join(failures[:400])


def shown(told: Told) -> str:
    if told.code:
        return f"{told.code} {told.words.strip()[:150]}"
    return f"{told.tag} {told.types} {told.rows[:14]}"


def test_each_value_goes_there_and_back(pair: Pair) -> None:
    """As a parameter in text, what PostgreSQL gives of it in binary as one in binary."""
    pair.make(schema(Random(FIRST_SEED)))
    differing: list[str] = []
    count = 0
    for kind in dict.fromkeys([*VALUES, *KINDS.values()]):
        (oid,) = pair.theirs.must(f"select null::{kind}").types
        for value in VALUES[kind]:
            text = f"select $1::{kind}, $1"
            for back in (0, 1):
                asked = text, oid, value.encode(), 0, back
                mine, theirs = pair.ours.given(*asked), pair.theirs.given(*asked)
                count += 1
                if (mine.code[:2], mine.types, mine.rows) != (
                    theirs.code[:2],
                    theirs.types,
                    theirs.rows,
                ):
                    differing.append(f"{asked}: {mine} {theirs}")
            if not theirs.code:
                asked = text, oid, theirs.rows[0][1] or b"", 1, 0
                mine, theirs = pair.ours.given(*asked), pair.theirs.given(*asked)
                count += 1
                if mine.rows != theirs.rows or mine.code != theirs.code:
                    differing.append(f"{asked}: {mine} {theirs}")
            if kind == "interval":
                continue
            for name, of in KINDS.items():
                asked = f"select id from t where {name} = $1 order by id", 0, value.encode(), 0, 0
                if of == kind:
                    mine, theirs = pair.ours.given(*asked), pair.theirs.given(*asked)
                    count += 1
                    if not mine.same(theirs, ordered=True):
                        differing.append(f"{asked}: {mine} {theirs}")
    print(f"{count} parameters")
    assert not differing, f"{len(differing)} differ:\n" + "\n".join(differing[:20])


def test_every_letter_has_the_same_capital(pair: Pair) -> None:
    for first, last in ((1, 0xD7FF), (0xE000, 0x1FFFF)):
        mine, theirs = pair.both(
            "select n, upper(chr(n)), lower(chr(n))"
            f" from generate_series({first}, {last}) n order by n"
        )
        assert len(theirs.rows) == last - first + 1
        both = zip(mine.rows, theirs.rows, strict=True)
        assert [(row, other) for row, other in both if row != other] == []
