"""The secure mode of a local cluster: its secrets, and what each process is given of them.

Everything stands in one folder that is closed to others (`secure`, below the data): an authority
and certificates, a password for each user of Kafka and of Redis, keys. It is made once; as long as
it is there, the cluster is in that mode. A process is given names of files, its own ones alone: no
secret stands in an environment or a command line.

All processes of a local cluster run as one user of the system, who may read all these files. What
is kept apart here is what each of them can do with its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from infra.deployment import SERVICES, TOPICS, Service
from infra.ports import LOOPBACK, Ports
from infra.processes import ProcessFailure
from infra.secure.certificates import Authority
from leasehold.adapters.kafka.acls import AclAdmin
from leasehold.adapters.redis.users import DEFAULT_USER, UserRules, digest_of
from leasehold.cli.setup_acls import wanted_rights
from leasehold.model.process_rights import KIND_NAMED, RedisRules
from leasehold.pgwire.auth.scram_server import SALT_BYTES, verifier_of_password
from leasehold.settings.environment import KafkaSettings, RedisSettings
from leasehold.settings.private_files import make_private_file, make_private_folder

FOLDER: Final = "secure"
OPERATOR: Final = "operator"
PEOPLE: Final[Mapping[str, Sequence[str]]] = {
    TOPICS: ("topics",),
    OPERATOR: ("topics", "operator", "check", "audit", "producer"),
    "demo": ("operator", "check", "producer", "subscriber", "replicant"),
    "producers": ("producer",),
    "embedded": ("replicant", "producer"),
}
"""Users that are no services, with the kinds of processes that they run. A command that nobody is
named for is the operator's."""
USERS: Final[Mapping[str, Sequence[str]]] = {
    **{service.name: (service.rights,) for service in SERVICES},
    **PEOPLE,
}
PROBE: Final = "probe"
"""A user of Redis who may ask whether it is there."""
ADMINISTRATOR: Final = "administrator"
"""The common name of who may do everything on the broker, and of the broker itself."""
SQL_USER: Final = "leasehold"
SECRET_BYTES: Final = 32
ROUNDS: Final = 4_096
TIMEOUT_S: Final = 30.0
OWN: Final = ("LEASEHOLD_SQL_", "LEASEHOLD_SNAPSHOT_", "LEASEHOLD_REQUEST_", "LEASEHOLD_UNSIGNED_")
"""How the settings begin that this mode gives itself: those of the shell are left out."""


