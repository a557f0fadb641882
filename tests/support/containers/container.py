"""A process as a container would run it: user, capabilities, files, environment and network.

Its root is put together of what this machine has, read-only, with the checkout where the image has
it. What is mounted there is a folder or a file of the test's.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.containers.pod_network import PodNetwork

ROOT: Final = Path(__file__).parents[3]
IMAGE_FOLDER: Final = "/opt/leasehold"
PROGRAMS: Final = "/opt/programs"
COMMAND: Final = '#!/bin/sh\nexec python -m leasehold.cli.main "$@"'
SYSTEM_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
HOME: Final = "/home/leasehold"
TAIL_LINES: Final = 40
RUN_TIMEOUT_S: Final = 120.0
NEW: Final = "/mnt"
"""Where the root of a container is put together."""
OWN: Final = ("/opt", "/var", "/run", "/mnt", "/tmp", "/data")
"""What a container has of its own there; everything else is this machine's."""


@dataclass(frozen=True, kw_only=True)
class Described:
    """A container. `writable`, `read_only`: what is mounted, by its path in the container.
    `capabilities`: of root, if it is that. `address`: a reserved one, "" = any."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    uid: int
    gid: int
    groups: Sequence[int] = ()
    folder: str = IMAGE_FOLDER
    writable: Mapping[str, Path] = field(default_factory=dict)
    read_only: Mapping[str, Path] = field(default_factory=dict)
    read_only_root: bool = True
    capabilities: Sequence[str] = ()
    address: str = ""


class Container:
    """A described container, once started."""

    def __init__(self, network: PodNetwork, described: Described, log: Path) -> None:
        """Make ready; `log` takes what it prints."""
        self.described = described
        self.log = log
        self.address = described.address or network.reserve()
        self._network = network
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def code(self) -> int | None:
        """The exit code, None while it runs."""
        assert self._process is not None
        return self._process.poll()

    def start(self) -> None:
        """Start it, and give it an address."""
        told, tells = os.pipe()
        script = _script(self.described, self._network.hosts, tells)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *("unshare", "--net", "--mount", "--uts", "--propagation", "private"),
                    *("bash", "-c", script),
                ],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={"PATH": os.environ["PATH"]},
                pass_fds=(tells,),
                start_new_session=True,
            )
        os.close(tells)
        assert os.read(told, 2), f"{self.described.name} did not begin: {self.tail()}"
        self._network.attach(self.pid, self.address)
        self._network.name(self.described.name, self.address)
        assert self._process.stdin is not None
        self._process.stdin.write(b"go\n")
        self._process.stdin.close()
        assert os.read(told, 2), f"{self.described.name} has no root: {self.tail()}"
        os.close(told)

    def run(self, *command: str, as_root: bool = False) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as its user or as root; nothing of it is printed."""
        inside = shlex.join(["env", "-i", *_variables(self.described), *command])
        folder = shlex.quote(self.described.folder)
        return subprocess.run(
            [
                *("nsenter", f"--target={self.pid}", "--net", "--mount", "--uts", "--root", "--wd"),
                *(() if as_root else _as_user(self.described)),
                *("sh", "-c", f"cd {folder} && exec {inside}"),
            ],
            capture_output=True,
            text=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, seconds: float) -> int:
        """Send SIGTERM; return its exit code. Raises TimeoutExpired when it takes longer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(seconds)

    def wait(self, seconds: float) -> int:
        assert self._process is not None
        return self._process.wait(seconds)

    def kill(self) -> None:
        """End it and all that it has left, at once."""
        if self._process is None:
            return
        with suppress(OSError):
            own = Path(f"/proc/{self.pid}/ns/net").readlink()
            for entry in Path("/proc").iterdir():
                with suppress(OSError):
                    if entry.name.isdigit() and (entry / "ns/net").readlink() == own:
                        os.kill(int(entry.name), signal.SIGKILL)
        self._process.kill()
        self._process.wait()

    def tail(self) -> str:
        """Return the last lines that it has printed."""
        lines = self.log.read_text("utf-8", "replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])


def _script(described: Described, hosts: Path, tells: int) -> str:
    quoted = shlex.quote
    tops = [each for each in sorted(Path("/").iterdir()) if str(each) not in OWN]
    shown = [each for each in tops if each.is_dir() and not each.is_symlink()]
    # The test's own folders stand in /tmp, unless the container has another one.
    shown += [] if "/tmp" in described.writable else [Path("/tmp")]
    lines = [
        "set -e",
        f"echo . >&{tells}",
        "read go",
        "exec < /dev/null",
        f"hostname {quoted(described.name)}",
        f"mount -t tmpfs -o mode=755 tmpfs {NEW}",
        f"mkdir -p {NEW}{IMAGE_FOLDER} {NEW}{PROGRAMS} {NEW}/var/lib {NEW}/run {NEW}/mnt {NEW}/tmp",
        f"ln -s /run {NEW}/var/run",
        *(f"cp -P {each} {NEW}{each}" for each in tops if each.is_symlink()),
        *(f"mkdir -p {NEW}{each}; mount --rbind {each} {NEW}{each}" for each in shown),
        f"mount --bind {quoted(str(hosts))} {NEW}/etc/hosts",
        f"mount --bind {quoted(str(hosts.with_name('passwd')))} {NEW}/etc/passwd",
        f"mount --bind {quoted(str(ROOT))} {NEW}{IMAGE_FOLDER}",
        f"printf '%s\\n' {quoted(COMMAND)} > {NEW}{PROGRAMS}/leasehold",
        f"chmod 755 {NEW}{PROGRAMS}/leasehold",
    ]
    for path, at in {**described.read_only, **described.writable}.items():
        inside = quoted(f"{NEW}{path}")
        made = f"mkdir -p {inside}"
        if not at.is_dir():
            made = f"mkdir -p {quoted(str(Path(f'{NEW}{path}').parent))}; touch {inside}"
        lines.append(f"{made}; mount --bind {quoted(str(at))} {inside}")
    if described.read_only_root:
        kernel = ("/proc", "/dev", "/sys")
        closed = ["", *map(str, shown), IMAGE_FOLDER, *described.read_only]
        lines += [
            f"mount -o remount,bind,ro {quoted(f'{NEW}{each}')}"
            for each in closed
            if each not in kernel
        ]
    own = shlex.join([*_as_user(described), "env", "-i", *_variables(described)])
    begun = f"cd {quoted(described.folder)} && echo . >&{tells} && exec {tells}>&-"
    command = f"{begun} && exec {own} {shlex.join(described.command)}"
    lines.append(f"exec chroot {NEW} bash -c {quoted(command)}")
    return "\n".join(lines)


def _as_user(described: Described) -> list[str]:
    groups = ",".join(map(str, described.groups))
    return [
        "setpriv",
        f"--reuid={described.uid}",
        f"--regid={described.gid}",
        f"--groups={groups}" if groups else "--clear-groups",
        f"--bounding-set={','.join(('-all', *(f'+{each}' for each in described.capabilities)))}",
        *("--no-new-privs", "--inh-caps=-all", "--pdeathsig=KILL"),
    ]


def _variables(described: Described) -> list[str]:
    given = {
        "PATH": f"{PROGRAMS}:{IMAGE_FOLDER}/.venv/bin:{SYSTEM_PATH}",
        "HOME": HOME,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{IMAGE_FOLDER}/libs:{IMAGE_FOLDER}",
        **described.environment,
    }
    return [f"{name}={value}" for name, value in given.items()]


assert sys.platform == "linux", "namespaces are Linux'"
