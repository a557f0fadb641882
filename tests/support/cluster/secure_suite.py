"""The integration suite in secure mode: `make integration SECURE=1` has its servers ask everybody
who he is, and let each do only what the table of rights says of its kind.

Services come as themselves, clients as users of their kind, by the names that tests give them. What
tests do beyond any kind's rights, such as garbage on the log, they do as a superuser that no
cluster has but this one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pytest
import redis
from psycopg.conninfo import make_conninfo

from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK, Ports
from infra.secure import users
from infra.secure.mode import SecureMode
from infra.secure.users import SQL_USER
from leasehold.adapters.redis.client import make_client
from leasehold.model.process_rights import RedisRules
from leasehold.settings.environment import ClusterSettings, RedisSettings, from_environment
from tests.support.cluster.servers_suite import SERVERS

VARIABLE: Final = "LEASEHOLD_TEST_SECURE"
IS_SECURE: Final = os.environ.get(VARIABLE, "") not in ("", "0")
PRODUCERS: Final = "producers"
REPLICAS: Final = "embedded"
SUBSCRIBERS: Final = "subscribers"
FOLLOWERS: Final = "followers"
WATCHERS: Final = "dashboard"
READERS: Final = "readers"
CONSUMERS: Final = "consumers"
USERS: Final[Mapping[str, Sequence[str]]] = {
    **users.USERS,
    SUBSCRIBERS: ("subscriber",),
    FOLLOWERS: ("follower",),
    READERS: (
        *("operator", "check", "doctor", "audit"),
        *("producer", "subscriber", "replicant", "follower"),
    ),
    CONSUMERS: ("consumer",),
}
CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    PRODUCERS: ("setup", "producer", "requester", "one", "two", "writer", "off"),
    REPLICAS: (
        *("embedded", "other", "another", "looker", "left", "right", "last", "newcomer", "guest"),
        *("sleeper", "embedded-sql", "service"),
    ),
    SUBSCRIBERS: ("late", "follower", "subscriber"),
    FOLLOWERS: ("plain_follower", "faust_follower"),
    READERS: ("reader", "pricing"),
    CONSUMERS: ("consumer",),
    WATCHERS: ("watcher",),
}
"""By user, what tests call the processes that come as it. All others are the operator's."""
USER_OF: Final = {name: user for user, names in CLIENTS.items() for name in names}
SUPERUSER: Final = "superuser"
EVERYTHING: Final = RedisRules(("~*", "&*", "+@all"), ())


class TestedMode(SecureMode):
    """Secrets of servers whose users are those of the tests, too."""

    __test__ = False

    def __init__(
        self, data: Path, ports: Ports, database: str, servers: Mapping[str, Any] = SERVERS
    ) -> None:
        super().__init__(data, ports, database, USERS, **servers)
        self._servers = servers

    def user_of(self, name: str) -> str:
        return super().user_of(USER_OF.get(name, name))

    def redis_rules(self) -> Iterator[tuple[str, RedisRules]]:
        yield from super().redis_rules()
        yield SUPERUSER, EVERYTHING

    def of_database(self, database: str) -> TestedMode:
        """Return the same users with rights on another database besides, on servers that run."""
        made = TestedMode(self.folder.parent, self._ports, database, self._servers)
        made.give_rights()
        for settings in made.each_redis_as(SUPERUSER):
            with make_client(settings) as client:
                for name, rules in made.redis_rules():
                    selectors = (f"({' '.join(each)})" for each in rules.selectors)
                    client.execute_command("ACL", "SETUSER", name, *selectors)
        return made


def secrets_of(
    folder: Path,
    ports: Ports,
    environ: Mapping[str, str] | None = None,
    servers: Mapping[str, Any] = SERVERS,
) -> TestedMode | bool:
    """Return what a cluster of these servers is to be secured by; False outside of the mode."""
    if not IS_SECURE:
        return False
    settings = from_environment(ClusterSettings, os.environ if environ is None else environ)
    return TestedMode(folder.absolute(), ports, settings.database, servers)


def tested_mode(servers: LocalCluster) -> TestedMode | None:
    assert servers.secure is None or isinstance(servers.secure, TestedMode)
    return servers.secure


def access_of(servers: LocalCluster, name: str, database: str) -> dict[str, str]:
    """Return the settings by which a process comes to a database on `servers`, with the rights of
    its kind."""
    secure = tested_mode(servers)
    if secure is not None:
        servers.start_servers()
        secure.of_database(database)
    return {**servers.addresses(name), "LEASEHOLD_DATABASE": database}


def settings_of_superuser(servers: LocalCluster) -> RedisSettings:
    """Return how Redis is reached by who may do everything; `servers.kafka_settings` is the same
    for Kafka."""
    secure = tested_mode(servers)
    return servers.redis_settings if secure is None else secure.redis_as(SUPERUSER)


def superuser_of_redis(servers: LocalCluster) -> redis.Redis:
    """Return a client of who may do everything."""
    settings = settings_of_superuser(servers)
    client: redis.Redis = make_client(settings)
    return client


def libpq_of(cluster: LocalCluster, place: int) -> dict[str, str]:
    """Return what clients of PostgreSQL are told of a replicant; in secure mode with a password."""
    port, secure = cluster.ports.sql[place], tested_mode(cluster)
    if secure is None:
        database = cluster.cluster_settings.database
        return {"host": LOOPBACK, "port": str(port), "user": SQL_USER, "dbname": database}
    return {**secure.libpq(port), "password": secure.sql_password()}


def dsn_of(cluster: LocalCluster, place: int) -> str:
    """Return the same as psycopg's `connect` takes it."""
    return make_conninfo(**libpq_of(cluster, place))


def libpq_environment(cluster: LocalCluster, place: int) -> dict[str, str]:
    """Return the same as variables of psql's and pgbench's environment."""
    words = {"dbname": "DATABASE", "channel_binding": "CHANNELBINDING"}
    told = libpq_of(cluster, place).items()
    return {f"PG{words.get(name, name.upper())}": value for name, value in told}


def not_in_secure_mode(why: str) -> pytest.MarkDecorator:
    """Return a mark for tests that the mode is nothing for, or that it fails."""
    return pytest.mark.skipif(IS_SECURE, reason=f"secure mode: {why}")
