"""Goal: users, passwords and certificates are asked for as the settings say, and changes of their
files hold without a restart.

Method: real sockets and psycopg (libpq), against a listener over small sessions.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import psycopg
import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.adapters.postgres.server import PgwireServer
from leasehold.model.errors import ConfigurationError, LeaseholdError, NodeUnreachable
from leasehold.pgwire.auth.logins import Account, TlsChannel
from leasehold.pgwire.auth.scram_server import Verifier, verifier_of_password
from leasehold.pgwire.messages import backend
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings
from tests.support.pgwire.certificates import Certificate, make_certificate, revoke
from tests.support.pgwire.listening import listening
from tests.support.pgwire.wire_words import error_of, said, startup
from tests.unit.adapters.postgres.test_server import (
    WAIT_S,
    connect,
    silent,
    to_the_end,
    until_true,
)


def verifier(password: str) -> Verifier:
    return verifier_of_password(password, b"salt" * 4, 4096)


PENCIL = verifier("pencil")
ME = {"user": "me", "password": "pencil"}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Certificate]:
    folder = Path(tmp_path_factory.mktemp("certificates"))
    ca = make_certificate(folder, "authority")
    return {
        "ca": ca,
        "node": make_certificate(folder, "node", ca),
        "me": make_certificate(folder, "me", ca),
        "you": make_certificate(folder, "you", ca),
        "stranger": make_certificate(folder, "me", make_certificate(folder, "other"), file="s"),
    }


def served(certificates: dict[str, Certificate], **more: Any) -> dict[str, Any]:
    node = certificates["node"]
    return {"tls_cert": node.cert, "tls_key": node.key, "users": {"me": PENCIL}, **more}


def trusted(certificates: dict[str, Certificate], **more: Any) -> dict[str, Any]:
    return {**ME, "sslmode": "verify-full", "sslrootcert": str(certificates["ca"].cert), **more}


def shown(certificate: Certificate) -> dict[str, str]:
    return {"sslcert": str(certificate.cert), "sslkey": str(certificate.key)}


def works(server: PgwireServer, **options: Any) -> None:
    with connect(server, **options) as client:
        assert client.execute("select 1").fetchone() == (1,)


# ---------------------------------------------------------------- users that change


def write(file: Path, **users: str) -> None:
    """Put a whole file in the place of the other, as `leasehold user` does."""
    made = file.with_suffix(".new")
    made.write_text("".join(f"{name}={verifier(word)}\n" for name, word in users.items()))
    made.replace(file)


def test_a_file_of_users_is_read_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "users"
    write(file, me="pencil", you="paper")
    given = PgwireSettings(users_file=file)
    with (
        listening(users_file=file, users=given.read_users()) as server,
        connect(server, **ME) as mine,
        connect(server, user="you", password="paper") as yours,
    ):
        write(file, me="another", we="more")
        users = server._admissions.users
        until_true(lambda: users.find("we") is not None, "the file was read")
        until_true(lambda: len(server._clients) == 1, "the session of one who has gone ended")
        with pytest.raises(psycopg.errors.AdminShutdown):
            yours.execute("select 1")
        assert mine.execute("select 1").fetchone() == (1,), "a new password ends no session"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(server, **ME)
        works(server, user="me", password="another")
        works(server, user="we", password="more")

        file.write_text("no users at all\n")
        until_true(lambda: "what was read before holds on" in caplog.text, "it was said")
        assert f"{file} is no file of users" in caplog.text
        works(server, user="we", password="more")


def test_a_file_without_users_lets_nobody_in(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text("")
    refused = pytest.raises(psycopg.OperationalError, match="password authentication failed")
    with listening(users_file=file, users={}) as server, refused:
        connect(server, **ME)


# ---------------------------------------------------------------- certificates that change


def test_certificates_are_read_again(
    tmp_path: Path, certificates: dict[str, Certificate], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    cert, key = tmp_path / "cert", tmp_path / "key"

    def put(name: str) -> None:
        for content, file in zip(certificates[name], (cert, key), strict=True):
            made = tmp_path / "new"
            made.write_bytes(content.read_bytes())
            made.replace(file)

    put("node")
    settings = served(certificates, tls_cert=cert, tls_key=key)
    with listening(**settings) as server, connect(server, **trusted(certificates)) as before:
        first = server._tls.served
        key.write_text("no key")
        until_true(lambda: "what was read before holds on" in caplog.text, "it was said")
        assert server._tls.served is first
        works(server, **trusted(certificates, channel_binding="require"))
        put("you")
        until_true(lambda: server._tls.served is not first, "the new one was read")
        works(server, **trusted(certificates, channel_binding="require"))
        assert before.execute("select 1").fetchone() == (1,), "connections go on"
    assert "was read again" in caplog.text


# ---------------------------------------------------------------- channel binding, direct TLS


def test_channel_binding(certificates: dict[str, Certificate]) -> None:
    with listening(**served(certificates)) as server:
        for binding in ("require", "prefer", "disable"):
            works(server, **trusted(certificates, channel_binding=binding))
        with pytest.raises(psycopg.OperationalError, match="channel binding required"):
            connect(server, **ME, sslmode="disable", channel_binding="require")


def test_a_proof_for_another_certificate_is_refused(certificates: dict[str, Certificate]) -> None:
    """As if somebody in between had ended the TLS of the client."""
    with listening(**served(certificates)) as server:
        found = server._tls.served
        assert found is not None
        server._tls.served = found._replace(binding=TlsChannel(bytes(32)).binding)
        with pytest.raises(psycopg.OperationalError, match="channel binding check failed"):
            connect(server, **trusted(certificates))


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({}, None),
        ({"channel_binding": "require"}, None),
        ({"channel_binding": "disable"}, None),
        ({"tls": "off"}, None),
        ({"tls": "off", "channel_binding": "require"}, ConfigurationError),
        ({"password": "wrong"}, LeaseholdError),
    ],
)
def test_our_client_binds_its_proof(
    certificates: dict[str, Certificate], changes: dict[str, Any], error: type[Exception] | None
) -> None:
    with listening(**served(certificates)) as server:
        given = {"tls_ca": certificates["ca"].cert, **ME, **changes}
        address = SqlAddress(port=server.port, **given)
        if error is None:
            SqlConnection(address, "demo").close()
        else:
            with pytest.raises(error):
                SqlConnection(address, "demo")


def test_our_client_wants_channel_binding_from_who_asks_for_nothing() -> None:
    with listening() as server, pytest.raises(ConfigurationError, match="asks for no password"):
        SqlConnection(SqlAddress(port=server.port, channel_binding="require"), "demo")


def test_tls_may_begin_at_once(certificates: dict[str, Certificate]) -> None:
    direct = {"sslnegotiation": "direct", "channel_binding": "require"}
    with listening(**served(certificates)) as server:
        works(server, **trusted(certificates, **direct))
        for _ in range(20):
            works(server, **trusted(certificates, **direct))


def test_tls_at_once_needs_the_name_of_the_protocol(certificates: dict[str, Certificate]) -> None:
    context = ssl.create_default_context(cafile=certificates["ca"].cert)
    with listening(**served(certificates)) as server:
        for protocols, answered in (([], False), (["http/1.1"], False), (["postgresql"], True)):
            context.set_alpn_protocols(protocols)
            with silent(server) as plain:
                try:
                    with context.wrap_socket(plain, server_hostname="localhost") as client:
                        client.sendall(startup(user="me"))
                        assert bool(client.recv(1)) is answered
                except (ssl.SSLError, ConnectionResetError):
                    assert not answered


# ---------------------------------------------------------------- certificates of clients


@pytest.mark.parametrize(
    ("settings", "certificate", "options", "error"),
    [
        ({"tls_clientcert": "verify-ca"}, "you", {}, None),
        ({"tls_clientcert": "verify-ca"}, None, {}, "requires a valid client certificate"),
        ({"tls_clientcert": "verify-ca"}, "stranger", {}, "eof|alert|closed"),
        ({"tls_clientcert": "verify-ca"}, "me", {"sslmode": "disable"}, "TLS with a client"),
        ({"tls_clientcert": "verify-ca"}, "me", {"password": "no"}, "password authentication"),
        ({"tls_clientcert": "verify-full"}, "me", {}, None),
        ({"tls_clientcert": "verify-full"}, "you", {}, 'authentication failed for user "me"'),
        ({"auth": "cert"}, "me", {"password": ""}, None),
        ({"auth": "cert"}, "you", {}, 'certificate authentication failed for user "me"'),
        ({"auth": "cert"}, "you", {"user": "you"}, 'role "you" does not exist'),
        ({"auth": "cert"}, None, {}, "requires a valid client certificate"),
    ],
)
def test_certificates_of_clients(
    certificates: dict[str, Certificate],
    settings: dict[str, Any],
    certificate: str | None,
    options: dict[str, Any],
    error: str | None,
) -> None:
    given = served(certificates, tls_client_ca=certificates["ca"].cert, **settings)
    asked = trusted(certificates, sslcert="", **options)
    if certificate is not None:
        asked |= shown(certificates[certificate])
    with listening(**given) as server:
        if error is None:
            works(server, **asked)
        else:
            with pytest.raises(psycopg.OperationalError, match=error):
                connect(server, **asked)


def test_a_revoked_certificate_lets_nobody_in(
    tmp_path: Path, certificates: dict[str, Certificate], caplog: pytest.LogCaptureFixture
) -> None:
    """Who was revoked later is refused as soon as the list is read; a file that is no list leaves
    the one before."""
    ca, me, you = (certificates[name] for name in ("ca", "me", "you"))
    file = tmp_path / "list"
    file.write_bytes(revoke(tmp_path, ca, you).read_bytes())
    given = served(certificates, tls_client_ca=ca.cert, tls_crl_file=file)
    given |= {"tls_clientcert": "verify-ca"}
    mine, yours = ({**trusted(certificates), **shown(each)} for each in (me, you))
    refused = r"eof|alert|closed"
    with listening(**given) as server:
        works(server, **mine)
        with pytest.raises(psycopg.OperationalError, match=refused):
            connect(server, **yours)
        file.write_bytes(certificates["stranger"].cert.read_bytes())
        until_true(lambda: "holds a certificate" in caplog.text, "it was said")
        with pytest.raises(psycopg.OperationalError, match=refused):
            connect(server, **yours)
        first = server._tls.served
        file.write_bytes(revoke(tmp_path, ca, me).read_bytes())
        until_true(lambda: server._tls.served is not first, "the new list was read")
        works(server, **yours)
        with pytest.raises(psycopg.OperationalError, match=refused):
            connect(server, **mine)


def test_without_a_list_that_holds_no_certificate_is_taken(
    tmp_path: Path, certificates: dict[str, Certificate]
) -> None:
    """As PostgreSQL has it: that of another authority, or one that is out of date, vouches for
    nobody."""
    of_another = make_certificate(tmp_path, "another")
    given = served(certificates, tls_client_ca=certificates["ca"].cert, tls_clientcert="verify-ca")
    mine = {**trusted(certificates), **shown(certificates["me"])}
    for issuer, outdated in ((of_another, False), (certificates["ca"], True)):
        file = revoke(tmp_path, issuer, outdated=outdated)
        with (
            listening(**given, tls_crl_file=file) as server,
            pytest.raises(psycopg.OperationalError, match=r"eof|alert|closed"),
        ):
            connect(server, **mine)


@pytest.mark.parametrize(
    ("content", "words"), [("stranger", "alone"), ("ca", "no revocation list")]
)
def test_a_file_that_is_no_list_is_not_taken(
    tmp_path: Path, certificates: dict[str, Certificate], content: str, words: str
) -> None:
    """A certificate in it would be trusted, and without a list nobody could come."""
    file = tmp_path / "list"
    file.write_bytes(certificates[content].cert.read_bytes())
    given = served(certificates, tls_client_ca=certificates["ca"].cert, tls_crl_file=file)
    with pytest.raises(ConfigurationError, match=f"CRL_FILE can't be used: .*{words}"):
        PgwireSettings(**given).read_tls()


def test_our_client_shows_its_certificate(certificates: dict[str, Certificate]) -> None:
    given = served(certificates, tls_client_ca=certificates["ca"].cert, auth="cert")
    with listening(**given) as server:
        address = SqlAddress(
            port=server.port,
            user="me",
            tls_ca=certificates["ca"].cert,
            tls_client_cert=certificates["me"].cert,
            tls_client_key=certificates["me"].key,
        )
        SqlConnection(address, "demo").close()


# ---------------------------------------------------------------- failures, places, the log


def test_who_guesses_holds_up_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are let in while one waits; he is answered in the end."""
    with listening(users={"me": PENCIL, "you": PENCIL}) as server:
        failed = server._admissions._failed
        for _ in range(4):
            failed.settle("me", int.from_bytes(socket.inet_aton("127.0.0.1")), right=False)
        waits = failed.claim("me", int.from_bytes(socket.inet_aton("127.0.0.1")))
        assert waits > 0.0
        failed.settle("me", int.from_bytes(socket.inet_aton("127.0.0.1")), right=True)
        monkeypatch.setattr(failed, "claim", lambda user, origin: 0.2 if user == "me" else 0.0)
        works(server, **ME)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect(server, user="me", password="wrong")
        monkeypatch.setattr(failed, "claim", lambda user, origin: WAIT_S if user == "me" else 0.0)
        with silent(server) as waiting:
            waiting.sendall(startup(user="me"))
            works(server, user="you", password="pencil")


