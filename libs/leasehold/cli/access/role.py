"""The command `leasehold role`: the keys that roles sign their change requests with."""

from __future__ import annotations

import argparse
import contextlib
import os
from typing import Any, Final

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.catalog.definitions import quoted
from leasehold.cli.command import Subparsers, add, finish
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.model.errors import ConfigurationError, NodeUnreachable, UnknownRole, refused
from leasehold.model.signatures import derive_role_key
from leasehold.pgwire.messages.client_replies import Row, Told
from leasehold.settings.client import ClientSettings
from leasehold.settings.setting import from_environment
from leasehold.settings.sql_address import SqlAddress

KEY_SETTING: Final = "leasehold.request_key"
HELP: Final = """\
The key of a role is derived from the masters' LEASEHOLD_REQUEST_KEY, which has to be set here, too,
and from a number that the catalog has for the role, which a node is asked for: LEASEHOLD_SQL_HOST,
_PORT, _USER, _PASSWORD_FILE and _TLS say where. Whoever has the key asks for changes in the role's
name: hand it over as a secret, as LEASEHOLD_REQUEST_KEY with LEASEHOLD_REQUEST_ROLE."""


def register(subparsers: Subparsers) -> None:
    parser = add(subparsers, "role", print_key, HELP)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    key = actions.add_parser("key", help="print the key of a role")
    key.add_argument("name", help="name of the role")
    finish(key, print_key)
    revoke = actions.add_parser(
        "revoke-key", help="make the role's key worth nothing; `key` prints its next one then"
    )
    revoke.add_argument("name", help="name of the role")
    finish(revoke, revoke_key)


def print_key(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    master = settings.requests.keys.master
    if not master:
        raise ConfigurationError(
            "LEASEHOLD_REQUEST_KEY has to be the masters' key here: a role's is derived from it.",
            variable="LEASEHOLD_REQUEST_KEY",
        )
    with contextlib.closing(_connect(settings)) as connection:
        number = key_number(connection, args.name)
    key = derive_role_key(master[0], settings.cluster.database, args.name, number).to_text()
    if output.as_json:
        output.json({"role": args.name, "number": number, "key": key})
    else:
        output.line(key)
    return ExitCode.OK


def revoke_key(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with contextlib.closing(_connect(settings)) as connection:
        _ask(connection, f"ALTER ROLE {quoted(args.name)} RESET {KEY_SETTING}")
        number = key_number(connection, args.name)
    if output.as_json:
        output.json({"role": args.name, "number": number})
    else:
        output.line(f"revoked; the key of {args.name} has number {number} now")
    return ExitCode.OK


def key_number(connection: SqlConnection, role: str) -> str:
    """Return the number that the role's key is derived with. Raises UnknownRole."""
    known = dict(_ask(connection, "SELECT rolname, rolconfig FROM pg_roles"))
    if role not in known:
        raise UnknownRole(f"role {role!r} does not exist")
    config = known[role] or ""
    _, found, number = config.strip("{}").partition(f"{KEY_SETTING}=")
    if not found:
        raise NodeUnreachable(
            "the node is of an earlier release, which knows no keys of roles: upgrade it first,"
            " or ask another node"
        )
    return number


def _ask(connection: SqlConnection, text: str) -> list[tuple[Any, ...]]:
    """Return the rows of a statement, as texts. Raises what it was refused with."""
    rows: list[tuple[Any, ...]] = []
    for said in connection.ask(text):
        match said:
            case Row():
                rows.append(tuple(said.values))
            case Told(failed=True):
                raise refused(said.fields.get("C", ""), said.fields.get("M", ""), {})
    return rows


def _connect(settings: ClientSettings) -> SqlConnection:
    address = from_environment(SqlAddress, os.environ)
    return SqlConnection(address, settings.cluster.database)
