"""Goal: statements about roles, privileges and owners do what they do in PostgreSQL, whoever says
them: the same errors in the same words, warnings, lists, owners, memberships, and answers of
has_…_privilege.

Method: random statements by random roles, to PostgreSQL and to a catalog as the master decides on
it. `SEED=7 STEPS=5000 pytest …` looks elsewhere and further.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random, SystemRandom
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from leasehold.catalog.access import DATABASE, kind_of
from leasehold.catalog.privileges import ALL, Acl, ObjectKind, item_text
from leasehold.catalog.roles import PUBLIC
from leasehold.model.errors import Refused
from tests.support.every_third import every_third
from tests.support.postgres.postgres_server import postgres_server
from tests.support.roles.role_world import RoleWorld

pytestmark = pytest.mark.integration

SEED: Final = int(os.environ.get("SEED") or SystemRandom().getrandbits(32))
STEPS: Final = int(os.environ.get("STEPS", "800"))
ROUNDS: Final = 3
SUPERUSER: Final = "postgres"
NAMES: Final = ("r1", "r2", "r3", "r4", "R 5", "r6")
GROUPS: Final = ("pg_read_all_data", "pg_write_all_data")
TABLES: Final = ("t", "u")
COLUMNS: Final = ("a", "b", "c")
SEQUENCES: Final = ("s", "t_id_seq")
CREATE: Final = "grant create on database leasehold to public"
MADE: Final = (
    "create table t (id serial primary key, a int, b int, c int)",
    "create table u (id int primary key, a int, b int, c int)",
    "create sequence s",
    CREATE,
    'create role "r1"',
    'create role "r2" noinherit',
    'create role "r3" createrole',
    'create role "r4" superuser',
)
OPTIONS: Final = (
    *("superuser", "nosuperuser", "createrole", "nocreaterole", "inherit", "noinherit"),
    *("login", "nologin", "createdb", "nocreatedb", "connection limit 7", "connection limit -1"),
    *("password null", "password ''", "valid until '2031-05-06 07:08:09+02'"),
    "valid until 'infinity'",
)
WORDS: Final[dict[ObjectKind, tuple[str, ...]]] = {
    kind: tuple(p.name.lower() for p in ALL[kind] if p.name) for kind in ALL if kind != "column"
}


class Answered(NamedTuple):
    """What a statement was answered with: its error, and what was told."""

    code: str
    words: str
    told: tuple[tuple[str, str], ...]


class Statements:
    """Makes statements at random."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance

    def role(self, *more: str) -> str:
        return f'"{self._chance.choice((*NAMES, *more))}"'

    def member(self) -> str:
        return self.role() if self._chance.random() < 0.95 else "current_user"

    def several(self, *more: str) -> str:
        count = 1 if self._chance.random() < 0.7 else 2
        return ", ".join(dict.fromkeys(self.role(*more) for _ in range(count)))

    def options(self) -> str:
        chosen = self._chance.sample(OPTIONS, self._chance.randrange(1, 4))
        return " ".join(
            {option.split()[0].removeprefix("no"): option for option in chosen}.values()
        )

    def grantees(self) -> str:
        chance = self._chance.random()
        return "public" if chance < 0.15 else self.several(SUPERUSER)

    def next(self) -> str:
        kinds = (
            *(self.create, self.alter, self.drop, self.rename, self.owner, self.reassign),
            *[self.membership] * 4,
            *[self.privileges] * 16,
        )
        return self._chance.choice(kinds)()

    def create(self) -> str:
        chance = self._chance
        said = f"create {chance.choice(('role', 'user'))} {self.role()} {self.options()}"
        if chance.random() < 0.5:
            said += f" {chance.choice(('in role', 'role', 'admin'))} {self.several()}"
        return said

    def alter(self) -> str:
        if self._chance.random() < 0.2:
            what = self._chance.choice(("add", "drop"))
            return f"alter group {self.role()} {what} user {self.several()}"
        role, options = self.role("pg_read_all_data", SUPERUSER), self.options()
        if SUPERUSER in role:  # PostgreSQL 15 lets its first role be none any more, 16 does not
            options = options.replace("nosuperuser", "superuser").replace("nologin", "login")
        return f"alter role {role} {options}"

    def drop(self) -> str:
        exists = "if exists " if self._chance.random() < 0.5 else ""
        return f"drop role {exists}{self.several(*GROUPS, SUPERUSER)}"

    def rename(self) -> str:
        return f"alter role {self.role(*GROUPS)} rename to {self.role('pg_nobody')}"

    def owner(self) -> str:
        kind, name = self._chance.choice(
            (*(("table", t) for t in TABLES), *(("sequence", s) for s in SEQUENCES))
        )
        return f"alter {kind} {name} owner to {self.role(SUPERUSER)}"

    def reassign(self) -> str:
        return f"reassign owned by {self.several()} to {self.role(SUPERUSER)}"

    def membership(self) -> str:
        chance = self._chance
        roles = self.several(*GROUPS)
        if chance.random() < 0.6:
            option = " with admin option" if chance.random() < 0.3 else ""
            return f"grant {roles} to {self.member()}{option}"
        option = "admin option for " if chance.random() < 0.3 else ""
        return f"revoke {option}{roles} from {self.member()}"

    def privileges(self) -> str:
        chance = self._chance
        kind: ObjectKind = chance.choice(("table", "table", "table", "sequence", "database"))
        known = (*WORDS[kind], "usage") if kind == "table" else WORDS[kind]
        words = chance.sample(known, chance.randrange(1, min(4, len(WORDS[kind]))))
        every = chance.random() < 0.2
        what = chance.choice(("all", "all privileges")) if every else ", ".join(words)
        named: dict[ObjectKind, tuple[str, ...]] = {
            "table": TABLES,
            "sequence": SEQUENCES,
            "database": ("leasehold",),
        }
        where = f"{kind} {chance.choice(named[kind])}"
        if kind == "table" and chance.random() < 0.45:
            what = ", ".join(self.of_columns() for _ in range(chance.randrange(1, 3)))
        elif kind != "database" and chance.random() < 0.15:
            where = f"all {kind}s in schema public"
        elif kind == "table" and chance.random() < 0.1:
            where = chance.choice(("s", "nothing", "t, u"))
        if chance.random() < 0.6:
            option = " with grant option" if chance.random() < 0.5 else ""
            return f"grant {what} on {where} to {self.grantees()}{option}"
        option = "grant option for " if chance.random() < 0.4 else ""
        how = chance.choice(("", " cascade", " cascade", " restrict"))
        return f"revoke {option}{what} on {where} from {self.grantees()}{how}"

    def of_columns(self) -> str:
        chance = self._chance
        word = chance.choice(("select", "insert", "update", "references", "all"))
        if chance.random() < 0.3:
            return word if word != "all" else "select"
        names = chance.sample((*COLUMNS, "nosuch") if chance.random() < 0.05 else COLUMNS, 2)
        return f"{word} ({', '.join(names[: chance.randrange(1, 3)])})"


