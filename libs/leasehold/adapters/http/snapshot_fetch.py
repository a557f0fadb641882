"""Takes a copy of another node's store over HTTP and puts it in place only when it is whole."""

from __future__ import annotations

import os
import ssl
import zlib
from base64 import b64encode
from collections.abc import Iterator
from hashlib import blake2b
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from leasehold.adapters.http.snapshot_proof import (
    NO_CERTIFICATE,
    NONCE_HEADER,
    PROOF_HEADER,
    Exchange,
    is_nonce,
    is_proof,
    new_nonce,
)
from leasehold.adapters.http.snapshot_server import (
    BLOCK_BYTES,
    CACHE_MB,
    DIGEST_BYTES,
    NODE_HEADER,
    PART_BYTES_MAX,
    PART_HEADER,
    SAID_HEADERS,
    SOCKET_TIMEOUT_S,
)
from leasehold.adapters.sqlite.catalog import read_position
from leasehold.adapters.sqlite.layout import (
    LAYOUT_VERSION,
    PARTIAL_LAYOUT,
    WriterLock,
    connect,
    has_tables,
    read_part,
)
from leasehold.adapters.sqlite.part_copy import copy_part
from leasehold.catalog.part import PartWish
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.model.records.log import LogPosition
from leasehold.settings.private_files import FOLDER_MODE, SIDE_FILES, make_private_file

WORDS_BYTES_MAX: Final = 1_000
SNAPSHOT_BYTES_MAX: Final = 1 << 40
_LAYOUTS: Final = frozenset(
    str(layout) for layout in (*range(1, LAYOUT_VERSION + 1), PARTIAL_LAYOUT)
)
EVERYTHING: Final = PartWish()


def fetch_snapshot(
    url: str,
    path: Path,
    *,
    token: str,
    node: str = "",
    tls: ssl.SSLContext | None = None,
    timeout_s: float = SOCKET_TIMEOUT_S,
    wish: PartWish = EVERYTHING,
) -> LogPosition:
    """Replace the store file `path` by the copy that `url` serves; its log position.

    Who answers has to prove that it knows `token`, which is shown to nobody, and the copy is taken
    only if the proof names it; `tls` says whom an https address may belong to (None: whom this
    system trusts). `node` is who takes it, for which the log is kept meanwhile. `wish`: what of it
    is wanted; a node of an earlier release gives everything, of which the rest is dropped here.

    Raises SnapshotUnavailable when the copy can't be had or is not whole: `path` is then as it
    was, and asking again (or another node) is safe. Raises ConfigurationError when a writer has
    `path` open, when `url` is not an HTTP address, or when what is wished for can't be held.
    """
    path.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part-{os.getpid()}")
    lock = WriterLock(path)
    try:
        make_private_file(part)
        _download(url, part, token, node, tls, timeout_s, wish)
        _cut(url, part, wish)
        position = _position_of(part, url)
        # The write-ahead log of the file that goes must not be taken for the new one's.
        for side in SIDE_FILES:
            path.with_name(path.name + side).unlink(missing_ok=True)
        part.replace(path)
        _sync_folder(path.parent)
    finally:
        for side in ("", *SIDE_FILES):
            part.with_name(part.name + side).unlink(missing_ok=True)
        lock.close()
    return position


def _cut(url: str, file: Path, wish: PartWish) -> None:
    """Leave in the copy what is wished for alone. Raises SnapshotUnavailable for one that has
    something else, ConfigurationError for what can't be held."""
    connection = connect(file, cache_mb=CACHE_MB, read_only=True)
    try:
        has = read_part(connection)
    finally:
        connection.close()
    if wish.is_met_by(has):
        return
    if not has.is_whole:
        raise SnapshotUnavailable(f"{url} serves a store that holds only {has.words()}", url=url)
    some = file.with_name(f"{file.name}.some")
    try:
        make_private_file(some)
        copy_part(file, some, wish)
        for side in SIDE_FILES:
            file.with_name(file.name + side).unlink(missing_ok=True)
        some.replace(file)
    finally:
        some.unlink(missing_ok=True)


def _download(
    url: str,
    part: Path,
    token: str,
    node: str,
    tls: ssl.SSLContext | None,
    timeout_s: float,
    wish: PartWish,
) -> None:
    address = urlsplit(url)
    if address.scheme not in ("http", "https") or address.hostname is None:
        raise ConfigurationError(f"{url!r} is not the http(s) address of a snapshot server")
    position = (address.hostname, address.port)
    connection = (
        HTTPSConnection(*position, timeout=timeout_s, context=tls)
        if address.scheme == "https"
        else HTTPConnection(*position, timeout=timeout_s)
    )
    try:
        _receive(url, *_asked(url, connection, address.path or "/", token, node, wish), part)
    except ssl.SSLCertVerificationError as error:
        raise SnapshotUnavailable(
            f"{url} shows a certificate that is not trusted ({error.verify_message});"
            " check LEASEHOLD_SNAPSHOT_TLS_CA, and the names in that certificate",
            url=url,
        ) from error
    except (OSError, HTTPException, zlib.error) as error:
        raise SnapshotUnavailable(
            f"the snapshot from {url} broke off ({type(error).__name__}: {error});"
            " ask again, or another node",
            url=url,
        ) from error
    finally:
        connection.close()


