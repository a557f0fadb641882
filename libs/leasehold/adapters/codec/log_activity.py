"""What a log record did, counted: commits by table, refusals by kind, and who was granted a lease.

The shape read here is that of `model/records/log.py`, unpacked and not restored: who counts needs
neither rows nor values, and restoring them would cost a processor at a busy master's pace. A test
holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgpack

from leasehold.adapters.codec.record_shape import TAG_BY_CLASS
from leasehold.adapters.codec.records import FORMAT, UNREADABLE, unzip_record
from leasehold.model.errors import InvalidText, LogStopped, VerifyError
from leasehold.model.ids import request_time_ms
from leasehold.model.records.log import (
    Commit,
    Decisions,
    Disposition,
    Grant,
    Refusal,
    RowChange,
)

_DECISIONS: Final = TAG_BY_CLASS[Decisions]
_COMMITS: Final = Decisions._fields.index("commits")
_REFUSALS: Final = Decisions._fields.index("refusals")
_GRANTS: Final = Decisions._fields.index("grants")
_ATTEMPT: Final = Commit._fields.index("attempt")
_COMMIT_US: Final = Commit._fields.index("commit_us")
_CHANGES: Final = Commit._fields.index("changes")
_TABLE: Final = RowChange._fields.index("table_id")
_DISPOSITION: Final = Refusal._fields.index("disposition")
_CODE: Final = Refusal._fields.index("code")
_DETAIL: Final = Refusal._fields.index("detail")
_NODE: Final = Grant._fields.index("node")
_DURATION: Final = Grant._fields.index("duration_ms")
NAME_CHARACTERS_MAX: Final = 63
KEY_CHARACTERS_MAX: Final = 80
"""A longer key is cut: it is read by people, and counted thousands of times."""


class LogActivity(NamedTuple):
    """What one Decisions record did. `retried`: commits at a later attempt than the first.
    `tables`: table id → (commits that changed it, rows changed). `refused`: SQLSTATE → refusals;
    `dispositions`: how many of them were final, a conflict, to be replayed, a dead letter.
    `conflicts`: the row that refused each request with a verify error, as table and key.
    `decided_ms`: of each commit the time from its request's id to its place in the log. `granted`:
    node → how long its coherency lease runs, in ms."""

    commits: int
    retried: int
    rows: int
    tables: Mapping[int, tuple[int, int]]
    refused: Mapping[str, int]
    dispositions: Mapping[str, int]
    conflicts: tuple[tuple[str, str], ...]
    decided_ms: tuple[int, ...]
    granted: Mapping[str, int]


def read_activity(data: bytes) -> LogActivity | None:
    """Return what a log record did, None for one that is no Decisions. Raises LogStopped for bytes
    that are no log record."""
    try:
        fields = msgpack.unpackb(unzip_record(data), use_list=False, strict_map_key=False)
        if type(fields) is not tuple or fields[0] != FORMAT:
            raise ValueError("it is of another wire format")
        return _count(fields[2:]) if fields[1] == _DECISIONS else None
    except (*UNREADABLE, msgpack.UnpackException) as error:
        raise LogStopped(f"{len(data)} bytes are no log record: {error}") from error


def _count(fields: tuple[Any, ...]) -> LogActivity:
    tables: dict[int, tuple[int, int]] = {}
    retried = rows = 0
    decided = []
    for commit in fields[_COMMITS]:
        retried += commit[_ATTEMPT] > 1
        rows += len(commit[_CHANGES])
        changed: dict[int, int] = {}
        for change in commit[_CHANGES]:
            changed[change[_TABLE]] = changed.get(change[_TABLE], 0) + 1
        for table, number in changed.items():
            commits_before, rows_before = tables.get(table, (0, 0))
            tables[table] = commits_before + 1, rows_before + number
        asked_ms = _asked_ms(commit[0])
        if asked_ms is not None:
            decided.append(max(0, commit[_COMMIT_US] // 1_000 - asked_ms))
    refused: dict[str, int] = {}
    dispositions: dict[str, int] = {}
    conflicts = []
    for refusal in fields[_REFUSALS]:
        code = str(refusal[_CODE])
        became = Disposition(refusal[_DISPOSITION]).name.lower()
        refused[code] = refused.get(code, 0) + 1
        dispositions[became] = dispositions.get(became, 0) + 1
        detail = refusal[_DETAIL]
        if code == VerifyError.sqlstate and "key" in detail and "table" in detail:
            name = str(detail["table"])[:NAME_CHARACTERS_MAX]
            conflicts.append((name, _key_words(detail["key"])))
    granted = {str(grant[_NODE]): int(grant[_DURATION]) for grant in fields[_GRANTS]}
    return LogActivity(
        len(fields[_COMMITS]),
        retried,
        rows,
        tables,
        refused,
        dispositions,
        tuple(conflicts),
        tuple(decided),
        granted,
    )


def _asked_ms(request_id: Any) -> int | None:
    """Return the time of a request's id; None for a commit of nobody's request."""
    try:
        return request_time_ms(request_id)
    except InvalidText:
        return None


def _key_words(key: Any) -> str:
    if not isinstance(key, tuple):
        key = (key,)
    parts = [f"\\x{part.hex()}" if isinstance(part, bytes) else str(part) for part in key]
    words = ", ".join(parts)
    return words if len(words) <= KEY_CHARACTERS_MAX else words[: KEY_CHARACTERS_MAX - 1] + "…"