class Limited:
    """One role that may be connected once."""

    revision = 0

    def find(self, user: str) -> Account | None:
        account = Account(PENCIL, connections_max=1, role_id=7)
        return account if user == "me" else None

    def find_again(self, user: str, account: Account) -> Account | None:
        return self.find(user) if account.role_id == 7 else None

    def verifiers(self) -> Iterator[Verifier]:
        yield PENCIL


def test_a_role_with_too_many_connections_is_told_so() -> None:
    with listening(auth="scram-sha-256", logins=[Limited()]) as server:
        refused = pytest.raises(psycopg.OperationalError, match='connections for role "me"')
        with connect(server, **ME), refused:
            connect(server, **ME)
        until_true(lambda: not server._clients, "the first one left")
        works(server, **ME)


def test_who_comes_and_goes_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "leasehold.login")
    with listening(users={"me": PENCIL}) as server:
        works(server, **ME)
        until_true(lambda: not server._clients, "it left")
        with pytest.raises(psycopg.OperationalError):
            connect(server, user="you\x1b[31m", password="secret word")
        with silent(server) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert said(to_the_end(client)) == ["E(08P01)"]
        with silent(server) as client:
            client.sendall(startup(user="me", replication="on"))
            assert error_of(to_the_end(client))["C"] == "28000"
    lines = [
        record.getMessage().replace(f"{os.getpid()}", "").split(" from ")
        for record in caplog.records
        if record.name == "leasehold.login"
    ]
    assert [line[0] for line in lines] == [
        "connection 1: user 'me'",
        "connection 1: user 'me'",
        "refused user 'you\\x1b[31m'",
        "refused a client",
        "refused user 'me'",
    ]
    assert all(line[1].startswith("127.0.0.1:") for line in lines)
    assert lines[0][1].endswith(" was let in to 'demo' (scram-sha-256)")
    assert lines[1][1].endswith(" has left")
    assert lines[2][1].endswith(": 28P01")
    assert "secret word" not in caplog.text


