"""Goal: a connection begins as libpq and asyncpg expect, and nobody is let in who should not be.

Method: startup packets as bytes; a SCRAM client written from RFC 5802 beside the server.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import pbkdf2_hmac, sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pgwire.auth.logins import (
    Account,
    ClientCertificate,
    Logins,
    Method,
    TlsChannel,
    UserList,
)
from leasehold.pgwire.auth.saslprep import saslprep
from leasehold.pgwire.auth.scram_client import Login
from leasehold.pgwire.auth.scram_server import (
    Exchange,
    MockVerifiers,
    Verifier,
    verifier_of_password,
    verifier_of_text,
)
from leasehold.pgwire.auth.startup import (
    Admitted,
    BeginTls,
    CancelAsked,
    Effect,
    Greeting,
    HangUp,
    Say,
    Wait,
    Welcome,
)
from leasehold.pgwire.limits import Limits
from tests.support.pgwire.wire_words import error_of, message, said, short, startup, text

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")  # of RFC 7677's example
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


class Known:
    """Accounts as they are given."""

    revision = 0

    def __init__(self, accounts: dict[str, Account]) -> None:
        self.accounts = accounts

    def find(self, user: str) -> Account | None:
        return self.accounts.get(user)

    def find_again(self, user: str, account: Account) -> Account | None:
        return self.accounts.get(user)

    def verifiers(self) -> Iterable[Verifier]:
        return (a.verifier for a in self.accounts.values() if a.verifier is not None)


def greeting(
    *,
    tls: bool = False,
    required: bool = False,
    users: dict[str, Verifier] | None = None,
    logins: Logins | None = None,
    method: Method | None = None,
    **more: Any,
) -> Greeting:
    logins = logins or UserList(users or {})
    if method is None:
        method = Method.TRUST if users is None else Method.SCRAM
    mock = MockVerifiers(logins.verifiers())
    given = {"tls_offered": tls, "tls_required": required, **more}
    return Greeting(Welcome(method, logins, mock, NONCE, **given), Limits())


def words(effects: list[Effect]) -> list[str]:
    return said(b"".join(effect.data for effect in effects if isinstance(effect, Say)))


def test_without_users_whoever_comes_is_admitted() -> None:
    effects = greeting().receive(
        startup(user="me", database="demo", application_name="x") + b"more"
    )
    assert words(effects) == ["R(0)"]
    assert effects[-1] == Admitted("me", "demo", {"application_name": "x"}, 0, b"more")


def test_the_database_is_the_users_name_if_none_is_named() -> None:
    admitted = greeting().receive(startup(user="me"))[-1]
    assert isinstance(admitted, Admitted)
    assert admitted.database == "me"


def test_tls_and_gss_are_refused_in_turn_on_one_connection() -> None:
    one = greeting()
    assert one.receive(short(GSS)) == [Say(b"N")]
    assert one.receive(short(SSL)) == [Say(b"N")]
    assert isinstance(one.receive(startup(user="me"))[-1], Admitted)


def test_encryption_is_not_asked_for_for_ever() -> None:
    one = greeting()
    effects = one.receive(short(GSS) + short(SSL) + short(GSS))
    assert isinstance(effects[-1], HangUp)


def test_tls_begins_and_what_came_before_it_does_not_count() -> None:
    one = greeting(tls=True, required=True)
    assert one.receive(short(SSL)) == [Say(b"S"), BeginTls()]
    one.tls_begun(TlsChannel())
    assert isinstance(one.receive(startup(user="me"))[-1], Admitted)
    injected = greeting(tls=True).receive(short(SSL) + startup(user="me"))
    assert isinstance(injected[-1], HangUp)
    assert not any(isinstance(effect, Admitted) for effect in injected)


def test_a_client_from_elsewhere_needs_tls() -> None:
    effects = greeting(tls=True, required=True).receive(startup(user="me"))
    assert words(effects) == ["E(28000)"]
    assert isinstance(effects[-1], HangUp)


@pytest.mark.parametrize(("key", "asked"), [(b"1234", True), (bytes(32), True), (b"123", False)])
def test_a_cancel_request_is_answered_with_nothing(key: bytes, asked: bool) -> None:
    effects = greeting().receive(short(CANCEL, b"\0\0\0\7" + key))
    assert effects == [CancelAsked(7, key)] * asked + [HangUp(None)]


@pytest.mark.parametrize(
    ("version", "options", "minor", "answer"),
    [
        (0x30000, {}, 0, ["R(0)"]),
        (0x30002, {}, 2, ["R(0)"]),
        (0x30000, {"_pq_.command_tag": "on"}, 0, ["v", "R(0)"]),
        (0x3270F, {"_pq_.test_protocol_negotiation": ""}, 2, ["v", "R(0)"]),  # 3.9999
        (0x30001, {}, 0, ["v", "R(0)"]),
    ],
)
def test_versions_are_negotiated(
    version: int, options: dict[str, str], minor: int, answer: list[str]
) -> None:
    effects = greeting().receive(startup(version, user="me", **options))
    assert words(effects) == answer
    admitted = effects[-1]
    assert isinstance(admitted, Admitted)
    assert (admitted.minor, admitted.parameters) == (minor, {})


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (startup(0x20000, user="me"), "08P01"),
        (startup(0x40000, user="me"), "08P01"),
        (startup(), "28000"),
        (startup(user="me", replication="database"), "28000"),
        (b"\0\0\0\4", "08P01"),
        (b"GET / HTTP/1.1\r\n\r\n", "08P01"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01", "08P01"),
        (startup(user="m" * 20_000), "08P01"),
        (b"\0\0\0\x10\0\3\0\0user\0me\0", "08P01"),
        (b"\0\0\0\x11\0\3\0\0user\0\xff\xfe\0\0", "22021"),
    ],
)
def test_what_is_no_startup_is_turned_away(data: bytes, code: str) -> None:
    effects = greeting().receive(data)
    assert isinstance(effects[0], Say)
    fields = error_of(effects[0].data)
    assert (fields["S"], fields["C"]) == ("FATAL", code)
    assert isinstance(effects[-1], HangUp)


class ScramClient:
    """RFC 5802 as a client does it."""

    def __init__(self, password: str, nonce: str = "rOprNGfwEbeRWgbNEkqO") -> None:
        self.password, self.bare = password, f"n=,r={nonce}"

    def first(self) -> bytes:
        data = f"n,,{self.bare}".encode()
        return message(b"p", text("SCRAM-SHA-256") + len(data).to_bytes(4, "big") + data)

    def final(self, server: str) -> bytes:
        parts = dict(part.split("=", 1) for part in server.split(","))
        salted = pbkdf2_hmac(
            "sha256", self.password.encode(), b64decode(parts["s"]), int(parts["i"])
        )
        key = hmac.digest(salted, b"Client Key", "sha256")
        without = f"c=biws,r={parts['r']}"
        self.messages = f"{self.bare},{server},{without}".encode()
        signature = hmac.digest(sha256(key).digest(), self.messages, "sha256")
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self.server_key = hmac.digest(salted, b"Server Key", "sha256")
        return message(b"p", f"{without},p={b64encode(proof).decode()}".encode())

    def signature(self) -> str:
        return b64encode(hmac.digest(self.server_key, self.messages, "sha256")).decode()


def login(one: Greeting, user: str, password: str) -> tuple[list[Effect], ScramClient]:
    assert words(one.receive(startup(user=user))) == ["R(10)"]
    client = ScramClient(password)
    (answer,) = one.receive(client.first())
    assert isinstance(answer, Say)
    return one.receive(client.final(answer.data[9:].decode())), client


def test_the_right_password_is_admitted_and_the_server_proves_itself() -> None:
    users = {"me": verifier_of_password("pencil", SALT)}
    effects, client = login(greeting(users=users), "me", "pencil")
    assert words(effects) == ["R(12)", "R(0)"]
    assert isinstance(effects[0], Say)
    assert effects[0].data[9:].decode() == f"v={client.signature()}"
    assert isinstance(effects[-1], Admitted)


def test_a_name_that_is_none_is_asked_as_a_user_is_on_every_node() -> None:
    """The same salt each time, and no number of iterations that only such names have."""
    made = {
        f"user{n}": verifier_of_password("pencil", bytes([n]) * (16 + n % 2), 10 + n % 3)
        for n in range(6)
    }
    one, other = MockVerifiers(made.values()), MockVerifiers(reversed(made.values()))
    found = [one.verifier(f"nobody{n}") for n in range(200)]
    assert found == [other.verifier(f"nobody{n}") for n in range(200)]
    assert {(v.iterations, len(v.salt)) for v in found} == {
        (v.iterations, len(v.salt)) for v in made.values()
    }
    assert len({v.salt for v in found}) == len(found)
    assert MockVerifiers([made["user1"]]).verifier("nobody0").salt != found[0].salt


def test_a_shared_secret_keeps_the_salts_of_names_that_are_none() -> None:
    """Salts that all change with one user's password would tell who is none."""
    rounds = [verifier_of_password("pencil", bytes([n]) * 16, 10) for n in range(9)]
    before, after = MockVerifiers(rounds, b"secret"), MockVerifiers(rounds[:5], b"secret")
    names = [f"nobody{n}" for n in range(50)]
    assert [before.verifier(n) for n in names] == [after.verifier(n) for n in names]
    assert MockVerifiers(rounds, b"other").verifier("x") != before.verifier("x")
    mixed = MockVerifiers([*rounds, verifier_of_password("pencil", SALT, 11)], b"secret")
    changed = [n for n in names if mixed.verifier(n) != before.verifier(n)]
    assert 0 < len(changed) < 25, "the names of other rounds, and no others"
    assert all(mixed.verifier(n).salt != before.verifier(n).salt for n in changed)


