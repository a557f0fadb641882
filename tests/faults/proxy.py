"""Proxies between processes and servers, whose links can be disturbed: `python -m
tests.faults.proxy PORT`. It listens at PORT for lines of JSON, each a command, and answers each
with a line, "ok" or what is wrong.

A cut holds what is sent, in order, and delivers it when it ends, as TCP does; so does the end of a
connection wait behind what was sent before it. What is sent over one connection is never reordered,
but what is sent over several is.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import struct
import sys
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, cast

from infra.ports import LOOPBACK

HELD_BYTES_MAX: Final = 8 << 20
"""Of one connection, one way; then it is read no further, as a full window has it."""
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER: whoever is closed so is told by RST."""
UP, DOWN = "up", "down"
WAYS: Final[Mapping[str, tuple[str, ...]]] = {UP: (UP,), DOWN: (DOWN,), "both": (UP, DOWN)}


class Way:
    """How one direction of a link is now. `late_s`, `jitter_s`, `burst_s` and `bytes_per_s` are 0
    when it is as it should be."""

    def __init__(self) -> None:
        self.held = False
        self.late_s = 0.0
        self.jitter_s = 0.0
        self.burst_s = 0.0
        self.bytes_per_s = 0

    @property
    def is_clear(self) -> bool:
        """Return whether nothing disturbs it."""
        return not (self.held or self.late_s or self.burst_s or self.bytes_per_s)


class Side(asyncio.Protocol):
    """One end of a connection through a link; what it gets goes to its `peer`, by its way."""

    def __init__(self, link: Link, way: Way) -> None:
        self._link = link
        self._way = way
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, bytes | None]] = deque()
        self._held_bytes = 0
        self._not_before = 0.0
        self._burst_until = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self.peer: Side | None = None

    @property
    def _is_held(self) -> bool:
        """Return whether nothing may be delivered now: by its way, or as there is nobody yet whom
        it could be delivered to."""
        return self._way.held or self.peer is None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._link.sides.add(self)
        if self.peer is None:
            self._link.connect(self)

    def data_received(self, data: bytes) -> None:
        self._put(data)

    def eof_received(self) -> bool:
        self._put(b"")
        return True  # the other direction may go on

    def connection_lost(self, error: Exception | None) -> None:
        self._put(None)

    def pause_writing(self) -> None:
        if self.peer is not None and self.peer.transport is not None:
            self.peer.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.peer is not None:
            self.peer.read_on()

    def read_on(self) -> None:
        """Read, unless too much is held already."""
        if self.transport is not None and self._held_bytes <= HELD_BYTES_MAX:
            self.transport.resume_reading()

    def _put(self, item: bytes | None) -> None:
        if not self._waiting and not self._is_held and self._way.is_clear:
            self._deliver(item)
            return
        self._waiting.append((self._due_at(), item))
        self._held_bytes += len(item or b"")
        if self._held_bytes > HELD_BYTES_MAX and self.transport is not None:
            self.transport.pause_reading()
        self._wait()

    def _due_at(self) -> float:
        """Return when what comes now is delivered. A burst is what comes until its end, which each
        connection has by itself: so bursts of two connections change places."""
        now, way = self._loop.time(), self._way
        if way.burst_s:
            if now >= self._burst_until:
                self._burst_until = now + random.uniform(0, 1) * way.burst_s
            return self._burst_until
        return now + way.late_s + random.uniform(-1, 1) * way.jitter_s

    def go_on(self) -> None:
        """Look at its way again, which has changed."""
        if self._way.is_clear:
            self._not_before = 0.0
            self._waiting = deque((0.0, item) for _, item in self._waiting)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._drain()

    def _wait(self) -> None:
        if self._waiting and self._timer is None and not self._is_held:
            at = max(self._waiting[0][0], self._not_before)
            self._timer = self._loop.call_at(at, self._due)

    def _due(self) -> None:
        self._timer = None
        self._drain()

    def _drain(self) -> None:
        while self._waiting and not self._is_held:
            now = self._loop.time()
            if max(self._waiting[0][0], self._not_before) > now:
                break
            _, item = self._waiting.popleft()
            self._held_bytes -= len(item or b"")
            if self._way.bytes_per_s:
                self._not_before = now + len(item or b"") / self._way.bytes_per_s
            self._deliver(item)
        self._wait()
        self.read_on()

    def _deliver(self, item: bytes | None) -> None:
        peer = self.peer
        if item is None:
            self._link.sides.discard(self)  # not before: until then there is something to deliver
        if peer is None or peer.transport is None or peer.transport.is_closing():
            return
        if item is None:
            peer.transport.close()
        elif item:
            peer.transport.write(item)
        elif peer.transport.can_write_eof():
            with suppress(OSError):  # it has gone meanwhile, and will be heard of
                peer.transport.write_eof()

    def reset(self) -> None:
        """End it at once; whoever is there is told by RST."""
        self._waiting.clear()
        self._link.sides.discard(self)
        if self.transport is not None:
            own: socket.socket | None = self.transport.get_extra_info("socket")
            if own is not None and own.fileno() >= 0:
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            self.transport.abort()


