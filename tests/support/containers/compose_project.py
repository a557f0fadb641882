"""Runs the services of a Compose file as Docker would: order, health, secrets, volumes, users.

Images of Kafka and of Redis are not to be had here: their servers are this machine's, with the
settings and the users that the file gives their containers.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any, Final

from ruamel.yaml import YAML

from infra.child_environment import server_environment
from infra.class_archives import ClassArchives
from infra.deployment import KAFKA
from infra.kafka.broker import Broker
from infra.local_cluster import KAFKA_JARS
from leasehold.adapters.os.clock import boottime_ns
from tests.support.containers.container import ROOT, Container, Described
from tests.support.containers.image import read_image
from tests.support.containers.pod_network import PodNetwork

KAFKA_PREFIX: Final = "KAFKA_"
NOT_SETTINGS: Final = ("KAFKA_HEAP_OPTS", "KAFKA_JVM_PERFORMANCE_OPTS")
USER_OF: Final = {"apache/kafka": 1_000, "redis": 999}
HEAP_MB: Final = 384
HEALTHY_S: Final = 180.0
LOOK_AGAIN_S: Final = 0.2
_VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+)(?::([-+])([^}]*))?\})")

Service = dict[str, Any]


def interpolated(text: str, environ: Mapping[str, str]) -> str:
    """Return a text of a Compose file with its variables in place."""

    def of(found: re.Match[str]) -> str:
        name, how, other = found.groups()
        if name is None:
            return "$"
        value = environ.get(name, "")
        if how == "+":
            return other if value else ""
        return value or other or ""

    return _VARIABLE.sub(of, text)


def broker_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what the image of Kafka makes of its environment."""
    return {
        variable.removeprefix(KAFKA_PREFIX).lower().replace("___", "-").replace("_", "."): value
        for variable, value in environment.items()
        if variable.startswith(KAFKA_PREFIX) and variable not in NOT_SETTINGS
    }


