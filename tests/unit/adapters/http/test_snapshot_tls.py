"""Goal: over TLS a copy comes from whom one trusts, and the secret goes to nobody else."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from leasehold.adapters.http.snapshot_fetch import fetch_snapshot
from leasehold.adapters.http.snapshot_server import (
    SnapshotServer,
)
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.model.errors import ConfigurationError, SnapshotUnavailable
from leasehold.settings.snapshot import (
    SnapshotSettings,
)
from tests.support.http.snapshot_talk import (
    TOKEN,
)


class Authority(NamedTuple):
    """Files of two servers that sign for themselves: the one we trust, and a stranger."""

    trusted: SnapshotSettings
    stranger: SnapshotSettings


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    folder = tmp_path_factory.mktemp("tls")
    made = []
    for name in ("trusted", "stranger"):
        cert, key = folder / f"{name}.pem", folder / f"{name}.key"
        subprocess.run(
            [
                *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
                *("-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1"),
                *("-keyout", str(key), "-out", str(cert)),
            ],
            check=True,
            capture_output=True,
        )
        made.append(SnapshotSettings(tls_cert=cert, tls_key=key, tls_ca=cert))
    return Authority(*made)


@pytest.fixture
def encrypted(store: SqliteStore, authority: Authority) -> Iterator[SnapshotServer]:
    files = authority.trusted.served
    started = SnapshotServer(
        store.path, token=TOKEN, tls=files.context(), certificate=files.certificate()
    )
    yield started
    started.close()


def test_over_tls_it_is_the_same_store(
    store: SqliteStore, encrypted: SnapshotServer, authority: Authority, tmp_path: Path
) -> None:
    assert encrypted.url.startswith("https://")
    mine, tls = tmp_path / "mine.db", authority.trusted.to_fetch()
    assert fetch_snapshot(encrypted.url, mine, token=TOKEN, tls=tls) == store.position()
    with pytest.raises(SnapshotUnavailable, match="401"):
        fetch_snapshot(encrypted.url, mine, token=TOKEN[:-1], tls=tls)


def test_the_token_is_not_shown_to_a_stranger(
    store: SqliteStore, authority: Authority, tmp_path: Path
) -> None:
    """Neither to a server of another certificate, nor to one of another name."""
    stranger = SnapshotServer(store.path, token=TOKEN, tls=authority.stranger.served.context())
    try:
        other_name = stranger.url.replace("127.0.0.1", "localhost")
        for url, ours in ((stranger.url, authority.trusted), (other_name, authority.stranger)):
            with pytest.raises(SnapshotUnavailable, match=r"not trusted.*SNAPSHOT_TLS_CA"):
                fetch_snapshot(url, tmp_path / "a.db", token=TOKEN, tls=ours.to_fetch())
    finally:
        stranger.close()


def test_a_caller_without_tls_gets_nothing_and_holds_up_nobody(
    encrypted: SnapshotServer, authority: Authority, tmp_path: Path
) -> None:
    place = encrypted.address.split(":")
    with socket.create_connection((place[0], int(place[1]))):  # never begins its handshake
        with pytest.raises(SnapshotUnavailable):
            fetch_snapshot(f"http://{encrypted.address}/snapshot", tmp_path / "a.db", token=TOKEN)
        tls = authority.trusted.to_fetch()
        fetch_snapshot(encrypted.url, tmp_path / "a.db", token=TOKEN, tls=tls)


def test_tls_files_that_can_t_be_used_are_named(authority: Authority, tmp_path: Path) -> None:
    gone = tmp_path / "gone.pem"
    cert = authority.trusted.tls_cert
    with pytest.raises(ConfigurationError, match=r"LEASEHOLD_SNAPSHOT_TLS_CERT and .*_TLS_KEY"):
        SnapshotSettings(tls_cert=cert, tls_key=gone).served.context()
    with pytest.raises(ConfigurationError, match="LEASEHOLD_SNAPSHOT_TLS_CA"):
        SnapshotSettings(tls_ca=gone).to_fetch()
    with pytest.raises(ConfigurationError, match="only work together"):
        SnapshotSettings(tls_cert=cert)
    assert SnapshotSettings().served.context() is None
    assert SnapshotSettings().to_fetch() is None


def test_over_tls_the_certificate_is_part_of_the_proof(
    store: SqliteStore, authority: Authority, tmp_path: Path
) -> None:
    """Whoever is between the two with another certificate that is trusted, has no proof."""
    trusted = authority.trusted
    other = authority.stranger.served.certificate()
    assert trusted.served.certificate() != other
    server = SnapshotServer(
        store.path, token=TOKEN, tls=trusted.served.context(), certificate=other
    )
    try:
        with pytest.raises(SnapshotUnavailable, match="the proof is wrong"):
            fetch_snapshot(server.url, tmp_path / "a.db", token=TOKEN, tls=trusted.to_fetch())
    finally:
        server.close()
