"""The sessions of a node, for PostgreSQL clients."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.postgres.connection import Admission
from leasehold.adapters.postgres.server import PgwireServer
from leasehold.adapters.service_process import Environment
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.model.audit import AuditLog
from leasehold.model.errors import Refused
from leasehold.model.measures import Sample
from leasehold.node.kafka_node import KafkaNode
from leasehold.node.process import Prepared
from leasehold.pgwire.wire_errors import AuthenticationRefused, UnknownDatabase
from leasehold.replica.serving_node import ServingNode, SqlNode
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import from_environment
from leasehold.settings.extras import need_extra
from leasehold.settings.snapshot import token_kept_here
from leasehold.settings.sql_port import PgwireSettings
from leasehold.sql.planning.plan import Plans
from leasehold.sql.session_settings import SETTINGS, settings_of_options
from leasehold.sql_session.role_logins import RoleLogins
from leasehold.sql_session.session import SqlSession

LOG: Final = logging.getLogger("leasehold.sql")
_NOT_SETTINGS: Final = frozenset({"user", "database", "replication", "options"})


def sql_of_environment(environ: Environment) -> Prepared:
    """What a replicant listens with, as LEASEHOLD_SQL_… says; nothing without a port. Raises
    ConfigurationError."""
    settings = from_environment(PgwireSettings, environ)
    if not settings.port:
        return Prepared(settings, None)
    need_extra("server", "LEASEHOLD_SQL_PORT", "uvloop")
    settings.check()
    settings.read_tls()  # what can't be used is said before the node starts
    client = ClientSettings.read(environ)
    secret = _shared_secret(client)

    def listen(node: KafkaNode, store: SqliteStore) -> NodeListener:
        return NodeListener(ServingNode(node, store, client), settings, secret)

    return Prepared(settings, listen, settings.open_to)


def _shared_secret(client: ClientSettings) -> bytes | None:
    """Return what all nodes of the database have and nobody else, None where they have nothing."""
    token = client.snapshot.token or token_kept_here(client.cluster.data)
    return None if token is None else token.encode()


class SqlListener:
    """Listens once it is made, until `close`."""

    def __init__(
        self,
        node: SqlNode,
        settings: PgwireSettings,
        *,
        mock_secret: bytes | None = None,
        audit: AuditLog | None = None,
    ) -> None:
        """Listen. `mock_secret` is known to all nodes of the database, and to nobody else. Raises
        ConfigurationError if the port can't be had."""
        self._node = node
        self._plans = Plans()
        roles = RoleLogins(lambda: node.access.roles)
        self._server = PgwireServer(
            self._open,
            settings,
            logins=[roles],
            mock_secret=mock_secret,
            audit=node.audit if audit is None else audit,
        )
        self._server.start()
        node.sessions.connections = self._server
        if settings.computing_max:
            node.sessions.computing.at_once = settings.computing_max

    @property
    def port(self) -> int:
        return self._server.port

    def close(self) -> None:
        self._server.stop()

    def _open(self, admission: Admission) -> SqlSession:
        """Raises UnknownDatabase, AuthenticationRefused, what settings raise."""
        if admission.database != self._node.database:
            raise UnknownDatabase(
                f'database "{admission.database}" does not exist: this node serves'
                f' "{self._node.database}"'
            )
        if admission.parameters.get("replication", "false").lower() not in ("false", "off", "0"):
            raise Refused("replication connections are not supported")
        given = {
            name: value
            for name, value in admission.parameters.items()
            if name.lower() in SETTINGS and name.lower() not in _NOT_SETTINGS
        }
        options = settings_of_options(admission.parameters.get("options", ""))
        return SqlSession(
            self._node,
            self._plans,
            user=admission.user,
            process=admission.process,
            settings={**options, **given},
            role_id=self._role_of(admission),
        )

    def _role_of(self, admission: Admission) -> int:
        """Return the role that a client is: the one that was found when it was asked who it is.
        Administrators of the file of users are the first one, whatever roles are called, and so are
        those who are asked nothing and whom no role is named like. Raises AuthenticationRefused for
        one that is gone since."""
        account = admission.account
        if account is None or account.role_id == 0:
            return BOOTSTRAP_ROLE
        if account.role_id not in self._node.access.roles.by_id:
            raise AuthenticationRefused(f'role "{admission.user}" does not exist')
        return account.role_id


class NodeListener(SqlListener):
    """The listener of a node's own process, with what that needs for writing."""

    def __init__(
        self, node: ServingNode, settings: PgwireSettings, mock_secret: bytes | None
    ) -> None:
        super().__init__(node, settings, mock_secret=mock_secret)
        self._serving = node
        LOG.info("PostgreSQL clients are served on %s:%d", settings.host, self.port)
        if settings.open_to:
            LOG.warning("%s", settings.open_to)

    def samples(self) -> Iterator[Sample]:
        """Yield what is counted of clients, their statements and requests."""
        yield from self._server.measures.samples()
        yield from self._serving.samples()

    def close(self) -> None:
        super().close()
        self._serving.close()
