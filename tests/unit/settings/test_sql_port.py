"""Goal: beyond loopback nobody is served who was not asked who he is, nor in the clear by accident.

Method: settings as an environment gives them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.model.errors import ConfigurationError
from leasehold.pgwire.auth.logins import ClientCertificate, Method
from leasehold.pgwire.auth.scram_server import verifier_of_password
from leasehold.settings.environment import from_environment
from leasehold.settings.snapshot import SnapshotSettings
from leasehold.settings.sql_port import PgwireSettings

USERS = f"me={verifier_of_password('pencil', b'salt' * 4, 4096)}"
TOKEN = "0123456789abcdef0123456789abcdef"


def read(**environ: str) -> PgwireSettings:
    return from_environment(
        PgwireSettings, {f"LEASEHOLD_SQL_{name}": value for name, value in environ.items()}
    )


@pytest.mark.parametrize(
    ("environ", "missing"),
    [
        ({}, "LEASEHOLD_SQL_USERS"),
        ({"AUTH": "trust"}, "scram-sha-256 or cert"),
        ({"AUTH": "trust", "USERS": USERS, "TLS_CERT": "c"}, "scram-sha-256 or cert"),
        ({"USERS": USERS}, "LEASEHOLD_SQL_TLS_CERT"),
        ({"USERS": USERS, "TLS": "verify"}, "LEASEHOLD_SQL_TLS_CERT"),
        ({"AUTH": "scram-sha-256"}, "LEASEHOLD_SQL_TLS_CERT"),
        ({"AUTH": "cert", "TLS": "off"}, "LEASEHOLD_SQL_TLS_CLIENT_CA"),
        ({"AUTH": "cert", "TLS_CERT": "c"}, "LEASEHOLD_SQL_TLS_CLIENT_CA"),
        ({"TLS_CRL_FILE": "l", "TLS_CERT": "c"}, "LEASEHOLD_SQL_TLS_CLIENT_CA"),
        ({"USERS": USERS, "TLS_CERT": "c", "TLS_CLIENTCERT": "verify-ca"}, "TLS_CLIENT_CA"),
        ({"USERS": USERS, "TLS_CERT": "c"}, None),
        ({"USERS": USERS, "TLS": "off"}, None),
        ({"AUTH": "scram-sha-256", "TLS_CERT": "c"}, None),
        ({"AUTH": "cert", "TLS_CERT": "c", "TLS_CLIENT_CA": "ca"}, None),
    ],
)
def test_beyond_loopback_users_and_tls_are_demanded(
    environ: dict[str, str], missing: str | None
) -> None:
    settings = read(HOST="0.0.0.0", **environ)
    if missing is None:
        settings.check()
        assert settings.in_the_clear is (settings.tls_cert is None)
        return
    with pytest.raises(ConfigurationError, match=missing) as raised:
        settings.check()
    assert "set" in raised.value.message
    assert "0.0.0.0" in raised.value.message or "certificates" in raised.value.message


def test_on_loopback_it_stays_open_and_says_so() -> None:
    settings = read(PORT="5432")
    settings.check()
    assert not settings.in_the_clear
    assert settings.open_to == "open: who comes to 127.0.0.1:5432 is asked for no password"
    assert read().open_to == "", "nobody is listened to"
    assert read(PORT="5432", USERS=USERS).open_to == ""
    assert read(PORT="5432", AUTH="scram-sha-256").open_to == ""
    assert read(PORT="5432", USERS=USERS, AUTH="trust").open_to != ""


@pytest.mark.parametrize(
    ("environ", "method", "certificate"),
    [
        ({}, Method.TRUST, ClientCertificate.NO),
        ({"USERS": USERS}, Method.SCRAM, ClientCertificate.NO),
        (
            {"USERS": USERS, "TLS_CLIENTCERT": "verify-ca"},
            Method.SCRAM,
            ClientCertificate.VERIFY_CA,
        ),
        ({"AUTH": "cert"}, Method.CERT, ClientCertificate.VERIFY_FULL),
        ({"AUTH": "trust", "USERS": USERS}, Method.TRUST, ClientCertificate.NO),
    ],
)
def test_how_clients_are_asked(
    environ: dict[str, str], method: Method, certificate: ClientCertificate
) -> None:
    settings = read(**environ)
    assert (settings.method, settings.certificate) == (method, certificate)


def test_an_empty_file_of_users_opens_nothing(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("")
    settings = read(USERS_FILE=str(file))
    assert settings.method is Method.SCRAM
    assert settings.read_users() == {}
    file.write_text(USERS)
    assert list(read(USERS_FILE=str(file)).users) == ["me"]
    assert list(settings.read_users() or ()) == ["me"], "it is read again"
    file.unlink()
    with pytest.raises(ConfigurationError, match="can't be read"):
        settings.read_users()


@pytest.mark.parametrize(
    ("listen", "environ", "refused"),
    [
        ("127.0.0.1", {"TOKEN": TOKEN}, False),
        ("0.0.0.0", {}, False),  # without a token it hands out nothing
        ("0.0.0.0", {"TOKEN": TOKEN}, True),
        ("0.0.0.0", {"TOKEN": TOKEN, "TLS_CA": "ca"}, True),
        ("0.0.0.0", {"TOKEN": TOKEN, "TLS": "off"}, False),
        ("0.0.0.0", {"TOKEN": TOKEN, "TLS_CERT": "c", "TLS_KEY": "k"}, False),
    ],
)
def test_copies_of_a_store_are_encrypted_beyond_loopback(
    listen: str, environ: dict[str, str], refused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    given = {f"LEASEHOLD_SNAPSHOT_{name}": value for name, value in environ.items()}
    settings = from_environment(SnapshotSettings, given)
    if refused:
        with pytest.raises(ConfigurationError, match="LEASEHOLD_SNAPSHOT_TLS=off"):
            settings.check_served_on(listen)
    else:
        settings.check_served_on(listen)
    assert ("in the clear" in caplog.text) is ("TLS" in environ)
