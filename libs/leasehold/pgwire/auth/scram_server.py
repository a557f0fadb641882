"""SCRAM-SHA-256, the server's side (RFC 5802, RFC 7677), on stored verifiers.

A verifier is PostgreSQL's own text, `SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>`: it
lets check a proof, not make one. Nothing here is random: nonces and salts are given in.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Mapping
from hashlib import pbkdf2_hmac, sha256
from typing import Final, NamedTuple

from leasehold.pgwire.auth.saslprep import saslprep
from leasehold.pgwire.wire_errors import ProtocolViolation

MECHANISM: Final = "SCRAM-SHA-256"
ITERATIONS: Final = 4096
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
    and after each start with the same salt, and nobody fulfils it. The secret is what nobody knows
    who knows less than all of the verifiers."""

    def __init__(self, users: Mapping[str, Verifier]) -> None:
        nobody = Verifier(ITERATIONS, bytes(SALT_BYTES), b"", b"")
        self._users = [users[name] for name in sorted(users)] or [nobody]
        known = sha256()
        for name in sorted(users):
            known.update(f"{name}={users[name]}\n".encode())
        self._secret = known.digest()

    def verifier(self, user: str) -> Verifier:
        """Return a verifier with the iterations of one that exists, so that these tell nothing
        either."""
        drawn = hmac_sha256(self._secret, b"like " + user.encode())
        like = self._users[int.from_bytes(drawn) % len(self._users)]
        salt = b""
        while len(salt) < len(like.salt):
            salt += hmac_sha256(self._secret, f"salt {len(salt)} {user}".encode())
        stored, server = hmac_sha256(self._secret, b"stored"), hmac_sha256(self._secret, b"server")
        return Verifier(like.iterations, salt[: len(like.salt)], stored, server)


class Exchange:
    """The server's side of one login. `first` answers the client's first message, `final` its
    proof.

    Both raise ProtocolViolation for what is no SCRAM.
    """

    def __init__(self, verifier: Verifier, nonce: str) -> None:
        self._verifier = verifier
        self._nonce = nonce
        self._messages = ""
        self._header = ""

    def first(self, text: str) -> str:
        flag, _, rest = text.partition(",")
        if flag.startswith("p="):
            raise ProtocolViolation("channel binding was not offered, and the client asks for it")
        if flag not in ("n", "y"):
            raise ProtocolViolation("malformed SCRAM message: no channel binding flag")
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
        self._header = f"{flag},,"
        self._nonce = client + self._nonce
        salt = b64encode(self._verifier.salt).decode()
        answer = f"r={self._nonce},s={salt},i={self._verifier.iterations}"
        self._messages = f"{bare},{answer}"
        return answer

    def final(self, text: str) -> str | None:
        """Return the server's signature, or None for a wrong proof."""
        without_proof, comma, last = text.rpartition(",")
        parts = without_proof.split(",")
        if not comma or last[:2] != "p=" or len(parts) < 2 or parts[0][:2] != "c=":
            raise ProtocolViolation("malformed SCRAM message: c=, r= and p= are expected")
        if parts[0][2:] != b64encode(self._header.encode()).decode():
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
