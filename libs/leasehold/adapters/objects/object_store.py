"""Objects in an object store: S3 and what speaks its protocol, Google's, Azure's. An object is
there when the whole of it was sent.

Who may do so is said as each store's own tools are told it: by the environment
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL …), or the machine's role.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

import obstore
from obstore import store as stores
from obstore.exceptions import BaseError
from obstore.store import MemoryStore

from leasehold.model.errors import BackupUnavailable, ConfigurationError

MEMORY: Final = "memory://"
_CLIENT: Final[Any] = {
    "timeout": "60s",
    "connect_timeout": "10s",
    "allow_http": True,  # of an endpoint that says so itself; all others are https
}
_AT: Final[Any] = stores.from_url  # an overload for each kind of store; which it is, a user says
_RETRIES: Final[Any] = {"max_retries": 5}


class StoreObjects:
    """Objects below a URL's path."""

    def __init__(self, store: Any, where: str) -> None:
        """Take a store of obstore's, whose names are below its prefix."""
        self._store = store
        self._where = where

    @classmethod
    def at(cls, url: str) -> Self:
        """Return the objects at a URL, without a question to it. Raises ConfigurationError."""
        if url.startswith(MEMORY):
            return cls(MemoryStore(), url)
        try:
            store = _AT(url, client_options=_CLIENT, retry_config=_RETRIES)
        except (BaseError, ValueError) as error:
            raise ConfigurationError(f"{url} is no place for backups: {_first(error)}") from error
        return cls(store, url)

    @property
    def where(self) -> str:
        return self._where

    def put(self, name: str, data: bytes) -> None:
        with self._told(f"{name} can't be written"):
            obstore.put(self._store, name, data)

    def get(self, name: str) -> bytes | None:
        with self._told(f"{name} can't be read"):
            try:
                return bytes(obstore.get(self._store, name).bytes())
            except FileNotFoundError:
                return None

    def names(self) -> list[str]:
        with self._told("its objects can't be listed"):
            return sorted(str(each["path"]) for page in obstore.list(self._store) for each in page)

    def remove(self, name: str) -> None:
        with self._told(f"{name} can't be removed"):
            try:
                obstore.delete(self._store, name)
            except FileNotFoundError:
                return

    @contextmanager
    def _told(self, what: str) -> Iterator[None]:
        try:
            yield
        except (BaseError, OSError) as error:
            raise BackupUnavailable(
                f"{self._where}: {what}: {_first(error)}", place=self._where
            ) from error


def _first(error: BaseException) -> str:
    """Return the beginning of what the library says, which goes on with what it was told."""
    return str(error).partition("\n")[0][:500]
