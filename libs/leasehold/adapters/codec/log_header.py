"""The head of a Decisions record without its commits: for those who only want to see it pass.

A record may hold thousands of commits, and restoring them costs a thousand times what their
number costs. The shape read here is that of `model/records/log.py`; a test holds the two together.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgpack

from leasehold.adapters.codec.record_shape import TAG_BY_CLASS
from leasehold.adapters.codec.records import FORMAT, UNREADABLE, unzip_record
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import Claim, Decisions, Disposition, Grant

_DECISIONS: Final = TAG_BY_CLASS[Decisions]
_CLAIM: Final = TAG_BY_CLASS[Claim]
_COMMIT_US: Final = 2  # place of `commit_us` in a commit
_DISPOSITION: Final = 2  # place of `disposition` in a refusal
_TIMES_FROM: Final = Decisions._fields.index("closed_us")  # older masters end before
_TIMES_END: Final = Decisions._fields.index("reset_us") + 1


class LogHeader(NamedTuple):
    """The head of a Decisions record. `lsn` is the last LSN up to and with this record, `commit_us`
    is 0 without a commit, and the last three are as of Decisions."""

    epoch: int
    sequence: int
    lsn: int
    commit_us: int
    commits: int
    refusals: int
    dead_letters: int
    decided_through: dict[str, int]
    answered_through: int
    grants: tuple[Grant, ...]
    closed_us: int = 0
    id_horizon_us: int = 0
    reset_us: int = 0


def read_header(data: bytes) -> LogHeader | Claim | None:
    """Return the head of a log record, None for one that neither decides nor claims (a Barrier).

    Raises LogStopped for bytes that are no log record.
    """
    try:
        unpacker = msgpack.Unpacker(use_list=False, strict_map_key=False, max_buffer_size=0)
        unpacker.feed(unzip_record(data))
        fields = unpacker.read_array_header()
        if unpacker.unpack() != FORMAT:
            raise ValueError("it is of another wire format")
        tag = unpacker.unpack()
        if tag == _CLAIM:
            claim = Claim(*(unpacker.unpack() for _ in range(min(fields - 2, 4))))
            if tuple(map(type, claim)) != (int, bytes, bytes, str):
                raise ValueError("it is no claim")
            return claim
        return _header(unpacker, fields - 2) if tag == _DECISIONS else None
    except (*UNREADABLE, msgpack.UnpackException) as error:
        raise LogStopped(f"{len(data)} bytes are no log record: {error}") from error


def _header(unpacker: Any, fields: int) -> LogHeader:
    epoch, _, sequence, _, first_lsn = (unpacker.unpack() for _ in range(5))
    commits = unpacker.read_array_header()
    commit_us = 0
    for number in range(commits):
        if number < commits - 1:
            unpacker.skip()
        else:
            commit_us = unpacker.unpack()[_COMMIT_US]
    refusals = unpacker.unpack()
    dead = sum(1 for refusal in refusals if refusal[_DISPOSITION] == Disposition.DEAD_LETTER)
    decided, answered, grants = (unpacker.unpack() for _ in range(3))
    times = [unpacker.unpack() for _ in range(min(fields, _TIMES_END) - _TIMES_FROM)]
    numbers = (epoch, sequence, first_lsn, commit_us, answered, *times)
    if not {int}.issuperset(map(type, numbers)) or type(decided) is not dict:
        raise ValueError("it is no record of a master's")
    return LogHeader(
        epoch,
        sequence,
        first_lsn + commits - 1,
        commit_us,
        commits,
        len(refusals),
        dead,
        decided,
        answered,
        tuple(Grant(*grant[:4]) for grant in grants),
        *times,
    )
