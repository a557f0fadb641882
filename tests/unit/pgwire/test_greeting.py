"""Goal: a connection begins as libpq and asyncpg expect, and nobody is let in who should not be.

Method: startup packets as bytes; a SCRAM client written from RFC 5802 beside the server.
"""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from hashlib import pbkdf2_hmac, sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.pgwire.auth.saslprep import saslprep
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
    Welcome,
)
from leasehold.pgwire.limits import Limits
from tests.support.pgwire.wire_words import error_of, message, said, short, startup, text

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")  # of RFC 7677's example
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"


def greeting(
    *, tls: bool = False, required: bool = False, users: dict[str, Verifier] | None = None
) -> Greeting:
    verifier_of = None
    if users is not None:
        mock = MockVerifiers(users)
        verifier_of = lambda user: users.get(user) or mock.verifier(user)  # noqa: E731
    return Greeting(Welcome(tls, required, verifier_of, NONCE), Limits())


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
    one.tls_begun()
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
    one, other = MockVerifiers(made), MockVerifiers(dict(reversed(made.items())))
    found = [one.verifier(f"nobody{n}") for n in range(200)]
    assert found == [other.verifier(f"nobody{n}") for n in range(200)]
    assert {(v.iterations, len(v.salt)) for v in found} == {
        (v.iterations, len(v.salt)) for v in made.values()
    }
    assert len({v.salt for v in found}) == len(found)
    assert MockVerifiers({"me": made["user1"]}).verifier("nobody").salt != found[0].salt


@pytest.mark.parametrize(("user", "password"), [("me", "Pencil"), ("nobody", "pencil"), ("me", "")])
def test_a_wrong_password_and_an_unknown_user_look_alike(user: str, password: str) -> None:
    users = {"me": verifier_of_password("pencil", SALT)}
    effects, _ = login(greeting(users=users), user, password)
    assert words(effects) == ["E(28P01)"]
    assert not any(isinstance(effect, Admitted) for effect in effects)


def test_the_example_of_rfc_7677() -> None:
    exchange = Exchange(verifier_of_password("pencil", SALT), NONCE)
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


def test_verifiers_are_postgresqls() -> None:
    made = verifier_of_password("pencil", SALT)
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


@given(data=st.binary(max_size=200), users=st.booleans())
def test_no_bytes_are_a_defect(data: bytes, users: bool) -> None:
    for start in (b"", startup(user="me")):
        one = greeting(users={} if users else None)
        effects = one.receive(start)
        if not isinstance(effects[-1:] and effects[-1], Admitted | HangUp):
            one.receive(data)
