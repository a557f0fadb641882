"""Runs the pods of rendered manifests as a kubelet would: containers, volumes, names, probes, and
the way in which they are stopped.

What the API would refuse is told by the schemas; what it would let pass and a process not bear is
told here.
"""

from __future__ import annotations

import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Final

from leasehold.adapters.os.clock import boottime_ns
from tests.support.containers.container import ROOT, Container, Described
from tests.support.containers.image import Image, read_image
from tests.support.containers.pod_network import PodNetwork

NAMESPACE: Final = "default"
ACCOUNT: Final = "account"
"""Among the secrets: token and ca.crt of who may ask the API."""
PROBE_TIMEOUT_S: Final = 10.0
READY_S: Final = 120.0
LOOK_AGAIN_S: Final = 0.1
FOLDER_OF_GROUP: Final = 0o2775
_NAMED: Final = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")

Manifest = dict[str, Any]
Secrets = Mapping[str, Mapping[str, bytes]]


@dataclass(frozen=True)
class Probed:
    """What a probe was told."""

    well: bool
    words: str


class Pod:
    """A pod, once started. It has one container, as all of ours."""

    def __init__(self, name: str, spec: Manifest, container: Container) -> None:
        self.name = name
        self.spec = spec
        self.container = container

    @property
    def described(self) -> Manifest:
        (found,) = self.spec["containers"]
        assert isinstance(found, dict)
        return found

    def port(self, name: str) -> int:
        """Return the number of a port that has a name."""
        numbers = {each["name"]: each["containerPort"] for each in self.described["ports"]}
        return int(numbers[name])