def test_refusals_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with listening() as server:
        for _ in range(1_000):
            server.log.refused("me", "192.0.2.1:1", "28P01")
        assert len(caplog.records) < 110
        server.log._refused._counted_s -= 1.0
        server.log.refused("me", "192.0.2.1:1", "28P01")
        assert "more were not logged" in caplog.records[-1].getMessage()


# ---------------------------------------------------------------- other clients


def test_psql_binds_its_proof(certificates: dict[str, Certificate]) -> None:
    psql = shutil.which("psql")
    if psql is None:
        pytest.skip("psql is not installed")
    with listening(**served(certificates)) as server:
        said = f"host=127.0.0.1 port={server.port} user=me dbname=demo sslmode=verify-full"
        said += f" sslrootcert={certificates['ca'].cert} channel_binding=require"
        done = subprocess.run(
            [psql, "--no-psqlrc", "-Atc", "select 1", said],
            env={"PGPASSWORD": "pencil", "HOME": "/nowhere"},
            capture_output=True,
            text=True,
            check=False,
        )
    assert (done.stdout, done.stderr) == ("1\n", "")


@pytest.mark.parametrize("encrypted", [False, True])
def test_asyncpg_logs_in(certificates: dict[str, Certificate], encrypted: bool) -> None:
    context = ssl.create_default_context(cafile=certificates["ca"].cert) if encrypted else None

    async def log_in(port: int, password: str) -> None:
        given = {"host": "127.0.0.1", "user": "me", "database": "demo", "ssl": context}
        connection = await asyncpg.connect(port=port, password=password, **given)
        await connection.close()

    with listening(**served(certificates)) as server:
        asyncio.run(log_in(server.port, "pencil"))
        with pytest.raises(asyncpg.InvalidPasswordError):
            asyncio.run(log_in(server.port, "wrong"))