@pytest.mark.parametrize(("user", "password"), [("me", "Pencil"), ("nobody", "pencil"), ("me", "")])
def test_a_wrong_password_and_an_unknown_user_look_alike(user: str, password: str) -> None:
    users = {"me": verifier_of_password("pencil", SALT)}
    effects, _ = login(greeting(users=users), user, password)
    assert words(effects) == ["E(28P01)"]
    assert not any(isinstance(effect, Admitted) for effect in effects)


def test_the_example_of_rfc_7677() -> None:
    exchange = Exchange(verifier_of_password("pencil", SALT, 4096), NONCE)
    first = exchange.first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert first == f"r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert (
        exchange.final(
            f"c=biws,r=rOprNGfwEbeRWgbNEkqO{NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
        )
        == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    )


@pytest.mark.parametrize(
    "first",
    ["p=tls-server-end-point,,n=,r=x", "n,a=other,n=,r=x", "n,,m=x,n=,r=y", "n,,n=", "x,,n=,r=y"],
)
def test_what_is_no_scram_is_refused(first: str) -> None:
    one = greeting(users={})
    one.receive(startup(user="me"))
    data = first.encode()
    body = text("SCRAM-SHA-256") + len(data).to_bytes(4, "big") + data
    assert words(one.receive(message(b"p", body))) == ["E(08P01)"]


