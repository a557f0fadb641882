"""Two nodes prove to each other that both know the database's token, which neither shows (S7).

    who asks                               who serves
    GET, nonce a                     ─▶
                                     ◀─    401, nonce b
    GET, nonce a,                    ─▶    its own address, b said on this connection, and not yet
    proof of (a, b, address)               used? the proof right?
                                     ◀─    200, proof of (a, b, address, layout, length, checksum)
    the proof right? then the rows,
    whose checksum it names

A nonce is used once, so nothing that was heard is of use again. The proof names the address that
is asked, and over TLS the certificate that was shown: who passes on what another node says has
another address, and is refused. Somebody between the two on the network is kept out by TLS alone.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Final, NamedTuple

from leasehold.adapters.os.clock import random_bytes

NONCE_HEADER: Final = "X-Snapshot-Nonce"
PROOF_HEADER: Final = "X-Snapshot-Proof"
NONCE_BYTES: Final = 32
NO_CERTIFICATE: Final = b""


class Exchange(NamedTuple):
    """What both know of one request: a nonce of each, the address that was asked as it was written,
    and the certificate (DER) that was shown."""

    nonce: str
    answered: str
    address: str
    certificate: bytes = NO_CERTIFICATE

    def to_ask(self, token: str) -> str:
        """Return the proof of who asks."""
        return self._proof(token, "ask")

    def to_serve(self, token: str, layout: str, size: str, checksum: str) -> str:
        """Return the proof of who serves a copy of that layout, length and checksum."""
        return self._proof(token, "serve", layout, size, checksum)

    def _proof(self, token: str, *said: str) -> str:
        bound = sha256(self.certificate).hexdigest()
        parts = ("leasehold snapshot", self.nonce, self.answered, self.address, bound, *said)
        # Each with its length: no two lists are the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(token.encode(), text.encode("utf-8", "replace"), sha256).hexdigest()


def new_nonce() -> str:
    return random_bytes(NONCE_BYTES).hex()


def is_nonce(text: str) -> bool:
    """Whether it can be one of whoever made it with `new_nonce`."""
    return len(text) == 2 * NONCE_BYTES and text.isascii() and text.isalnum()


def is_proof(shown: str, wanted: str) -> bool:
    return hmac.compare_digest(shown.encode("utf-8", "replace"), wanted.encode())
