"""Keys that sign change requests, and what becomes of a request without a signature.

Masters, SQL nodes and Spark's driver are given the master key; a producer, and an embedded replica
of somebody else's, the key of its role (`leasehold role key`). Without a key on the masters every
request is believed, and runs as the bootstrap role unless it says another one.
"""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.model.errors import ConfigurationError
from leasehold.model.signatures import RequestKeys, Signer, Verifier, read_keys, signer
from leasehold.settings.setting import setting


def request_key(text: str) -> str:
    """Check one or several master keys, or a role's key; the text stays what it is."""
    try:
        read_keys(text)
    except ConfigurationError as error:
        raise ValueError(
            "one to four keys of at least 32 characters with commas between them, the one that"
            " signs first, or what `leasehold role key` prints"
        ) from error
    return text


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestKeySettings:
    """The settings of who signs change requests, and of masters, which verify them."""

    key: str | None = setting(
        "LEASEHOLD_REQUEST_KEY",
        "what change requests are signed with: the masters' own key (`openssl rand -hex 32`; while"
        " it is changed two with a comma between them, the one that signs first), or a role's, as"
        " `leasehold role key` prints it; without one on the masters all requests are believed",
        default=None,
        parse=request_key,
        secret=True,
    )
    role: str | None = setting(
        "LEASEHOLD_REQUEST_ROLE",
        "role in whose name this process asks for changes; with a role's key it must be named",
        default=None,
    )
    unsigned_role: str | None = setting(
        "LEASEHOLD_UNSIGNED_ROLE",
        "on masters with a key: role whose a request is that nobody has signed; without one it is"
        " refused (28000)",
        default=None,
    )

    @property
    def keys(self) -> RequestKeys:
        return RequestKeys() if self.key is None else read_keys(self.key)

    def signer(self, database: str) -> Signer:
        """Return what signs this process's messages. Raises ConfigurationError."""
        return signer(self.keys, database, self.role or "")

    def verifier(self, database: str) -> Verifier:
        """Return what tells a master whose a message is. Raises ConfigurationError for a role's
        key, by which nothing can be told."""
        keys = self.keys
        if keys.of_role is not None:
            raise ConfigurationError(
                "LEASEHOLD_REQUEST_KEY of a master is a role's key; it has to be the masters' own.",
                variable="LEASEHOLD_REQUEST_KEY",
            )
        if self.unsigned_role is not None and not keys.master:
            raise ConfigurationError(
                "LEASEHOLD_UNSIGNED_ROLE is set and LEASEHOLD_REQUEST_KEY is not: without a key"
                " every request is believed, signed or not.",
                variable="LEASEHOLD_UNSIGNED_ROLE",
            )
        return Verifier(database, keys.master, self.unsigned_role)