def test_another_mechanism_or_message_is_refused() -> None:
    for data in (message(b"p", text("SCRAM-SHA-256-PLUS") + bytes(4)), message(b"Q", b"\0")):
        one = greeting(users={})
        one.receive(startup(user="me"))
        assert words(one.receive(data)) == ["E(08P01)"]


BINDING = sha256(b"certificate").digest()


def bound_login(one: Greeting, client: Login, mechanism: str) -> list[Effect]:
    first = client.first().encode()
    body = text(mechanism) + len(first).to_bytes(4, "big") + first
    effects = one.receive(message(b"p", body))
    if isinstance(effects[-1], HangUp):
        return effects
    assert isinstance(effects[0], Say)
    return one.receive(message(b"p", client.proof(effects[0].data[9:].decode()).encode()))


@pytest.mark.parametrize(
    ("server", "client", "mechanisms", "answers"),
    [
        (BINDING, BINDING, None, ["R(12)", "R(0)"]),
        (BINDING, None, None, ["R(12)", "R(0)"]),  # it does not speak -PLUS
        (None, BINDING, None, ["R(12)", "R(0)"]),  # a certificate without a hash
        (BINDING, sha256(b"another").digest(), None, ["E(28000)"]),  # somebody in between
        (BINDING, BINDING, ["SCRAM-SHA-256"], ["E(28000)"]),  # who has shortened the list
    ],
)
def test_channel_binding(
    server: bytes | None, client: bytes | None, mechanisms: list[str] | None, answers: list[str]
) -> None:
    one = greeting(tls=True, users={"me": verifier_of_password("pencil", SALT, 4096)})
    one.receive(short(SSL))
    one.tls_begun(TlsChannel(server))
    offered = ["SCRAM-SHA-256"] if server is None else ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
    (asked,) = one.receive(startup(user="me"))
    assert isinstance(asked, Say)
    assert asked.data[9:] == b"".join(name.encode() + b"\0" for name in offered) + b"\0"
    login = Login("pencil", "rOprNGfwEbeRWgbNEkqO", mechanisms or offered, client)
    effects = bound_login(one, login, login.mechanism)
    assert words(effects) == answers
    assert isinstance(effects[-1], Admitted) == (answers[-1] == "R(0)")


