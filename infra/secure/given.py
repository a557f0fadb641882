"""What servers and processes are told in secure mode: names of files, no secrets. The same for
processes of one machine and for containers, which see other addresses and other names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from infra.deployment import Service
from infra.secure import secret_files as files
from infra.secure.users import ADMINISTRATOR, SENTINELS, SQL_USER
from leasehold.model.process_rights import KIND_NAMED

FileName = Callable[[str], str]
"""Gives the path at which somebody sees a file of `SecretFiles`."""


class Places(NamedTuple):
    """What a process sees. `kafka`, `redis`: host:port, where passwords are taken, by TLS; with
    `sentinels` those of Sentinels, and the name of what they watch."""

    kafka: str
    redis: str
    file: FileName
    sentinels: bool = False


def broker_settings(clients: Sequence[str], file: FileName) -> dict[str, str]:
    """Return the settings of a broker to whom everybody shows who he is, but its addresses: the
    controller and the listener TRUSTED take certificates of the authority, `clients` passwords."""
    settings = {
        "listener.security.protocol.map": ",".join(
            (*(f"{name}:SASL_SSL" for name in clients), "TRUSTED:SSL", "CONTROLLER:SSL")
        ),
        "inter.broker.listener.name": "TRUSTED",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.trusted.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        # Both ends of its own connections are the broker: it shows the one name that may all.
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": file(files.with_key(ADMINISTRATOR)),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": file(files.AUTHORITY_FILE),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:CN={ADMINISTRATOR}",
    }
    for name in clients:
        listener = f"listener.name.{name.lower()}"
        # Without a user: the broker comes to nobody by this listener.
        settings[f"{listener}.scram-sha-512.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
        settings[f"{listener}.ssl.keystore.type"] = "PEM"
        settings[f"{listener}.ssl.keystore.location"] = file(files.with_key("kafka"))
    return settings


def redis_settings(port: int, file: FileName) -> dict[str, str]:
    """Return the settings of a Redis that takes users' passwords by TLS, and nothing else."""
    return {
        "port": "0",
        "tls-port": str(port),
        "tls-cert-file": file(files.certificate("redis")),
        "tls-key-file": file(files.key("redis")),
        "tls-ca-cert-file": file(files.AUTHORITY_FILE),
        "tls-auth-clients": "no",
        "aclfile": file(files.REDIS_USERS),
    }


def process_settings(
    user: str, kinds: Sequence[str], database: str, service: Service | None, places: Places
) -> dict[str, str]:
    """Return the settings by which a process comes to the servers as `user`, who is of these kinds,
    and what else it needs to know. `service` None: a person's command."""
    file, authority = places.file, places.file(files.AUTHORITY_FILE)
    scheme = "rediss+sentinel" if places.sentinels else "rediss"
    given = {
        "LEASEHOLD_KAFKA": places.kafka,
        "LEASEHOLD_KAFKA_SECURITY": "SASL_SSL",
        "LEASEHOLD_KAFKA_SASL_MECHANISM": "SCRAM-SHA-512",
        "LEASEHOLD_KAFKA_USERNAME": user,
        "LEASEHOLD_KAFKA_PASSWORD_FILE": file(files.kafka_password(user)),
        "LEASEHOLD_KAFKA_CA": authority,
    }
    needs = [KIND_NAMED[kind] for kind in kinds]
    if any(kind.redis_rules(database) is not None for kind in needs):
        given |= {
            "LEASEHOLD_REDIS": f"{scheme}://{user}@{places.redis}/0",
            "LEASEHOLD_REDIS_PASSWORD_FILE": file(files.redis_password(user)),
            "LEASEHOLD_REDIS_CA": authority,
        }
        if places.sentinels:
            password = file(files.redis_password(SENTINELS))
            given["LEASEHOLD_REDIS_SENTINEL_PASSWORD_FILE"] = password
    asks = any("requests" in kind.writes for kind in needs)
    if service.signs if service is not None else asks:
        given["LEASEHOLD_REQUEST_KEY_FILE"] = file(files.REQUEST_KEY)
    if "replicant" in kinds or (service is not None and service.keeps_store):
        given |= {
            "LEASEHOLD_SNAPSHOT_TOKEN_FILE": file(files.SNAPSHOT_TOKEN),
            "LEASEHOLD_SNAPSHOT_TLS_CERT": file(files.certificate("snapshot")),
            "LEASEHOLD_SNAPSHOT_TLS_KEY": file(files.key("snapshot")),
            "LEASEHOLD_SNAPSHOT_TLS_CA": authority,
        }
    elif "backup" in kinds:  # it asks a node for its store, and hands none out
        given |= {
            "LEASEHOLD_SNAPSHOT_TOKEN_FILE": file(files.SNAPSHOT_TOKEN),
            "LEASEHOLD_SNAPSHOT_TLS_CA": authority,
        }
    if service is not None and service.sql is not None:
        given |= {
            "LEASEHOLD_SQL_USERS_FILE": file(files.SQL_USERS),
            "LEASEHOLD_SQL_AUTH": "scram-sha-256",
            "LEASEHOLD_SQL_TLS_CERT": file(files.certificate("sql")),
            "LEASEHOLD_SQL_TLS_KEY": file(files.key("sql")),
        }
    elif service is not None and service.dashboard:
        given["LEASEHOLD_SQL_TLS_CA"] = authority
    elif service is None:
        given |= {
            "LEASEHOLD_SQL_USER": SQL_USER,
            "LEASEHOLD_SQL_PASSWORD_FILE": file(files.SQL_PASSWORD),
            "LEASEHOLD_SQL_TLS_CA": authority,
        }
    return given
