"""ALTER ROLE … SET and ALTER DATABASE … SET: what sessions begin with."""

from __future__ import annotations

from typing import Final, NoReturn

from leasehold.catalog.search_path import SETTING as SEARCH_PATH
from leasehold.catalog.search_path import read_search_path
from leasehold.model.errors import FeatureNotSupported
from leasehold.sql.ddl.roles import read_role_named
from leasehold.sql.syntax.accounting import Body, handles
from leasehold.sql.syntax.names import listed_element
from leasehold.sql.syntax.roles.grant_statements import ObjectNamed, SetDatabase
from leasehold.sql.syntax.roles.role_statements import AlterRole, RoleOptions
from leasehold.sql.syntax.statement import Reading

handles("AlterRoleSetStmt", "role", "setstmt", database="ALTER ROLE … IN DATABASE")
handles("AlterDatabaseSetStmt", "dbname", "setstmt")

REQUEST_KEY: Final = "leasehold.request_key"
_OURS: Final = "leasehold."
_RELIED_ON: Final = frozenset(
    {
        "default_transaction_deferrable",
        "default_transaction_isolation",
        "default_transaction_read_only",
        "row_security",
        "session_replication_role",
    }
)
"""Settings that decide what a session may do, or what it is shown."""
_RESETS: Final = frozenset({"VAR_RESET", "VAR_SET_DEFAULT"})


def read_role_setting(reading: Reading, body: Body) -> AlterRole:
    """ALTER ROLE name {SET search_path = … | RESET {search_path | ALL}}, and ALTER ROLE name RESET
    leasehold.request_key: its key of before is then worth nothing. Another setting is not kept,
    which is remarked upon."""
    said = body["setstmt"].get("VariableSetStmt", body["setstmt"])
    if "database" in body:
        _refuse(reading, "ALTER ROLE … IN DATABASE is not supported: say ALTER ROLE … SET")
    if "role" not in body:
        _refuse(reading, "ALTER ROLE ALL is not supported: say ALTER DATABASE … SET")
    key = said.get("name") == REQUEST_KEY and said.get("kind") == "VAR_RESET"
    path = "" if key else _search_path(said)
    reading.read("AlterRoleSetStmt", body)
    if key:
        options = RoleOptions(revokes_key=True)
    else:
        not_kept = _not_kept(reading, said, path, "ALTER ROLE")
        options = RoleOptions(search_path=path, not_kept=not_kept)
    return AlterRole(read_role_named(reading, body["role"]), options)


def read_database_setting(reading: Reading, body: Body) -> SetDatabase:
    """ALTER DATABASE name {SET search_path = … | RESET {search_path | ALL}}; another setting is
    not kept, which is remarked upon."""
    reading.read("AlterDatabaseSetStmt", body)
    said = body["setstmt"].get("VariableSetStmt", body["setstmt"])
    path = _search_path(said)
    named = ObjectNamed(body["dbname"], reading.position(reading.verb + 2))
    return SetDatabase(named, path, _not_kept(reading, said, path, "ALTER DATABASE"))


def _not_kept(reading: Reading, said: Body, path: str | None, verb: str) -> str:
    """Return the name of a setting that is not kept, "" for the search path. Raises
    FeatureNotSupported where sessions without it would do what its owner has ruled out."""
    name: str = "" if path is not None else said.get("name", "")
    told = said.get("kind") not in _RESETS
    if told and (name in _RELIED_ON or name.startswith(_OURS)):
        words = f"{verb} … SET {name} is not supported: it would not be kept"
        _refuse(reading, f"{words}, and each session has to say it for itself")
    return name


def _search_path(said: Body) -> str | None:
    """Return the path that a setting says, "" = the default, None for a setting that is not
    kept. Raises InvalidArgument (22023)."""
    kind, name = said.get("kind"), said.get("name")
    if kind == "VAR_RESET_ALL" or (name == SEARCH_PATH and kind in _RESETS):
        return ""
    if name != SEARCH_PATH or kind != "VAR_SET_VALUE":
        return None
    path = ", ".join(map(listed_element, said.get("args", ())))
    read_search_path(path)
    return path


def _refuse(reading: Reading, sentence: str) -> NoReturn:
    raise FeatureNotSupported(sentence, position=reading.position(reading.verb))
