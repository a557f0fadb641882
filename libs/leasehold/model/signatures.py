"""Signatures over messages of the master's queues: who asks for a change, and how it is known.

Kafka does not tell a consumer who has produced a record. So a message says it itself, behind its
content type, with a signature by HMAC-SHA256:

    application/msgpack; role=shop; key=16384.0; signature=…    signed by the role's own key
    application/msgpack; role=shop; signature=…                 by who has the master key
    application/msgpack; role=shop                              a claim, believed without keys

The master key is known to masters, SQL nodes and Spark's driver, which may sign in any role's name.
A role's key is derived from it, the database's name, the role's name and a number that the catalog
has for the role: nobody stores it, and it is worth nothing under another number.

What is signed begins with what the message is for (its queue, the role, the number, the media
type) and ends with its body. The database is in the key, so that a message for one is none for
another. Repeats are refused by what they are: an id has one outcome (L5).
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from collections.abc import Sequence
from hashlib import sha256
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote, unquote_to_bytes

from leasehold.model.errors import ConfigurationError, NotAuthentic
from leasehold.model.traces import TRACEPARENT, add_trace, split_trace

CONTENT_TYPE_CHARACTERS_MAX: Final = 400
"""A role's name of 63 bytes, each of them written as three characters, with all that is beside, the
place in a trace (`traces.py`) too."""
MASTER_KEY_CHARACTERS_MIN: Final = 32
MASTER_KEYS_MAX: Final = 4
ROLE_KEYS_MAX: Final = 1_000
"""Derived keys that are kept: one takes a microsecond to make again."""
MACHINERY: Final = ""
"""The role of what processes of the database say for themselves: the bootstrap role."""
_FOR_ROLE: Final = b"leasehold role key 1"
_FOR_CLUSTER: Final = b"leasehold cluster key 1"
_FOR_MESSAGE: Final = b"leasehold message 1"
_ROLE_KEY: Final = "lhk1"
_SIGNATURE: Final = "; signature="
_KEY_BYTES: Final = 32


class RoleKey(NamedTuple):
    """A role's key, as it is handed to a producer. `number`: of the role in the catalog."""

    number: str
    secret: bytes

    def to_text(self) -> str:
        """Return what LEASEHOLD_REQUEST_KEY of a producer holds."""
        return f"{_ROLE_KEY}.{self.number}.{_text_of(self.secret)}"


class RequestKeys(NamedTuple):
    """The keys of a process: master keys, of which the first signs and all are believed; or the
    key of one role, which signs in its name. Without either nothing is signed."""

    master: tuple[bytes, ...] = ()
    of_role: RoleKey | None = None

    def __repr__(self) -> str:
        kind = "a role's" if self.of_role else f"{len(self.master)} of a master's"
        return f"RequestKeys({kind if self else 'none'})"

    def __bool__(self) -> bool:
        return bool(self.master) or self.of_role is not None


NO_KEYS: Final = RequestKeys()


class Mark(NamedTuple):
    """What stands behind a media type. `signature` None: there is none. `traceparent`: under which
    it was sent, as it was said, "" = under none."""

    media_type: str
    role: str = MACHINERY
    number: str = ""
    signature: bytes | None = None
    traceparent: str = ""

    def continue_trace(self, content_type: str) -> str:
        """Return the content type of a message that follows from this one, in the same trace."""
        return add_trace(content_type, self.traceparent) if self.traceparent else content_type


class Proven(NamedTuple):
    """What a message proves: whose it is, by a role's key of that `number`, "" = by a master
    key."""

    role: str
    number: str = ""


class Known(NamedTuple):
    """What stood before a signature that was valid, with all that is made of it."""

    media_type: str
    proven: Proven
    secret: bytes
    head: bytes


class Signer(Protocol):
    """Signs a message for a queue in the name of a role: returns its content type."""

    def __call__(self, queue: str, role: str, media_type: str, body: bytes) -> str: ...


# ---------------------------------------------------------------- keys as text


def read_keys(text: str) -> RequestKeys:
    """Return what LEASEHOLD_REQUEST_KEY holds: master keys with commas or blanks between them, the
    one that signs first; or a role's key, as `leasehold role key` prints it.

    Raises ConfigurationError, which shows nothing of it."""
    words = text.replace(",", " ").split()
    if any(word.startswith(f"{_ROLE_KEY}.") for word in words):
        if len(words) > 1:
            raise _unusable("a role's key stands alone")
        return RequestKeys(of_role=_read_role_key(words[0]))
    if not 1 <= len(words) <= MASTER_KEYS_MAX:
        raise _unusable(f"it holds {len(words)} keys, and 1 to {MASTER_KEYS_MAX} are taken")
    if any(len(word) < MASTER_KEY_CHARACTERS_MIN for word in words):
        raise _unusable(
            f"a key has fewer than {MASTER_KEY_CHARACTERS_MIN} characters: make one by"
            " `openssl rand -hex 32`"
        )
    return RequestKeys(master=tuple(word.encode() for word in words))


