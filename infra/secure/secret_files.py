"""The secrets of a cluster as files of one folder: an authority and certificates, a password for
each user of Kafka and of Redis, keys.

They are made once. Those who need some of them are told their names, in this folder or, in a
container, wherever they are mounted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from infra.secure.certificates import AUTHORITY, Authority
from infra.secure.users import ADMINISTRATOR, PROBE, REPLICATION, SENTINELS, SQL_USER
from leasehold.adapters.redis.users import DEFAULT_USER, UserRules, digest_of
from leasehold.model.process_rights import RedisRules
from leasehold.pgwire.auth.scram_server import SALT_BYTES, verifier_of_password
from leasehold.settings.private_files import make_private_file, make_private_folder

SECRET_BYTES: Final = 32
KAFKA_PASSWORDS: Final = "kafka-passwords"
REDIS_PASSWORDS: Final = "redis-passwords"
AUTHORITY_FILE: Final = f"{AUTHORITY}.pem"
SNAPSHOT_TOKEN: Final = "snapshot-token"  # noqa: S105
REQUEST_KEY: Final = "request-key"
SQL_PASSWORD: Final = "sql-password"  # noqa: S105
SQL_USERS: Final = "sql-users"
REDIS_USERS: Final = "redis-users.acl"
SERVERS: Final = ("kafka", "redis", "sql", "snapshot", ADMINISTRATOR)
"""Who has a certificate."""


def kafka_password(user: str) -> str:
    """Return the name of the file with a user's password."""
    return f"{KAFKA_PASSWORDS}/{user}"


def redis_password(user: str) -> str:
    """Return the name of the file with a user's password."""
    return f"{REDIS_PASSWORDS}/{user}"


def certificate(name: str) -> str:
    """Return the name of the file with a certificate."""
    return f"{name}.pem"


def key(name: str) -> str:
    """Return the name of the file with a certificate's key."""
    return f"{name}.key"


def with_key(name: str) -> str:
    """Return the name of the file that has a certificate behind its key, as Kafka's broker takes
    them."""
    return f"{name}.both.pem"


def mounted(name: str) -> str:
    """Return the name of a file as a secret of containers, which have no folders of them."""
    return name.replace("/", ".")


class SecretFiles:
    """The files of a folder, made where they are missing, closed to others."""

    def __init__(self, folder: Path, hosts: Sequence[str] = ()) -> None:
        """Describe a folder. `hosts`: names by which servers are reached, beside loopback."""
        self.folder = folder
        self._authority = Authority(folder, hosts)

    def path(self, name: str) -> Path:
        return self.folder / name

    def secret(self, name: str) -> str:
        """Return the secret that a file holds, made where there is none."""
        file = self.path(name)
        if not file.exists():
            self.write(name, secrets.token_hex(SECRET_BYTES) + "\n")
        return file.read_text("ascii").strip()

    def write(self, name: str, text: str) -> None:
        """Write a file that is closed to others from its first moment."""
        file = self.path(name)
        make_private_file(file)
        file.write_text(text, "ascii")

    def make(
        self,
        users: Iterable[str],
        rules: Iterable[tuple[str, RedisRules]],
        servers: Iterable[str] = SERVERS,
    ) -> None:
        """Make what is missing for these users, and `rules` of those in Redis. `servers` get
        certificates. Raises ProcessFailure."""
        for folder in (self.folder, self.path(KAFKA_PASSWORDS), self.path(REDIS_PASSWORDS)):
            make_private_folder(folder)
        for name in servers:
            self._authority.make(name)
        for name in users:
            self.secret(kafka_password(name))
            self.secret(redis_password(name))
        for name in (PROBE, REPLICATION, SENTINELS):
            self.secret(redis_password(name))
        for name in (SNAPSHOT_TOKEN, REQUEST_KEY):
            self.secret(name)
        password = self.secret(SQL_PASSWORD)
        if not self.path(SQL_USERS).exists():
            verifier = verifier_of_password(password, secrets.token_bytes(SALT_BYTES))
            self.write(SQL_USERS, f"{SQL_USER}={verifier}\n")
        self.write(REDIS_USERS, "".join(f"{line}\n" for line in self._redis_lines(rules)))

    def _redis_lines(self, rules: Iterable[tuple[str, RedisRules]]) -> list[str]:
        lines = [f"user {DEFAULT_USER} off resetpass resetkeys resetchannels -@all"]
        for name, rule in rules:
            digest = digest_of(self.secret(redis_password(name)))
            user, _, *words = UserRules(name, (digest,), rule).words()
            lines.append(f"user {user} {' '.join(words)}")
        return lines