def _asked(
    url: str, connection: HTTPConnection, path: str, token: str, node: str, wish: PartWish
) -> tuple[HTTPResponse, tuple[str, ...]]:
    """Return the answer of a server that has proved to know the token, and what it says of its
    copy. Raises SnapshotUnavailable."""
    headers = {NONCE_HEADER: new_nonce(), NODE_HEADER: node}
    if not wish.is_everything:
        wanted_part = b64encode(wish.to_json().encode()).decode()
        if len(wanted_part) > PART_BYTES_MAX:
            raise ConfigurationError("a replica is to hold more tables by name than can be said")
        headers[PART_HEADER] = wanted_part
    connection.request("GET", path, headers=headers)
    first = connection.getresponse()
    words = first.read(WORDS_BYTES_MAX).decode(errors="replace")
    answered = first.headers.get(NONCE_HEADER, "")
    if first.status != HTTPStatus.UNAUTHORIZED:
        raise SnapshotUnavailable(f"{url} answers {first.status}: {words}", url=url)
    if not is_nonce(answered) or not first.isclosed() or first.will_close:
        raise SnapshotUnavailable(
            f"{url} asks for no proof: it is of an earlier release, which wants to see the token of"
            " all nodes, or a stranger's. Nothing was shown to it; upgrade that node, or ask"
            " another",
            url=url,
        )
    exchange = Exchange(headers[NONCE_HEADER], answered, _address(connection), _shown(connection))
    headers[PROOF_HEADER] = exchange.to_ask(token)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    if answer.status != HTTPStatus.OK:
        words = answer.read(WORDS_BYTES_MAX).decode(errors="replace")
        if answer.status == HTTPStatus.UNPROCESSABLE_ENTITY:
            raise ConfigurationError(words)
        raise SnapshotUnavailable(f"{url} answers {answer.status}: {words}", url=url)
    said = tuple(answer.headers.get(name, "") for name in SAID_HEADERS)
    layout, size, checksum = said
    wanted = exchange.to_serve(token, layout, size, checksum)
    if not is_proof(answer.headers.get(PROOF_HEADER, ""), wanted):
        raise SnapshotUnavailable(
            f"{url} does not prove that it knows LEASEHOLD_SNAPSHOT_TOKEN: it is no node of this"
            " database. None of its rows were taken",
            url=url,
        )
    return answer, said


def _address(connection: HTTPConnection) -> str:
    """Return the address as the Host header of a request has it."""
    host = f"[{connection.host}]" if ":" in connection.host else connection.host
    return host if connection.port == connection.default_port else f"{host}:{connection.port}"


def _shown(connection: HTTPConnection) -> bytes:
    """Return the certificate that the server has shown (DER)."""
    if not isinstance(connection.sock, ssl.SSLSocket):
        return NO_CERTIFICATE
    return connection.sock.getpeercert(binary_form=True) or NO_CERTIFICATE


def _receive(url: str, answer: HTTPResponse, said: tuple[str, ...], part: Path) -> None:
    """Write what comes, and refuse it unless length and checksum are those announced."""
    layout, announced, wanted = said
    if layout not in _LAYOUTS:
        raise SnapshotUnavailable(
            f"{url} serves a store of layout {layout!r:.20}, this program reads"
            f" {LAYOUT_VERSION} at most: install the release of that node here",
            url=url,
        )
    size = int(announced) if announced.isdecimal() and len(announced) < 20 else -1
    if not 0 <= size <= SNAPSHOT_BYTES_MAX:
        raise SnapshotUnavailable(f"{url} announces {announced!r:.40} bytes", url=url)
    total = blake2b(digest_size=DIGEST_BYTES)
    written = 0
    with part.open("wb") as file:
        for block in _unpacked(answer):
            written += len(block)
            if written > size:
                break
            total.update(block)
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
    if written != size or total.hexdigest() != wanted:
        raise SnapshotUnavailable(
            f"the snapshot from {url} is damaged: {written} of {size} bytes came, checksum"
            f" {total.hexdigest()[:16]}… where {wanted[:16]}… was announced; ask again",
            url=url,
        )


def _unpacked(answer: HTTPResponse) -> Iterator[bytes]:
    unpacker = zlib.decompressobj()
    while block := answer.read(BLOCK_BYTES):
        # Bounded, so that a few hostile bytes can't grow into gigabytes at once.
        while block:
            yield unpacker.decompress(block, BLOCK_BYTES)
            block = unpacker.unconsumed_tail
    yield unpacker.flush()


def _position_of(part: Path, url: str) -> LogPosition:
    """The position inside the copy, which also shows that SQLite can read it."""
    connection = connect(part, cache_mb=CACHE_MB, read_only=True)
    try:
        if has_tables(connection):
            return read_position(connection)
    finally:
        connection.close()
    raise SnapshotUnavailable(f"{url} serves a store that holds no log position yet", url=url)


def _sync_folder(folder: Path) -> None:
    """Write the folder to the disk, so that the new name survives a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
