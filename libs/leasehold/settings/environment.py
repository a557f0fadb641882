"""The settings of this system: how to reach Kafka and Redis, and where a process stands.

Each service reads them once (`from_environment(KafkaSettings, os.environ)`) and prints
`describe(…)`; no other code looks at the environment. A service with settings of its own makes a
dataclass of `setting()` fields beside its main.py and reads it the same way.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from leasehold.model.errors import ConfigurationError
from leasehold.settings.setting import (
    MASK,
    PORT,
    PORT_OR_ANY,
    REDIS_FORMS,
    SENTINEL_SCHEMES,
    choice,
    describe,
    from_environment,
    host_and_ports,
    integer,
    name,
    own_address,
    redis_url,
    setting,
    to_environment,
)

__all__ = [
    "MASK",
    "ClusterSettings",
    "KafkaSettings",
    "RedisSettings",
    "choice",
    "describe",
    "from_environment",
    "integer",
    "name",
    "setting",
    "to_environment",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """How to reach Kafka, in the spelling of each of the three clients in use."""

    bootstrap: str = setting(
        "LEASEHOLD_KAFKA",
        "brokers to ask first, host:port with commas",
        default="127.0.0.1:19092",
        parse=host_and_ports,
    )
    security: str = setting(
        "LEASEHOLD_KAFKA_SECURITY",
        "PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL",
        default="PLAINTEXT",
        parse=choice("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    )
    sasl_mechanism: str = setting(
        "LEASEHOLD_KAFKA_SASL_MECHANISM",
        "PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512",
        default="SCRAM-SHA-512",
        parse=choice("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
    )
    username: str | None = setting("LEASEHOLD_KAFKA_USERNAME", "SASL user", default=None)
    password: str | None = setting(
        "LEASEHOLD_KAFKA_PASSWORD", "SASL password", default=None, secret=True
    )
    ca: Path | None = setting(
        "LEASEHOLD_KAFKA_CA", "PEM file of the authority to trust", default=None, parse=Path
    )
    certificate: Path | None = setting(
        "LEASEHOLD_KAFKA_CERTIFICATE", "PEM file of our certificate", default=None, parse=Path
    )
    key: Path | None = setting(
        "LEASEHOLD_KAFKA_KEY", "PEM file (PKCS 8) of our private key", default=None, parse=Path
    )
    key_password: str | None = setting(
        "LEASEHOLD_KAFKA_KEY_PASSWORD", "password of the private key", default=None, secret=True
    )

    def __post_init__(self) -> None:
        if self.uses_sasl and not (self.username and self.password):
            raise ConfigurationError(
                f"LEASEHOLD_KAFKA_SECURITY is {self.security}, which needs "
                "LEASEHOLD_KAFKA_USERNAME and LEASEHOLD_KAFKA_PASSWORD "
                "(or LEASEHOLD_KAFKA_PASSWORD_FILE)."
            )
        if (self.certificate is None) != (self.key is None):
            raise ConfigurationError(
                "LEASEHOLD_KAFKA_CERTIFICATE and LEASEHOLD_KAFKA_KEY only work together; "
                "set both or neither."
            )

    @property
    def uses_sasl(self) -> bool:
        return self.security.startswith("SASL_")

    @property
    def uses_tls(self) -> bool:
        return self.security.endswith("SSL")

    @property
    def names_several(self) -> bool:
        """Whether another broker may answer when one does not."""
        return "," in self.bootstrap

    def librdkafka(self) -> dict[str, str | int | float | bool]:
        """Return the options of confluent_kafka's Producer, Consumer and AdminClient. They hold
        secrets: never print them."""
        options: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security.lower(),
        }
        if self.uses_sasl:
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.username"] = self.username or ""
            options["sasl.password"] = self.password or ""
        if self.uses_tls:
            if self.ca is not None:
                options["ssl.ca.location"] = str(self.ca)
            if self.certificate is not None:
                options["ssl.certificate.location"] = str(self.certificate)
                options["ssl.key.location"] = str(self.key)
            if self.key_password is not None:
                options["ssl.key.password"] = self.key_password
        return options

    def spark_options(self) -> dict[str, str]:
        """Return the options of Spark's Kafka source and sink: the JVM client's names, to stand
        behind "kafka.".

        They hold secrets: never print them. Raises ConfigurationError if a PEM file can't be
        read.
        """
        options = {"bootstrap.servers": self.bootstrap, "security.protocol": self.security}
        if self.uses_sasl:
            options["sasl.mechanism"] = self.sasl_mechanism
            options["sasl.jaas.config"] = self._jaas()
        if self.uses_tls:
            if self.ca is not None:
                options["ssl.truststore.type"] = "PEM"
                options["ssl.truststore.location"] = str(self.ca.absolute())  # it runs elsewhere
            if self.certificate is not None and self.key is not None:
                # The JVM takes a PEM key store as one file or as text; ours are two files.
                options["ssl.keystore.type"] = "PEM"
                options["ssl.keystore.certificate.chain"] = _pem(self.certificate)
                options["ssl.keystore.key"] = _pem(self.key)
            if self.key_password is not None:
                options["ssl.key.password"] = self.key_password
        return {f"kafka.{option}": value for option, value in options.items()}

    def aiokafka(self) -> dict[str, Any]:
        """Return the options of aiokafka (under Faust). They hold secrets: never print them."""
        options: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.security,
        }
        if self.uses_sasl:
            options["sasl_mechanism"] = self.sasl_mechanism
            options["sasl_plain_username"] = self.username
            options["sasl_plain_password"] = self.password
        if self.uses_tls:
            options["ssl_context"] = self.ssl_context()
        return options

    def ssl_context(self) -> ssl.SSLContext:
        """Verifies the broker's name and certificate. Raises ConfigurationError."""
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                context.load_cert_chain(self.certificate, self.key, self.key_password)
        except (OSError, ssl.SSLError) as error:
            raise ConfigurationError(
                f"The TLS files for Kafka (LEASEHOLD_KAFKA_CA, _CERTIFICATE, _KEY) "
                f"can't be used: {error}."
            ) from None
        return context

    def _jaas(self) -> str:
        module = "plain.PlainLoginModule"
        if self.sasl_mechanism != "PLAIN":
            module = "scram.ScramLoginModule"
        return (
            f"org.apache.kafka.common.security.{module} required "
            f"username={_jaas_text(self.username or '')} "
            f"password={_jaas_text(self.password or '')};"
        )


