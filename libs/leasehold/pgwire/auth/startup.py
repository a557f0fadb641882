"""The start of a connection: encryption, version, parameters, authentication.

    bytes ─▶ Greeting.receive ─▶ effects: Say, BeginTls, Wait, CancelAsked, Admitted, HangUp

After BeginTls nothing that came before may count (a man in the middle could have put it there):
the adapter makes the channel secret and then goes on with `receive`. After Wait it calls `resume`,
and nothing before that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple, TypeAlias

from leasehold.model.errors import LeaseholdError
from leasehold.pgwire.auth.logins import (
    Account,
    AtOnce,
    ClientCertificate,
    Logins,
    Method,
    TlsChannel,
    Turns,
)
from leasehold.pgwire.auth.scram_server import Exchange, MockVerifiers
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
TLS_HANDSHAKE: Final = b"\x16"
"""What a record of TLS that begins one begins with; no startup packet is so long."""

_CODE: Final = struct.Struct("!I")


class Say(NamedTuple):
    data: bytes


class BeginTls(NamedTuple):
    """Make the channel secret. `first`: what the client has said of TLS already."""

    first: bytes = b""


class Wait(NamedTuple):
    """The time for which nothing is answered to a client that has failed before."""

    seconds: float


class CancelAsked(NamedTuple):
    """A wish that another connection's statement ends; the caller gets no answer."""

    process: int
    key: bytes


class Admitted(NamedTuple):
    """A client that is let in. `minor` is that of the protocol version, `rest` the bytes that came
    behind the greeting, `account` what is known of the user: None for one of whom nothing is, where
    whoever comes is trusted. `is_secret`: by TLS."""

    user: str
    database: str
    parameters: Mapping[str, str]
    minor: int
    rest: bytes
    account: Account | None = None
    is_secret: bool = False


class HangUp(NamedTuple):
    """The end of a connection. `error` is what was answered, for the log, or None if nothing was
    wrong."""

    error: LeaseholdError | None


Effect: TypeAlias = Say | BeginTls | Wait | CancelAsked | Admitted | HangUp


@dataclass(frozen=True, slots=True)
class Welcome:
    """How this client is met. `nonce`: printable, new for each connection. `now_us`: when it came.
    `turns`: those of clients from where it comes."""

    method: Method
    logins: Logins
    mock: MockVerifiers
    nonce: str
    certificate: ClientCertificate = ClientCertificate.NO
    tls_offered: bool = False
    tls_required: bool = False
    now_us: int = 0
    turns: Turns = field(default_factory=AtOnce)


class _Phase(Enum):
    STARTING = 0
    MECHANISM = 1
    PROOF = 2
    WAITING = 3
    OVER = 4


