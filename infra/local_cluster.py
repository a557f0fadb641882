"""A cluster on this machine without Docker: for `make up`, the demo and the tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType

from infra.child_environment import server_environment, service_environment
from infra.class_archives import ClassArchives
from infra.compiled import Builds, NotCompiled
from infra.deployment import (
    KAFKA,
    KAFKA_READY_DEADLINE_S,
    REDIS,
    REDIS_READY_DEADLINE_S,
    SERVICES,
    SPARK,
    Service,
)
from infra.kafka.broker import Broker, wait_for_broker
from infra.kafka.settings import HEAP_MB
from infra.kafka.warm_up import WarmUp
from infra.observe.prometheus import (
    PROMETHEUS,
    configuration,
    find_binary,
    is_ready,
)
from infra.observe.prometheus import (
    server_command as prometheus_command,
)
from infra.ports import LOOPBACK, Ports
from infra.processes import STOP_DEADLINE_S, Processes, ProcessFailure
from infra.redis.server import server_command, wait_for_redis
from infra.secure.mode import OWN, SecureMode
from leasehold.adapters.kafka.topic_creation import TopicReport, ensure_topics
from leasehold.model.topics import Topics
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    from_environment,
)
from leasehold.settings.private_files import make_private_folder

ROOT = Path(__file__).resolve().parent.parent
KAFKA_JARS = ROOT / ".leasehold" / "jars" / "kafka"
SPARK_JAVA_OPTIONS = "LEASEHOLD_SPARK_JAVA_OPTIONS"
SPARK_JARS = ROOT / ".leasehold" / "jars" / "spark"
PROMETHEUS_READY_DEADLINE_S = 30.0
LOOK_AGAIN_S = 0.02
TAIL_LINES = 25

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """A line of `make status`."""

    name: str
    pid: int | None
    ready: bool
    log: Path


class LocalCluster:
    """Kafka, Redis and Leasehold's services under one data folder, on given loopback ports.

    As a context manager it ends everything on the way out. If the process that holds it is killed,
    a watchdog does: nothing outlives its `with` block. `make up` uses it without the block, since
    there the processes are meant to stay.

    Every method that starts raises ProcessFailure, with the last lines of the log of what failed.
    """

    def __init__(
        self,
        data: Path,
        ports: Ports,
        environ: Mapping[str, str] | None = None,
        services: Sequence[Service] = SERVICES,
        kafka_heap_mb: int = HEAP_MB,
        *,
        lasting: bool = False,
        kafka_options: Sequence[str] | None = None,
        broker_settings: Mapping[str, str] | None = None,
        secure: bool | SecureMode = False,
        observe: bool = False,
    ) -> None:
        """Describe a cluster; nothing is started yet.

        `environ` is what processes inherit (default: ours), each what it needs of it; settings
        named here win over it.
        `lasting`: it stays up for more than some minutes (`Broker`). `kafka_options`: of the
        broker's JVM, instead of its class archive. `broker_settings`: replace or join the broker's
        own. `secure`: everybody has a user with the rights of his kind, and all goes by TLS
        (`secure/mode.py`), whose secrets may be given; so it is in any case where the data are of
        such a cluster. `observe`: services serve their metrics, and `start_prometheus` reads them.
        """
        self.observes = observe
        self.data = data.absolute()
        self.ports = ports
        self.services = {service.name: service for service in services}
        self.processes = Processes(self.data / "run", self.data / "log")
        self._environ = dict(os.environ if environ is None else environ)
        self.secure: SecureMode | None = None
        if isinstance(secure, SecureMode):
            self.secure = secure
        elif secure or SecureMode.is_in(self.data):
            self.secure = SecureMode(self.data, ports, self.cluster_settings.database)
        if self.secure is not None:
            broker_settings = {**self.secure.broker_settings(), **(broker_settings or {})}
        archive = ClassArchives().java_options(KAFKA)
        self._broker = Broker(
            self.data / KAFKA,
            KAFKA_JARS,
            ports.kafka,
            ports.kafka_controller,
            kafka_heap_mb,
            broker_settings,
            lasting=lasting,
            java_options=archive if kafka_options is None else kafka_options,
            format_options=archive,
        )
        self._watchdog: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> LocalCluster:
        make_private_folder(self.data)
        self.processes.folder.mkdir(parents=True, exist_ok=True)
        self._watchdog = subprocess.Popen(
            [sys.executable, "-m", "infra.watchdog", str(self.data)],
            stdin=subprocess.PIPE,
            cwd=ROOT,
            start_new_session=True,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop_all()
        finally:
            if self._watchdog is not None and self._watchdog.stdin is not None:
                self._watchdog.stdin.close()  # it sees the end of the pipe, finds nothing, ends
                self._watchdog.wait()

    @property
    def kafka_settings(self) -> KafkaSettings:
        """How the broker is reached by who may do everything."""
        if self.secure is not None:
            return self.secure.administrator
        return KafkaSettings(bootstrap=f"{LOOPBACK}:{self.ports.kafka}")

    @property
    def bootstrap(self) -> str:
        return self.kafka_settings.bootstrap

    @property
    def redis_url(self) -> str:
        return self.redis_settings.url

    @property
    def redis_settings(self) -> RedisSettings:
        if self.secure is not None:
            return self.secure.redis_probe
        return RedisSettings(url=f"redis://{LOOPBACK}:{self.ports.redis}/0")

    @property
    def cluster_settings(self) -> ClusterSettings:
        """What the environment says (database, …), with this cluster's folder and ports."""
        given = from_environment(ClusterSettings, self._environ)
        return replace(given, data=self.data, dashboard_port=self.ports.dashboard)

    def server_env(self, name: str) -> dict[str, str]:
        """Return the whole environment that Kafka's broker or Redis is started with."""
        assert name in (KAFKA, REDIS), name
        return server_environment(self._environ)

    def env(self, name: str) -> dict[str, str]:
        """The whole environment that `name` is started with; also for commands run by hand, which
        get all of ours."""
        # The local brokers speak plain text without a password, whatever the shell says about a
        # cluster elsewhere.
        service = self.services.get(name)
        whole = self._environ if service is None else service_environment(service, self._environ)
        inherited = {
            variable: value
            for variable, value in whole.items()
            if not variable.startswith(("LEASEHOLD_KAFKA", "LEASEHOLD_REDIS"))
            and not (self.secure is not None and variable.startswith(OWN))
        }
        own = dict(service.environment) if service else {}
        if name in self.metrics_ports:
            own["LEASEHOLD_METRICS_PORT"] = str(self.metrics_ports[name])
        if service is None or service.compiled:
            own |= self._compiled()
        if service is not None and service.sql is not None:
            own["LEASEHOLD_SQL_PORT"] = str(self.ports.sql[service.sql])
        if service is not None and service.dashboard:  # its users act there, from its pages
            own["LEASEHOLD_SQL_PORT"] = str(self.ports.sql[0])
        return {
            **inherited,
            "PYTHONUNBUFFERED": "1",
            **self.addresses(name),
            "LEASEHOLD_DATA": str(self.data),
            "LEASEHOLD_DASHBOARD_PORT": str(self.ports.dashboard),
            "LEASEHOLD_SPARK_JARS": str(SPARK_JARS),
            SPARK_JAVA_OPTIONS: spark_java_options(self._environ),
            "LEASEHOLD_NODE": name,
            "LEASEHOLD_READY_FILE": str(self._ready_file(name)),
            **own,
        }

    def addresses(self, name: str) -> dict[str, str]:
        """Return where the servers are; in secure mode also who comes to them, and by what."""
        if self.secure is not None:
            return self.secure.environment(name, self.services.get(name))
        return {"LEASEHOLD_KAFKA": self.bootstrap, "LEASEHOLD_REDIS": self.redis_url}

    @property
    def metrics_ports(self) -> dict[str, int]:
        """Return where each service serves its metrics."""
        return dict(zip(self.services, self.ports.metrics, strict=False)) if self.observes else {}

    def start_prometheus(self) -> None:
        """Start a Prometheus that scrapes the services, unless it runs. Raises ProcessFailure."""
        if self.processes.find(PROMETHEUS) is not None:
            return
        binary = find_binary(self._environ.get("PATH"))
        folder = self.data / PROMETHEUS
        make_private_folder(self.data)
        make_private_folder(folder)
        (folder / "prometheus.yml").write_text(configuration(self.metrics_ports), "utf-8")
        command = prometheus_command(binary, folder, self.ports.prometheus)
        self.processes.start(PROMETHEUS, command, server_environment(self._environ), ROOT)
        begun = time.monotonic()
        while not is_ready(self.ports.prometheus):
            if self.processes.find(PROMETHEUS) is None:
                raise self._explained(PROMETHEUS, "Prometheus ended while it was starting.")
            if time.monotonic() - begun > PROMETHEUS_READY_DEADLINE_S:
                raise self._explained(PROMETHEUS, "Prometheus was not ready in time.")
            time.sleep(LOOK_AGAIN_S)

    def _compiled(self) -> dict[str, str]:
        try:
            return Builds().environment(self._environ)
        except NotCompiled as error:
            raise ProcessFailure(str(error)) from None

    def make_secrets(self) -> None:
        """Make what is missing of certificates, passwords and keys in secure mode; whoever starts a
        server does so, too. Raises ProcessFailure."""
        if self.secure is None:
            return
        if not SecureMode.is_in(self.data) and self.processes.find(KAFKA) is not None:
            raise ProcessFailure(
                "A cluster runs in this folder that is not in secure mode; make down ends it."
            )
        self.secure.make()

    def start_kafka(self) -> None:
        """Start the broker, unless it runs, and wait until it serves transactions."""
        self._start_kafka()
        self._wait_for_kafka()

    def start_redis(self) -> None:
        """Start Redis, unless it runs, and wait until it answers."""
        self._start_redis()
        self._wait_for_redis()

    def start_servers(self) -> None:
        """Kafka and Redis, side by side."""
        self._start_redis()
        self._start_kafka()
        self._wait_for_redis()
        self._wait_for_kafka()

    def create_topics(self, database: str | None = None) -> TopicReport:
        """Topics of `database` (default: the environment's). Raises BusUnavailable."""
        topics = Topics(database or self.cluster_settings.database)
        settings = self.kafka_settings if self.secure is None else self.secure.topic_maker
        return ensure_topics(settings, topics.all_static())

    def start(self, name: str, wait: bool = True) -> None:
        """Start one service, or "kafka" or "redis", unless it runs."""
        if name == KAFKA:
            self._start_kafka()
        elif name == REDIS:
            self._start_redis()
        elif self.processes.find(name) is None:
            self._ready_file(name).unlink(missing_ok=True)
            make_private_folder(self.data)
            make_private_folder(self.data / name)
            service = self.services[name]
            command = [sys.executable, *service.command[1:]]
            self.processes.start(name, command, self.env(name), ROOT, service.niceness)
        if wait:
            self.wait_ready(name)

    def start_all(self, progress: Progress = lambda _: None) -> list[str]:
        """Servers, topics, then every service as soon as what it needs is ready.

        Returns the names that had to be started: an empty list means there was nothing to do.
        """
        self.make_secrets()
        names = [KAFKA, REDIS, *self.services]
        started = [name for name in names if self.processes.find(name) is None]
        if not started and all(self.is_ready(name) for name in names):
            return []
        progress(f"services run {'compiled' if self._compiled() else 'interpreted'}")
        progress(f"starting Kafka (port {self.ports.kafka}) and Redis (port {self.ports.redis})")
        self.start_servers()
        report = self.create_topics()
        progress(f"topics: {len(report.created)} created, {len(report.existing)} were there")
        for sentence in report.drift:
            progress(f"topics: warning: {sentence}")
        warm_up = self._warm_up() if KAFKA in started else None
        self._start_services(progress)
        if warm_up is not None:
            warm_up.join()
            if warm_up.trouble:
                progress(f"warning: {warm_up.trouble}; writes are slower for some minutes")
        return started

    def _warm_up(self) -> WarmUp | None:
        """Begin to warm the broker up, if it is one that stays."""
        broker = self.processes.find(KAFKA)
        if broker is None or not self._broker.lasting:
            return None
        work = WarmUp(self.kafka_settings, broker.identity.pid)
        work.start()
        return work

    def _start_services(self, progress: Progress) -> None:
        waiting = dict(self.services)
        begun: dict[str, float] = {}
        ready: set[str] = set()
        while len(ready) < len(self.services):
            for name, service in list(waiting.items()):
                if ready.issuperset(service.needs):
                    begun[name] = time.monotonic()
                    self.start(name, wait=False)
                    del waiting[name]
            for name in begun.keys() - ready:
                if self._check_service(name, begun[name]):
                    ready.add(name)
                    progress(f"{self.services[name].what} {name} is ready")
            time.sleep(LOOK_AGAIN_S)

    def wait_ready(self, name: str) -> None:
        """Wait until a started process is ready, up to its own deadline."""
        if name == KAFKA:
            self._wait_for_kafka()
        elif name == REDIS:
            self._wait_for_redis()
        else:
            begun = time.monotonic()
            while not self._check_service(name, begun):
                time.sleep(LOOK_AGAIN_S)

    def is_ready(self, name: str) -> bool:
        """Whether a service runs and has said that it is ready; a server is when it runs."""
        if self.processes.find(name) is None:
            return False
        return name in (KAFKA, REDIS) or self._ready_file(name).exists()

    def is_running(self, name: str) -> bool:
        return self.processes.find(name) is not None

    def stop(self, name: str, deadline_s: float = STOP_DEADLINE_S) -> None:
        """SIGTERM, and SIGKILL after `deadline_s`."""
        self.processes.stop(name, deadline_s)
        self._ready_file(name).unlink(missing_ok=True)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal: SIGKILL, or SIGSTOP and SIGCONT for a pause."""
        self.processes.signal(name, number)
        if number == signal.SIGKILL:
            self._ready_file(name).unlink(missing_ok=True)

    def restart(self, name: str) -> None:
        """Stop it if it runs, start it, wait until it is ready."""
        self.stop(name)
        self.start(name)

    def stop_all(self) -> list[str]:
        """End everything; what was ended, newest first."""
        ended = self.processes.stop_all()
        for path in self.processes.folder.glob("*.ready"):
            path.unlink(missing_ok=True)
        return ended

    def log_tail(self, name: str, lines: int = TAIL_LINES) -> str:
        return self.processes.tail(name, lines)

    def status(self) -> list[ServiceStatus]:
        rows = []
        for name in (KAFKA, REDIS, *self.services):
            record = self.processes.find(name)
            pid = record.identity.pid if record else None
            log = self.processes.logs / f"{name}.log"
            rows.append(ServiceStatus(name, pid, self.is_ready(name), log))
        return rows

    def _start_kafka(self) -> None:
        if self.processes.find(KAFKA) is None:
            make_private_folder(self.data)
            self.make_secrets()
            environ = self.server_env(KAFKA)
            self._broker.prepare(environ)
            self.processes.start(KAFKA, self._broker.command(), environ, ROOT)

    def _start_redis(self) -> None:
        if self.processes.find(REDIS) is None:
            folder = self.data / REDIS
            make_private_folder(self.data)
            make_private_folder(folder)
            self.make_secrets()
            more = None if self.secure is None else self.secure.redis_settings()
            command = server_command(folder, self.ports.redis, more)
            self.processes.start(REDIS, command, self.server_env(REDIS), ROOT)

    def _wait_for_kafka(self) -> None:
        alive = self._alive(KAFKA)
        try:
            wait_for_broker(self.kafka_settings, KAFKA_READY_DEADLINE_S, alive)
        except ProcessFailure as error:
            raise self._explained(KAFKA, str(error)) from None
        if self.secure is not None:
            self.secure.give_users()

    def _wait_for_redis(self) -> None:
        try:
            settings = self.redis_settings
            wait_for_redis(
                settings.url,
                REDIS_READY_DEADLINE_S,
                self._alive(REDIS),
                **settings.client_options(),
            )
        except ProcessFailure as error:
            raise self._explained(REDIS, str(error)) from None

    def _alive(self, name: str) -> Callable[[], bool]:
        return lambda: self.processes.find(name) is not None

    def _check_service(self, name: str, begun: float) -> bool:
        """Whether it is ready; raises ProcessFailure if it has ended or takes too long."""
        if self._ready_file(name).exists():
            return True
        deadline_s = self.services[name].ready_deadline_s
        if self.processes.find(name) is None:
            raise self._explained(name, f"{name} ended while it was starting.")
        if time.monotonic() - begun > deadline_s:
            raise self._explained(name, f"{name} was not ready within {deadline_s:g} s.")
        return False

    def _explained(self, name: str, what: str) -> ProcessFailure:
        log = self.processes.logs / f"{name}.log"
        tail = self.log_tail(name) or "(it logged nothing)"
        return ProcessFailure(f"{what} The end of {log}:\n{tail}")

    def _ready_file(self, name: str) -> Path:
        return self.processes.folder / f"{name}.ready"


def spark_java_options(environ: Mapping[str, str]) -> str:
    """Return the JVM options that `environ` names, or the class archive of Spark's JVM."""
    return environ.get(SPARK_JAVA_OPTIONS) or " ".join(ClassArchives().java_options(SPARK.name))
