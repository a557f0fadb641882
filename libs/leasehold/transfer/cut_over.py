"""The cut-over: the source's tables are held still, the rest of the stream is applied, both sides
are compared, and nothing is left of the import in the source."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from leasehold.adapters.postgres.source import SourceConnection
from leasehold.model.errors import Refused
from leasehold.transfer.following import Following
from leasehold.transfer.pgoutput import lsn_of_text
from leasehold.transfer.postgres_import import CUT_OVER, READY, Compared, PostgresImport
from leasehold.transfer.quoting import quote_name
from leasehold.transfer.schema_plan import Plan

LOCK_TIMEOUT_MS: Final = 10_000
FLUSH_LOOK_S: Final = 0.05


def cut_over(
    importing: PostgresImport,
    following: Following,
    plan: Plan,
    connection: SourceConnection,
    told: Callable[[Compared], None],
    *,
    lock: bool,
) -> bool:
    """Return whether both sides were equal; only then the import has ended. `lock`: hold writers of
    the source back meanwhile, which takes a lock in SHARE mode on each table. Raises Refused where
    the import isn't so far, SourceFailure."""
    whole = importing.find()
    if whole is not None and whole.phase == CUT_OVER:
        following.drop(connection)  # a run that was killed may not have come to that
        return True
    if whole is None or whole.phase != READY:
        raise Refused(
            f"import {importing.options.name!r} is not ready for that: give the command with"
            " --follow until it says that it follows"
        )
    importing.check_same_plan(whole, plan)
    following.follow(read_lsn(connection))
    connection.run("BEGIN")
    try:
        if lock:
            connection.run(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}")
            for table in plan.tables:
                name = f"{quote_name(importing.options.schema)}.{quote_name(table.name)}"
                connection.run(f"LOCK TABLE {name} IN SHARE MODE")
        following.follow(read_lsn(connection))
        importing.set_sequences(plan, connection)
        if not importing.compare(plan, connection, told):
            return False
        importing.move(whole, CUT_OVER)
    finally:
        connection.run("ROLLBACK")
    following.drop(connection)
    return True


def read_lsn(connection: SourceConnection) -> int:
    """Return an LSN behind everything that is committed now, once it can be decoded."""
    wanted = lsn_of_text(str(connection.value("SELECT pg_current_wal_insert_lsn()::text")))
    while lsn_of_text(str(connection.value("SELECT pg_current_wal_flush_lsn()::text"))) < wanted:
        time.sleep(FLUSH_LOOK_S)
    return wanted
