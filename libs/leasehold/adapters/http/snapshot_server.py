"""Hands out a consistent copy of a node's store over HTTP, for a node that begins or was long away.

The copy is SQLite's online backup of one read snapshot, so its log position (L6) is inside it; the
writer goes on meanwhile. The answer is compressed, its length and checksum stand in its headers.
"""

from __future__ import annotations

import json
import logging
import shutil
import socket
import ssl
import sys
import tempfile
import zlib
from base64 import b64decode
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from hashlib import blake2b
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import apsw

from leasehold.adapters.http.copies import CopiesUnderWay
from leasehold.adapters.http.hosts import LOCAL, is_own_host, is_own_origin
from leasehold.adapters.http.snapshot_proof import (
    NO_CERTIFICATE,
    NONCE_HEADER,
    PROOF_HEADER,
    Exchange,
    is_nonce,
    is_proof,
    new_nonce,
)
from leasehold.adapters.os.clock import boottime_ns
from leasehold.adapters.sqlite.catalog import read_position
from leasehold.adapters.sqlite.layout import connect, layout_of, read_part
from leasehold.adapters.sqlite.part_copy import copy_part
from leasehold.catalog.part import PartWish
from leasehold.model.errors import ConfigurationError
from leasehold.model.records.log import LogPosition
from leasehold.settings.private_files import make_private_file
from leasehold.settings.setting import name as name_of

SNAPSHOT_PATH: Final = "/snapshot"
CHECKSUM_HEADER: Final = "X-Snapshot-Blake2b"
BYTES_HEADER: Final = "X-Snapshot-Bytes"
LAYOUT_HEADER: Final = "X-Snapshot-Layout"
SAID_HEADERS: Final = (LAYOUT_HEADER, BYTES_HEADER, CHECKSUM_HEADER)
"""What the server's proof is of, in its order."""
POSITION_HEADER: Final = "X-Snapshot-Position"
NODE_HEADER: Final = "X-Snapshot-Node"
"""Who asks, for people and for the log that is kept for it: no part of the proof."""
PART_HEADER: Final = "X-Snapshot-Part"
"""What of the store is asked for (`PartWish.to_json`, as base64), by who wants no more; a node of
an earlier release gives all. No part of the proof: who asks looks at what the copy says it is."""
PART_BYTES_MAX: Final = 48 * 1024
BLOCK_BYTES: Final = 1 << 18
DIGEST_BYTES: Final = 32
COPIES_AT_ONCE_MAX: Final = 2
SOCKET_TIMEOUT_S: Final = 60
ANSWER_S_LEAST: Final = 60.0
"""What the answer to a caller may take, beside its size: a pause of his disk, a slow network."""
ANSWER_BYTES_PER_S_LEAST: Final = 2 << 20
"""A caller who takes less than that of a copy is cut off: it has a place that others wait for, the
disk's room for a copy, and the log is kept for it (10 GB: an hour and a half)."""
RETRY_AFTER_S: Final = 5
COMPRESSION_LEVEL: Final = 1  # the network of a cluster is fast; higher levels cost more than save
CACHE_MB: Final = 4


LOG: Final = logging.getLogger("leasehold.snapshot")


class StoreCopy(NamedTuple):
    """A copy of the store in a file. `position` holds fields of LogPosition that a reader of
    headers may want."""

    path: Path
    size_bytes: int
    checksum: str
    position: dict[str, int]
    layout: int


def copy_store(source: Path, target: Path) -> StoreCopy:
    """Copy the store `source` at one commit to the new file `target`, while it is written to."""
    reader = connect(source, cache_mb=CACHE_MB, read_only=True)
    try:
        make_private_file(target)
        if not read_part(reader).is_whole:
            raise ConfigurationError(
                f"{source} is a partial replica's store: no copy of it is made, take one of a node"
                " that holds everything"
            )
        copy = apsw.Connection(str(target))
        try:
            # All pages in one step are one read snapshot; in several steps a commit in between
            # would make the backup start over, for ever under steady writes.
            with copy.backup("main", reader, "main") as backup:
                backup.step(-1)
            copy.execute("PRAGMA journal_mode = DELETE")
            position, layout = read_position(copy), layout_of(copy)
        finally:
            copy.close()
    finally:
        reader.close()
    return _copied(target, position, layout)


def copy_some(source: Path, target: Path, wish: PartWish) -> StoreCopy:
    """Copy what is wished for of the store `source` at one commit to the new file `target`, while
    it is written to. Raises what `copy_part` raises."""
    make_private_file(target)
    copy_part(source, target, wish)
    reader = connect(target, cache_mb=CACHE_MB, read_only=True)
    try:
        position, layout = read_position(reader), layout_of(reader)
    finally:
        reader.close()
    return _copied(target, position, layout)