class SecureMode:
    """The secrets of a local cluster, made where they are missing."""

    def __init__(
        self,
        data: Path,
        ports: Ports,
        database: str,
        users: Mapping[str, Sequence[str]] = USERS,
    ) -> None:
        self.folder = data / FOLDER
        self._ports = ports
        self._database = database
        self._users = users
        self._authority = Authority(self.folder)

    @classmethod
    def is_in(cls, data: Path) -> bool:
        """Return whether the cluster with this folder is in secure mode."""
        return (data / FOLDER).is_dir()

    def make(self) -> None:
        """Make what is missing of the files. Raises ProcessFailure."""
        make_private_folder(self.folder.parent)
        for folder in (self.folder, self._kafka_folder, self._redis_folder):
            make_private_folder(folder)
        for name in ("kafka", "redis", "sql", "snapshot", ADMINISTRATOR):
            self._authority.make(name)
        for name in self._users:
            self._secret(self._kafka_folder / name)
            self._secret(self._redis_folder / name)
        self._secret(self._redis_folder / PROBE)
        self._secret(self._snapshot_token)
        self._secret(self._request_key)
        password = self._secret(self._sql_password)
        if not self._sql_users.exists():
            verifier = verifier_of_password(password, secrets.token_bytes(SALT_BYTES))
            _write(self._sql_users, f"{SQL_USER}={verifier}\n")
        _write(self._redis_users, "".join(f"{line}\n" for line in self._redis_lines()))
        _write(
            self.operator_file,
            "".join(f"export {name}='{value}'\n" for name, value in self.for_operator().items()),
        )

    # --- what servers are started with ---------------------------------------------------------

    def broker_settings(self) -> dict[str, str]:
        """Return the settings of a broker to whom everybody shows who he is. The controller and the
        administrator's listener take certificates of the authority, clients passwords."""
        clients = f"CLIENTS://{LOOPBACK}:{self._ports.kafka}"
        trusted = f"TRUSTED://{LOOPBACK}:{self._ports.kafka_trusted}"
        controller = f"CONTROLLER://{LOOPBACK}:{self._ports.kafka_controller}"
        return {
            "listeners": f"{clients},{trusted},{controller}",
            "advertised.listeners": f"{clients},{trusted}",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,TRUSTED:SSL,CONTROLLER:SSL",
            "inter.broker.listener.name": "TRUSTED",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            # Without a user: the broker comes to nobody by this listener.
            "listener.name.clients.scram-sha-512.sasl.jaas.config": (
                "org.apache.kafka.common.security.scram.ScramLoginModule required;"
            ),
            "listener.name.trusted.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            # Both ends of its own connections are the broker: it shows the one name that may all.
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._authority.with_key(ADMINISTRATOR)),
            "listener.name.clients.ssl.keystore.type": "PEM",
            "listener.name.clients.ssl.keystore.location": str(self._authority.with_key("kafka")),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._authority.file),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "allow.everyone.if.no.acl.found": "false",
            "super.users": f"User:CN={ADMINISTRATOR}",
        }

    def redis_settings(self) -> dict[str, str]:
        """Return the settings of a Redis that takes users' passwords by TLS, and nothing else."""
        made = self._authority.certificate("redis")
        return {
            "port": "0",
            "tls-port": str(self._ports.redis),
            "tls-cert-file": str(made.cert),
            "tls-key-file": str(made.key),
            "tls-ca-cert-file": str(self._authority.file),
            "tls-auth-clients": "no",
            "aclfile": str(self._redis_users),
        }

    # --- clients of ours -----------------------------------------------------------------------

    @property
    def administrator(self) -> KafkaSettings:
        """Return how the broker is reached by whoever may do everything."""
        made = self._authority.certificate(ADMINISTRATOR)
        return KafkaSettings(
            bootstrap=f"{LOOPBACK}:{self._ports.kafka_trusted}",
            security="SSL",
            ca=self._authority.file,
            certificate=made.cert,
            key=made.key,
        )

    @property
    def topic_maker(self) -> KafkaSettings:
        return KafkaSettings(
            bootstrap=f"{LOOPBACK}:{self._ports.kafka}",
            security="SASL_SSL",
            username=TOPICS,
            password=self._secret(self._kafka_folder / TOPICS),
            ca=self._authority.file,
        )

    @property
    def redis_probe(self) -> RedisSettings:
        return RedisSettings(
            url=f"rediss://{PROBE}@{LOOPBACK}:{self._ports.redis}/0",
            password=self._secret(self._redis_folder / PROBE),
            ca=self._authority.file,
        )

    def give_users(self) -> None:
        """Give the broker its users, and each of them its rights. May be repeated. Raises
        ProcessFailure and BusUnavailable."""
        admin = AdminClient(self.administrator.librdkafka())
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ROUNDS)
        made = admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion(
                    name, info, self._secret(self._kafka_folder / name).encode()
                )
                for name in self._users
            ]
        )
        for name, future in made.items():
            try:
                future.result(timeout=TIMEOUT_S)
            except (KafkaException, TimeoutError) as error:
                raise ProcessFailure(f"Kafka takes no password for {name}: {error}.") from error
        self.give_rights()

    def give_rights(self) -> None:
        """Give each user on the broker its rights on the database. May be repeated. Raises
        BusUnavailable."""
        kinds = {f"User:{name}": kinds for name, kinds in self._users.items()}
        acls = AclAdmin(self.administrator, "leasehold-setup-acls")
        acls.create(wanted_rights(kinds, self._database) - acls.given())

    # --- what processes are given --------------------------------------------------------------

    def environment(self, name: str, service: Service | None) -> dict[str, str]:
        """Return the settings that a process is given beside what it inherits."""
        user = self.user_of(name)
        authority = str(self._authority.file)
        given = {
            "LEASEHOLD_KAFKA": f"{LOOPBACK}:{self._ports.kafka}",
            "LEASEHOLD_KAFKA_SECURITY": "SASL_SSL",
            "LEASEHOLD_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
            "LEASEHOLD_KAFKA_USERNAME": user,
            "LEASEHOLD_KAFKA_PASSWORD_FILE": str(self._kafka_folder / user),
            "LEASEHOLD_KAFKA_CA": authority,
        }
        kinds = [KIND_NAMED[kind] for kind in self._users[user]]
        if any(kind.redis_rules(self._database) is not None for kind in kinds):
            given |= {
                "LEASEHOLD_REDIS": f"rediss://{user}@{LOOPBACK}:{self._ports.redis}/0",
                "LEASEHOLD_REDIS_PASSWORD_FILE": str(self._redis_folder / user),
                "LEASEHOLD_REDIS_CA": authority,
            }
        asks = any("requests" in kind.writes for kind in kinds)
        if service.signs if service is not None else asks:
            given["LEASEHOLD_REQUEST_KEY_FILE"] = str(self._request_key)
        if "replicant" in self._users[user] or (service is not None and service.keeps_store):
            made = self._authority.certificate("snapshot")
            given |= {
                "LEASEHOLD_SNAPSHOT_TOKEN_FILE": str(self._snapshot_token),
                "LEASEHOLD_SNAPSHOT_TLS_CERT": str(made.cert),
                "LEASEHOLD_SNAPSHOT_TLS_KEY": str(made.key),
                "LEASEHOLD_SNAPSHOT_TLS_CA": authority,
            }
        if service is not None and service.sql is not None:
            made = self._authority.certificate("sql")
            given |= {
                "LEASEHOLD_SQL_USERS_FILE": str(self._sql_users),
                "LEASEHOLD_SQL_AUTH": "scram-sha-256",
                "LEASEHOLD_SQL_TLS_CERT": str(made.cert),
                "LEASEHOLD_SQL_TLS_KEY": str(made.key),
            }
        elif service is None:
            given |= {
                "LEASEHOLD_SQL_USER": SQL_USER,
                "LEASEHOLD_SQL_PASSWORD_FILE": str(self._sql_password),
                "LEASEHOLD_SQL_TLS_CA": authority,
            }
        return given

    def user_of(self, name: str) -> str:
        """Return the user of Kafka and Redis as whom a process comes."""
        return name if name in self._users else OPERATOR

    def for_operator(self) -> dict[str, str]:
        """Return what a shell needs for commands by hand."""
        port = str(self._ports.sql[0])
        given = self.environment(OPERATOR, None)
        return {**given, "LEASEHOLD_DATABASE": self._database, "LEASEHOLD_SQL_PORT": port}

    def psql(self, port: int) -> str:
        """Return a line that asks a node by psql."""
        words = " ".join(f"{name}={value}" for name, value in self.libpq(port).items())
        return f'PGPASSWORD=$(cat {self._sql_password}) psql "{words}"'

    def libpq(self, port: int) -> dict[str, str]:
        """Return what clients of PostgreSQL are told of a node, but the password."""
        return {
            "host": LOOPBACK,
            "port": str(port),
            "user": SQL_USER,
            "dbname": self._database,
            "sslmode": "verify-full",
            "sslrootcert": str(self._authority.file),
            "channel_binding": "require",
        }

    @property
    def operator_file(self) -> Path:
        """Lines for a shell, with names of files in the place of secrets."""
        return self.folder / "operator.sh"

    def redis_rules(self) -> Iterator[tuple[str, RedisRules]]:
        """Return who of the users needs Redis, and what each may do there with the database."""
        for name, kinds in self._users.items():
            rules = [KIND_NAMED[kind].redis_rules(self._database) for kind in kinds]
            needed = [each for each in rules if each is not None]
            if needed:
                selectors = dict.fromkeys(each for rule in needed for each in rule.selectors)
                yield name, needed[0]._replace(selectors=tuple(selectors))

    # --- files ---------------------------------------------------------------------------------

    @property
    def _kafka_folder(self) -> Path:
        return self.folder / "kafka-passwords"

    @property
    def _redis_folder(self) -> Path:
        return self.folder / "redis-passwords"

    @property
    def _snapshot_token(self) -> Path:
        return self.folder / "snapshot-token"

    @property
    def _request_key(self) -> Path:
        return self.folder / "request-key"

    @property
    def _sql_password(self) -> Path:
        return self.folder / "sql-password"

    @property
    def _sql_users(self) -> Path:
        return self.folder / "sql-users"

    @property
    def _redis_users(self) -> Path:
        return self.folder / "redis-users.acl"

    def _secret(self, file: Path) -> str:
        """Return the secret that a file holds, made where there is none."""
        if not file.exists():
            _write(file, secrets.token_hex(SECRET_BYTES) + "\n")
        return file.read_text("ascii").strip()

    def _redis_lines(self) -> list[str]:
        lines = [f"user {DEFAULT_USER} off resetpass resetkeys resetchannels -@all"]
        probe = (PROBE, RedisRules(("+ping",), ()))
        for name, rule in (probe, *self.redis_rules()):
            digest = digest_of(self._secret(self._redis_folder / name))
            user, _, *words = UserRules(name, (digest,), rule).words()
            lines.append(f"user {user} {' '.join(words)}")
        return lines


def _write(file: Path, text: str) -> None:
    """Write a file that is closed to others from its first moment."""
    make_private_file(file)
    file.write_text(text, "ascii")
