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
from typing import Any

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
from infra.kafka.broker import wait_for_broker
from infra.kafka.brokers import CLIENTS, TRUSTED, Brokers, choose_brokers
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
from infra.ports import BrokerPorts, Ports
from infra.processes import STOP_DEADLINE_S, Processes, ProcessFailure
from infra.redis.servers import RedisServers, choose_redis
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
        brokers: int = 0,
        redis: str = "",
    ) -> None:
        """Describe a cluster; nothing is started yet. Raises ProcessFailure for one that its folder
        is not of.

        `environ` is what processes inherit (default: ours), each what it needs of it; settings
        named here win over it.
        `lasting`: it stays up for more than some minutes (`Broker`). `kafka_options`: of the
        broker's JVM, instead of its class archive. `broker_settings`: replace or join the broker's
        own. `secure`: everybody has a user with the rights of his kind, and all goes by TLS
        (`secure/mode.py`), whose secrets may be given; so it is in any case where the data are of
        such a cluster. `observe`: services serve their metrics, and `start_prometheus` reads them.
        `brokers`: 1 or 3; `redis`: "single" or "sentinel" (a master, a replica, three Sentinels);
        0 and "": as the data have it, else one of each.
        """
        self.observes = observe
        self.data = data.absolute()
        self.ports = ports
        self.services = {service.name: service for service in services}
        self.processes = Processes(self.data / "run", self.data / "log")
        self._environ = dict(os.environ if environ is None else environ)
        count = choose_brokers(self.data, brokers)
        mode = choose_redis(self.data, redis)
        self.secure: SecureMode | None = None
        if isinstance(secure, SecureMode):
            assert secure.is_for(count, mode), f"secrets of other servers than {count}, {mode}"
            self.secure = secure
        elif secure or SecureMode.is_in(self.data):
            database = from_environment(ClusterSettings, self._environ).database
            self.secure = SecureMode(self.data, ports, database, brokers=count, redis=mode)
        self._broker_settings = dict(broker_settings or {})
        archive = ClassArchives().java_options(KAFKA)
        self.brokers = Brokers(
            self.data,
            KAFKA_JARS,
            ports.brokers(count),
            self.processes,
            self.server_env,
            folder=ROOT,
            heap_mb=kafka_heap_mb,
            settings=self._settings_of_broker,
            lasting=lasting,
            java_options=archive if kafka_options is None else kafka_options,
            format_options=archive,
        )
        self.redis = RedisServers(
            self.data,
            ports,
            self.processes,
            self.server_env,
            folder=ROOT,
            mode=mode,
            settings=self._settings_of_redis,
            sentinel_settings=self._settings_of_sentinel,
            sentinel_options=self._sentinel_options,
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
        return KafkaSettings(bootstrap=self.brokers.bootstrap())

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
        scheme = "redis+sentinel" if self.redis.has_sentinels else "redis"
        return RedisSettings(url=f"{scheme}://{self.redis.address}/0")

    @property
    def cluster_settings(self) -> ClusterSettings:
        """What the environment says (database, …), with this cluster's folder and ports."""
        given = from_environment(ClusterSettings, self._environ)
        return replace(
            given,
            data=self.data,
            dashboard_port=self.ports.dashboard,
            replication_factor=len(self.brokers.names),
        )

    def server_env(self, name: str) -> dict[str, str]:
        """Return the whole environment that a broker, a Redis or a Sentinel is started with."""
        assert name in self.server_names, name
        return server_environment(self._environ)

    @property
    def server_names(self) -> tuple[str, ...]:
        """Return the names of all processes that are no services."""
        return (*self.brokers.names, *self.redis.members)

    def members(self, name: str) -> tuple[str, ...]:
        """Return the processes that a name stands for: "kafka" and "redis" are all there are of
        each, any other name is one process."""
        return {KAFKA: self.brokers.names, REDIS: self.redis.members}.get(name, (name,))

    def _settings_of_broker(self, ports: BrokerPorts) -> dict[str, str]:
        own = {} if self.secure is None else self.secure.broker_settings(ports)
        return {**own, **self._broker_settings}

    def _settings_of_redis(self, port: int) -> dict[str, str]:
        return {} if self.secure is None else self.secure.redis_settings(port)

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
            **self._replication(),
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

    def _settings_of_sentinel(self, port: int) -> dict[str, str]:
        return {} if self.secure is None else self.secure.sentinel_settings(port)

    def _sentinel_options(self) -> dict[str, Any]:
        return {} if self.secure is None else self.secure.sentinel_options()

    @property
    def has_more(self) -> bool:
        """Whether there is more than one broker, or more than one Redis."""
        return len(self.brokers.names) > 1 or self.redis.has_sentinels

    @property
    def operator_file(self) -> Path:
        """Lines for a shell, where a cluster without secrets has more than one of each."""
        return self.data / "operator.sh"

    def _write_operator_file(self) -> None:
        if self.secure is None and self.has_more:
            told = {**self.addresses(""), **self._replication()}
            lines = (f"export {name}='{value}'\n" for name, value in told.items())
            self.operator_file.write_text("".join(lines), "utf-8")

    def _replication(self) -> dict[str, str]:
        count = len(self.brokers.names)
        return {"LEASEHOLD_REPLICATION_FACTOR": str(count)} if count > 1 else {}

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
        if not SecureMode.is_in(self.data) and self.brokers.running():
            raise ProcessFailure(
                "A cluster runs in this folder that is not in secure mode; make down ends it."
            )
        self.secure.make()

    def start_kafka(self) -> None:
        """Start the brokers that do not run, and wait until they serve transactions."""
        self._start_kafka()
        self._wait_for_kafka()

    def start_redis(self) -> None:
        """Start what does not run of Redis, and wait until it answers."""
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
        count = len(self.brokers.names)
        topics = Topics(database or self.cluster_settings.database, count)
        settings = self.kafka_settings if self.secure is None else self.secure.topic_maker
        return ensure_topics(settings, topics.all_static(), topics.replication_factor)

    def start(self, name: str, wait: bool = True) -> None:
        """Start one process, or all of "kafka" or "redis", unless it runs."""
        if name == KAFKA or name in self.brokers.names:
            self._start_kafka(*self.members(name))
        elif name == REDIS or name in self.redis.members:
            self._start_redis(*self.members(name))
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
        names = [*self.server_names, *self.services]
        started = [name for name in names if self.processes.find(name) is None]
        if not started and all(self.is_ready(name) for name in names):
            return []
        progress(f"services run {'compiled' if self._compiled() else 'interpreted'}")
        at = ", ".join(map(str, (ports.clients for ports in self.brokers.ports.values())))
        kept = ", ".join(map(str, self.redis.port_of.values()))
        progress(f"starting Kafka (port {at}) and Redis (port {kept})")
        self.start_servers()
        self._write_operator_file()
        report = self.create_topics()
        progress(f"topics: {len(report.created)} created, {len(report.existing)} were there")
        for sentence in report.drift:
            progress(f"topics: warning: {sentence}")
        warm_up = self._warm_up() if set(started) & set(self.brokers.names) else None
        self._start_services(progress)
        if warm_up is not None:
            warm_up.join()
            if warm_up.trouble:
                progress(f"warning: {warm_up.trouble}; writes are slower for some minutes")
        return started

    def _warm_up(self) -> WarmUp | None:
        """Begin to warm the brokers up, if they are some that stay."""
        if not self.brokers.lasting:
            return None
        pids = [self.brokers.pid(name) for name in self.brokers.names]
        work = WarmUp(self.kafka_settings, pids)
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
        if name == KAFKA or name in self.brokers.names:
            self._wait_for_kafka()
        elif name == REDIS:
            self._wait_for_redis()
        elif name in self.redis.members:
            self._wait_for_redis(name)
        else:
            begun = time.monotonic()
            while not self._check_service(name, begun):
                time.sleep(LOOK_AGAIN_S)

    def is_ready(self, name: str) -> bool:
        """Whether a service runs and has said that it is ready; a server is when it runs."""
        if not self.is_running(name):
            return False
        servers = {KAFKA, REDIS, *self.server_names}
        return name in servers or self._ready_file(name).exists()

    def is_running(self, name: str) -> bool:
        return all(self.processes.find(each) is not None for each in self.members(name))

    def stop(self, name: str, deadline_s: float = STOP_DEADLINE_S) -> None:
        """SIGTERM, and SIGKILL after `deadline_s`."""
        if name == KAFKA:
            self.brokers.end()
            return
        for each in reversed(self.members(name)):
            self.processes.stop(each, deadline_s)
        self._ready_file(name).unlink(missing_ok=True)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal: SIGKILL, or SIGSTOP and SIGCONT for a pause. With "kafka" or "redis" to
        those that run of them."""
        running = [each for each in self.members(name) if self.processes.find(each) is not None]
        for each in running or [name]:
            self.processes.signal(each, number)
        if number == signal.SIGKILL:
            self._ready_file(name).unlink(missing_ok=True)

    def restart(self, name: str) -> None:
        """Stop it if it runs, start it, wait until it is ready."""
        self.stop(name)
        self.start(name)

    def stop_all(self) -> list[str]:
        """End everything; what was ended, newest first."""
        ended: list[str] = []
        if len(self.brokers.names) > 1:
            others = [*self.redis.members, *self.services]
            ended = [name for name in reversed(others) if self.processes.stop(name)]
            ended += self.brokers.end()
        ended += self.processes.stop_all()
        for path in self.processes.folder.glob("*.ready"):
            path.unlink(missing_ok=True)
        return ended

    def log_tail(self, name: str, lines: int = TAIL_LINES) -> str:
        return self.processes.tail(name, lines)

    def status(self) -> list[ServiceStatus]:
        rows = []
        for name in (*self.server_names, *self.services):
            record = self.processes.find(name)
            pid = record.identity.pid if record else None
            log = self.processes.logs / f"{name}.log"
            rows.append(ServiceStatus(name, pid, self.is_ready(name), log))
        return rows

    def _start_kafka(self, *names: str) -> None:
        if self.is_running(KAFKA):
            return
        make_private_folder(self.data)
        self.make_secrets()
        self.brokers.start(*names)

    def _start_redis(self, *names: str) -> None:
        if self.is_running(REDIS):
            return
        make_private_folder(self.data)
        self.make_secrets()
        self.redis.start(*names)

    def _wait_for_kafka(self) -> None:
        """Wait until those brokers that run, all or a majority, do what brokers are for."""
        running = self.brokers.running()
        name = next(iter(running), self.brokers.names[0])
        alive = self._alive(name)
        listener = CLIENTS if self.secure is None else TRUSTED
        asked = replace(self.kafka_settings, bootstrap=self.brokers.bootstrap(listener, running))
        try:
            wait_for_broker(asked, KAFKA_READY_DEADLINE_S, alive, len(running))
        except ProcessFailure as error:
            raise self._explained(name, str(error)) from None
        if self.secure is not None:
            self.secure.give_users()

    def _wait_for_redis(self, *names: str) -> None:
        options = {} if self.secure is None else self.secure.redis_probe_options()
        try:
            self.redis.wait(REDIS_READY_DEADLINE_S, *names, **options)
        except ProcessFailure as error:
            raise self._explained((*names, self.redis.names[0])[0], str(error)) from None

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
