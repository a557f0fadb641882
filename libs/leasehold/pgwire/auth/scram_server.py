"""SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677), on stored verifiers.

A verifier is PostgreSQL's own text, `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`: it
lets check a proof, not make one. Nothing here is random: nonces and salts are given in.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Iterable
from hashlib import pbkdf2_hmac, sha256
from typing import Final, NamedTuple

from leasehold.pgwire.auth.saslprep import saslprep
from leasehold.pgwire.wire_errors import AuthenticationRefused, ProtocolViolation

MECHANISM: Final = "SCRAM-SHA-256"
MECHANISM_PLUS: Final = "SCRAM-SHA-256-PLUS"
BINDING: Final = "tls-server-end-point"
"""The kind of channel binding that is spoken: the one of PostgreSQL (RFC 5929, 4)."""
ITERATIONS_MIN: Final = 4096
ITERATIONS: Final = 16_384
"""Of new verifiers. They protect passwords where somebody has read the verifiers, and every client
that has the password pays them each time it connects."""
SALT_BYTES: Final = 16
ITERATIONS_MAX: Final = 10_000_000


class Verifier(NamedTuple):
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    def __str__(self) -> str:
        salt, stored, server = (b64encode(part).decode() for part in self[1:])
        return f"{MECHANISM}${self.iterations}:{salt}${stored}:{server}"

    def __repr__(self) -> str:
        return "Verifier(********)"


def verifier_of_password(password: str, salt: bytes, iterations: int = ITERATIONS) -> Verifier:
    salted = pbkdf2_hmac("sha256", saslprep(password).encode(), salt, iterations)
    client_key = hmac_sha256(salted, b"Client Key")
    return Verifier(
        iterations, salt, sha256(client_key).digest(), hmac_sha256(salted, b"Server Key")
    )


def verifier_of_text(text: str) -> Verifier:
    """Raises ValueError with what is expected."""
    wanted = f"a verifier {MECHANISM}$<iterations>:<salt>$<StoredKey>:<ServerKey>"
    try:
        mechanism, first, keys = text.strip().split("$")
        iterations, salt = first.split(":")
        stored, server = keys.split(":")
        made = Verifier(
            int(iterations), *(b64decode(p, validate=True) for p in (salt, stored, server))
        )
    except (ValueError, binascii.Error):
        raise ValueError(wanted) from None
    sizes = len(made.stored_key) == len(made.server_key) == 32 and made.salt
    if mechanism != MECHANISM or not sizes or not 1 <= made.iterations <= ITERATIONS_MAX:
        raise ValueError(wanted)
    return made


class MockVerifiers:
    """The verifiers of users that do not exist. Such a user is asked as those that do, on each node
    and after each start with the same salt, and nobody fulfils it."""

    def __init__(self, verifiers: Iterable[Verifier], secret: bytes | None = None) -> None:
        """Make them from a `secret` that all nodes have and that lasts; without it from what nobody
        knows who knows less than all of `verifiers`."""
        known = sorted(verifiers)
        shapes = Counter((each.iterations, len(each.salt)) for each in known)
        self._shapes = sorted(shapes.items()) or [((ITERATIONS, SALT_BYTES), 1)]
        self._count = max(len(known), 1)
        if secret is None:
            secret = sha256("\n".join(map(str, known)).encode()).digest()
        self._secret = hmac_sha256(secret, b"users that do not exist")

    def verifier(self, user: str) -> Verifier:
        """Return a verifier with the iterations of one that exists, so that these tell nothing
        either. Where they change the salt does, too: it looks like a new password."""
        name = user.encode()
        iterations, salt_bytes = self._shape(int.from_bytes(self._derive(b"like", name)))
        salt = b""
        while len(salt) < salt_bytes:
            salt += self._derive(f"salt {iterations} {salt_bytes} {len(salt)}".encode(), name)
        stored, server = self._derive(b"stored", name), self._derive(b"server", name)
        return Verifier(iterations, salt[:salt_bytes], stored, server)

    def _shape(self, drawn: int) -> tuple[int, int]:
        """Return iterations and length of the salt, as often as users have them. A name keeps its
        place among all while some users come and go."""
        place = drawn * self._count >> 256
        for shape, count in self._shapes:
            if place < count:
                return shape
            place -= count
        raise AssertionError("a place is below the count of all")

    def _derive(self, what: bytes, name: bytes) -> bytes:
        return hmac_sha256(self._secret, what + b" " + name)


class Exchange:
    """The server's side of one login. `first` answers the client's first message, `final` its
    proof.

    Both raise ProtocolViolation for what is no SCRAM, AuthenticationRefused where client and server
    do not see the same channel.
    """

    def __init__(self, verifier: Verifier, nonce: str, binding: bytes | None = None) -> None:
        """Begin a log-in. `binding`: the channel's, with which the client may bind its proof to it;
        None: it has none."""
        self._verifier = verifier
        self._nonce = nonce
        self._binding = binding
        self._messages = ""
        self._bound = b""

    @property
    def mechanisms(self) -> list[str]:
        return [MECHANISM] if self._binding is None else [MECHANISM_PLUS, MECHANISM]

    def first(self, text: str, mechanism: str = MECHANISM) -> str:
        if mechanism not in self.mechanisms:
            raise ProtocolViolation("client selected an invalid SASL authentication mechanism")
        flag, _, rest = text.partition(",")
        self._check_flag(flag, mechanism)
        identity, _, bare = rest.partition(",")
        if identity:
            raise ProtocolViolation("client uses authorization identity, but it is not supported")
        parts = bare.split(",")
        if parts[0][:2] == "m=":
            raise ProtocolViolation("client requires an unsupported SCRAM extension")
        if len(parts) < 2 or parts[0][:2] != "n=" or parts[1][:2] != "r=":
            raise ProtocolViolation("malformed SCRAM message: n= and r= are expected")
        client = parts[1][2:]
        if not client or not all("!" <= character <= "~" for character in client):
            raise ProtocolViolation("non-printable characters in SCRAM nonce")
        self._bound = f"{flag},,".encode()
        if mechanism == MECHANISM_PLUS:
            assert self._binding is not None
            self._bound += self._binding
        self._nonce = client + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{bare},{answer}"
        return answer

    def _check_flag(self, flag: str, mechanism: str) -> None:
        """Check that what the client says of channel binding fits what it chose, and what was
        offered: somebody between may have taken the better mechanism out of the list."""
        kind, sign, name = flag.partition("=")
        if mechanism == MECHANISM_PLUS:
            if kind != "p" or not sign:
                raise ProtocolViolation(
                    f"the client selected {MECHANISM_PLUS}, but its SCRAM message has no channel"
                    " binding"
                )
            if name != BINDING:
                raise ProtocolViolation(f'unsupported SCRAM channel-binding type "{name}"')
        elif kind == "p":
            raise ProtocolViolation(
                f"the client selected {MECHANISM} without channel binding, but its SCRAM message"
                " has some"
            )
        elif flag not in ("n", "y"):
            raise ProtocolViolation("malformed SCRAM message: no channel binding flag")
        elif flag == "y" and self._binding is not None:
            raise AuthenticationRefused(
                "SCRAM channel binding negotiation error: the client supports channel binding and"
                " thinks that the server does not; it does, so somebody in between may have hidden"
                " that"
            )

    def final(self, text: str) -> str | None:
        """Return the server's signature, or None for a wrong proof."""
        without_proof, comma, last = text.rpartition(",")
        parts = without_proof.split(",")
        if not comma or last[:2] != "p=" or len(parts) < 2 or parts[0][:2] != "c=":
            raise ProtocolViolation("malformed SCRAM message: c=, r= and p= are expected")
        if parts[0][2:] != b64encode(self._bound).decode():
            if self._bound.startswith(b"p="):
                raise AuthenticationRefused("SCRAM channel binding check failed")
            raise ProtocolViolation("unexpected SCRAM channel-binding attribute")
        if parts[1] != f"r={self._nonce}":
            raise ProtocolViolation("SCRAM nonce does not match")
        try:
            proof = b64decode(last[2:], validate=True)
        except (ValueError, binascii.Error):
            raise ProtocolViolation("malformed SCRAM message: proof is not base64") from None
        if len(proof) != 32:
            raise ProtocolViolation("malformed SCRAM message: a proof has 32 bytes")
        verifier = self._verifier
        messages = f"{self._messages},{without_proof}".encode()
        signature = hmac_sha256(verifier.stored_key, messages)
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        if not hmac.compare_digest(sha256(client_key).digest(), verifier.stored_key):
            return None
        return "v=" + b64encode(hmac_sha256(verifier.server_key, messages)).decode()


def hmac_sha256(key: bytes, data: bytes) -> bytes:
    return hmac.digest(key, data, "sha256")
