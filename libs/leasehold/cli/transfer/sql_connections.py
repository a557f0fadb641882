"""Connections to a node's port for SQL, by the options of a subcommand."""

from __future__ import annotations

import argparse
import getpass
import sys
from collections.abc import Callable
from dataclasses import replace

from leasehold.adapters.postgres.client import PasswordWanted, SqlConnection
from leasehold.cli.sql import address_of


def connector(
    args: argparse.Namespace, default: str, application: str
) -> Callable[[], SqlConnection]:
    """Return what makes connections to the node's port; a person is asked for a password
    once. `default`: the database's name."""
    address, database = address_of(args), args.database or default

    def connect() -> SqlConnection:
        nonlocal address
        try:
            return SqlConnection(address, database, application=application)
        except PasswordWanted:
            if not sys.stdin.isatty():
                raise
        given = getpass.getpass(f"password of {address.user}: ")
        address = replace(address, password=given)
        return SqlConnection(address, database, application=application)

    return connect
