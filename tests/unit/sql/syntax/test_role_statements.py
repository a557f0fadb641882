"""Goal: statements about roles and privileges are read as PostgreSQL reads them; what is not
supported is refused by name; no password stays in a text.

Method: texts and what they are read as.
"""

from __future__ import annotations

from itertools import count

import pytest

from leasehold.model.errors import FeatureNotSupported, Refused, SyntaxInvalid
from leasehold.pgwire.auth.scram_server import verifier_of_password, verifier_of_text
from leasehold.sql.ddl.passwords import with_verifiers
from leasehold.sql.ddl.schema_statements import parse_ddl, parse_statements
from leasehold.sql.syntax.roles.grant_statements import (
    ChangeOwner,
    DropOwned,
    GrantPrivileges,
    ObjectNamed,
    PrivilegeNamed,
    ReassignOwned,
    RoleStatement,
)
from leasehold.sql.syntax.roles.role_statements import (
    AlterRole,
    CreateRole,
    DropRole,
    GrantRole,
    RenameRole,
    RoleNamed,
    RoleOptions,
)

VERIFIER = str(verifier_of_password("secret", bytes(16)))
_P = PrivilegeNamed


@pytest.mark.parametrize(
    ("sql", "made"),
    [
        ("create role ann", CreateRole("ann", RoleOptions(), 13)),
        ("create user ann", CreateRole("ann", RoleOptions(may_log_in=True), 13)),
        ("create user ann nologin", CreateRole("ann", RoleOptions(may_log_in=False), 13)),
        (
            "create group staff user ann, bob",
            CreateRole(
                "staff",
                RoleOptions(members=(RoleNamed("ann", position=25), RoleNamed("bob", position=30))),
                14,
            ),
        ),
        (
            "create role a superuser createdb createrole noinherit login noreplication nobypassrls",
            CreateRole("a", RoleOptions(True, False, True, True, True), 13),
        ),
        (
            "create role a connection limit 3 valid until '1970-01-01 00:00:01Z'",
            CreateRole("a", RoleOptions(connections_max=3, valid_until_us=1_000_000), 13),
        ),
        (
            f"alter role current_user password '{VERIFIER}'",
            AlterRole(RoleNamed(is_actor=True, position=12), RoleOptions(password=VERIFIER)),
        ),
        (
            "alter user ann password null valid until 'infinity'",
            AlterRole(RoleNamed("ann", position=12), RoleOptions(password="", valid_until_us=0)),
        ),
        ("alter user ann rename to bob", RenameRole("ann", "bob", 12)),
        (
            "alter group g drop user a",
            GrantRole(
                (RoleNamed("g", position=13),), (RoleNamed("a", position=25),), False, alters=True
            ),
        ),
        (
            "drop user if exists a, public",
            DropRole((RoleNamed("a", position=21), RoleNamed(is_public=True, position=24)), True),
        ),
        (
            "revoke admin option for a from b",
            GrantRole((RoleNamed("a", position=8),), (RoleNamed("b", position=32),), False, True),
        ),
        (
            "grant select (a, b), delete on public.t, u to public with grant option",
            GrantPrivileges(
                True,
                "table",
                (ObjectNamed("t", 32), ObjectNamed("u", 42)),
                (_P("select", ("a", "b"), 7), _P("delete", (), 7)),
                (RoleNamed(is_public=True, position=47),),
                option=True,
            ),
        ),
        (
            "revoke grant option for all on sequence s from a cascade",
            GrantPrivileges(
                False,
                "sequence",
                (ObjectNamed("s", 41),),
                (_P("", (), 8),),
                (RoleNamed("a", position=48),),
                option=True,
                cascade=True,
            ),
        ),
        (
            "grant usage on all sequences in schema public to a",
            GrantPrivileges(
                True,
                "sequence",
                (ObjectNamed("public", 1),),
                (_P("usage", (), 7),),
                (RoleNamed("a", position=50),),
                all_in_schema=True,
            ),
        ),
        (
            "alter table if exists t owner to a",
            ChangeOwner("table", ObjectNamed("t", 23), RoleNamed("a", position=34), True),
        ),
        (
            "alter sequence s owner to current_role",
            ChangeOwner("sequence", ObjectNamed("s", 16), RoleNamed(is_actor=True, position=27)),
        ),
        (
            "reassign owned by a to b",
            ReassignOwned((RoleNamed("a", position=19),), RoleNamed("b", position=24)),
        ),
        ("drop owned by a cascade", DropOwned((RoleNamed("a", position=15),), True)),
    ],
)
def test_it_is_read_as_what_it_says(sql: str, made: RoleStatement) -> None:
    assert parse_ddl(sql) == made


