"""A real PostgreSQL of this machine at its default durability, beside which SQL is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from tests.bench.stand import say
from tests.support.postgres.postgres_server import installed, replicated, running


@contextmanager
def postgres(standbys: int = 0) -> Iterator[int | None]:
    """Its port; None, said aloud, where none is installed. With `standbys` a commit is answered
    once each of so many shows it to readers (`remote_apply`), as a replicant does."""
    programs = installed()
    if programs is None:
        say("NOT MEASURED beside PostgreSQL: it is not installed (apt install postgresql)")
        yield None
        return
    with replicated(programs, standbys) if standbys else running(programs) as port:
        yield port


def connected(port: int, database: str = "postgres", user: str = "postgres") -> psycopg.Connection:
    """To it, or to a replicant. Each statement is a transaction, unless one is begun."""
    return psycopg.connect(host="127.0.0.1", port=port, dbname=database, user=user, autocommit=True)
