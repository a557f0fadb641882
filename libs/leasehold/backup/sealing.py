"""Packs an object of a backup: compressed, and sealed by AES-256-GCM where there is a key.

    magic (4) · flags (1) · nonce (12, where sealed) · what was packed

The key of a backup is derived (HKDF-SHA256, RFC 5869) from what the key file holds and a salt of
the backup's own, so no two backups share one, and a nonce at random is unlikely to come twice. What
is sealed names its backup and object: none can take another's place. PURE but for the nonce, which
its caller gives.
"""

from __future__ import annotations

import hmac
import zlib
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from leasehold.model.errors import BackupDamaged, ConfigurationError

MAGIC: Final = b"LHBK"
SEALED: Final = 1
NONCE_BYTES: Final = 12
SALT_BYTES: Final = 16
KEY_BYTES_LEAST: Final = 32
KEY_BYTES_MAX: Final = 4096
COMPRESSION_LEVEL: Final = 1  # as of snapshots: higher ones cost more time than they save
_HEAD: Final = len(MAGIC) + 1
_INFO: Final = b"leasehold backup, format 1"
_CHECKED: Final = b"leasehold backup, which key"

try:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF
except ImportError:  # an extra: who encrypts nothing need not have it
    HAS_CIPHER = False
else:
    HAS_CIPHER = True


class Key:
    """The key of one backup: from the secret of a key file, and the backup's salt."""

    def __init__(self, secret: bytes, salt: bytes) -> None:
        """Derive it. Raises ConfigurationError where the library for it is not installed."""
        if not HAS_CIPHER:
            raise ConfigurationError(
                "encrypted backups need the package cryptography: pip install 'leasehold[backup]'"
            )
        derived = HKDF(algorithm=SHA256(), length=64, salt=salt, info=_INFO).derive(secret)
        self._cipher = AESGCM(derived[:32])
        # Of a key of its own: it stands in the clear, and tells nothing of the one that seals.
        self.check = hmac.new(derived[32:], _CHECKED, sha256).hexdigest()

    def __repr__(self) -> str:
        return "Key(…)"

    def is_of(self, check: str) -> bool:
        """Return whether a manifest's `key_check` is of this key."""
        return hmac.compare_digest(self.check, check)

    def seal(self, nonce: bytes, data: bytes, name: str) -> bytes:
        return self._cipher.encrypt(nonce, data, name.encode())

    def unseal(self, nonce: bytes, data: bytes, name: str) -> bytes | None:
        """Return what was sealed under that name; None: it was not, or is damaged."""
        try:
            return self._cipher.decrypt(nonce, data, name.encode())
        except (InvalidTag, ValueError):
            return None


def key_secret(data: bytes, where: str) -> bytes:
    """Return the secret that a key file holds. Raises ConfigurationError for too little of it."""
    secret = data.strip()
    if not KEY_BYTES_LEAST <= len(secret) <= KEY_BYTES_MAX:
        raise ConfigurationError(
            f"the key file {where} has to hold {KEY_BYTES_LEAST} to {KEY_BYTES_MAX} bytes that"
            " nobody can guess: openssl rand -hex 32 > FILE"
        )
    return secret


def pack(data: bytes, name: str, key: Key | None, random: Callable[[int], bytes]) -> bytes:
    """Return `data` as the object `name` (with its backup's id) is stored."""
    packed = zlib.compress(data, COMPRESSION_LEVEL)
    if key is None:
        return MAGIC + b"\0" + packed
    nonce = random(NONCE_BYTES)
    return MAGIC + bytes((SEALED,)) + nonce + key.seal(nonce, packed, name)


def unpack(data: bytes, name: str, key: Key | None, plain_bytes: int) -> bytes:
    """Return what `pack` was given, which has `plain_bytes`. Raises BackupDamaged, and
    ConfigurationError where it is sealed and there is no key."""
    sealed = data[len(MAGIC) : _HEAD] == bytes((SEALED,))
    if data[: len(MAGIC)] != MAGIC or not (sealed or data[len(MAGIC) : _HEAD] == b"\0"):
        raise BackupDamaged(f"{name} is no object of a backup", object=name)
    packed: bytes | None = data[_HEAD:]
    if sealed:
        if key is None:
            raise ConfigurationError(
                f"{name} is encrypted: give the key file that it was made with"
            )
        at = _HEAD + NONCE_BYTES
        packed = key.unseal(data[_HEAD:at], data[at:], name)
        if packed is None:
            raise BackupDamaged(f"{name} is damaged: it can't be decrypted", object=name)
    elif key is not None:
        # ⚠ Else who can write there could put anything in the place of what was sealed.
        raise BackupDamaged(f"{name} is not encrypted, where its backup is", object=name)
    assert packed is not None
    unpacker = zlib.decompressobj()
    try:
        # Bounded: a few hostile bytes must not grow into gigabytes.
        plain = unpacker.decompress(packed, plain_bytes + 1)
    except zlib.error as error:
        raise BackupDamaged(f"{name} is damaged: {error}", object=name) from error
    if len(plain) != plain_bytes or not unpacker.eof:
        raise BackupDamaged(
            f"{name} is damaged: it holds {len(plain)} bytes where {plain_bytes} were put",
            object=name,
        )
    return plain
