"""The Redis of one local cluster: one server, or a master with a replica and three Sentinels, which
make the replica master when it is needed. Each process is started, stopped, killed and paused by
its name."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from infra.deployment import REDIS
from infra.ports import LOOPBACK, Ports
from infra.processes import STOP_DEADLINE_S, Processes, ProcessFailure
from infra.redis.server import local_settings, server_command, wait_for_redis
from leasehold.settings.private_files import make_private_file, make_private_folder

SENTINEL: Final = "sentinel"
SERVICE: Final = "leasehold"
"""The name under which Sentinels watch the master."""
QUORUM: Final = 2
DOWN_AFTER_MS: Final = 3_000
FAILOVER_MS: Final = 10_000
"""Within this time a failover is to be done; twice as long until the next one is tried."""
FAILOVER_DEADLINE_S: Final = 90.0
SINGLE: Final = "single"
MODES: Final = (SINGLE, SENTINEL)
ASK_S: Final = 2.0
LOOK_AGAIN_S: Final = 0.05
EMPTY: Final = '""'
REPLICA: Final = "slave"
"""As Sentinels call it."""
KEPT: Final = "replicaof "
"""How the line begins that a server writes into its file when it changes sides."""

Environ = Callable[[str], Mapping[str, str]]


def redis_names(mode: str) -> tuple[str, ...]:
    """Return the names of the processes that hold data."""
    return (REDIS,) if mode == SINGLE else (f"{REDIS}-1", f"{REDIS}-2")


def choose_redis(data: Path, wanted: str) -> str:
    """Return how the Redis of a cluster is made up: as its folder has it, `wanted` where that is
    new or nothing is wished (""). Raises ProcessFailure where both differ."""
    if wanted not in ("", *MODES):
        raise ProcessFailure(f"A local cluster has Redis as one of {', '.join(MODES)}: {wanted!r}.")
    there = ""
    for mode in MODES:
        if (data / redis_names(mode)[0]).is_dir():
            there = mode
    if wanted and there and wanted != there:
        raise ProcessFailure(
            f"The cluster of {data} has its Redis as {there}: for {wanted} take another folder"
            " (LEASEHOLD_DATA), or delete it first (make clean)."
        )
    return there or wanted or SINGLE


def address_of(ports: Ports, mode: str) -> str:
    """Return what stands in LEASEHOLD_REDIS between user and database number."""
    if mode == SINGLE:
        return f"{LOOPBACK}:{ports.redis}"
    return ",".join(f"{LOOPBACK}:{port}" for port in ports.sentinels) + f"/{SERVICE}"


class RedisServers:
    """The servers of a data folder. Methods that start raise ProcessFailure.

    `names` are those of servers, `sentinels` those of Sentinels."""

    def __init__(
        self,
        data: Path,
        ports: Ports,
        processes: Processes,
        environ: Environ,
        *,
        folder: Path,
        mode: str = SINGLE,
        settings: Callable[[int], Mapping[str, str]] = lambda port: {},
        sentinel_settings: Callable[[int], Mapping[str, str]] = lambda port: {},
        sentinel_options: Callable[[], Mapping[str, Any]] = dict,
        down_after_ms: int = DOWN_AFTER_MS,
    ) -> None:
        """Describe them. `folder`: where they are started in. `settings`: of a server, by its port,
        beside its own; `sentinel_settings`: those of a Sentinel; `sentinel_options`: of a client of
        one. `down_after_ms`: how long a master is silent until Sentinels take it for gone."""
        self._ports = ports
        self._sentinel_settings = sentinel_settings
        self._sentinel_options = sentinel_options
        self.mode = mode
        self.names = redis_names(mode)
        numbers = range(1, len(ports.sentinels) + 1)
        self.sentinels = tuple(f"{SENTINEL}-{n}" for n in numbers) if self.has_sentinels else ()
        self.port_of = {
            **dict(zip(self.names, (ports.redis, ports.redis_replica), strict=False)),
            **dict(zip(self.sentinels, ports.sentinels, strict=False)),
        }
        self._data = data
        self._processes = processes
        self._environ = environ
        self._folder = folder
        self._settings = settings
        self._down_after_ms = down_after_ms

    @property
    def has_sentinels(self) -> bool:
        return self.mode == SENTINEL

    @property
    def members(self) -> tuple[str, ...]:
        """All processes, in the order in which they are started."""
        return (*self.names, *self.sentinels)

    @property
    def address(self) -> str:
        """Return what stands in LEASEHOLD_REDIS between user and database number."""
        return address_of(self._ports, self.mode)

    def start(self, *names: str) -> None:
        """Start processes (default: all) that do not run. They are not ready for work then."""
        for name in names or self.members:
            if self._processes.find(name) is not None:
                continue
            folder = self._data / name
            make_private_folder(folder)
            command = self._command(name, folder)
            self._processes.start(name, command, self._environ(name), self._folder)

    def stop(self, *names: str, deadline_s: float = STOP_DEADLINE_S) -> None:
        """End processes (default: all). Sentinels go first: they would make a failover of it."""
        for name in names or reversed(self.members):
            self._processes.stop(name, deadline_s)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal: SIGKILL, or SIGSTOP and SIGCONT for a pause."""
        self._processes.signal(name, number)

    def is_running(self, name: str) -> bool:
        return self._processes.find(name) is not None

    def running(self) -> list[str]:
        return [name for name in self.members if self.is_running(name)]

    def wait(self, deadline_s: float, *names: str, **options: Any) -> None:
        """Return once processes (default: all) answer, and Sentinels agree on a master that has its
        replica. `options`: of a client of the servers. Raises ProcessFailure."""
        give_up = time.monotonic() + deadline_s
        for name in names or self.members:
            own = dict(self._sentinel_options() if name in self.sentinels else options)
            own.pop("ssl", None)  # the URL says it
            url = f"{'rediss' if own.get('ssl_ca_certs') else 'redis'}://{self._at(name)}/0"
            left_s = give_up - time.monotonic()
            wait_for_redis(url, left_s, lambda name=name: self.is_running(name), **own)  # type: ignore[misc]
        while self.has_sentinels and not names and not self._is_watched(options):
            if time.monotonic() > give_up:
                raise ProcessFailure(f"Sentinels did not agree on a master within {deadline_s:g} s")
            time.sleep(LOOK_AGAIN_S)

    def master(self) -> str:
        """Return the name of the server that Sentinels take for the master, "" while they do not
        agree or do not answer."""
        if not self.has_sentinels:
            return REDIS
        told = {self._master_by(name) for name in self.sentinels if self.is_running(name)}
        return told.pop() if len(told) == 1 else ""

    def fail_over(self, deadline_s: float = FAILOVER_DEADLINE_S) -> None:
        """Make the replica master although the master lives, and return once Sentinels agree on it.
        They are asked again where they refuse, as they know one that has just begun a few seconds
        later, or give up what they began. Raises ProcessFailure, RedisError.

        ⚠ A server that was killed as master begins as one, until a Sentinel makes it a replica. The
        others look at it every 10 s, so one of them may still take it for a master by itself when
        it is made that by a failover, and undoes that; it would be missed for 25 s."""
        give_up = time.monotonic() + deadline_s
        asked, before, refused = self.sentinels[0], self.master(), ""
        with self._client(asked) as sentinel:
            while self.master() in ("", before):
                if time.monotonic() > give_up:
                    raise ProcessFailure(
                        f"Sentinels made no failover within {deadline_s:g} s; {asked} last refused"
                        f" with: {refused or 'nothing'}"
                    )
                before = before or self.master()
                if before and self._may_begin(asked, before) and self._has_known_replicas():
                    try:
                        sentinel.execute_command("SENTINEL", "FAILOVER", SERVICE)
                    except redis.ResponseError as error:
                        refused = str(error)
                time.sleep(LOOK_AGAIN_S)

    def _may_begin(self, sentinel: str, master: str) -> bool:
        """Whether it takes `master` for the master still, and has no failover under way."""
        under_way = "failover_in_progress" in str(self._state_by(sentinel).get("flags", ""))
        return not under_way and self._master_by(sentinel) == master

    def _has_known_replicas(self) -> bool:
        """Whether each Sentinel has seen that every replica is one."""
        return all(
            told.get("role-reported") == REPLICA
            for name in self.sentinels
            for told in self._replicas_by(name)
        )

    def _is_watched(self, options: Mapping[str, Any]) -> bool:
        """Whether each Sentinel knows a replica that has what the master has, where both run, and
        as many others as can make a failover."""
        for name in self.sentinels:
            state = self._state_by(name)
            if int(state.get("num-slaves", 0)) < 1:
                return False
            if int(state.get("num-other-sentinels", 0)) < len(self.sentinels) - 1:
                return False
        master = self.master()
        if not all(map(self.is_running, self.names)):
            return master != ""
        return master != "" and self._is_replicated(master, options)

    def _is_replicated(self, master: str, options: Mapping[str, Any]) -> bool:
        """Whether the replica has what the master has. Sentinels ask that every ten seconds."""
        (replica,) = (name for name in self.names if name != master)
        try:
            with self._client_at(replica, options) as client:
                told = client.info("replication")
        except redis.RedisError:
            return False
        linked: bool = told.get("master_link_status") == "up"
        return linked and told.get("master_port") == self.port_of[master]

    def _master_by(self, sentinel: str) -> str:
        port = int(self._state_by(sentinel).get("port", 0))
        return next((name for name in self.names if self.port_of[name] == port), "")

    def _state_by(self, sentinel: str) -> Mapping[str, Any]:
        try:
            with self._client(sentinel) as client:
                told = client.execute_command("SENTINEL", "MASTER", SERVICE)
        except redis.RedisError:
            return {}
        return _fields_of(told)

    def _replicas_by(self, sentinel: str) -> list[Mapping[str, Any]]:
        """Return what it knows of each replica; one that is not known where it does not answer."""
        try:
            with self._client(sentinel) as client:
                found = client.execute_command("SENTINEL", "REPLICAS", SERVICE)
        except redis.RedisError:
            return [{}]
        return [_fields_of(told) for told in found]

    def _client(self, sentinel: str) -> Any:
        return self._client_at(sentinel, self._sentinel_options())

    def _client_at(self, name: str, options: Mapping[str, Any]) -> Any:
        return redis.Redis(
            LOOPBACK,
            self.port_of[name],
            socket_timeout=ASK_S,
            socket_connect_timeout=ASK_S,
            decode_responses=True,
            retry=Retry(NoBackoff(), 0),
            **{**options, "ssl": "ssl_ca_certs" in options},
        )

    def _at(self, name: str) -> str:
        return f"{LOOPBACK}:{self.port_of[name]}"

    # --- files and command lines ----------------------------------------------------------------

    def _command(self, name: str, folder: Path) -> list[str]:
        if name in self.sentinels:
            return ["redis-server", str(self._sentinel_file(name, folder)), "--sentinel"]
        more = self._settings(self.port_of[name])
        if not self.has_sentinels:
            return server_command(folder, self.port_of[name], more)
        return ["redis-server", str(self._server_file(name, folder, more))]

    def _server_file(self, name: str, folder: Path, more: Mapping[str, str]) -> Path:
        """Write the file of a server, which writes into it whose replica it is. What it has written
        there stays: else two would be masters until Sentinels say otherwise."""
        file = folder / "redis.conf"
        settings = local_settings(folder, self.port_of[name], more)
        lines = [f"{setting} {value or EMPTY}" for setting, value in settings.items()]
        if file.exists():
            before = file.read_text("utf-8").splitlines()
            lines += [line for line in before if line.startswith(KEPT)]
        elif name != self.names[0]:
            lines.append(f"{KEPT}{LOOPBACK} {self.port_of[self.names[0]]}")
        make_private_file(file)
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return file

    def _sentinel_file(self, name: str, folder: Path) -> Path:
        """Return the file of a Sentinel, which keeps there what it knows: written once."""
        file = folder / "sentinel.conf"
        port = f"port {self.port_of[name]}"
        if file.exists():
            lines = file.read_text("utf-8").splitlines()
            if port in lines or f"tls-{port}" in lines:
                return file
        lines = [
            *("bind 127.0.0.1", port, f"dir {folder.absolute()}", "daemonize no"),
            "set-proc-title no",
            f"sentinel monitor {SERVICE} {LOOPBACK} {self.port_of[self.names[0]]} {QUORUM}",
            f"sentinel down-after-milliseconds {SERVICE} {self._down_after_ms}",
            f"sentinel failover-timeout {SERVICE} {FAILOVER_MS}",
            f"sentinel parallel-syncs {SERVICE} 1",
        ]
        more = self._sentinel_settings(self.port_of[name])
        lines = [line for line in lines if line.partition(" ")[0] not in more]
        lines += [f"{setting} {value}" for setting, value in more.items()]
        make_private_file(file)
        file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        return file


def _fields_of(told: Any) -> Mapping[str, Any]:
    """Return the fields of an answer, as redis-py gives them by RESP3, and by RESP2 one by one."""
    return dict(zip(told[::2], told[1::2], strict=False)) if isinstance(told, list) else told
