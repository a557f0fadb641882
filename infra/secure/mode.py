"""The secure mode of a local cluster: its secrets, and what each process is given of them.

Everything stands in one folder that is closed to others (`secure`, below the data). It is made
once; as long as it is there, the cluster is in that mode. A process is given names of files, its
own ones alone: no secret stands in an environment or a command line.

All processes of a local cluster run as one user of the system, who may read all these files. What
is kept apart here is what each of them can do with its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from infra.deployment import TOPICS, Service
from infra.kafka.brokers import ONE
from infra.ports import LOOPBACK, BrokerPorts, Ports
from infra.redis.servers import SENTINEL, SERVICE, SINGLE, address_of
from infra.secure import given, rights
from infra.secure import secret_files as files
from infra.secure.given import Places
from infra.secure.secret_files import SecretFiles
from infra.secure.users import (
    ADMINISTRATOR,
    OF_SERVERS,
    OPERATOR,
    PROBE,
    REPLICATION,
    SENTINELS,
    SQL_USER,
    USERS,
    Users,
    redis_rules,
)
from leasehold.model.process_rights import RedisRules
from leasehold.settings.environment import KafkaSettings, RedisSettings
from leasehold.settings.private_files import make_private_folder

FOLDER: Final = "secure"
OWN: Final = ("LEASEHOLD_SQL_", "LEASEHOLD_SNAPSHOT_", "LEASEHOLD_REQUEST_", "LEASEHOLD_UNSIGNED_")
"""How the settings begin that this mode gives itself: those of the shell are left out."""


class SecureMode:
    """The secrets of a local cluster, made where they are missing."""

    def __init__(
        self,
        data: Path,
        ports: Ports,
        database: str,
        users: Users = USERS,
        *,
        brokers: int = ONE,
        redis: str = SINGLE,
    ) -> None:
        self.folder = data / FOLDER
        self._ports = ports
        self._brokers = ports.brokers(brokers)
        self._has_sentinels = redis == SENTINEL
        self._database = database
        self._users = users
        self._files = SecretFiles(self.folder)

    def is_for(self, brokers: int, redis: str) -> bool:
        """Return whether it is of that many brokers, and of a Redis of that kind."""
        return len(self._brokers) == brokers and self._has_sentinels == (redis == SENTINEL)

    @classmethod
    def is_in(cls, data: Path) -> bool:
        """Return whether the cluster with this folder is in secure mode."""
        return (data / FOLDER).is_dir()

    def make(self) -> None:
        """Make what is missing of the files. Raises ProcessFailure."""
        make_private_folder(self.folder.parent)
        self._files.make(self._users, self.redis_rules())
        lines = (f"export {name}='{value}'\n" for name, value in self.for_operator().items())
        self._files.write(self.operator_file.name, "".join(lines))

    # --- what servers are started with ---------------------------------------------------------

    def broker_settings(self, ports: BrokerPorts) -> dict[str, str]:
        """Return the settings of a broker to whom everybody shows who he is."""
        clients = f"CLIENTS://{LOOPBACK}:{ports.clients}"
        trusted = f"TRUSTED://{LOOPBACK}:{ports.trusted}"
        controller = f"CONTROLLER://{LOOPBACK}:{ports.controller}"
        return {
            "listeners": f"{clients},{trusted},{controller}",
            "advertised.listeners": f"{clients},{trusted}",
            **given.broker_settings(("CLIENTS",), self._file),
        }

    def redis_settings(self, port: int) -> dict[str, str]:
        """Return the settings of a Redis that takes users' passwords by TLS, and nothing else.
        With a replica a secret is among them: for a file that is closed to others."""
        settings = given.redis_settings(port, self._file)
        if self._has_sentinels:
            settings["tls-replication"] = "yes"
            settings["masteruser"] = REPLICATION
            settings["masterauth"] = self._files.secret(files.redis_password(REPLICATION))
        return settings

    def sentinel_settings(self, port: int) -> dict[str, str]:
        """Return the settings of a Sentinel that takes a password by TLS, and comes to servers and
        to other Sentinels by one; for a file that is closed to others."""
        secret = self._files.secret(files.redis_password(SENTINELS))
        tls = given.redis_settings(port, self._file)
        del tls["aclfile"]
        return {
            **tls,
            "tls-replication": "yes",
            "requirepass": secret,
            "sentinel sentinel-pass": secret,
            f"sentinel auth-user {SERVICE}": SENTINELS,
            f"sentinel auth-pass {SERVICE}": secret,
        }

    def sentinel_options(self) -> dict[str, Any]:
        """Return what a client of a Sentinel is given."""
        return self.redis_probe.sentinel_options()

    # --- clients of ours -----------------------------------------------------------------------

    @property
    def administrator(self) -> KafkaSettings:
        """Return how the broker is reached by whoever may do everything."""
        return KafkaSettings(
            bootstrap=",".join(f"{LOOPBACK}:{each.trusted}" for each in self._brokers),
            security="SSL",
            ca=self._files.path(files.AUTHORITY_FILE),
            certificate=self._files.path(files.certificate(ADMINISTRATOR)),
            key=self._files.path(files.key(ADMINISTRATOR)),
        )

    @property
    def topic_maker(self) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=self._clients,
            security="SASL_SSL",
            username=TOPICS,
            password=self._files.secret(files.kafka_password(TOPICS)),
            ca=self._files.path(files.AUTHORITY_FILE),
        )

    @property
    def redis_probe(self) -> RedisSettings:
        return self.redis_as(PROBE)

    def redis_as(self, user: str) -> RedisSettings:
        """Return how Redis is reached by a user."""
        scheme = "rediss+sentinel" if self._has_sentinels else "rediss"
        return self._redis_at(f"{scheme}://{user}@{self._redis_address}/0", user)

    def each_redis_as(self, user: str) -> list[RedisSettings]:
        """Return how each server of Redis is reached by a user, whether it is master or not."""
        ports = (self._ports.redis, self._ports.redis_replica)[: 2 if self._has_sentinels else 1]
        return [self._redis_at(f"rediss://{user}@{LOOPBACK}:{port}/0", user) for port in ports]

    def _redis_at(self, url: str, user: str) -> RedisSettings:
        return RedisSettings(
            url=url,
            password=self._files.secret(files.redis_password(user)),
            ca=self._files.path(files.AUTHORITY_FILE),
            sentinel_password=(
                self._files.secret(files.redis_password(SENTINELS)) if self._has_sentinels else None
            ),
        )

    @property
    def _redis_address(self) -> str:
        return address_of(self._ports, SENTINEL if self._has_sentinels else SINGLE)

    def redis_probe_options(self) -> dict[str, Any]:
        """Return what a client is given that only asks whether a server is there."""
        return {**self.redis_probe.client_options(), "username": PROBE}

    @property
    def _clients(self) -> str:
        return ",".join(f"{LOOPBACK}:{each.clients}" for each in self._brokers)

    def give_users(self) -> None:
        """Give the broker its users, and each of them its rights. May be repeated. Raises
        ProcessFailure and BusUnavailable."""
        names = {name: self._files.secret(files.kafka_password(name)) for name in self._users}
        rights.give_passwords(self.administrator, names)
        self.give_rights()

    def give_rights(self) -> None:
        """Give each user on the broker its rights on the database. May be repeated. Raises
        BusUnavailable."""
        rights.give_rights(self.administrator, self._users, self._database)

    def redis_rules(self) -> Iterator[tuple[str, RedisRules]]:
        """Return who needs Redis, and what each may do there with the database."""
        if self._has_sentinels:
            yield from OF_SERVERS
        yield from redis_rules(self._users, self._database)

    # --- what processes are given --------------------------------------------------------------

    def environment(self, name: str, service: Service | None) -> dict[str, str]:
        """Return the settings that a process is given beside what it inherits."""
        user = self.user_of(name)
        places = Places(self._clients, self._redis_address, self._file, self._has_sentinels)
        return given.process_settings(user, self._users[user], self._database, service, places)

    def user_of(self, name: str) -> str:
        """Return the user of Kafka and Redis as whom a process comes."""
        return name if name in self._users else OPERATOR

    def for_operator(self) -> dict[str, str]:
        """Return what a shell needs for commands by hand."""
        port = str(self._ports.sql[0])
        told = self.environment(OPERATOR, None)
        if len(self._brokers) > ONE:
            told["LEASEHOLD_REPLICATION_FACTOR"] = str(len(self._brokers))
        return {**told, "LEASEHOLD_DATABASE": self._database, "LEASEHOLD_SQL_PORT": port}

    def psql(self, port: int) -> str:
        """Return a line that asks a node by psql."""
        words = " ".join(f"{name}={value}" for name, value in self.libpq(port).items())
        return f'PGPASSWORD=$(cat {self._file(files.SQL_PASSWORD)}) psql "{words}"'

    def libpq(self, port: int) -> dict[str, str]:
        """Return what clients of PostgreSQL are told of a node, but the password."""
        return {
            "host": LOOPBACK,
            "port": str(port),
            "user": SQL_USER,
            "dbname": self._database,
            "sslmode": "verify-full",
            "sslrootcert": self._file(files.AUTHORITY_FILE),
            "channel_binding": "require",
        }

    def sql_password(self) -> str:
        """Return the password of SQL_USER."""
        return self._files.secret(files.SQL_PASSWORD)

    @property
    def operator_file(self) -> Path:
        """Lines for a shell, with names of files in the place of secrets."""
        return self.folder / "operator.sh"

    def _file(self, name: str) -> str:
        return str(self._files.path(name))