@pytest.mark.parametrize(
    ("mechanism", "first", "code"),
    [
        ("SCRAM-SHA-256-PLUS", "n,,n=,r=x", "08P01"),
        ("SCRAM-SHA-256-PLUS", "y,,n=,r=x", "08P01"),
        ("SCRAM-SHA-256-PLUS", "p=tls-unique,,n=,r=x", "08P01"),
        ("SCRAM-SHA-256-PLUS", "p,,n=,r=x", "08P01"),
        ("SCRAM-SHA-256", "p=tls-server-end-point,,n=,r=x", "08P01"),
        ("SCRAM-SHA-256", "y,,n=,r=x", "28000"),
    ],
)
def test_a_client_that_contradicts_itself_is_refused(mechanism: str, first: str, code: str) -> None:
    one = greeting(tls=True, users={})
    one.receive(short(SSL))
    one.tls_begun(TlsChannel(BINDING))
    one.receive(startup(user="me"))
    body = text(mechanism) + len(first).to_bytes(4, "big") + first.encode()
    assert words(one.receive(message(b"p", body))) == [f"E({code})"]


PENCIL = verifier_of_password("pencil", SALT, 4096)


@pytest.mark.parametrize(
    ("account", "now_us", "code"),
    [
        (Account(PENCIL), 7, None),
        (Account(PENCIL, valid_until_us=8), 7, None),
        (Account(PENCIL, valid_until_us=7), 7, "28P01"),
        (Account(None), 7, "28P01"),
        (None, 7, "28P01"),
        (Account(PENCIL, may_log_in=False), 7, "28000"),  # said to who has the password alone
    ],
)
def test_an_account_says_who_may_log_in(
    account: Account | None, now_us: int, code: str | None
) -> None:
    logins = Known({} if account is None else {"me": account})
    one = greeting(method=Method.SCRAM, logins=logins, now_us=now_us)
    effects, _ = login(one, "me", "pencil")
    assert words(effects)[-1] == ("R(0)" if code is None else f"E({code})")
    admitted = effects[-1]
    assert isinstance(admitted, Admitted) == (code is None)
    if isinstance(admitted, Admitted):
        assert admitted.account == account