def _read_role_key(text: str) -> RoleKey:
    _, _, rest = text.partition(".")
    number, _, secret = rest.rpartition(".")
    key = _bytes_of(secret)
    if not _is_number(number) or key is None or len(key) != _KEY_BYTES:
        raise _unusable("what begins as a role's key is none: take what `leasehold role key` says")
    return RoleKey(number, key)


def _unusable(why: str) -> ConfigurationError:
    return ConfigurationError(
        f"LEASEHOLD_REQUEST_KEY can't be used: {why}.", variable="LEASEHOLD_REQUEST_KEY"
    )


def derive_role_key(master: bytes, database: str, role: str, number: str) -> RoleKey:
    """Return the key of a role whose number in the catalog that is."""
    assert role, "the machinery signs with the key of the cluster"
    said = _joined(_FOR_ROLE, database.encode(), role.encode(), number.encode())
    return RoleKey(number, hmac.digest(master, said, "sha256"))


def _cluster_key(master: bytes, database: str) -> bytes:
    return hmac.digest(master, _joined(_FOR_CLUSTER, database.encode()), "sha256")


# ---------------------------------------------------------------- messages


def signer(keys: RequestKeys, database: str, own_role: str = MACHINERY) -> Signer:
    """Return what signs the messages of a process. Under a role's key every message is of
    `own_role`; under a master key those that name no role are. Without a key roles are claimed."""
    of_role = keys.of_role
    if of_role is not None:
        if not own_role:
            raise ConfigurationError(
                "LEASEHOLD_REQUEST_KEY is a role's key: LEASEHOLD_REQUEST_ROLE has to name the"
                " role.",
                variable="LEASEHOLD_REQUEST_ROLE",
            )
        number, secret = of_role

        def sign_as_role(queue: str, role: str, media_type: str, body: bytes) -> str:
            return _marked(queue, own_role, number, secret, media_type, body)

        return sign_as_role
    if keys.master:
        cluster = _cluster_key(keys.master[0], database)

        def sign_for_any(queue: str, role: str, media_type: str, body: bytes) -> str:
            return _marked(queue, role or own_role, "", cluster, media_type, body)

        return sign_for_any

    def claim(queue: str, role: str, media_type: str, body: bytes) -> str:
        return _claimed(role or own_role, media_type)

    return claim


def _claimed(role: str, media_type: str) -> str:
    return f"{media_type}; role={quote(role, safe='')}" if role else media_type


def _marked(queue: str, role: str, number: str, secret: bytes, media_type: str, body: bytes) -> str:
    text = _claimed(role, media_type)
    if number:
        text = f"{text}; key={number}"
    return f"{text}{_SIGNATURE}{_digest(queue, role, number, secret, media_type, body).hex()}"


def _digest(
    queue: str, role: str, number: str, secret: bytes, media_type: str, body: bytes
) -> bytes:
    return hmac.digest(secret, _head(queue, role, number, media_type) + body, "sha256")


def _head(queue: str, role: str, number: str, media_type: str) -> bytes:
    # Nothing of it has a NUL in it: no message reads as another one's beginning.
    named = (queue.encode(), role.encode(), number.encode(), media_type.encode())
    return _joined(_FOR_MESSAGE, *named, b"")


def _joined(*parts: bytes) -> bytes:
    return b"\0".join(parts)


def read_mark(content_type: str) -> Mark:
    """Return what a content type says. Raises NotAuthentic for one that can't be read; it may be
    anybody's."""
    if len(content_type) > CONTENT_TYPE_CHARACTERS_MAX:
        raise NotAuthentic(
            f"the content type has {len(content_type)} characters; at most"
            f" {CONTENT_TYPE_CHARACTERS_MAX} are taken"
        )
    if "\0" in content_type:  # where what is signed is joined
        raise NotAuthentic("the content type has a NUL in it")
    first, *rest = content_type.split(";")
    if not rest:
        return Mark(first)
    named: dict[str, str] = {}
    for part in rest:
        name, _, value = part.partition("=")
        name = name.strip().lower()
        if name in named:
            raise NotAuthentic(f"{name!r:.40} stands twice in the content type")
        named[name] = value.strip()
    role, number = _role_of(named.get("role", "")), named.get("key", "")
    if number and not _is_number(number):
        raise NotAuthentic("'key' in the content type is no number of a role's key")
    signature: bytes | None = None
    if "signature" in named:
        signature = _of_hex(named["signature"])
        if signature is None or len(signature) != _KEY_BYTES:
            raise NotAuthentic("'signature' in the content type is none of HMAC-SHA256")
    return Mark(first.strip(), role, number, signature, named.get(TRACEPARENT, ""))


def _role_of(text: str) -> str:
    try:
        role = unquote_to_bytes(text).decode("utf-8")
    except UnicodeDecodeError:
        raise NotAuthentic("'role' in the content type is no UTF-8 text") from None
    if "\0" in role:
        raise NotAuthentic("'role' in the content type is no name")
    return role