@pytest.mark.parametrize(
    "data",
    [b"\x16", b"\x16" * 300, b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\xff\xff" + bytes(99)],
)
def test_what_only_begins_like_tls_is_cut_off(
    certificates: dict[str, Certificate], data: bytes
) -> None:
    with listening(**served(certificates)) as server:
        with silent(server) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            to_the_end(client)
        until_true(lambda: not server._clients, "it left")
        works(server, **trusted(certificates))


# ---------------------------------------------------------------- our client and strange servers

READY = b"Z\0\0\0\5I"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ([backend.AUTHENTICATION_OK + READY], "before it proved who it is"),
        ([None, backend.AUTHENTICATION_OK + READY], "before it proved who it is"),
        ([None, backend.sasl_final("v=AAAA") + READY], "could not prove"),
    ],
)
def test_our_client_trusts_nobody_who_has_not_proved_himself(
    answers: list[bytes | None], words: str
) -> None:
    """None: a salt for the nonce that it has said."""
    asks = backend.sasl_mechanisms(["SCRAM-SHA-256"])
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def play() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1_000)
                peer.sendall(asks)
                for answer in answers:
                    said = peer.recv(1_000)
                    nonce = said.rpartition(b"r=")[2].decode()
                    peer.sendall(answer or backend.sasl_continue(f"r={nonce}x,s=YWJj,i=4096"))
                peer.recv(1_000)

        thread = threading.Thread(target=play)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(NodeUnreachable, match=words):
            SqlConnection(SqlAddress(port=port, user="me", password="pencil"), "demo")
        thread.join()
