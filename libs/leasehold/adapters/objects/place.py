"""The place of objects: what a folder and an object store have in common, and which is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from leasehold.adapters.objects.folder import FolderObjects
from leasehold.model.errors import ConfigurationError

FILE_SCHEME = "file://"


class Objects(Protocol):
    """Objects of bytes by name. Names are relative, with `/` between their parts. Every method
    raises BackupUnavailable; any thread may call them."""

    @property
    def where(self) -> str:
        """Return the place as messages name it."""
        ...

    def put(self, name: str, data: bytes) -> None:
        """Store an object: whole, or not at all, whatever ends this process meanwhile."""
        ...

    def get(self, name: str) -> bytes | None:
        """Return an object; None: there is none."""
        ...

    def names(self) -> list[str]:
        """Return the names of all objects, sorted."""
        ...

    def remove(self, name: str) -> None:
        """Remove an object; one that is not there is no error."""
        ...


def open_objects(place: str) -> Objects:
    """Return the objects of a folder (a path, or file://…) or of an object store (s3://bucket/…,
    gs://, az://), none of which is touched yet. Raises ConfigurationError."""
    if place.startswith(FILE_SCHEME):
        return FolderObjects(Path(place.removeprefix(FILE_SCHEME)))
    if "://" not in place:
        return FolderObjects(Path(place))
    try:
        from leasehold.adapters.objects.object_store import StoreObjects
    except ImportError as error:
        raise ConfigurationError(
            f"{place} needs the package obstore: pip install 'leasehold[backup]'"
        ) from error
    return StoreObjects.at(place)
