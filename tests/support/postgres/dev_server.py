"""A whole database in this process with a PostgreSQL port, to be held to a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from leasehold.dev.database import DevDatabase
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql_session.listener import SqlListener
from tests.support.sql_session.sql_client import SqlClient


class DevServer(NamedTuple):
    dev: DevDatabase
    port: int
    database: str


@contextmanager
def dev_server(folder: Path, ddl: str = "") -> Iterator[DevServer]:
    """Ready for clients, with the tables of `ddl`."""
    dev = DevDatabase(folder)
    try:
        dev.wait_ready()
        if ddl:
            made = SqlClient(dev)
            made.ask(ddl)
            made.session.close()
        node = dev.sql_node()
        listener = SqlListener(node, PgwireSettings(port=0))
        try:
            yield DevServer(dev, listener.port, node.database)
        finally:
            listener.close()
    finally:
        dev.close()