class ComposeProject:
    """The services of a file, in a network."""

    def __init__(
        self, file: Path, network: PodNetwork, folder: Path, environ: Mapping[str, str]
    ) -> None:
        """Make ready; `folder` takes volumes and logs. `environ`: of whoever starts it."""
        loaded = YAML(typ="safe").load(file.read_text("utf-8"))
        self.services: dict[str, Service] = loaded["services"]
        self._secrets: dict[str, Any] = loaded.get("secrets", {})
        self.network = network
        self.folder = folder
        self._environ = dict(environ)
        self.running: dict[str, Container] = {}

    def __enter__(self) -> ComposeProject:
        return self

    def __exit__(self, *args: object) -> None:
        for container in self.running.values():
            container.kill()

    def up(self, *names: str) -> None:
        """Start services, each when what it depends on is as it says. Fails where one does not
        come so far."""
        for name in names:
            if name in self.running:
                continue
            depends = self.services[name].get("depends_on", {})
            self.up(*depends)
            for other, condition in depends.items():
                if condition["condition"] == "service_healthy":
                    self.await_healthy(other)
            if str(self.services[name].get("restart")).startswith("on-failure"):
                self.run(name)  # all others need it done
            else:
                self.start(name)

    def run(self, name: str) -> None:
        """Run a job to its end, again where it fails, as often as it says."""
        tries = int(str(self.services[name].get("restart", "no:0")).partition(":")[2] or 0)
        for _ in range(1 + tries):
            container = self.start(name)
            if container.wait(HEALTHY_S) == 0:
                return
            Event().wait(1)
        raise AssertionError(f"{name} fails:\n{self.running[name].tail()}")

    def check(self, name: str) -> tuple[bool, str]:
        """Run the health check of a service once; return whether it is well, and its words."""
        container, check = self.running[name], self.services[name]["healthcheck"]
        kind, *command = check["test"]
        if name.startswith(KAFKA):  # by scripts of its image
            return self._listens(container), ""
        if kind == "CMD-SHELL":
            command = ["sh", "-c", interpolated(command[0], self._environ)]
        # Docker runs it as the container's user, which is root's where an entry point gives it up.
        service = self.services[name]
        as_root = _image_name(service) in USER_OF and "user" not in service
        done = container.run(*command, as_root=as_root)
        return done.returncode == 0, done.stdout + done.stderr

    def await_healthy(self, name: str) -> None:
        """Wait for a service's health check, or for the end of a job."""
        container = self.running[name]
        give_up_ns = boottime_ns() + int(HEALTHY_S * 1e9)
        while True:
            well, words = self.check(name)
            if well:
                return
            assert container.code is None, f"{name} has ended:\n{container.tail()}"
            assert boottime_ns() < give_up_ns, f"{name}: {words}\n{container.tail()}"
            Event().wait(LOOK_AGAIN_S)

    def stop(self, name: str) -> int:
        """Stop a service within its time; return its exit code."""
        seconds = float(self.services[name]["stop_grace_period"].removesuffix("s"))
        return self.running[name].stop(seconds)

    # ------------------------------------------------------------ a container

    def start(self, name: str) -> Container:
        """Start a container, anew where it has been before."""
        service = self.services[name]
        before = self.running.get(name)
        if before is not None:
            before.kill()
        described = self._described(name, service)
        container = Container(self.network, described, self.folder / f"{name}.log")
        self.running[name] = container
        container.start()
        return container

    def environment(self, service: Service) -> dict[str, str]:
        return {
            name: interpolated(str(value), self._environ)
            for name, value in service.get("environment", {}).items()
        }

    def _described(self, name: str, service: Service) -> Described:
        writable, read_only = self._mounts(service)
        image = _image_name(service)
        if image in USER_OF:
            return self._server(name, service, writable, read_only)
        found = read_image(ROOT / service["build"]["dockerfile"])
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        uid, gid = found.uid, found.gid
        if "user" in service:
            uid, gid = map(int, service["user"].split(":"))
        return Described(
            name=name,
            command=[*found.entrypoint, *service["command"]],
            environment={**found.environment, **self.environment(service)},
            uid=uid,
            gid=gid,
            folder=found.folder,
            writable=writable,
            read_only=read_only,
            read_only_root=bool(service.get("read_only")),
            capabilities=[each.lower() for each in service.get("cap_add", ())],
        )

    def _server(
        self, name: str, service: Service, writable: dict[str, Path], read_only: dict[str, Path]
    ) -> Described:
        uid = USER_OF[_image_name(service)]
        for at in writable.values():
            os.chown(at, uid, uid)
        environment = server_environment(os.environ)
        command: list[str]
        folder = "/tmp"
        if name.startswith(KAFKA):
            command = self._broker(name, service, uid)
        else:
            command = [*map(str, service["command"]), "--dir", "/data"]
            folder = "/data"
        return Described(
            name=name,
            command=command,
            environment=environment,
            uid=uid,
            gid=uid,
            folder=folder,
            writable=writable,
            read_only=read_only,
        )

    def _broker(self, name: str, service: Service, uid: int) -> list[str]:
        environment = self.environment(service)
        settings = broker_settings(environment)
        home = self.folder / f"{name}.home"
        archive = ClassArchives().java_options(KAFKA)
        settings["log.dirs"] = str(home / "data")
        broker = Broker(
            *(home, KAFKA_JARS, 0, 0, HEAP_MB, settings),
            java_options=archive,
            format_options=archive,
            cluster_id=environment.get("CLUSTER_ID", ""),
        )
        broker.prepare(server_environment(os.environ))
        for path in (home, *home.rglob("*")):
            os.chown(path, uid, uid)
        return broker.command()

    def _mounts(self, service: Service) -> tuple[dict[str, Path], dict[str, Path]]:
        writable: dict[str, Path] = {}
        read_only: dict[str, Path] = {}
        for volume in service.get("volumes", ()):
            source, _, target = volume.rpartition(":")
            source = interpolated(source, self._environ)
            at = Path(source) if "/" in source else self.folder / "volumes" / source
            if not at.is_dir():
                at.mkdir(parents=True)
                # Docker gives a new volume what the image has there.
                if "build" in service and "user" not in service:
                    image = read_image(ROOT / service["build"]["dockerfile"])
                    os.chown(at, image.uid, image.gid)
            writable[target] = at
        for path in service.get("tmpfs", ()):
            at = self.folder / "tmpfs" / f"{id(service)}{path.replace('/', '.')}"
            at.mkdir(parents=True, exist_ok=True)
            at.chmod(0o1777)
            writable[path] = at
        for name in service.get("secrets", ()):
            secret = self._secrets[name]
            read_only[f"/run/secrets/{name}"] = self._secret(name, secret)
        return writable, read_only

    def _secret(self, name: str, secret: Mapping[str, str]) -> Path:
        if "file" in secret:
            return Path(interpolated(secret["file"], self._environ))
        at = self.folder / "secrets" / name
        at.parent.mkdir(exist_ok=True)
        at.write_text(self._environ[secret["environment"]])
        at.chmod(0o444)
        return at

    def _listens(self, container: Container) -> bool:
        with self.network.entered():
            try:
                socket.create_connection((container.address, 9092), 1).close()
            except OSError:
                return False
        return True


def _image_name(service: Service) -> str:
    return str(service["image"]).partition(":")[0]
