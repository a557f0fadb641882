"""A listener on a free port over small sessions, for clients in the same process or beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from leasehold.adapters.postgres.connection import Admission
from leasehold.adapters.postgres.server import PgwireServer
from leasehold.pgwire.auth.logins import Logins
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.session import Session
from leasehold.pgwire.wire_errors import UnknownDatabase
from leasehold.settings.sql_port import PgwireSettings
from tests.support.pgwire.small_session import Shared, SmallSession


@contextmanager
def listening(
    shared: Shared | None = None,
    limits: Limits | None = None,
    *,
    grace_s: float = 5.0,
    outlasted: int = 0,
    port_patience_s: float = 0.0,
    logins: Sequence[Logins] = (),
    **settings: Any,
) -> Iterator[PgwireServer]:
    shared = shared or Shared()

    def open_session(admission: Admission) -> Session:
        if admission.database == "nowhere":
            raise UnknownDatabase('database "nowhere" does not exist')
        return SmallSession(
            shared, admission.user, admission.parameters.get("application_name", "")
        )

    given = PgwireSettings(**settings)
    server = PgwireServer(open_session, given, limits, port_patience_s, logins=logins)
    server.start()
    try:
        yield server
    finally:
        shared.release.set()
        server.stop(grace_s)
        assert shared.opened == shared.closed + outlasted, "a session was left open"
