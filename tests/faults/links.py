"""Links that can be cut, delayed, throttled and reset: the harness's side of `proxy.py`.

Why a proxy of our own: toxiproxy, tried first (2.5.0), stops answering when a link is mended over
which a connection has ended meanwhile, as it waits for somebody to take what it had held. Network
namespaces were tried: the kernel of the machines that this runs on has no netem, so nothing could
be late there, and who is not root gets none.
"""

from __future__ import annotations

import io
import json
import os
import random
import socket
import sys
from collections.abc import Mapping
from typing import Any, Final

from infra.local_cluster import ROOT, LocalCluster
from infra.ports import LOOPBACK, can_bind
from tests.support.cluster.system_cluster import until

PROXY: Final = "proxy"
ASK_TIMEOUT_S: Final = 20.0
PORTS: Final = (12_000, 17_999)
"""Below those of `infra.ports`, which are chosen long before anybody binds them."""
TRIES_MAX: Final = 1_000
Address = tuple[str, int]
"""Host and port."""


class Links:
    """The links of one cluster, by name."""

    def __init__(self) -> None:
        self.ports: dict[str, int] = {}
        self._control = self.reserve(PROXY)
        self._stream: io.BufferedRWPair | None = None
        self._disturbed: set[str] = set()

    def reserve(self, link: str) -> int:
        """Return the port at which `link` will be listened for."""
        if link not in self.ports:
            self.ports[link] = self._find_port()
        return self.ports[link]

    def _find_port(self) -> int:
        for _ in range(TRIES_MAX):
            port = random.SystemRandom().randint(*PORTS)
            if port not in self.ports.values() and can_bind(port):
                return port
        raise OSError(f"no free port between {PORTS[0]} and {PORTS[1]}")

    def start(self, cluster: LocalCluster, upstream: Mapping[str, Address]) -> None:
        """Start the proxies as a process of `cluster`. `upstream`: what is behind each link."""
        command = [sys.executable, "-m", "tests.faults.proxy", str(self._control)]
        cluster.processes.start(PROXY, command, dict(os.environ), ROOT)
        until(self._connect, "the proxies")
        for link, (host, port) in upstream.items():
            self._do("open", link, listen=self.reserve(link), upstream=port, host=host)

    def close(self) -> None:
        """Leave the proxies; their process ends with its cluster."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def cut(self, link: str, way: str) -> None:
        """Hold all that is sent, that way, until `mend`; connections stay."""
        self._disturb("cut", link, way=way)

    def delay(self, link: str, way: str, late_ms: int, jitter_ms: int) -> None:
        """Deliver each piece late, in order."""
        self._disturb("delay", link, way=way, late_ms=late_ms, jitter_ms=jitter_ms)

    def reorder(self, link: str, way: str, burst_ms: int) -> None:
        """Deliver in bursts of at most so long, each connection's at times of its own."""
        self._disturb("reorder", link, way=way, burst_ms=burst_ms)

    def throttle(self, link: str, way: str, kb_per_s: int) -> None:
        """Let through so many kB a second."""
        self._disturb("throttle", link, way=way, kb_per_s=kb_per_s)

    def reset(self, link: str) -> None:
        """Reset all connections."""
        self._disturb("reset", link)

    def refuse(self, link: str) -> None:
        """Close connections and take no new ones, until `mend`."""
        self._disturb("refuse", link)

    def mend(self, link: str) -> None:
        """Take back all that disturbs it."""
        self._disturbed.discard(link)
        self._do("mend", link)

    def mend_all(self) -> None:
        """Mend every link that is disturbed."""
        for link in list(self._disturbed):
            self.mend(link)

    def _disturb(self, what: str, link: str, **more: Any) -> None:
        self._disturbed.add(link)
        self._do(what, link, **more)

    def _connect(self) -> bool:
        try:
            made = socket.create_connection((LOOPBACK, self._control), ASK_TIMEOUT_S)
        except OSError:
            return False
        with made:
            self._stream = made.makefile("rwb")
        return True

    def _do(self, what: str, link: str, **more: Any) -> None:
        assert self._stream is not None, "the proxies have not been started"
        self._stream.write(json.dumps({"do": what, "link": link, **more}).encode() + b"\n")
        self._stream.flush()
        answer = self._stream.readline().decode().strip()
        assert answer == "ok", f"{what} {link}: {answer or 'the proxies are gone'}"
