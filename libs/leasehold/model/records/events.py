"""Rows and descriptor versions as the changefeed publishes them.

Values of columns are *storage values* (`values/storage.py`): int, float, str, bytes or None.
An image is a mapping element id → storage value; an element id that is missing, or None, is a
pair that is not there (a NULL and an absent pair are the same physical fact).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from leasehold.model.keys import Key

Image: TypeAlias = Mapping[int, Any]
Genids: TypeAlias = Mapping[int, int]  # lock id → genid


class RowImage(NamedTuple):
    """A row as of `lsn`, by element id; the value of the compacted rows topic."""

    table_id: int
    key: Key
    genids: Genids
    lsn: int
    version: int
    commit_us: int
    values: Image


class RowLeftOut(NamedTuple):
    """The mark of a row whose image no message has room for: the row is there, and a node has its
    values. `image_bytes`: the size that the image would have. The other fields are RowImage's."""

    table_id: int
    key: Key
    genids: Genids
    lsn: int
    version: int
    commit_us: int
    image_bytes: int


class RowsTruncated(NamedTuple):
    """The mark that every row before it is gone; under the empty key, on every partition of a rows
    topic."""

    table_id: int
    lsn: int
    commit_us: int


class VersionEvent(NamedTuple):
    """A published descriptor version. `body` is `Descriptor.to_wire()`; job 0 = no job.

    `job`: kind, subject, sql, status, step (from 1), steps, of the job that published it. `edits`:
    what its step changed (`Edit.to_wire()`); with none, version 1 is all new and any other is the
    same as the one before. Not kept on `versions`, which carries the difference made of them.
    """

    table_id: int
    name: str
    version: int
    lsn: int
    commit_us: int
    body: Any
    job_id: int
    step: str
    job: Mapping[str, Any] = {}
    edits: tuple[Any, ...] = ()
