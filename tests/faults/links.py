"""Links that can be cut, delayed, throttled and reset: a proxy of toxiproxy's before each.

Why toxiproxy: a cut holds what is sent and delivers it when it ends, as TCP does, in one direction
if wanted, and it needs no rights. Network namespaces were tried: the kernel of the machines that
this runs on has no netem, so nothing could be delayed there, and who is not root gets none.
"""

from __future__ import annotations

import json
import os
import shutil
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, find_free_port
from tests.support.cluster.system_cluster import until

PROXY: Final = "toxiproxy"
BINARY: Final = ROOT / ".leasehold" / "fault-tools" / "toxiproxy-server"
MISSING: Final = (
    "toxiproxy is not there, so links can't be disturbed; run infra/fault_tools.sh, which fetches"
    " it by Go"
)
FOR_EVER_MS: Final = 1 << 40
STREAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "up": ("upstream",),
    "down": ("downstream",),
    "both": ("upstream", "downstream"),
}
ASK_TIMEOUT_S: Final = 10.0


def find_proxy() -> Path | None:
    """Return toxiproxy's server, fetched or installed; None without one."""
    found = str(BINARY) if BINARY.exists() else shutil.which("toxiproxy-server")
    return None if found is None else Path(found)


class Links:
    """The proxies of one cluster, by the names of their links."""

    def __init__(self) -> None:
        self._control = find_free_port()
        self.ports: dict[str, int] = {}
        self._disturbed: dict[str, list[str]] = {}

    def reserve(self, link: str) -> int:
        """Return the port at which `link` will be listened for."""
        if link not in self.ports:
            taken = {*self.ports.values(), self._control}
            port = find_free_port()
            while port in taken:
                port = find_free_port()
            self.ports[link] = port
        return self.ports[link]

    def start(self, cluster: LocalCluster, upstream: Mapping[str, int]) -> None:
        """Start the proxies as a process of `cluster`. `upstream`: the port behind each link."""
        binary = find_proxy()
        assert binary is not None, MISSING
        command = [str(binary), "-host", LOOPBACK, "-port", str(self._control)]
        environ = {"PATH": os.environ.get("PATH", ""), "LOG_LEVEL": "warn"}
        cluster.processes.start(PROXY, command, environ, ROOT)
        until(self._answers, "toxiproxy")
        for link, port in upstream.items():
            listen = f"{LOOPBACK}:{self.reserve(link)}"
            body = {"name": link, "listen": listen, "upstream": f"{LOOPBACK}:{port}"}
            self._ask("POST", "/proxies", {**body, "enabled": True})

    def cut(self, link: str, way: str) -> None:
        """Hold all that is sent, that way, until `mend`; connections stay."""
        self._disturb(link, way, "latency", {"latency": FOR_EVER_MS, "jitter": 0})

    def delay(self, link: str, way: str, late_ms: int, jitter_ms: int) -> None:
        """Deliver each piece late, in order."""
        self._disturb(link, way, "latency", {"latency": late_ms, "jitter": jitter_ms})

    def throttle(self, link: str, way: str, kb_per_s: int) -> None:
        """Let through so many kB a second."""
        self._disturb(link, way, "bandwidth", {"rate": kb_per_s})

    def reset(self, link: str) -> None:
        """Reset connections at the next piece of each, until `mend`."""
        self._disturb(link, "both", "reset_peer", {"timeout": 0})

    def refuse(self, link: str) -> None:
        """Close connections and take no new ones, until `mend`."""
        self._ask("POST", f"/proxies/{link}", {"enabled": False})
        self._disturbed.setdefault(link, [])

    def mend(self, link: str) -> None:
        """Take back all that disturbs it."""
        for toxic in self._disturbed.pop(link, []):
            self._ask("DELETE", f"/proxies/{link}/toxics/{toxic}")
        self._ask("POST", f"/proxies/{link}", {"enabled": True})

    def mend_all(self) -> None:
        """Mend every link that is disturbed."""
        for link in list(self._disturbed):
            self.mend(link)

    def _disturb(self, link: str, way: str, kind: str, attributes: Mapping[str, Any]) -> None:
        for stream in STREAMS[way]:
            name = f"{kind}-{stream}"
            body = {"name": name, "type": kind, "stream": stream, "toxicity": 1.0}
            self._ask("POST", f"/proxies/{link}/toxics", {**body, "attributes": dict(attributes)})
            self._disturbed.setdefault(link, []).append(name)

    def _answers(self) -> bool:
        try:
            self._ask("GET", "/version")
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> None:
        url = f"http://{LOOPBACK}:{self._control}{path}"
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(url, data, method=method)
        try:
            with urllib.request.urlopen(asked, timeout=ASK_TIMEOUT_S) as answer:
                answer.read()
        except urllib.error.HTTPError as error:
            words = f"toxiproxy: {method} {path}: {error.code} {error.read()[:200]!r}"
            raise AssertionError(words) from error