def test_who_is_asked_nothing_still_needs_leave_to_log_in() -> None:
    logins = Known({"group": Account(None, may_log_in=False), "me": Account(None)})
    for user, answer in (("group", "E(28000)"), ("me", "R(0)"), ("nobody", "R(0)")):
        effects = greeting(logins=logins).receive(startup(user=user))
        assert words(effects)[-1] == answer


@pytest.mark.parametrize(
    ("method", "certificate", "names", "answer"),
    [
        (Method.CERT, ClientCertificate.VERIFY_FULL, ("me",), "R(0)"),
        (Method.CERT, ClientCertificate.VERIFY_FULL, ("you",), "E(28000)"),
        (Method.CERT, ClientCertificate.VERIFY_FULL, ("me", "you"), "E(28000)"),
        (Method.CERT, ClientCertificate.VERIFY_FULL, None, "E(28000)"),
        (Method.SCRAM, ClientCertificate.VERIFY_CA, ("you",), "R(0)"),
        (Method.SCRAM, ClientCertificate.VERIFY_CA, None, "E(28000)"),
        (Method.SCRAM, ClientCertificate.VERIFY_FULL, ("me",), "R(0)"),
        (Method.SCRAM, ClientCertificate.VERIFY_FULL, ("you",), "E(28000)"),
        (Method.SCRAM, ClientCertificate.NO, None, "R(0)"),
    ],
)
def test_certificates_of_clients(
    method: Method, certificate: ClientCertificate, names: tuple[str, ...] | None, answer: str
) -> None:
    logins = UserList({"me": PENCIL})
    one = greeting(tls=True, method=method, logins=logins, certificate=certificate)
    one.receive(short(SSL))
    one.tls_begun(TlsChannel(BINDING, names))
    effects = one.receive(startup(user="me"))
    if words(effects) == ["R(10)"]:
        client = Login("pencil", "rOprNGfwEbeRWgbNEkqO", ["SCRAM-SHA-256-PLUS"], BINDING)
        effects = bound_login(one, client, client.mechanism)
    assert words(effects)[-1] == answer


def test_a_certificate_makes_no_user() -> None:
    one = greeting(tls=True, method=Method.CERT, certificate=ClientCertificate.VERIFY_FULL)
    one.receive(short(SSL))
    one.tls_begun(TlsChannel(BINDING, ("me",)))
    fields = error_of(next(e.data for e in one.receive(startup(user="me")) if isinstance(e, Say)))
    assert (fields["C"], fields["M"]) == ("28000", 'role "me" does not exist')


def test_where_certificates_are_asked_for_nobody_comes_without_tls() -> None:
    one = greeting(required=True, users={}, certificate=ClientCertificate.VERIFY_CA)
    assert words(one.receive(startup(user="me"))) == ["E(28000)"]


def test_a_handshake_of_tls_may_come_at_once() -> None:
    hello = b"\x16\x03\x01\x02\x00\x01"
    one = greeting(tls=True)
    assert one.receive(hello) == [BeginTls(hello)]
    one.tls_begun(TlsChannel())
    assert isinstance(one.receive(startup(user="me"))[-1], Admitted)
    asked = greeting(tls=True)
    asked.receive(short(GSS))
    assert isinstance(asked.receive(hello)[-1], HangUp), "once it has asked for anything"


class Queue:
    """Turns that a test gives."""

    def __init__(self, wait_s: float) -> None:
        self.wait_s = wait_s
        self.settled: list[tuple[str, bool]] = []

    def claim(self, user: str) -> float:
        return self.wait_s

    def settle(self, user: str, *, right: bool) -> None:
        self.settled.append((user, right))