def _is_number(text: str) -> bool:
    """Whether it is of the form of `Role.key_number`."""
    role, _, revoked = text.partition(".")
    return len(text) <= 40 and all(part.isascii() and part.isdigit() for part in (role, revoked))


def _of_hex(text: str) -> bytes | None:
    """Return what has that text in hexadecimal digits; None for any other one, however near."""
    try:
        data = bytes.fromhex(text)
    except ValueError:
        return None
    return data if data.hex() == text else None


def _text_of(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _bytes_of(text: str) -> bytes | None:
    """Return what `_text_of` made that text of; None for any other one, however near."""
    try:
        data = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (NoBase64, ValueError):
        return None
    return data if _text_of(data) == text else None


class Verifier:
    """Tells whose a message is. Without master keys everybody is believed."""

    def __init__(
        self, database: str = "", master: Sequence[bytes] = (), unsigned_role: str | None = None
    ) -> None:
        """Verify by the keys `master`, for a database. `unsigned_role`: whose a message is that has
        no signature; None: nobody's."""
        self._database = database
        self._master = tuple(master)
        self._unsigned_role = unsigned_role
        self._cluster = tuple(_cluster_key(key, database) for key in self._master)
        self._role_keys: dict[tuple[str, str], tuple[bytes, ...]] = {}
        self._known: dict[tuple[str, str], Known] = {}  # of valid ones alone: nobody fills it

    @property
    def is_open(self) -> bool:
        """Whether everybody is believed."""
        return not self._master

    def read(self, queue: str, content_type: str, body: bytes) -> tuple[str, Proven]:
        """Return the media type, and whose the message is. Raises NotAuthentic."""
        before, _, text = split_trace(content_type)[0].rpartition(_SIGNATURE)
        known = self._known.get((queue, before))
        if known is not None:
            made = hmac.digest(known.secret, known.head + body, "sha256")
            if text.isascii() and hmac.compare_digest(made.hex(), text):
                return known.media_type, known.proven
        mark = read_mark(content_type)
        proven, secret = self._prove(queue, mark, body)
        if secret and before:
            if len(self._known) >= ROLE_KEYS_MAX:
                self._known.clear()
            head = _head(queue, *proven, mark.media_type)
            self._known[queue, before] = Known(mark.media_type, proven, secret, head)
        return mark.media_type, proven

    def prove(self, queue: str, mark: Mark, body: bytes) -> Proven:
        """Return whose the message is. Raises NotAuthentic."""
        return self._prove(queue, mark, body)[0]

    def _prove(self, queue: str, mark: Mark, body: bytes) -> tuple[Proven, bytes]:
        """Return the key, too, by which it is proven; b"": by none."""
        if not self._master:
            return Proven(mark.role), b""
        if mark.signature is None:
            return self._unsigned(mark), b""
        media_type, role, number, signature, _ = mark
        assert signature is not None, "looked at a moment ago"
        secrets = self._keys_of(role, number) if number else self._cluster
        for secret in secrets:
            made = _digest(queue, role, number, secret, media_type, body)
            if hmac.compare_digest(made, signature):
                return Proven(role, number), secret
        raise NotAuthentic(
            f"the signature is not that of {_name(role)} over this message: its bytes were changed"
            " on their way, it is for another database, or LEASEHOLD_REQUEST_KEY of its sender is"
            " not (or no longer) the right one; see `leasehold role key`"
        )

    def prove_machinery(self, queue: str, content_type: str, body: bytes) -> None:
        """Return if a process of the database itself says it. Raises NotAuthentic."""
        if not self._master:
            return
        if read_mark(content_type).signature is None:
            raise NotAuthentic(
                f"a message of {queue!r} has no signature: the process that sends it has to be"
                " given the masters' LEASEHOLD_REQUEST_KEY"
            )
        _, proven = self.read(queue, content_type, body)
        if proven != Proven(MACHINERY):
            raise NotAuthentic(f"a message of {queue!r} is signed by {_name(proven.role)}")

    def _unsigned(self, mark: Mark) -> Proven:
        if self._unsigned_role is None:
            raise NotAuthentic(
                "the request has no signature, and this database takes none without: give its"
                " sender LEASEHOLD_REQUEST_ROLE, and as LEASEHOLD_REQUEST_KEY what `leasehold role"
                " key ROLE` says; or set LEASEHOLD_UNSIGNED_ROLE on the masters"
            )
        return Proven(self._unsigned_role)

    def _keys_of(self, role: str, number: str) -> tuple[bytes, ...]:
        if not role:
            raise NotAuthentic("a message that names a key names its role, too")
        known = self._role_keys.get((role, number))
        if known is None:
            if len(self._role_keys) >= ROLE_KEYS_MAX:
                self._role_keys.clear()  # names that strangers make up, mostly
            known = tuple(
                derive_role_key(key, self._database, role, number).secret for key in self._master
            )
            self._role_keys[role, number] = known
        return known


def _name(role: str) -> str:
    return f"role {role!r:.80}" if role else "the database's own processes"


OPEN: Final = Verifier()
assert sha256().digest_size == _KEY_BYTES
