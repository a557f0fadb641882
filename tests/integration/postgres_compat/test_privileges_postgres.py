"""Goal: who may do what after any GRANTs and REVOKEs is what PostgreSQL says of the same ones.

Method: random statements by random roles, to PostgreSQL and to the pure rules; after each the same
error or warning, the same list, the same privileges of every role. `SEED=7 STEPS=5000 pytest …`
looks elsewhere and further.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random, SystemRandom
from typing import Final

import psycopg
import pytest

from leasehold.catalog.privileges import (
    ALL,
    Acl,
    Change,
    Privilege,
    change_acl,
    default_acl,
    item_text,
    privileges_of,
    with_owner,
)
from leasehold.catalog.roles import BOOTSTRAP_ROLE, PUBLIC, Role, Roles
from leasehold.model.errors import Refused
from tests.support.every_third import every_third
from tests.support.postgres.postgres_server import postgres_server

pytestmark = pytest.mark.integration

SEED: Final = int(os.environ.get("SEED") or SystemRandom().getrandbits(32))
STEPS: Final = int(os.environ.get("STEPS", "600"))
ROUNDS: Final = 3
NAMES: Final = ("postgres", "r1", "r2", "r3", "r4", "r5", "Ünlike")
IDS: Final = (BOOTSTRAP_ROLE, 101, 102, 103, 104, 105, 106)
WORDS: Final = {
    p.name: p for p in (*ALL["table"],) if p.name is not None and p is not Privilege.NONE
}


COLUMNS: Final = "columns"
"""PostgreSQL refuses a REVOKE on a table, after all, to whom may do nothing with its columns."""


class Both:
    """The same roles and one table in PostgreSQL and in the rules."""

    def __init__(self, connection: psycopg.Connection, chance: Random) -> None:
        self.connection = connection
        self.chance = chance
        self.roles = Roles([Role(BOOTSTRAP_ROLE, "postgres", superuser=True, may_log_in=True)])
        self.owner = IDS[1]
        self.acl: Acl = default_acl("table", self.owner)
        self.said: list[str] = []
        self.before: list[str] = []
        self.warnings: list[str] = []
        connection.add_notice_handler(self._heed)
        for role, name in zip(IDS[1:], NAMES[1:], strict=True):
            inherits = name != "r3"
            word = "inherit" if inherits else "noinherit"
            self.do(f'create role "{name}" {word} {"createrole" if name == "r4" else ""}')
            made = Role(role, name, inherits=inherits, may_create_roles=name == "r4")
            self.roles = self.roles.with_role(made)
        self.do("create table t (id int primary key)")
        self.do('alter table t owner to "r1"')
        self.do('grant all on t to "r1"')  # the default list, written out

    def _heed(self, notice: psycopg.errors.Diagnostic) -> None:
        """Note warnings, but for those of columns: a REVOKE on a table goes on to each of them."""
        if notice.severity_nonlocalized == "WARNING" and "column" not in str(
            notice.message_primary
        ):
            self.warnings.append(str(notice.sqlstate))

    def do(self, sql: str) -> str:
        """Run it in PostgreSQL; return the SQLSTATE of its error or warning, "" = none."""
        self.warnings.clear()
        try:
            self.connection.execute(sql)
        except psycopg.Error as error:
            return COLUMNS if " for column " in str(error) else str(error.sqlstate)
        return self.warnings[-1] if self.warnings else ""

    def as_role(self, role: int, sql: str) -> str:
        name = NAMES[IDS.index(role)]
        self.said.append(f"as {name}: {sql}")
        self.do(f'set session authorization "{name}"')
        try:
            return self.do(sql)
        finally:
            self.do("reset session authorization")

    def change_membership(self) -> None:
        actor, role, member = (self.chance.choice(IDS) for _ in range(3))
        if self.chance.random() < 0.5:
            actor = BOOTSTRAP_ROLE
        names = [f'"{NAMES[IDS.index(r)]}"' for r in (role, member)]
        takes = self.chance.random() < 0.4
        admin = self.chance.random() < 0.3
        if takes:
            sql = f"revoke {'admin option for ' if admin else ''}{names[0]} from {names[1]}"
        else:
            sql = f"grant {names[0]} to {names[1]}{' with admin option' if admin else ''}"
        expected = self.as_role(actor, sql)
        try:
            if takes:
                self.roles = self.roles.revoke(actor, role, member, admin_only=admin)
            else:
                self.roles = self.roles.grant(actor, role, member, admin=admin)
            found = ""
        except Refused as error:
            found = error.sqlstate
        if expected != "01000":  # it was no member
            assert found == expected, self._told()

    def change_privileges(self) -> None:
        chance = self.chance
        actor = chance.choice(IDS)
        every = chance.random() < 0.2
        chosen = chance.sample(sorted(WORDS), chance.randrange(1, 4))
        what = "all" if every else ", ".join(chosen)
        privileges = ALL["table"] if every else Privilege.NONE
        for word in () if every else chosen:
            privileges |= WORDS[word]
        grantees = tuple(chance.sample((PUBLIC, *IDS), chance.randrange(1, 3)))
        whom = ", ".join("public" if g == PUBLIC else f'"{NAMES[IDS.index(g)]}"' for g in grantees)
        option, cascade = chance.random() < 0.5, chance.random() < 0.5
        is_grant = chance.random() < 0.6
        if is_grant:
            sql = f"grant {what} on t to {whom}{' with grant option' if option else ''}"
        else:
            sql = (
                f"revoke {'grant option for ' if option else ''}{what} on t from {whom}"
                f" {'cascade' if cascade else 'restrict'}"
            )
        expected = self.as_role(actor, sql)
        if expected == COLUMNS:
            return
        change = Change(is_grant, privileges, grantees, option, cascade, every)
        try:
            made = change_acl(self.roles, self.acl, change, actor, self.owner, "table", "t")
            self.acl = made.acl
            found = made.sqlstate if made.warning else ""
        except Refused as error:
            found = error.sqlstate
        assert found == expected, self._told()

    def change_owner(self) -> None:
        owner = self.chance.choice(IDS)
        self.as_role(BOOTSTRAP_ROLE, f'alter table t owner to "{NAMES[IDS.index(owner)]}"')
        self.acl = with_owner(self.acl, self.owner, owner)
        self.owner = owner

    def _told(self) -> str:
        return f"seed {SEED}: {self.said[-1]}; owner {self.owner}, {self.before}"

    def compare(self) -> None:
        names = {PUBLIC: "", **dict(zip(IDS, NAMES, strict=True))}
        found = sorted(item_text(i, (names[i.grantee], names[i.grantor])) for i in self.acl)
        row = self.connection.execute(
            "select coalesce(relacl::text[], '{}') from pg_class where oid = 't'::regclass"
        ).fetchone()
        assert row is not None
        assert found == sorted(row[0]), self._told()
        self.before = found
        for role, name in zip(IDS, NAMES, strict=True):
            held = privileges_of(self.roles, self.acl, role, "table")
            for word, privilege in WORDS.items():
                answer = self.connection.execute(
                    "select has_table_privilege(%s, 't', %s)", (name, word)
                ).fetchone()
                assert answer == (bool(held & privilege),), (name, word, self._told())


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with postgres_server() as port:
        yield port


@pytest.mark.parametrize("round_", every_third(range(ROUNDS)))
def test_grants_and_revokes_leave_what_postgresql_leaves(server: int, round_: int) -> None:
    chance = Random(f"{SEED}/{round_}")
    print(f"seed {SEED}")
    address = f"host=127.0.0.1 port={server} user=postgres dbname="
    with psycopg.connect(address + "postgres", autocommit=True) as first:
        first.execute(f"create database d{round_}")
    with psycopg.connect(f"{address}d{round_}", autocommit=True) as connection:
        both = Both(connection, chance)
        for _ in range(STEPS // ROUNDS):
            kind = chance.random()
            if kind < 0.2:
                both.change_membership()
            elif kind < 0.23:
                both.change_owner()
            else:
                both.change_privileges()
            both.compare()
        connection.execute("drop table t")
        for name in NAMES[1:]:
            connection.execute(f'drop role "{name}"')
