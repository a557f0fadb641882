"""What a process that we start gets of the environment: what it needs, and nobody else's secrets.

An environment is read by whoever may look at the process, and is printed by tools when it crashes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from infra.deployment import Service

_SYSTEM: Final = frozenset(
    {
        *("HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "SHELL", "TZ", "USER"),
        *("TEMP", "TMP", "TMPDIR", "JAVA_HOME", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS"),
    }
)
_SYSTEM_BEGINS: Final = ("LC_", "MALLOC_", "SSL_CERT_")
_PYTHON_BEGINS: Final = ("PYTHON", "VIRTUAL_ENV", "COV", "SPARK_", "PYSPARK_", "HADOOP_")
_OURS: Final = "LEASEHOLD_"
_OF_FIRST_REPLICANT: Final = ("LEASEHOLD_HTTP", "LEASEHOLD_REPLICA_")
"""A port is one process's, and what one replicant holds is not what all do."""
_OF_SQL: Final = "LEASEHOLD_SQL_"
_OF_COPIES: Final = "LEASEHOLD_SNAPSHOT_"
_OF_REQUESTS: Final = "LEASEHOLD_REQUEST_"
_OF_REGISTRY: Final = "LEASEHOLD_REGISTRY"
_OF_SPARK: Final = ("LEASEHOLD_SPARK_SECRET", "LEASEHOLD_SPARK_CONF")


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what Kafka's broker and Redis get: nothing of ours."""
    return {name: value for name, value in environ.items() if _is_of_system(name)}


def service_environment(service: Service, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a service of ours inherits. Who serves SQL gets the users, and who keeps a store
    what opens other stores; who serves SQL, and the changefeed, where schemas are registered."""
    return {name: value for name, value in environ.items() if _is_for(service, name)}


def _is_of_system(name: str) -> bool:
    return name in _SYSTEM or name.startswith(_SYSTEM_BEGINS)


def _is_for(service: Service, name: str) -> bool:
    if name.startswith(_OF_SQL):
        return service.sql is not None
    if name.startswith(_OF_FIRST_REPLICANT):
        return service.sql == 0
    if name.startswith(_OF_COPIES):
        return service.keeps_store
    if name.startswith(_OF_REQUESTS):
        return service.signs
    if name.startswith(_OF_REGISTRY):
        return service.asks_registry
    if name.startswith(_OF_SPARK):
        return service.image == "spark"
    return _is_of_system(name) or name.startswith((_OURS, *_PYTHON_BEGINS))