@pytest.mark.parametrize(("password", "right"), [("pencil", True), ("wrong", False)])
@pytest.mark.parametrize("user", ["me", "nobody"])
def test_who_has_failed_waits_before_his_password_is_looked_at(
    user: str, password: str, right: bool
) -> None:
    turns, right = Queue(3.0), right and user == "me"
    one = greeting(users={"me": PENCIL}, turns=turns)
    effects, _ = login(one, user, password)
    assert effects == [Wait(3.0)]
    assert one.receive(b"more") == []
    assert not turns.settled
    assert words(one.resume())[-1] == ("R(0)" if right else "E(28P01)")
    assert turns.settled == [(user, right)]


def test_verifiers_are_postgresqls() -> None:
    made = verifier_of_password("pencil", SALT, 4096)
    assert verifier_of_text(str(made)) == made
    assert "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$" in str(made)
    assert str(made)[:20] not in repr(made)
    for broken in ("", "md5abc", str(made)[:-3], str(made).replace("4096", "0")):
        with pytest.raises(ValueError, match="a verifier"):
            verifier_of_text(broken)


@pytest.mark.parametrize(
    ("password", "prepared"),
    [
        ("pencil", "pencil"),
        ("I\u00adX", "IX"),  # examples of RFC 4013
        ("\u00aa", "a"),
        ("\u2168", "IX"),
        ("a\u00a0b", "a b"),
        ("\u0007", "\u0007"),  # forbidden: taken as it is
        ("\u0627\u0031", "\u0627\u0031"),
        ("ﬁ", "fi"),
    ],
)
def test_saslprep(password: str, prepared: str) -> None:
    assert saslprep(password) == prepared


SCRAM_FIRST = ["n,,n=,r=x", "p=tls-server-end-point,,n=,r=x", "y,,n=,r=x", "n,a=b,n=,r=x", "p=,"]
MECHANISMS = ["SCRAM-SHA-256", "SCRAM-SHA-256-PLUS", ""]
SPOKEN = st.one_of(
    st.binary(max_size=100),
    st.just(startup(user="me")),
    st.sampled_from([SSL, GSS, CANCEL]).map(short),
    st.tuples(st.sampled_from(MECHANISMS), st.sampled_from(SCRAM_FIRST)).map(
        lambda said: message(
            b"p", text(said[0]) + len(said[1]).to_bytes(4, "big") + said[1].encode()
        )
    ),
    st.sampled_from(["biws", "eSws", "cD10bHM=", "?"]).flatmap(
        lambda bound: st.binary(max_size=40).map(
            lambda proof: message(
                b"p", f"c={bound},r=x{NONCE},p={b64encode(proof).decode()}".encode()
            )
        )
    ),
)


@given(
    said=st.lists(SPOKEN, max_size=6),
    method=st.sampled_from(Method),
    certificate=st.sampled_from(ClientCertificate),
    binding=st.sampled_from([None, BINDING]),
    names=st.sampled_from([None, ("me",), ("you", "me")]),
    user=st.sampled_from(["me", "you"]),
    wait_s=st.sampled_from([0.0, 1.0]),
)
def test_no_bytes_are_a_defect(
    said: list[bytes],
    method: Method,
    certificate: ClientCertificate,
    binding: bytes | None,
    names: tuple[str, ...] | None,
    user: str,
    wait_s: float,
) -> None:
    """Nor do any let somebody in who has shown nothing."""
    logins, turns = UserList({user: PENCIL}), Queue(wait_s)
    one = greeting(tls=True, method=method, logins=logins, certificate=certificate, turns=turns)
    secret = False
    for data in said:
        effects = one.receive(data)
        if effects and isinstance(effects[-1], BeginTls):
            one.tls_begun(TlsChannel(binding, names))
            secret = True
        if effects and isinstance(effects[-1], Wait):
            effects = one.resume()
        if effects and isinstance(effects[-1], HangUp):
            return
        if effects and isinstance(effects[-1], Admitted):
            assert method is not Method.SCRAM
            assert method is Method.TRUST or user == "me"
            assert certificate is ClientCertificate.NO or (secret and names is not None)
            assert certificate is not ClientCertificate.VERIFY_FULL or names == ("me",)
            return