class Greeting:
    def __init__(self, welcome: Welcome, limits: Limits) -> None:
        self._welcome = welcome
        self._framing = Framing(limits)
        self._phase = _Phase.STARTING
        self._channel: TlsChannel | None = None
        self._requests = 0
        self._parameters: dict[str, str] = {}
        self._minor = 0
        self._account: Account | None = None
        self._exchange: Exchange | None = None
        self._proof = b""

    @property
    def user(self) -> str:
        """Return who it says that it is, "" as long as it has not."""
        return self._parameters.get("user", "")

    def receive(self, data: bytes) -> list[Effect]:
        """Effects in their order; after Admitted or HangUp no more bytes may come here."""
        if self._begins_with_tls(data):
            self._requests = REQUESTS_MAX
            return [BeginTls(data)]
        self._framing.feed(data)
        return self._go_on(self._step)

    def resume(self) -> list[Effect]:
        """Go on after Wait."""
        assert self._phase is _Phase.WAITING, self._phase
        self._phase = _Phase.PROOF

        def check(effects: list[Effect]) -> bool:
            self._check_proof(effects)
            return False

        return self._go_on(check)

    def _go_on(self, step: Callable[[list[Effect]], bool]) -> list[Effect]:
        effects: list[Effect] = []
        try:
            while self._phase not in (_Phase.OVER, _Phase.WAITING) and step(effects):
                pass
        except LeaseholdError as error:
            self._phase = _Phase.OVER
            effects.append(Say(backend.error(error_fields(error, "FATAL"))))
            effects.append(HangUp(error))
        return effects

    def tls_begun(self, channel: TlsChannel) -> None:
        self._channel = channel

    def _begins_with_tls(self, data: bytes) -> bool:
        """Return whether the client begins with the handshake instead of asking for it
        (sslnegotiation=direct)."""
        nothing_said = not (self._requests or self._framing.left or self._channel)
        return (
            nothing_said
            and self._phase is _Phase.STARTING
            and self._welcome.tls_offered
            and data[:1] == TLS_HANDSHAKE
        )

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
        if self._requests > REQUESTS_MAX or self._channel is not None:
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
        self._check_channel()
        self._account = self._welcome.logins.find(user)
        if self._welcome.method is Method.SCRAM:
            self._ask_password(user, effects)
        else:
            self._admit(effects)

    def _check_channel(self) -> None:
        if self._welcome.tls_required and self._channel is None:
            raise AuthenticationRefused(
                "connections from other machines need TLS: use sslmode=require"
                if self._welcome.certificate is ClientCertificate.NO
                else "connections need TLS with a client certificate: use sslmode=require"
            )
        wanted = self._welcome.certificate is not ClientCertificate.NO
        if wanted and (self._channel is None or self._channel.names is None):
            raise AuthenticationRefused("connection requires a valid client certificate")

    def _ask_password(self, user: str, effects: list[Effect]) -> None:
        """Ask for it, in the same steps and with the same work whether there is such a user or
        not."""
        verifier, account = self._welcome.mock.verifier(user), self._account
        if (
            account is not None
            and account.verifier is not None
            and account.password_holds(self._welcome.now_us)
        ):
            verifier = account.verifier
        binding = None if self._channel is None else self._channel.binding
        self._exchange = Exchange(verifier, self._welcome.nonce, binding)
        self._phase = _Phase.MECHANISM
        effects.append(Say(backend.sasl_mechanisms(self._exchange.mechanisms)))

    def _take_mechanism(self, data: bytes, effects: list[Effect]) -> None:
        body = Body(data)
        mechanism = body.read_text()
        first = body.read_value()
        body.check_end()
        assert self._exchange is not None
        answer = self._exchange.first(as_text(first or b""), mechanism)
        self._phase = _Phase.PROOF
        effects.append(Say(backend.sasl_continue(answer)))

    def _take_proof(self, data: bytes, effects: list[Effect]) -> None:
        self._proof = data
        wait_s = self._welcome.turns.claim(self.user)
        if wait_s > 0.0:
            self._phase = _Phase.WAITING
            effects.append(Wait(wait_s))
        else:
            self._check_proof(effects)

    def _check_proof(self, effects: list[Effect]) -> None:
        assert self._exchange is not None
        signature = self._exchange.final(as_text(self._proof))
        self._welcome.turns.settle(self.user, right=signature is not None)
        if signature is None:
            raise WrongPassword(f'password authentication failed for user "{self.user}"')
        effects.append(Say(backend.sasl_final(signature)))
        self._admit(effects)

    def _admit(self, effects: list[Effect]) -> None:
        user = self.user
        self._check_account(user)
        self._phase = _Phase.OVER
        parameters = dict(self._parameters)
        del parameters["user"]
        database = parameters.pop("database", "") or user
        parameters.pop("replication", None)
        effects.append(Say(backend.AUTHENTICATION_OK))
        rest, is_secret = self._framing.take_rest(), self._channel is not None
        effects.append(
            Admitted(user, database, parameters, self._minor, rest, self._account, is_secret)
        )

    def _check_account(self, user: str) -> None:
        """Check what is said of nobody who has not shown who he is."""
        welcome, channel = self._welcome, self._channel
        if welcome.certificate is ClientCertificate.VERIFY_FULL:
            names = () if channel is None or channel.names is None else channel.names
            if names != (user,):
                raise AuthenticationRefused(f'certificate authentication failed for user "{user}"')
        if self._account is None:
            if welcome.method is not Method.TRUST:
                raise AuthenticationRefused(f'role "{user}" does not exist')
        elif not self._account.may_log_in:
            raise AuthenticationRefused(f'role "{user}" is not permitted to log in')


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