class Both:
    def __init__(self, connection: psycopg.Connection[Any], chance: Random) -> None:
        self.connection = connection
        self.chance = chance
        self.world = RoleWorld(SUPERUSER)
        self.told: list[tuple[str, str]] = []
        self.said = ""
        connection.add_notice_handler(
            lambda d: self.told.append((str(d.sqlstate), str(d.message_primary)))
        )
        connection.execute("grant all on schema public to public")
        for sql in MADE:
            assert self.theirs(sql, "") == self.ours(sql, "")

    def theirs(self, sql: str, role: str) -> Answered:
        self.told.clear()
        code = words = ""
        if role:
            self.connection.execute(f'set session authorization "{role}"')
        try:
            self.connection.execute(sql.encode())
        except psycopg.Error as error:
            code, words = str(error.sqlstate), str(error.diag.message_primary)
            words += "".join(f"; {each}" for each in sorted(details(error.diag.message_detail)))
        finally:
            told = tuple(self.told)
            if role:
                self.connection.execute("reset session authorization")
        return Answered(code, words, () if code else told)

    def ours(self, sql: str, role: str) -> Answered:
        try:
            told = self.world.say(sql, role)
        except Refused as error:
            detail = error.detail.get("detail")
            words = error.message
            words += "".join(f"; {each}" for each in sorted(details(detail)))
            return Answered(error.sqlstate, words, ())
        return Answered("", "", tuple((each.code, each.words) for each in told))

    def step(self, statements: Statements) -> None:
        roles = [r.name for r in self.world.access.roles.by_id.values() if r.name in NAMES]
        role = self.chance.choice((*roles, SUPERUSER, SUPERUSER, *self.owners()))
        sql = statements.next()
        self.said = f"seed {SEED}, as {role}: {sql}; {self.our_memberships()}, {self.our_objects()}"
        theirs, ours = self.theirs(sql, role), self.ours(sql, role)
        # PostgreSQL takes privileges from columns of a sequence as well, which nobody has any on.
        if not any(f'of relation "{name}"' in theirs.words for name in SEQUENCES):
            assert plain(ours, sql) == plain(theirs, sql), self.said
        if "database" in sql:  # CREATE is the schema's in PostgreSQL, and is everybody's here
            self.ours(CREATE, ""), self.theirs(CREATE, "")
        self.compare()

    def owners(self) -> Iterator[str]:
        """The owners of the tables, who may do most."""
        access = self.world.access
        for table in self.world.catalog.tables():
            yield access.roles.name_of(access.owner_of(table.table_id))

    # ------------------------------------------------------------ the state

    def rows(self, sql: str) -> list[Any]:
        return self.connection.execute(sql.encode()).fetchall()

    def compare(self) -> None:
        assert self.our_roles() == self.their_roles(), self.said
        assert self.our_memberships() == self.their_memberships(), self.said
        assert self.our_objects() == self.their_objects(), self.said
        assert self.our_answers() == self.their_answers(), self.said

    def our_roles(self) -> list[Any]:
        return sorted(
            (
                *(r.name, r.superuser, r.inherits, r.may_create_roles, r.may_create_databases),
                *(r.may_log_in, r.connections_max, r.valid_until_us),
            )
            for r in self.world.access.roles.by_id.values()
            if r.name in NAMES
        )

    def their_roles(self) -> list[Any]:
        return sorted(
            self.rows(
                "select rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin,"
                " rolconnlimit, case when isfinite(rolvaliduntil) then"
                " (extract(epoch from rolvaliduntil) * 1000000)::bigint else 0 end"
                " from pg_roles where rolname ~* '^r'"
            )
        )

    def our_memberships(self) -> list[Any]:
        roles = self.world.access.roles
        return sorted(
            (roles.name_of(m.role), roles.name_of(m.member), m.admin)
            for m in roles.memberships.values()
            if roles.name_of(m.member) in (*NAMES, SUPERUSER)
        )

    def their_memberships(self) -> list[Any]:
        return sorted(
            self.rows(
                "select r.rolname, m.rolname, admin_option from pg_auth_members a"
                " join pg_roles r on r.oid = roleid join pg_roles m on m.oid = member"
                " where m.rolname !~ '^pg_'"
            )
        )

    def objects(self) -> Iterator[tuple[str, int, int]]:
        yield "leasehold", DATABASE, 0
        for table in self.world.catalog.tables():
            yield table.name, table.table_id, 0
            if table.sequence is None:
                for column in table.columns:
                    yield f"{table.name}.{column.name}", table.table_id, column.element_id

    def our_objects(self) -> dict[str, Any]:
        access = self.world.access
        found = {}
        for name, *ids in self.objects():
            owner = access.roles.name_of(access.owner_of(ids[0]))
            acl = access.acl_of(kind_of(*ids), *ids)
            found[name] = (owner, self.texts(acl))
        return found

    def texts(self, acl: Acl) -> list[str]:
        names = self.world.access.roles.name_of
        return sorted(
            item_text(i, ("" if i.grantee == PUBLIC else names(i.grantee), names(i.grantor)))
            for i in acl
        )

    def their_objects(self) -> dict[str, Any]:
        rows = self.rows(
            "select relname, pg_get_userbyid(relowner), coalesce(relacl, acldefault("
            "case relkind when 'S' then 's'::\"char\" else 'r' end, relowner))::text[]"
            " from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'S')"
            " union all select relname || '.' || attname, pg_get_userbyid(relowner),"
            " coalesce(attacl::text[], '{}') from pg_attribute join pg_class on oid = attrelid"
            " where relnamespace = 'public'::regnamespace and relkind = 'r' and attnum > 0"
            " union all select datname, pg_get_userbyid(datdba),"
            " coalesce(datacl, acldefault('d', datdba))::text[]"
            " from pg_database where datname = 'leasehold'"
        )
        return {name: (owner, sorted(acl)) for name, owner, acl in rows}

    def our_answers(self) -> set[Any]:
        access, found = self.world.access, set()
        for name, *ids in self.objects():
            kind = kind_of(*ids)
            for role in access.roles.by_id.values():
                held = access.privileges(role.role_id, kind, *ids)
                options = access.grant_options(role.role_id, kind, *ids)
                if access.roles.is_superuser(role.role_id):
                    options = ALL[kind]
                for privilege in ALL[kind]:
                    if role.name in NAMES and held & privilege:
                        found.add((role.name, name, privilege.name, bool(options & privilege)))
        return found

    def their_answers(self) -> set[Any]:
        asked = []
        for name, *ids in self.objects():
            kind = kind_of(*ids)
            table, _, column = name.partition(".")
            arguments = f"'{table}', '{column}'" if column else f"'{table}'"
            for privilege in ALL[kind]:
                given = f"has_{kind}_privilege(rolname, {arguments}, '{privilege.name}')"
                option = given.replace(
                    f"'{privilege.name}'", f"'{privilege.name} with grant option'"
                )
                asked.append(f"(rolname, '{name}', '{privilege.name}', {given}, {option})")
        rows = self.rows(
            "select v.* from pg_roles cross join lateral (values "
            + ", ".join(asked)
            + ") v (r, o, p, held, option) where rolname ~* '^r'"
        )
        return {(r, o, p, option) for r, o, p, held, option in rows if held}


