"""The start of a connection: encryption, version, parameters, authentication.

    bytes ─▶ Greeting.receive ─▶ effects: Say, BeginTls, CancelAsked, Admitted, HangUp

After BeginTls nothing that came before may count (a man in the middle could have put it there):
the adapter makes the channel secret and then goes on with `receive`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.auth.scram_server import MECHANISM, Exchange, Verifier
from leasehold.pgwire.limits import Limits
from leasehold.pgwire.messages import backend
from leasehold.pgwire.messages.error_fields import error_fields
from leasehold.pgwire.messages.framing import Framing
from leasehold.pgwire.messages.frontend import Body, as_text
from leasehold.pgwire.wire_errors import (
    AuthenticationRefused,
    ProtocolViolation,
    WrongPassword,
)

SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
MAJOR: Final = 3
MINOR_NEWEST: Final = 2
KEY_BYTES_MAX: Final = 256
REQUESTS_MAX: Final = 2  # one for TLS and one for GSS

_CODE: Final = struct.Struct("!I")


class Say(NamedTuple):
    data: bytes


class BeginTls(NamedTuple):
    """Say so (one byte), then make the channel secret."""


class CancelAsked(NamedTuple):
    """A wish that another connection's statement ends; the caller gets no answer."""

    process: int
    key: bytes


class Admitted(NamedTuple):
    """A client that is let in. `minor` is that of the protocol version, `rest` the bytes that came
    behind the greeting."""

    user: str
    database: str
    parameters: Mapping[str, str]
    minor: int
    rest: bytes


class HangUp(NamedTuple):
    """The end of a connection. `error` is what was answered, for the log, or None if nothing was
    wrong."""

    error: LeaseholdError | None


Effect: TypeAlias = Say | BeginTls | CancelAsked | Admitted | HangUp


@dataclass(frozen=True, slots=True)
class Welcome:
    """How this client is met. `verifier_of`: user → its verifier, or one that nobody fulfils; None:
    whoever comes is trusted. `nonce`: printable, new for each connection."""

    tls_offered: bool
    tls_required: bool
    verifier_of: Callable[[str], Verifier] | None
    nonce: str


class _Phase(Enum):
    STARTING = 0
    MECHANISM = 1
    PROOF = 2
    OVER = 3


class Greeting:
    def __init__(self, welcome: Welcome, limits: Limits) -> None:
        self._welcome = welcome
        self._framing = Framing(limits)
        self._phase = _Phase.STARTING
        self._secret = False
        self._requests = 0
        self._parameters: dict[str, str] = {}
        self._minor = 0
        self._exchange: Exchange | None = None

    def receive(self, data: bytes) -> list[Effect]:
        """Effects in their order; after Admitted or HangUp no more bytes may come here."""
        self._framing.feed(data)
        effects: list[Effect] = []
        try:
            while self._phase is not _Phase.OVER and self._step(effects):
                pass
        except LeaseholdError as error:
            self._phase = _Phase.OVER
            effects.append(Say(backend.error(error_fields(error, "FATAL"))))
            effects.append(HangUp(error))
        return effects

    def tls_begun(self) -> None:
        self._secret = True

    def _step(self, effects: list[Effect]) -> bool:
        """Take one message, and return False if none is whole."""
        if self._phase is _Phase.STARTING:
            body = self._framing.next_startup()
            if body is not None:
                self._take_startup(body, effects)
            return body is not None
        found = self._framing.next_message()
        if found is None:
            return False
        kind, body = found
        if kind != ord("p"):
            raise ProtocolViolation(f"expected SASL response, got message type {kind}")
        if self._phase is _Phase.MECHANISM:
            self._take_mechanism(body, effects)
        else:
            self._take_proof(body, effects)
        return True

    def _take_startup(self, body: bytes, effects: list[Effect]) -> None:
        (code,) = _CODE.unpack_from(body)
        if code in (SSL_REQUEST, GSS_REQUEST):
            self._answer_encryption(code, effects)
        elif code == CANCEL_REQUEST:
            self._phase = _Phase.OVER
            key = body[8:]
            if 4 <= len(key) <= KEY_BYTES_MAX:
                effects.append(CancelAsked(_CODE.unpack_from(body, 4)[0], key))
            effects.append(HangUp(None))
        elif code >> 16 == MAJOR:
            self._check_version(code & 0xFFFF, Body(body[4:]), effects)
        else:
            raise _unsupported(code)

    def _answer_encryption(self, code: int, effects: list[Effect]) -> None:
        self._requests += 1
        if self._requests > REQUESTS_MAX or self._secret:
            raise ProtocolViolation("encryption was asked for more than once")
        if code == SSL_REQUEST and self._welcome.tls_offered:
            if self._framing.take_rest():
                raise ProtocolViolation("received unencrypted data after SSL request")
            effects += [Say(backend.ENCRYPTION_BEGINS), BeginTls()]
        else:
            effects.append(Say(backend.ENCRYPTION_REFUSED))

    def _check_version(self, minor: int, body: Body, effects: list[Effect]) -> None:
        given = _parameters(body)
        unknown = [name for name in given if name.startswith("_pq_.")]
        # 3.1 was never a version; whoever asks for it is answered with the newest there is.
        self._minor = MINOR_NEWEST if minor >= MINOR_NEWEST else 0
        if minor > MINOR_NEWEST or minor == 1 or unknown:
            effects.append(Say(backend.negotiate_version(self._minor, unknown)))
        self._parameters = {name: text for name, text in given.items() if name not in unknown}
        user = given.get("user")
        if not user:
            raise AuthenticationRefused("no PostgreSQL user name specified in startup packet")
        if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise AuthenticationRefused("replication connections are not supported")
        if self._welcome.tls_required and not self._secret:
            raise AuthenticationRefused(
                "connections from other machines need TLS: use sslmode=require"
            )
        if self._welcome.verifier_of is None:
            self._admit(effects)
            return
        self._exchange = Exchange(self._welcome.verifier_of(user), self._welcome.nonce)
        self._phase = _Phase.MECHANISM
        effects.append(Say(backend.sasl_mechanisms([MECHANISM])))

    def _take_mechanism(self, data: bytes, effects: list[Effect]) -> None:
        body = Body(data)
        mechanism = body.read_text()
        if mechanism != MECHANISM:
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        first = body.read_value()
        body.check_end()
        assert self._exchange is not None
        answer = self._exchange.first(as_text(first or b""))
        self._phase = _Phase.PROOF
        effects.append(Say(backend.sasl_continue(answer)))

    def _take_proof(self, data: bytes, effects: list[Effect]) -> None:
        assert self._exchange is not None
        signature = self._exchange.final(as_text(data))
        if signature is None:
            user = self._parameters["user"]
            raise WrongPassword(f'password authentication failed for user "{user}"')
        effects.append(Say(backend.sasl_final(signature)))
        self._admit(effects)

    def _admit(self, effects: list[Effect]) -> None:
        self._phase = _Phase.OVER
        parameters = dict(self._parameters)
        user = parameters.pop("user")
        database = parameters.pop("database", "") or user
        parameters.pop("replication", None)
        effects.append(Say(backend.AUTHENTICATION_OK))
        effects.append(Admitted(user, database, parameters, self._minor, self._framing.take_rest()))


def _parameters(body: Body) -> dict[str, str]:
    given: dict[str, str] = {}
    while name := body.read_text():
        given[name] = body.read_text()
    body.check_end()
    return given


def _unsupported(code: int) -> ProtocolViolation:
    return ProtocolViolation(
        f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0 to 3.2"
    )
