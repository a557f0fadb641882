"""A broker that asks for a password, and lets everybody do only what an ACL allows."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from infra.kafka.broker import Broker, wait_for_broker
from infra.local_cluster import KAFKA_JARS
from infra.ports import LOOPBACK, find_free_port
from leasehold.settings.environment import KafkaSettings

PASSWORD: Final = "right"
START_S: Final = 60.0
_LOGIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_PROTOCOLS: Final = "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"


def guarded_broker(
    port: int, controller: int, guarded_port: int, users: Iterable[str], *masters: str
) -> dict[str, str]:
    """Return the settings that add a listener with passwords at `guarded_port` to a broker. Who
    comes by `port`, without a password, and `masters` of the users may do everything."""
    plain, guarded = f"PLAINTEXT://{LOOPBACK}:{port}", f"SASL_PLAINTEXT://{LOOPBACK}:{guarded_port}"
    known = " ".join(f'user_{user}="{PASSWORD}"' for user in users)
    return {
        "listeners": f"{plain},{guarded},CONTROLLER://{LOOPBACK}:{controller}",
        "advertised.listeners": f"{plain},{guarded}",
        "listener.security.protocol.map": _PROTOCOLS,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{_LOGIN} {known};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": ";".join(f"User:{user}" for user in ("ANONYMOUS", *masters)),
    }


def settings_of_user(user: str, guarded_port: int) -> KafkaSettings:
    """Return what a process reads that comes to the guarded listener as `user`."""
    plain = KafkaSettings(bootstrap=f"{LOOPBACK}:{guarded_port}")
    return replace(
        plain,
        security="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        username=user,
        password=PASSWORD,
    )


@contextmanager
def guarded_broker_in(folder: Path, *users: str) -> Iterator[KafkaSettings]:
    """Run a broker that asks its users for a password, and yield what a process reads that comes as
    the first of them, who may do everything; the others may do nothing."""
    port, controller, guarded = (find_free_port() for _ in range(3))
    extra = guarded_broker(port, controller, guarded, users, users[0])
    broker = Broker(folder, KAFKA_JARS, port, controller, heap_mb=256, extra=extra)
    broker.prepare(os.environ)
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(broker.command(), stdout=log, stderr=subprocess.STDOUT)
    settings = settings_of_user(users[0], guarded)
    try:
        wait_for_broker(settings, START_S, lambda: process.poll() is None)
        yield settings
    finally:
        process.kill()
        process.wait()