def _copied(target: Path, position: LogPosition, layout: int) -> StoreCopy:
    return StoreCopy(
        target,
        target.stat().st_size,
        file_checksum(target),
        {"offset": position.offset, "epoch": position.epoch, "lsn": position.lsn},
        layout,
    )


def file_checksum(path: Path) -> str:
    total = blake2b(digest_size=DIGEST_BYTES)
    for block in blocks_of(path):
        total.update(block)
    return total.hexdigest()


def blocks_of(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            yield block


class SnapshotServer:
    """Serves `GET /snapshot` of the store file `path` from threads of its own.

    `token`: what callers must prove to know. `names`: host names under which it may be asked,
    beside its addresses. `tls`: with whose certificate, None = in the clear; `certificate`: that
    one (DER). At most `copies_max`
    copies are made at once; more callers get 503 and when to come again. `copies`: tells which are
    under way.
    """

    def __init__(
        self,
        path: Path,
        *,
        token: str,
        host: str = "127.0.0.1",
        port: int = 0,
        names: Collection[str] = (),
        tls: ssl.SSLContext | None = None,
        certificate: bytes = NO_CERTIFICATE,
        copies_max: int = COPIES_AT_ONCE_MAX,
        copies: CopiesUnderWay | None = None,
    ) -> None:
        for left in path.parent.glob(f"{_prefix(path)}*"):
            shutil.rmtree(left, ignore_errors=True)  # of a process that was killed meanwhile
        own = frozenset(name.lower() for name in names)
        places, under_way = BoundedSemaphore(copies_max), copies or CopiesUnderWay()
        handler = _handler(path, token, own, places, under_way, certificate)
        self._scheme = "http" if tls is None else "https"
        self._server = _Server((host, port), handler, tls)
        self._thread = Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True
        )
        self._thread.start()

    @property
    def address(self) -> str:
        """host:port as others reach it; goes into the node's acknowledgements."""
        host, port = self._server.server_address[:2]
        return f"{host!s}:{port}"

    @property
    def url(self) -> str:
        return f"{self._scheme}://{self.address}{SNAPSHOT_PATH}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _Server(ThreadingHTTPServer):
    """A thread per caller; one that breaks off is a line in the log at most."""

    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        handler: Callable[..., BaseHTTPRequestHandler],
        tls: ssl.SSLContext | None,
    ) -> None:
        self._tls = tls
        super().__init__(address, handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        # Here and not around the listener: a caller that never ends its handshake would keep all
        # others waiting. The handshake has the socket's time-out.
        request.settimeout(SOCKET_TIMEOUT_S)
        with self._tls.wrap_socket(request, server_side=True) as encrypted:
            super().finish_request(encrypted, client_address)
            with suppress(OSError):
                encrypted.shutdown(socket.SHUT_WR)

    def handle_error(self, _request: Any, client_address: Any) -> None:
        LOG.info("the connection of %s broke off: %s", client_address[0], sys.exception())


def _prefix(path: Path) -> str:
    return f".{path.name}-copy-"


def _offset_of(path: Path) -> int:
    """The next log offset of the store now; a copy made later has it or a later one."""
    reader = connect(path, cache_mb=CACHE_MB, read_only=True)
    try:
        return read_position(reader).offset
    finally:
        reader.close()


def _handler(
    path: Path,
    token: str,
    names: Collection[str],
    places: BoundedSemaphore,
    copies: CopiesUnderWay,
    certificate: bytes,
) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = SOCKET_TIMEOUT_S
        _answered = ""  # the nonce that the last answer on this connection had
        _exchange: Exchange

        def do_GET(self) -> None:
            if not self._is_asked_by_our_name():
                self._refuse(HTTPStatus.FORBIDDEN, "this node answers its own host name only")
            elif self.path != SNAPSHOT_PATH:
                self._refuse(HTTPStatus.NOT_FOUND, f"only {SNAPSHOT_PATH} is served here")
            elif (why := self._why_not()) is not None:
                self._answered = new_nonce()
                self._refuse(HTTPStatus.UNAUTHORIZED, why)
            elif not places.acquire(blocking=False):
                self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "copies are being made; come again")
            else:
                try:
                    with copies.of(_offset_of(path), self._taker()):
                        self._serve()
                finally:
                    places.release()

        def _is_asked_by_our_name(self) -> bool:
            host = self.headers.get("Host", "")
            if not is_own_host(host, names):
                return False
            return is_own_origin(self.headers.get("Origin"), host, names)

        def _why_not(self) -> str | None:
            """Return why the caller has not proved that it knows the token; None: it has."""
            answered, self._answered = self._answered, ""
            nonce, shown = self._header(NONCE_HEADER), self._header(PROOF_HEADER)
            if "Authorization" in self.headers:
                return (
                    "a node of an earlier release asks, which shows the token of all nodes; it is"
                    " proved now: upgrade that node"
                )
            if not is_nonce(nonce) or not answered or not shown:
                return f"prove that you know the token, with the nonce in {NONCE_HEADER}"
            if not self._is_our_address():
                return (
                    f"{self._header('Host')!r:.200} is not the address of this node: somebody"
                    " passes on what others say, or LEASEHOLD_ADVERTISE is another name"
                )
            self._exchange = Exchange(nonce, answered, self._header("Host"), certificate)
            if not is_proof(shown, self._exchange.to_ask(token)):
                return (
                    "the proof is wrong: nodes of one database are given the same"
                    " LEASEHOLD_SNAPSHOT_TOKEN, or the same LEASEHOLD_DATA on one machine"
                )
            return None

        def _is_our_address(self) -> bool:
            """Whether who asks means this very server, by name or number, and port."""
            ours, port = self.connection.getsockname()[:2]
            asked = urlsplit(f"//{self._header('Host')}")
            name = (asked.hostname or "").lower()
            try:
                if (asked.port or (443 if certificate else 80)) != port:
                    return False
                local = ip_address(ours).is_loopback
            except ValueError:
                return False
            return name == ours or name in names or (local and name == LOCAL)

        def _taker(self) -> str:
            """Return which node takes the copy, by its own word; "" if it is none's name."""
            try:
                return name_of(self._header(NODE_HEADER) or " ")
            except ValueError:
                return ""

        def _wish(self) -> PartWish:
            """Return what of the store the caller wants. Raises ConfigurationError."""
            said = self._header(PART_HEADER)
            if not said:
                return PartWish()
            try:
                if len(said) > PART_BYTES_MAX:
                    raise ValueError(f"more than {PART_BYTES_MAX} bytes")
                return PartWish.from_json(b64decode(said, validate=True).decode())
            except ValueError as error:  # of base64, UTF-8 and JSON, too
                raise ConfigurationError(f"{PART_HEADER} can't be read: {error}") from error

        def _header(self, name: str) -> str:
            return str(self.headers.get(name, ""))

        def _serve(self) -> None:
            with tempfile.TemporaryDirectory(prefix=_prefix(path), dir=path.parent) as folder:
                try:
                    wish = self._wish()
                    target = Path(folder) / "copy"
                    if wish.is_everything:
                        copy = copy_store(path, target)
                    else:
                        copy = copy_some(path, target, wish)
                except ConfigurationError as error:
                    self._refuse(HTTPStatus.UNPROCESSABLE_ENTITY, error.message)
                    return
                except Exception as error:  # noqa: BLE001 - told to whoever asked
                    self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, f"no copy: {error}")
                    return
                self.send_response(HTTPStatus.OK)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Encoding", "deflate")
                self.send_header("Transfer-Encoding", "chunked")
                said = str(copy.layout), str(copy.size_bytes), copy.checksum
                for header, value in zip(SAID_HEADERS, said, strict=True):
                    self.send_header(header, value)
                self.send_header(PROOF_HEADER, self._exchange.to_serve(token, *said))
                self.send_header(POSITION_HEADER, json.dumps(copy.position))
                self.end_headers()
                try:
                    self._send(copy)
                except OSError:
                    # The caller went away; it will notice that its copy is not whole.
                    self.close_connection = True

        def _send(self, copy: StoreCopy) -> None:
            """Raises OSError for a caller who went away, or takes too long over it."""
            allowed_s = ANSWER_S_LEAST + copy.size_bytes / ANSWER_BYTES_PER_S_LEAST
            end_ns = boottime_ns() + int(allowed_s * 1e9)
            packer = zlib.compressobj(COMPRESSION_LEVEL)
            try:
                for block in blocks_of(copy.path):
                    self._chunk(packer.compress(block), end_ns)
                self._chunk(packer.flush(), end_ns)
            except TimeoutError:
                LOG.warning(
                    "%s has not taken its snapshot of %d bytes in time (%.0f s without a word, or"
                    " %.0f s in all); it is cut off, and the log is no longer kept for it",
                    self.client_address[0],
                    copy.size_bytes,
                    SOCKET_TIMEOUT_S,
                    allowed_s,
                )
                raise
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, data: bytes, end_ns: int) -> None:
            left_s = (end_ns - boottime_ns()) / 1e9
            if left_s <= 0:
                raise TimeoutError
            self.connection.settimeout(min(SOCKET_TIMEOUT_S, left_s))
            if data:  # an empty chunk would end the answer
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

        def _refuse(self, status: HTTPStatus, words: str) -> None:
            body = words.encode()
            self.send_response(status)
            if status is HTTPStatus.SERVICE_UNAVAILABLE:
                self.send_header("Retry-After", str(RETRY_AFTER_S))
            if self._answered:
                self.send_header(NONCE_HEADER, self._answered)
            self.send_header("Content-Type", "text/plain; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            """Silent: the node logs what matters, and anybody may ask."""

    return Handler