class Kubelet:
    """Pods of one set of manifests, in a network. `secrets`: by name, then by key."""

    def __init__(
        self,
        manifests: Sequence[Manifest],
        network: PodNetwork,
        folder: Path,
        secrets: Secrets,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        """Make ready; `folder` takes volumes and logs. `variables`: that stand instead of those of
        the manifests, for what costs a test too much."""
        self._manifests = list(manifests)
        self.network = network
        self.folder = folder
        self.secrets = secrets
        self._variables = dict(variables or {})
        self.pods: dict[str, Pod] = {}
        self.servers: dict[str, Container] = {}

    def __enter__(self) -> Kubelet:
        return self

    def __exit__(self, *args: object) -> None:
        for pod in self.pods.values():
            pod.container.kill()

    # ------------------------------------------------------------ what there is

    def add(self, manifest: Manifest) -> None:
        """Take one more, as somebody makes it by the API."""
        self._manifests.append(manifest)

    def find(self, kind: str, name: str) -> Manifest:
        """Return a manifest."""
        (found,) = (
            each
            for each in self._manifests
            if each["kind"] == kind and each["metadata"]["name"] == name
        )
        return found

    def pods_of(self, owner: Manifest) -> Iterator[tuple[str, Manifest]]:
        """Yield name and spec of each pod of a StatefulSet, Deployment, Job, CronJob (as each of
        its Jobs has them), or a pod itself."""
        name, kind = owner["metadata"]["name"], owner["kind"]
        if kind == "Pod":
            yield name, owner["spec"]
            return
        spec = _job_of(owner)["template"]["spec"]
        for number in range(int(owner["spec"].get("replicas", 1))):
            yield (f"{name}-{number}" if kind == "StatefulSet" else f"{name}-{number:05x}"), spec

    # ------------------------------------------------------------ a pod's life

    def start(self, name: str, spec: Manifest, owner: Manifest | None = None) -> Pod:
        """Start a pod, anew where it has been before: its claims stay."""
        before = self.pods.get(name)
        if before is not None:
            before.container.kill()
        described = self._described(name, spec, self.network.reserve())
        container = Container(self.network, described, self.folder / f"{name}.log")
        pod = self.pods[name] = Pod(name, spec, container)
        container.start()
        if owner is not None and owner["kind"] == "StatefulSet":
            service = owner["spec"]["serviceName"]
            self.network.name(f"{name}.{service}.{NAMESPACE}.svc", container.address)
        return pod

    def start_all(self, owner: Manifest) -> list[Pod]:
        """Start the pods of an owner."""
        return [self.start(name, spec, owner) for name, spec in self.pods_of(owner)]

    def run_job(self, owner: Manifest) -> str:
        """Run a Job, or one of a CronJob's, to its end, again where it fails, as often as it says;
        return what it said."""
        ((name, spec),) = self.pods_of(owner)
        for _ in range(1 + int(_job_of(owner)["backoffLimit"])):
            pod = self.start(name, spec)
            if pod.container.wait(READY_S) == 0:
                return pod.container.log.read_text("utf-8")
            Event().wait(1)  # a kubelet waits ten seconds
        raise AssertionError(f"{name} fails:\n{pod.container.tail()}")

    def name_service(self, name: str, pod: Pod) -> None:
        """Let a Service's name mean a pod that its selector is for, and that is ready."""
        selector = self.find("Service", name)["spec"]["selector"]
        labels = self._labels(pod)
        assert selector.items() <= labels.items(), (name, selector, labels)
        self.network.name(f"{name}.{NAMESPACE}.svc", pod.container.address)

    def stop(self, pod: Pod) -> int:
        """End a pod as a kubelet does: preStop, SIGTERM. Return its exit code; fails where it takes
        longer than its grace period."""
        grace_s = float(pod.spec["terminationGracePeriodSeconds"])
        begun_ns = boottime_ns()
        hook = pod.described.get("lifecycle", {}).get("preStop")
        if hook is not None:
            done = pod.container.run(*hook["exec"]["command"])
            assert done.returncode == 0, done.stderr
        return pod.container.stop(grace_s - (boottime_ns() - begun_ns) / 1e9)

    # ------------------------------------------------------------ probes

    def probe(self, pod: Pod, kind: str) -> Probed:
        """Ask a probe once: startupProbe, livenessProbe or readinessProbe."""
        asked = pod.described[kind]["httpGet"]
        url = f"http://{pod.container.address}:{pod.port(asked['port'])}{asked['path']}"
        with self.network.entered():
            try:
                with urllib.request.urlopen(url, timeout=PROBE_TIMEOUT_S) as answer:
                    return Probed(True, answer.read().decode())
            except urllib.error.HTTPError as error:
                return Probed(False, error.read().decode())
            except OSError as error:
                return Probed(False, str(error))

    def await_probe(self, pod: Pod, kind: str, *, well: bool = True) -> str:
        """Ask a probe until it is told that it is well, or not; return the words."""
        give_up_ns = boottime_ns() + int(READY_S * 1e9)
        while True:
            told = self.probe(pod, kind)
            if told.well is well:
                return told.words
            assert pod.container.code is None, f"{pod.name} has ended:\n{pod.container.tail()}"
            assert boottime_ns() < give_up_ns, f"{pod.name}: {told}\n{pod.container.tail()}"
            Event().wait(LOOK_AGAIN_S)

    # ------------------------------------------------------------ what a container gets

    def _labels(self, pod: Pod) -> Mapping[str, str]:
        for owner in self._manifests:
            if owner["kind"] in ("StatefulSet", "Deployment") and pod.name in dict(
                self.pods_of(owner)
            ):
                labels: dict[str, str] = owner["spec"]["template"]["metadata"]["labels"]
                return labels
        raise AssertionError(f"{pod.name} is nobody's")

    def _described(self, name: str, spec: Manifest, address: str) -> Described:
        (container,) = spec["containers"]
        image = _image_of(container["image"])
        whole, own = spec["securityContext"], container["securityContext"]
        assert whole["runAsNonRoot"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert own["capabilities"] == {"drop": ["ALL"]}
        assert "add" not in own["capabilities"]
        writable, read_only = self._mounts(name, spec, container)
        if spec.get("automountServiceAccountToken"):
            read_only["/run/secrets/kubernetes.io/serviceaccount"] = self._account()
        command = container.get("command") or [*image.entrypoint, *container.get("args", ())]
        return Described(
            name=name,
            command=command,
            environment={**image.environment, **self._environment(name, container, address)},
            uid=int(whole["runAsUser"]),
            gid=int(whole["runAsGroup"]),
            groups=[int(whole["fsGroup"])],
            folder=container.get("workingDir", image.folder),
            writable=writable,
            read_only=read_only,
            read_only_root=bool(own["readOnlyRootFilesystem"]),
            address=address,
        )

    def _environment(self, name: str, container: Manifest, address: str) -> dict[str, str]:
        fields = {"metadata.name": name, "status.podIP": address}
        found: dict[str, str] = {}
        for source in container.get("envFrom", ()):
            secret = self.secrets[source["secretRef"]["name"]]
            found |= {key: value.decode() for key, value in secret.items()}
        for each in container.get("env", ()):
            if "valueFrom" in each:
                found[each["name"]] = fields[each["valueFrom"]["fieldRef"]["fieldPath"]]
            else:
                text = str(each.get("value", ""))
                found[each["name"]] = _NAMED.sub(lambda m: found.get(m[1], m[0]), text)
        return {**found, **self._variables}

    def _mounts(
        self, name: str, spec: Manifest, container: Manifest
    ) -> tuple[dict[str, Path], dict[str, Path]]:
        volumes = {each["name"]: each for each in spec.get("volumes", ())}
        group = int(spec["securityContext"]["fsGroup"])
        writable: dict[str, Path] = {}
        read_only: dict[str, Path] = {}
        for mount in container.get("volumeMounts", ()):
            volume = volumes.get(mount["name"])
            at = self.folder / "volumes" / f"{name}.{mount['name']}"
            if volume is None:  # a claim of a template, named as a StatefulSet names it
                at = self.folder / "volumes" / f"{mount['name']}-{name}"
                self._claim(at, group)
            elif "emptyDir" in volume:
                shutil.rmtree(at, ignore_errors=True)
                self._claim(at, group)
            elif "persistentVolumeClaim" in volume:
                at = self.folder / "volumes" / volume["persistentVolumeClaim"]["claimName"]
                self._claim(at, group)
            else:
                shutil.rmtree(at, ignore_errors=True)
                at.mkdir(parents=True)
                self._fill(at, volume, group)
                read_only[mount["mountPath"]] = at
                continue
            writable[mount["mountPath"]] = at
        return writable, read_only

    def _account(self) -> Path:
        """Return the folder that who may ask the API gets."""
        at = self.folder / "volumes" / "account"
        at.mkdir(parents=True, exist_ok=True)
        for key, content in {**self.secrets[ACCOUNT], "namespace": NAMESPACE.encode()}.items():
            (at / key).write_bytes(content)
        return at

    @staticmethod
    def _claim(at: Path, group: int) -> None:
        """A volume is root's, and its group's: files in it are whoever's."""
        if not at.is_dir():
            at.mkdir(parents=True)
            os.chown(at, 0, group)
            at.chmod(FOLDER_OF_GROUP)

    def _fill(self, at: Path, volume: Manifest, group: int) -> None:
        files: dict[str, bytes] = {}
        mode = 0o644
        if "configMap" in volume:
            wanted = volume["configMap"]
            data = self.find("ConfigMap", wanted["name"])["data"]
            paths = {item["key"]: item["path"] for item in wanted.get("items", ())}
            files = {
                paths.get(key, key): text.encode()
                for key, text in data.items()
                if not paths or key in paths
            }
        else:
            mode = volume["projected"]["defaultMode"]
            for source in volume["projected"]["sources"]:
                secret = source["secret"]
                for item in secret["items"]:
                    files[item["path"]] = self.secrets[secret["name"]][item["key"]]
        for path, content in files.items():
            (at / path).write_bytes(content)
            os.chown(at / path, 0, group)
            (at / path).chmod(mode)


def _job_of(owner: Manifest) -> Manifest:
    spec: Manifest = owner["spec"]
    return spec["jobTemplate"]["spec"] if owner["kind"] == "CronJob" else spec


def _image_of(name: str) -> Image:
    repository = name.partition("@")[0].rpartition("/")[2].partition(":")[0]
    return read_image(ROOT / "infra" / "images" / f"{repository}.Dockerfile")