class Link:
    """A port that leads to another one, of `host`."""

    def __init__(self, listen: int, upstream: int, host: str) -> None:
        self._listen = listen
        self._upstream = upstream
        self._host = host
        self._server: asyncio.Server | None = None
        self._opening: set[asyncio.Task[None]] = set()
        self.ways = {UP: Way(), DOWN: Way()}
        self.sides: set[Side] = set()

    async def open(self) -> None:
        """Take connections. Raises OSError."""
        if self._server is None:
            loop = asyncio.get_running_loop()
            self._server = await loop.create_server(self._taken, LOOPBACK, self._listen)

    def refuse(self) -> None:
        """Take no connections, and end those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()

    def reset(self) -> None:
        """End all connections by RST."""
        for side in list(self.sides):
            side.reset()

    async def mend(self) -> None:
        """Be as it should be, and deliver what is held."""
        for way in self.ways.values():
            way.__init__()  # type: ignore[misc]
        self.go_on()
        await self.open()

    def go_on(self) -> None:
        """Let every connection look at its way again."""
        for side in list(self.sides):
            side.go_on()

    def _taken(self) -> Side:
        return Side(self, self.ways[UP])

    def connect(self, client: Side) -> None:
        """Begin to connect a client with the server behind the link."""
        task = asyncio.get_running_loop().create_task(self._connect(client))
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)

    async def _connect(self, client: Side) -> None:
        """Connect to the server behind it. What the client sends meanwhile is held, its end too."""
        server = Side(self, self.ways[DOWN])
        server.peer = client
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: server, self._host, self._upstream
            )
        except OSError:
            client.reset()
            return
        client.peer = server
        if client in self.sides:
            client.go_on()
        else:  # it was reset meanwhile
            server.reset()


class Proxy:
    """All links, by name, and what can be done to them."""

    def __init__(self) -> None:
        self._links: dict[str, Link] = {}

    async def do(self, command: Mapping[str, Any]) -> None:
        """Carry a command out. Raises OSError, KeyError."""
        name, what = command["link"], command["do"]
        if what == "open":
            self._links[name] = Link(command["listen"], command["upstream"], command["host"])
            await self._links[name].open()
            return
        link = self._links[name]
        if what == "mend":
            await link.mend()
        elif what in ("refuse", "reset"):
            getattr(link, what)()
        else:
            for way in WAYS[command["way"]]:
                _DISTURB[what](link.ways[way], command)
            link.go_on()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the commands of one controller."""
        while line := await reader.readline():
            try:
                await self.do(json.loads(line))
                answer = "ok"
            except (OSError, KeyError, ValueError) as error:
                answer = f"{type(error).__name__}: {error}"
            writer.write(answer.encode() + b"\n")
            await writer.drain()
        writer.close()


def _cut(way: Way, _: Mapping[str, Any]) -> None:
    way.held = True


def _delay(way: Way, command: Mapping[str, Any]) -> None:
    way.late_s, way.jitter_s = command["late_ms"] / 1e3, command["jitter_ms"] / 1e3


def _reorder(way: Way, command: Mapping[str, Any]) -> None:
    way.burst_s = command["burst_ms"] / 1e3


def _throttle(way: Way, command: Mapping[str, Any]) -> None:
    way.bytes_per_s = command["kb_per_s"] * 1_000


_DISTURB: Final[Mapping[str, Callable[[Way, Mapping[str, Any]], None]]] = {
    "cut": _cut,
    "delay": _delay,
    "reorder": _reorder,
    "throttle": _throttle,
}


async def main(port: int) -> None:
    """Serve commands for ever."""
    proxy = Proxy()
    server = await asyncio.start_server(proxy.serve, LOOPBACK, port)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
