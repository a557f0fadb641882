"""Goal: what a role may do here is what PostgreSQL lets it do: the same statements are refused,
with the same words, after any GRANTs and REVOKEs.

Method: the same random statements by the same roles to PostgreSQL and to a database in this
process, both by psycopg: grants by whoever, then queries, writes, COPY, cursors and functions.
`SEED=7 STEPS=5000 pytest …` looks elsewhere and further.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from random import Random, SystemRandom
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.postgres_server import postgres_server
from tests.support.roles.random_statements import RandomStatements

pytestmark = pytest.mark.integration

SEED: Final = int(os.environ.get("SEED") or SystemRandom().getrandbits(32))
STEPS: Final = int(os.environ.get("STEPS", "400"))
USER: Final = "leasehold"
ROLES: Final = ("ann", "bob", "cho", "Dän")
GROUPS: Final = ("staff", "readers")
DDL: Final = (
    "create table t (id integer primary key, a integer unique, b text, c integer)",
    "create table u (id integer primary key, a integer, d integer)",
    "create table s (id serial primary key, e integer)",
    "create table f (id integer primary key, t_id integer references t, g integer)",
    "create sequence q",
    "insert into t values (1, 1, 'x', 1), (2, 2, 'y', 2)",
    "insert into u values (1, 1, 1), (2, 2, 3)",
    "insert into f values (1, 1, 1)",
    "create role ann login",
    "create role bob login noinherit",
    "create role cho login",
    'create role "Dän" login',
    "create role staff",
    "create role readers",
    "alter table u owner to ann",
    "alter sequence q owner to staff",
    "grant staff to ann, bob",
    "grant readers to cho",
    "grant readers to staff",
    'grant pg_read_all_data to "Dän"',
)


_DENIED: Final = re.compile(r"permission denied for table (\w+)")


class Said(NamedTuple):
    """What came of a statement: "" or a SQLSTATE, PostgreSQL's words where it was forbidden, and
    rows of what tells of privileges."""

    code: str
    words: str = ""
    rows: list[Any] | None = None


class Server:
    """One of the two, with a connection for each role."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connections: dict[str, psycopg.Connection[Any]] = {}

    def of(self, role: str) -> psycopg.Connection[Any]:
        found = self._connections.get(role)
        if found is None:
            address = f"{self._address} user={role}"
            found = self._connections[role] = psycopg.connect(address, autocommit=True)
        return found

    def say(self, role: str, texts: tuple[str, ...]) -> Said:
        """Return what the first failure, or else the last statement comes to."""
        connection = self.of(role)
        rows = None
        try:
            for text in texts:
                rows = self._run(connection, text)
        except psycopg.Error as error:
            if connection.info.transaction_status:
                connection.execute("rollback")
            code = str(error.sqlstate)
            words = str(error.diag.message_primary) if code == "42501" else ""
            return Said(code, words)
        return Said("", "", rows)

    @staticmethod
    def _run(connection: psycopg.Connection[Any], text: str) -> list[Any] | None:
        with connection.cursor() as cursor:
            if text.startswith("copy "):
                with cursor.copy(text) as copy:
                    if " from " not in text:
                        _ = [*copy]
                return None
            cursor.execute(text)
            return sorted(cursor.fetchall(), key=str) if cursor.description else None

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


class Both:
    def __init__(self, postgres: Server, ours: Server) -> None:
        self.postgres, self.ours = postgres, ours
        self.said: list[str] = []

    def say(self, role: str, *texts: str, told: bool = False) -> Said:
        """Say it to both. Their rows are compared where they are `told` of privileges."""
        self.said.append(f"{role}: {'; '.join(texts)}")
        wanted, found = self.postgres.say(role, texts), self.ours.say(role, texts)
        lately = "\n".join(self.said[-40:])
        if not told:
            wanted, found = wanted._replace(rows=None), found._replace(rows=None)
        if _names_another(found.words, wanted.words, texts):
            wanted = wanted._replace(words=found.words)
        assert found == wanted, f"seed {SEED}\n{lately}\nPostgreSQL: {wanted}\nhere: {found}"
        return found


def _names_another(found: str, wanted: str, texts: tuple[str, ...]) -> bool:
    """Of several tables that are denied PostgreSQL names the first by the order of its plan, which
    rests on what its planner makes of subqueries and WITH. Here it is the order of the text. The
    words are the same but for the name, and the statement names both."""
    named = [_DENIED.fullmatch(words) for words in (found, wanted)]
    if None in named or found == wanted:
        return False
    said = {word for text in texts for word in re.findall(r"\w+", text)}
    return {match[1] for match in named if match is not None} <= said


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with (
        postgres_server() as port,
        dev_server(tmp_path_factory.mktemp("roles")) as here,
    ):
        with psycopg.connect(f"host=127.0.0.1 port={port} user=postgres", autocommit=True) as first:
            first.execute(f"create role {USER} superuser login")
        postgres = Server(f"host=127.0.0.1 port={port} dbname=postgres")
        ours = Server(f"host=127.0.0.1 port={here.port} dbname={here.database}")
        made = Both(postgres, ours)
        try:
            for text in DDL:
                assert made.say(USER, text).code == "", text
            yield made
        finally:
            postgres.close()
            ours.close()


def test_random_statements_are_allowed_and_refused_as_by_postgresql(both: Both) -> None:
    chance = Random(SEED)
    print(f"seed {SEED}")
    words = RandomStatements(chance, ROLES, GROUPS)
    seen: Counter[tuple[str, str]] = Counter()
    for _ in range(STEPS):
        role = chance.choice(ROLES)
        if chance.random() < 0.3:
            both.say(*words.grant(USER))
            continue
        kind, texts = words.statement()
        if kind == "rows" and chance.random() < 0.3:
            texts = (f'set role "{chance.choice((*ROLES, *GROUPS))}"', *texts, "reset role")
        if kind == "block" or (kind == "rows" and chance.random() < 0.5):
            texts = ("begin", *texts, "rollback")
        found = both.say(role, *texts, told=kind == "told")
        both.say(role, "reset role")
        seen[kind, found.code] += 1
    print(seen)
    assert {code for _, code in seen} >= {"", "42501"}