_SYSTEM: Final = (
    *("tableoid", "cmax", "xmax", "cmin", "xmin", "ctid"),
    *("last_value", "log_cnt", "is_called"),  # of a sequence, which has no privileges on columns
)


def plain(answered: Answered, sql: str) -> Answered:
    """Return it without what differs: PostgreSQL has system columns as well, and takes the first
    one it finds of all tables of a schema."""
    told = tuple(t for t in answered.told if not any(f'column "{c}"' in t[1] for c in _SYSTEM))
    words = answered.words
    if answered.code and " all " in sql and " in schema " in sql:
        return Answered("refused", "", ())
    if words.startswith("permission denied for"):
        words = words.replace('"tableoid"', '"id"')
    return Answered(answered.code, words, tuple(sorted(told)))


def details(text: object) -> list[str]:
    return [] if text is None else str(text).split("\n")


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    with postgres_server() as port:
        yield port


@pytest.mark.parametrize("round_", every_third(range(ROUNDS)))
def test_statements_of_any_role_do_what_they_do_in_postgresql(server: int, round_: int) -> None:
    chance = Random(f"{SEED}/{round_}")
    address = f"host=127.0.0.1 port={server} user={SUPERUSER} dbname="
    with psycopg.connect(address + "postgres", autocommit=True) as first:
        first.execute("drop database if exists leasehold")
        for name in NAMES:
            first.execute(f'drop role if exists "{name}"')
        first.execute(f"revoke {', '.join(GROUPS)} from {SUPERUSER}")
        first.execute("create database leasehold")
    with psycopg.connect(f"{address}leasehold", autocommit=True) as connection:
        both, statements = Both(connection, chance), Statements(chance)
        for _ in range(STEPS // ROUNDS):
            both.step(statements)