def _jaas_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _pem(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The PEM file {str(path)!r} can't be read: {error}.") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisSettings:
    """How to reach the lease ledger."""

    url: str = setting(
        "LEASEHOLD_REDIS",
        REDIS_FORMS,
        default="redis://127.0.0.1:16379/0",
        parse=redis_url,
        in_repr=False,
    )
    password: str | None = setting(
        "LEASEHOLD_REDIS_PASSWORD", "Redis password", default=None, secret=True
    )
    ca: Path | None = setting(
        "LEASEHOLD_REDIS_CA", "PEM file of the authority to trust", default=None, parse=Path
    )
    sentinel_username: str | None = setting(
        "LEASEHOLD_REDIS_SENTINEL_USERNAME", "user of the Sentinels, if they have any", default=None
    )
    sentinel_password: str | None = setting(
        "LEASEHOLD_REDIS_SENTINEL_PASSWORD",
        "password of the Sentinels; that of the servers is LEASEHOLD_REDIS_PASSWORD",
        default=None,
        secret=True,
    )
    fast_acks: str = setting(
        "LEASEHOLD_FAST_ACKS",
        "on or off: nodes tell the master through Redis what they have applied, Kafka stands in"
        " while that fails; off = always through Kafka",
        default="on",
        parse=choice("on", "off"),
    )
    fast_log: str = setting(
        "LEASEHOLD_FAST_LOG",
        "on, off or auto: the master passes each record of the log on to replicants through Redis,"
        " Kafka stands in while that fails; auto = on, unless Kafka is reached with a password or"
        " TLS and Redis without; off = every node fetches each from Kafka, the master its own, too",
        default="auto",
        parse=choice("auto", "on", "off"),
    )

    fast_requests: str = setting(
        "LEASEHOLD_FAST_REQUESTS",
        "on, off or auto: who asks again and again tells the master its requests through Redis, and"
        " hears their answers there, Kafka stands in while that fails; auto as above",
        default="auto",
        parse=choice("auto", "on", "off"),
    )

    def publishes_records(self, kafka: KafkaSettings) -> bool:
        """Rows go where the rest of them goes, and never by a way that is guarded less unless
        somebody says so."""
        return self._tells(self.fast_log, kafka)

    def publishes_requests(self, kafka: KafkaSettings) -> bool:
        """Return whether requests go through Redis. They hold rows, so the rule is that of
        records."""
        return self._tells(self.fast_requests, kafka)

    def _tells(self, wish: str, kafka: KafkaSettings) -> bool:
        if wish != "auto":
            return wish == "on"
        parts = urlsplit(self.url)
        passwords = (self.password, parts.password, *parse_qs(parts.query).get("password", ()))
        open_to_all = not any(passwords)
        return not (kafka.uses_sasl and open_to_all) and not (kafka.uses_tls and not self.uses_tls)

    @property
    def where(self) -> str:
        """The address alone, for people: before it and behind it a password may stand."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def client_options(self) -> dict[str, Any]:
        """Return keyword arguments of a server's client, beside `server_url`. Without the client's
        own name and version: to look those up takes longer than all else of a connection."""
        options: dict[str, Any] = {"driver_info": None}
        if self.password is not None:
            options["password"] = self.password
        if self.uses_tls and self.ca is not None:
            options["ssl_ca_certs"] = str(self.ca)
        return options

    @property
    def uses_tls(self) -> bool:
        return self.url.startswith("rediss")

    @property
    def sentinels(self) -> tuple[tuple[str, int], ...]:
        """Return the Sentinels' addresses; none where a server is named itself."""
        parts = urlsplit(self.url)
        if parts.scheme not in SENTINEL_SCHEMES:
            return ()
        each = (at.strip().rpartition(":") for at in parts.netloc.rpartition("@")[2].split(","))
        return tuple((host.strip("[]"), int(port)) for host, _, port in each)

    @property
    def sentinel_service(self) -> str:
        """Return the name under which Sentinels watch the master."""
        return urlsplit(self.url).path.removeprefix("/").partition("/")[0]

    @property
    def server_url(self) -> str:
        """Return the URL of a server as redis-py takes it; where Sentinels say which one that is,
        its address in it means nothing."""
        if not self.sentinels:
            return self.url
        parts = urlsplit(self.url)
        login, at, _ = parts.netloc.rpartition("@")
        number = parts.path.removeprefix("/").partition("/")[2] or "0"
        scheme = parts.scheme.removesuffix("+sentinel")
        query = f"?{parts.query}" if parts.query else ""
        return f"{scheme}://{login}{at}{self.sentinels[0][0]}/{number}{query}"

    def sentinel_options(self) -> dict[str, Any]:
        """Return keyword arguments of a client of a Sentinel, beside its address."""
        options: dict[str, Any] = {"driver_info": None}
        if self.sentinel_username is not None:
            options["username"] = self.sentinel_username
        if self.sentinel_password is not None:
            options["password"] = self.sentinel_password
        if self.uses_tls:
            options["ssl"] = True
            if self.ca is not None:
                options["ssl_ca_certs"] = str(self.ca)
        return options


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """The place of a process in its cluster: its database, its id, its folder, its listeners."""

    database: str = setting("LEASEHOLD_DATABASE", "the database served", default="demo", parse=name)
    node: str = setting(
        "LEASEHOLD_NODE", "stable id of this node or agent", default="n1", parse=name
    )
    data: Path = setting(
        "LEASEHOLD_DATA",
        "folder of stores, logs of processes, pid files",
        default=Path(".leasehold/data"),
        parse=Path,
    )
    listen: str = setting(
        "LEASEHOLD_LISTEN",
        "address that listeners bind",
        default="127.0.0.1",
        parse=own_address,
    )
    advertise: str = setting(
        "LEASEHOLD_ADVERTISE", "host name under which others reach this node", default="127.0.0.1"
    )
    dashboard_port: int = setting(
        "LEASEHOLD_DASHBOARD_PORT", "port of the dashboard", default=8080, parse=PORT
    )
    replication_factor: int = setting(
        "LEASEHOLD_REPLICATION_FACTOR",
        "brokers that keep each record; 3 in production",
        default=1,
        parse=integer(1, 9),
    )
    session_ttl_ms: int = setting(
        "LEASEHOLD_SESSION_TTL_MS",
        "how long the ledger counts a silent agent as alive; the same for all processes",
        default=15_000,
        parse=integer(1_500, 600_000),
    )
    history_ms: int = setting(
        "LEASEHOLD_HISTORY_MS",
        "how long replaced descriptors stay readable AS OF their time; the same for all nodes",
        default=24 * 3600 * 1000,
        parse=integer(0, 366 * 24 * 3600 * 1000),
    )
    row_history_ms: int = setting(
        "LEASEHOLD_ROW_HISTORY_MS",
        "how long replaced rows stay readable AS OF their time, 0 = not at all (then there are no"
        " snapshot and serializable transactions); the same for all nodes",
        default=60_000,
        parse=integer(0, 366 * 24 * 3600 * 1000),
    )
    dropped_ms: int = setting(
        "LEASEHOLD_DROPPED_MS",
        "how long a dropped table's topic is kept, and a job after its end; at least as long as the"
        " past can be read; the same for all masters",
        default=7 * 24 * 3600 * 1000,
        parse=integer(0, 366 * 24 * 3600 * 1000),
    )
    column_images: str = setting(
        "LEASEHOLD_COLUMN_IMAGES",
        "on or off: a column that follows others (ALTER TYPE, GENERATED) is told by a new image of"
        " each row, for readers of the rows topics that can't compute it; off = only where readers"
        " would not compute the same for good; the same for all masters",
        default="off",
        parse=choice("on", "off"),
    )
    store_cache_mb: int = setting(
        "LEASEHOLD_STORE_CACHE_MB",
        "MB of its store that a node keeps in memory to apply the log, at most",
        default=256,
        parse=integer(1, 1 << 20),
    )
    sql_memory_mb: int = setting(
        "LEASEHOLD_SQL_MEMORY_MB",
        "MB that one SQL statement may hold in memory (53200), besides what SQLite sorts in its"
        " cache; likewise what a transaction has written",
        default=256,
        parse=integer(1, 1 << 20),
    )
    sql_memory_total_mb: int = setting(
        "LEASEHOLD_SQL_MEMORY_TOTAL_MB",
        "MB that all SQL statements and transactions of a node may hold in memory together (53200)",
        default=1024,
        parse=integer(1, 1 << 20),
    )
    sql_temp_mb: int = setting(
        "LEASEHOLD_SQL_TEMP_MB",
        "MB that SQL statements of a node may have in files at once, of what they sort and gather"
        " and of rows that wait for clients (53100)",
        default=8 * 1024,
        parse=integer(1, 1 << 30),
    )
    disk_reserve_mb: int = setting(
        "LEASEHOLD_DISK_RESERVE_MB",
        "MB that are kept free on the disk of a node's store (at most a tenth of it): with less a"
        " master refuses INSERT, UPDATE and schema changes that do more than drop (53100), with a"
        " quarter of it a node stops; 0: nothing is kept",
        default=512,
        parse=integer(0, 1 << 20),
    )
    log_budget_mb: int = setting(
        "LEASEHOLD_LOG_BUDGET_MB",
        "MB that the log, and each of the two queues, may have: with four fifths of it `leasehold"
        " doctor` warns, with all of it that fails; 0: no matter how much",
        default=10 * 1024,
        parse=integer(0, 1 << 30),
    )
    ready_file: Path | None = setting(
        "LEASEHOLD_READY_FILE",
        "file that the process writes once it is ready for work",
        default=None,
        parse=Path,
    )
    spark_jars: Path = setting(
        "LEASEHOLD_SPARK_JARS",
        "folder of Spark's Kafka jars",
        default=Path(".leasehold/jars/spark"),
        parse=Path,
    )
    metrics_port: int | None = setting(
        "LEASEHOLD_METRICS_PORT",
        "port where Prometheus scrapes the process (/metrics), 0 = any that is free; not set: none",
        default=None,
        parse=PORT_OR_ANY,
    )
    metrics_listen: str = setting(
        "LEASEHOLD_METRICS_LISTEN",
        "address of that port; who reaches it sees names of tables, and no values of rows",
        default="127.0.0.1",
        parse=own_address,
    )
    log_format: str = setting(
        "LEASEHOLD_LOG_FORMAT",
        "text or json: how the lines of the process's log are written",
        default="text",
        parse=choice("text", "json"),
    )
    log_level: str = setting(
        "LEASEHOLD_LOG_LEVEL",
        "DEBUG, INFO, WARNING or ERROR",
        default="INFO",
        parse=choice("DEBUG", "INFO", "WARNING", "ERROR"),
    )

    @property
    def log_budget_bytes(self) -> int:
        return self.log_budget_mb << 20

    @property
    def disk_reserve_bytes(self) -> int:
        return self.disk_reserve_mb << 20

    @property
    def folder(self) -> Path:
        """The node's folder, below the data folder."""
        return self.data / self.node
