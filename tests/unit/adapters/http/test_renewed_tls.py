"""Goal: a new certificate of the snapshot server holds without a restart, and a broken one for
nothing.

Method: files that the test replaces, and callers that trust the old one or the new one alone.
"""

from __future__ import annotations

import socket
import ssl
import threading
from pathlib import Path

import pytest

from leasehold.adapters.http.renewed_tls import RenewedTls
from leasehold.settings.snapshot import SnapshotSettings
from tests.support.pgwire.certificates import Certificate, make_certificate
from tests.unit.adapters.postgres.test_server import until_true


def accepts(context: ssl.SSLContext, trusted: Certificate) -> bool:
    """Whether a caller who trusts that certificate alone is served."""
    ours, theirs = socket.socketpair()
    client = ssl.create_default_context(cafile=trusted.cert)

    def serve() -> None:
        try:
            context.wrap_socket(theirs, server_side=True).close()
        except ssl.SSLError:
            theirs.close()

    serving = threading.Thread(target=serve)
    serving.start()
    try:
        client.wrap_socket(ours, server_hostname="localhost").close()
    except ssl.SSLError:
        return False
    finally:
        ours.close()
        serving.join()
    return True


def test_the_newest_certificate_is_served(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    old, new = make_certificate(tmp_path, "old"), make_certificate(tmp_path, "new")
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    cert.write_bytes(old.cert.read_bytes())
    key.write_bytes(old.key.read_bytes())
    settings = SnapshotSettings(tls_cert=cert, tls_key=key)
    made = RenewedTls(settings.served, settings.served.context(), look_s=0.01)
    assert made.context is not None
    try:
        assert accepts(made.context, old)
        assert not accepts(made.context, new)
        cert.write_bytes(new.cert.read_bytes())  # its key is still the old one's
        until_true(lambda: "what was read before holds on" in caplog.text, "it was said")
        assert accepts(made.context, old)
        key.write_bytes(new.key.read_bytes())
        until_true(lambda: accepts(made.context, new), "the new one is served")  # type: ignore[arg-type]
        assert not accepts(made.context, old)
    finally:
        made.close()


def test_without_a_certificate_nothing_is_watched() -> None:
    made = RenewedTls(SnapshotSettings().served, None)
    assert made.context is None
    made.close()
