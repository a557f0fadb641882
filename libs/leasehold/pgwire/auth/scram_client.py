"""SCRAM-SHA-256, the client's side (RFC 5802, RFC 7677). Its nonce is given in."""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Sequence
from hashlib import pbkdf2_hmac, sha256

from leasehold.pgwire.auth.saslprep import saslprep
from leasehold.pgwire.auth.scram_server import (
    BINDING,
    ITERATIONS_MAX,
    MECHANISM,
    MECHANISM_PLUS,
    hmac_sha256,
)
from leasehold.pgwire.wire_errors import ProtocolViolation


class Login:
    """The client's side of one login: `first`, then `proof` with the server's answer, then `check`
    with its signature. `proof` and `check` raise ProtocolViolation for what is no SCRAM, or not
    said by one who knows the password."""

    def __init__(
        self, password: str, nonce: str, offered: Sequence[str], binding: bytes | None = None
    ) -> None:
        """Choose a mechanism of those `offered`. `binding` is the channel's, None where it has none
        or none is wanted. Raises ProtocolViolation where nothing offered is spoken here."""
        self._password = saslprep(password).encode()
        self._nonce = nonce
        self._signature = b""
        self._binding = b""
        # "y": we could have bound the proof to the channel, and the server has not offered it. One
        # that has, and whose list was changed on the way, then ends it.
        self._header = "n,," if binding is None else "y,,"
        self.mechanism = MECHANISM
        if binding is not None and MECHANISM_PLUS in offered:
            self.mechanism, self._binding = MECHANISM_PLUS, binding
            self._header = f"p={BINDING},,"
        elif MECHANISM not in offered:
            raise ProtocolViolation("it asks for a kind of password that is not spoken here")

    def first(self) -> str:
        return self._header + self._bare

    @property
    def _bare(self) -> str:
        return f"n=,r={self._nonce}"  # the user is named at the start of the connection

    def proof(self, answer: str) -> str:
        nonce, salt, iterations = _parts(answer)
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ProtocolViolation("the server's SCRAM nonce does not go on with ours")
        salted = pbkdf2_hmac("sha256", self._password, salt, iterations)
        client_key = hmac_sha256(salted, b"Client Key")
        bound = b64encode(self._header.encode() + self._binding).decode()
        without_proof = f"c={bound},r={nonce}"
        messages = f"{self._bare},{answer},{without_proof}".encode()
        signed = hmac_sha256(sha256(client_key).digest(), messages)
        self._signature = hmac_sha256(hmac_sha256(salted, b"Server Key"), messages)
        proof = bytes(one ^ other for one, other in zip(client_key, signed, strict=True))
        return f"{without_proof},p={b64encode(proof).decode()}"

    def check(self, final: str) -> None:
        """Raise ProtocolViolation unless the server has signed, which only one can that has the
        password's verifier."""
        told = b"v=" + b64encode(self._signature)
        if not self._signature or not hmac.compare_digest(final.encode(), told):
            raise ProtocolViolation("the server could not prove that it knows the password")


def _parts(answer: str) -> tuple[str, bytes, int]:
    found = dict(part.partition("=")[::2] for part in answer.split(","))
    try:
        salt = b64decode(found["s"], validate=True)
        nonce, iterations = found["r"], int(found["i"])
    except (KeyError, ValueError, binascii.Error):
        raise ProtocolViolation("malformed SCRAM message: r=, s= and i= are expected") from None
    if not salt or not 1 <= iterations <= ITERATIONS_MAX:
        raise ProtocolViolation("malformed SCRAM message: no salt, or a wrong number of rounds")
    return nonce, salt, iterations