@pytest.mark.parametrize(
    ("sql", "error", "words"),
    [
        ("create role a login nologin", SyntaxInvalid, "conflicting or redundant options"),
        ("create role a replication", FeatureNotSupported, "REPLICATION"),
        ("create role a bypassrls", FeatureNotSupported, "BYPASSRLS"),
        ("create role a connection limit -2", Refused, "invalid connection limit: -2"),
        ("create role a valid until 'soon'", Refused, "soon"),
        ("create role a password 'secret'", FeatureNotSupported, "in the clear"),
        (
            "alter role a set default_transaction_read_only to on",
            FeatureNotSupported,
            "ALTER ROLE … SET default_transaction_read_only",
        ),
        (
            "alter database d set leasehold.ddl_in_block to refuse",
            FeatureNotSupported,
            "ALTER DATABASE … SET leasehold.ddl_in_block",
        ),
        ("grant select on t to session_user", FeatureNotSupported, "SESSION_USER"),
        ("grant select on pg_catalog.t to a", FeatureNotSupported, "schema pg_catalog"),
        ("grant execute on function f() to a", FeatureNotSupported, "GRANT on a function"),
        ("revoke usage on language sql from a", FeatureNotSupported, "REVOKE on a language"),
        ("grant a (x) to b", SyntaxInvalid, "column names cannot be included"),
        ("alter default privileges grant select on tables to a", FeatureNotSupported, "DEFAULT PR"),
        ("alter table t owner to a, add column b int", FeatureNotSupported, "stands alone"),
        ("alter database d owner to a", FeatureNotSupported, "ALTER DATABASE"),
    ],
)
def test_what_is_not_supported_is_refused_by_name(
    sql: str, error: type[Refused], words: str
) -> None:
    with pytest.raises(error) as caught:
        parse_ddl(sql)
    assert words in caught.value.message
    assert "secret" not in caught.value.message


@pytest.mark.parametrize(
    "said",
    [
        "create role a password 'secret'",
        "create user \"Ü\" login encrypted password 'secret' connection limit 3",
        "alter role a with password $$secret$$ valid until '2030-01-01'",
        "select 'password'; alter user b password E'sec\\x72et'; create role password",
        "alter role a password 'sec'\n 'ret'",
        "CREATE ROLE a /* password 'x' */ PASSWORD 'secret'",
    ],
)
def test_a_password_becomes_its_verifier_where_it_stands(said: str) -> None:
    salts = count(1)
    made = with_verifiers(said, lambda: bytes([next(salts)]) * 16)
    assert "secret" not in made
    assert "ret'" not in made
    assert next(salts) == 2, "one password, one salt"
    (found,) = (part for part in made.split("'") if part.startswith("SCRAM-SHA-256$"))
    salt = b"\1" * 16
    assert verifier_of_text(found) == verifier_of_password("secret", salt)
    assert with_verifiers(made, lambda: b"") == made, "a verifier is taken as it is"
    kinds = [each for each in made.split(";") if "select" not in each]
    assert all(parse_statements(each) for each in kinds)


@pytest.mark.parametrize(
    "said",
    ["select password from users", "create role a password null", "create role a password ''", ""],
)
def test_other_texts_stay_as_they_are(said: str) -> None:
    assert with_verifiers(said, lambda: b"") is said or with_verifiers(said, lambda: b"") == said
