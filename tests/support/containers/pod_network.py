"""A network of its own for containers of a test: addresses, and names that all of them know.

It is a namespace of Linux with a bridge in it. Ports are those that manifests name, and no other
run can have them.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PREFIX: Final = "10.244.7"
BRIDGE: Final = "pods"
FIRST: Final = 10
USER: Final = "leasehold:x:10001:10001::/home/leasehold:/usr/sbin/nologin\n"
"""As the images have it: a JVM looks its user's name up."""
NEEDED: Final = ("unshare", "nsenter", "setpriv", "ip", "mount")
_NEW_NETWORK: Final = 0x40000000
_PROBE: Final = (
    "mount -t tmpfs tmpfs /mnt && ip link add probe type bridge && ip link add p0 type veth peer p1"
)


def open_to_users(folder: Path) -> Path:
    """Let users of containers come through to a folder of pytest's, and return it: what lies in it
    says for itself whose it is."""
    for each in (folder, folder.parent, folder.parent.parent):
        each.chmod(0o755)
    return folder


def why_not_here() -> str:
    """Return why no containers can be had on this machine, "" = they can."""
    if os.geteuid() != 0:
        return "containers need root: namespaces and users are made"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        return f"containers need {', '.join(missing)}"
    command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", _PROBE]
    tried = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"this machine permits no containers: {tried.stderr.strip()}" if tried.returncode else ""


class PodNetwork:
    """The network, within its `with` block. `hosts` is the file of names; beside it stands one of
    users."""

    def __init__(self, folder: Path) -> None:
        """Make ready; `folder` takes these files."""
        self.hosts = folder / "hosts"
        known = Path("/etc/passwd").read_text("utf-8")
        (folder / "passwd").write_text(known + USER, "utf-8")
        self._names: dict[str, str] = {"localhost": "127.0.0.1"}
        self._next = FIRST
        self._write()

    def __enter__(self) -> PodNetwork:
        self._holder = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline(), "the namespace is there"
        self._ip("link", "set", "lo", "up")
        self._ip("link", "add", BRIDGE, "type", "bridge")
        self._ip("addr", "add", f"{PREFIX}.1/24", "dev", BRIDGE)
        self._ip("link", "set", BRIDGE, "up")
        return self

    def __exit__(self, *args: object) -> None:
        self._holder.kill()
        self._holder.communicate()

    @property
    def gateway(self) -> str:
        """Return the address of the network's own namespace."""
        return f"{PREFIX}.1"

    def reserve(self) -> str:
        """Return an address that nobody has."""
        number, self._next = self._next, self._next + 1
        return f"{PREFIX}.{number}"

    def attach(self, pid: int, address: str) -> None:
        """Give the network namespace of a process a reserved address."""
        number = address.rpartition(".")[2]
        self._ip(
            *("link", "add", f"v{number}", "type", "veth"),
            *("peer", "name", "eth0", "netns", str(pid)),
        )
        self._ip("link", "set", f"v{number}", "master", BRIDGE, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"{address}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            _run("nsenter", f"--net=/proc/{pid}/ns/net", "ip", *words)

    def name(self, name: str, address: str) -> None:
        """Let a name mean an address."""
        self._names[name] = address
        self._write()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Have the sockets that this thread makes in the block in the network."""
        before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            own = os.open(f"/proc/{self._holder.pid}/ns/net", os.O_RDONLY)
            try:
                _set_namespace(own)
                yield
            finally:
                _set_namespace(before)
                os.close(own)
        finally:
            os.close(before)

    def _ip(self, *words: str) -> None:
        _run("nsenter", f"--net=/proc/{self._holder.pid}/ns/net", "ip", *words)

    def _write(self) -> None:
        # In its place: containers have the file itself mounted.
        lines = (f"{address} {name}\n" for name, address in self._names.items())
        self.hosts.write_text("".join(lines), "ascii")


def _set_namespace(descriptor: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(descriptor, _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
