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
_RESETS: Final = frozenset({"VAR_RESET", "VAR_SET_DEFAULT"})


def read_role_setting(reading: Reading, body: Body) -> AlterRole:
    """ALTER ROLE name {SET search_path = … | RESET {search_path | ALL}}, and ALTER ROLE name RESET
    leasehold.request_key: its key of before is then worth nothing. No other setting of a role is
    kept here."""
    said = body["setstmt"].get("VariableSetStmt", body["setstmt"])
    if "database" in body:
        _refuse(reading, "ALTER ROLE … IN DATABASE is not supported: say ALTER ROLE … SET")
    if "role" not in body:
        _refuse(reading, "ALTER ROLE ALL is not supported: say ALTER DATABASE … SET")
    key = said.get("name") == REQUEST_KEY and said.get("kind") == "VAR_RESET"
    path = "" if key else _search_path(said)
    if path is None:
        words = "ALTER ROLE … SET is not supported but for search_path"
        _refuse(reading, f"{words}: settings are said by each session")
    reading.read("AlterRoleSetStmt", body)
    options = RoleOptions(revokes_key=True) if key else RoleOptions(search_path=path)
    return AlterRole(read_role_named(reading, body["role"]), options)


def read_database_setting(reading: Reading, body: Body) -> SetDatabase:
    """ALTER DATABASE name {SET search_path = … | RESET {search_path | ALL}}"""
    reading.read("AlterDatabaseSetStmt", body)
    path = _search_path(body["setstmt"].get("VariableSetStmt", body["setstmt"]))
    if path is None:
        words = "ALTER DATABASE … SET is not supported but for search_path"
        _refuse(reading, f"{words}: settings are said by each session")
    return SetDatabase(ObjectNamed(body["dbname"], reading.position(reading.verb + 2)), path)


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
