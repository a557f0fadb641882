"""Records ↔ bytes: the one codec of everything that travels inside.

A record is one MessagePack array: format, tag, field, field, … with nested records as plain arrays
of their fields, and records of a union (catalog writes) as (tag, field, …). The format number
is raised when old software would misread new bytes; appended fields with defaults need no new one
(except those of RowChange, which is restored without looking).

What comes back differs from what went in at one place: inside values of type Any (bodies of
descriptors and jobs, details) arrays are tuples, whatever sequence they were.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Generator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final, TypeVar

import msgpack

from leasehold.adapters.codec.packing import Packing
from leasehold.adapters.codec.record_shape import (
    CLASS_BY_TAG,
    TAG_BY_CLASS,
    Restorer,
    complete_fields,
    record_restorer,
    restore_keys,
    restorer,
)
from leasehold.adapters.codec.request_decoding import decode_request, decode_request_in_slices
from leasehold.events.public_reading import decode_event
from leasehold.model import byte_limits
from leasehold.model.errors import LogStopped, MalformedRequest
from leasehold.model.ids import DIGEST_BYTES
from leasehold.model.keys import INTEGER_MOST, IntKeys
from leasehold.model.records.acks import Ack, NodeReport
from leasehold.model.records.events import VersionEvent
from leasehold.model.records.jobs import ChangefeedReport
from leasehold.model.records.log import (
    Attempt,
    Backfill,
    Barrier,
    CatalogWrite,
    ChangeKind,
    ChunkDecided,
    Claim,
    Commit,
    CopiedRows,
    Decisions,
    Grant,
    KeySpan,
    LogPosition,
    LogRecord,
    Refusal,
    RowChange,
    Unreadable,
)
from leasehold.model.records.notifications import Notifications
from leasehold.model.records.requests import ChangeRequest, DeadLetter, Outcome, Result, ResultBatch

FORMAT: Final = 1
"""Format written, and the newest one read."""

ZIPPED_ABOVE_BYTES: Final = 1_000_000
"""A log record of more bytes travels behind zlib: it holds one large commit."""
UNZIPPED_BYTES_MAX: Final = byte_limits.UNZIPPED
"""What a log record unpacks to: twice what its one large commit may have (LARGE_BYTES_MAX of
`replication/master/batch.py`). Without a limit a few bytes become gigabytes of whoever reads
them."""
_ZLIB: Final = b"\x78"

UNREADABLE: Final = (
    *(ValueError, TypeError, LookupError, OverflowError, RecursionError),
    zlib.error,
)
"""All that unpacking and restoring foreign bytes can raise (msgpack's errors are ValueErrors)."""

RecordT = TypeVar("RecordT")

_KINDS: Final[Mapping[int, ChangeKind]] = {int(kind): kind for kind in ChangeKind}
_CATALOG: Final = restorer(CatalogWrite)
_REFUSAL: Final = record_restorer(Refusal)
_GRANT: Final = record_restorer(Grant)
_ATTEMPT: Final = record_restorer(Attempt)
_BARRIER: Final = record_restorer(Barrier)
_VERSION_EVENT: Final = record_restorer(VersionEvent)
_DECISIONS_TAG: Final = TAG_BY_CLASS[Decisions]
_DEAD_LETTER_TAG: Final = TAG_BY_CLASS[DeadLetter]
_DEAD_LETTER_HEAD: Final = DeadLetter._fields.index("principal")
_CLAIM_TAG: Final = TAG_BY_CLASS[Claim]
_POSITION_TAG: Final = TAG_BY_CLASS[LogPosition]
_ACK_TAG: Final = TAG_BY_CLASS[Ack]
_REPORT_TAG: Final = TAG_BY_CLASS[ChangefeedReport]
_REPORT_HEAD: Final = ChangefeedReport._fields.index("feeds")
_NODE_TAG: Final = TAG_BY_CLASS[NodeReport]
_NODE_HEAD: Final = NodeReport._fields.index("sent_us") + 1
_LOG_TAGS: Final = frozenset(TAG_BY_CLASS[c] for c in (Claim, Decisions, Barrier))
_BACKFILL_FIELDS: Final = len(Backfill._fields)
_BACKFILL_HEAD: Final = Backfill._fields.index("span")
_SPAN: Final = record_restorer(KeySpan)
_CHUNK_HEAD: Final = ChunkDecided._fields.index("through")
_COMMIT_HEAD: Final = Commit._fields.index("principal")
_COMMIT_TAIL: Final = (Commit._field_defaults["principal"], None)
_NOTIFICATIONS: Final = record_restorer(Notifications)
_REFUSAL_HEAD: Final = Refusal._fields.index("principal")
_COMMITS_FIELD: Final = Decisions._fields.index("commits")
_DECISIONS_HEAD: Final = Decisions._fields.index("grants") + 1
_DECISIONS_FIELDS: Final = len(Decisions._fields)
_DECISIONS_TAIL: Final = tuple(
    [Decisions._field_defaults[name] for name in Decisions._fields[_DECISIONS_HEAD:]]
)
_POSITION_HEAD: Final = LogPosition._fields.index("longest_grant_ms") + 1
_ACK_HEAD: Final = Ack._fields.index("sent_us") + 1
_new: Final = tuple.__new__  # skips the argument handling of NamedTuples, half of their cost


class MessagePackCodec:
    """Implements `ports.Codec`. Stateless: one object may serve every thread.

    `decode_log` raises LogStopped for bytes that can't be read; whether a reader of the log may
    step over them the records around tell (`read_log`). `decode` raises MalformedRequest: one bad
    record on another topic concerns its sender only.
    """

    def encode(self, record: Any) -> bytes:
        """Return the bytes of any record with a tag. Raises TypeError, ValueError or OverflowError
        for values that have no wire form (a programmer's error: values are storage values)."""
        tag = TAG_BY_CLASS[type(record)]
        if tag == _DECISIONS_TAG:
            record = record._replace(
                commits=tuple([_commit_fields(c) for c in record.commits]),
                refusals=tuple([_written(r, _REFUSAL_HEAD) for r in record.refusals]),
            )
            return _zipped(_packed((FORMAT, tag, *_written(record, _DECISIONS_HEAD))))
        if tag == _POSITION_TAG:
            return _packed((FORMAT, tag, *_written(record, _POSITION_HEAD)))
        if tag == _DEAD_LETTER_TAG:
            return _packed((FORMAT, tag, *_written(record, _DEAD_LETTER_HEAD)))
        if tag == _ACK_TAG:
            return _packed((FORMAT, tag, *_written(record, _ACK_HEAD)))
        if tag == _REPORT_TAG:
            return _packed((FORMAT, tag, *_written(record, _REPORT_HEAD)))
        if tag == _NODE_TAG:
            return _packed((FORMAT, tag, *_written(record, _NODE_HEAD)))
        return _packed((FORMAT, tag, *record))

    def pack_commit(self, commit: Commit) -> bytes:
        """Return a part for `join_decisions`; its length is what it adds to the record (L8)."""
        return _packed(_commit_fields(commit))

    def pack_refusal(self, refusal: Refusal) -> bytes:
        return _packed(_written(refusal, _REFUSAL_HEAD))

    def join_decisions(
        self, header: Decisions, commits: Sequence[bytes], refusals: Sequence[bytes]
    ) -> bytes:
        """Return exactly the bytes of `encode(header with these commits and refusals)`.

        `header` is a Decisions whose own commits and refusals are ignored.
        """
        before = (FORMAT, _DECISIONS_TAG, *header[:_COMMITS_FIELD])
        after = _written(header, _DECISIONS_HEAD)[_COMMITS_FIELD + 2 :]
        fields = len(before) + 2 + len(after)
        parts = [_array_head(fields), *map(_packed, before), _array_head(len(commits)), *commits]
        parts += [_array_head(len(refusals)), *refusals, *map(_packed, after)]
        return _zipped(b"".join(parts))

    def zipped_bytes(self, packed: bytes) -> int:
        """Return what a part takes of a record that has nothing else in it (L8)."""
        return len(zlib.compress(packed, 1))

    def decode_log(self, data: bytes) -> LogRecord:
        """Return a record of the log. Raises LogStopped for bytes that are no log record of a
        format known here."""
        try:
            fields = _unpacked(unzip_record(data))
            tag = fields[1]
            if tag == _DECISIONS_TAG:
                return _decisions(fields[2:])
            if tag not in _LOG_TAGS:
                raise ValueError(f"tag {tag!r:.20} is no log record")
            record: LogRecord = record_restorer(CLASS_BY_TAG[tag])(fields[2:])
        except Exception as error:  # whatever it is: nobody can read these bytes
            raise LogStopped(
                f"The log holds {len(data)} bytes that are no log record: {_words(error)}. "
                "Nothing was applied from it. If a newer release wrote it, install that release "
                "here; else restore the log from a good copy or re-create this node.",
                reason=_words(error),
            ) from error
        return record

    def read_log(self, data: bytes) -> LogRecord | Unreadable:
        """Return what stands in the log, whatever it is."""
        try:
            return self.decode_log(data)
        except LogStopped as error:
            return Unreadable(error.message, *_place_of(data))

    def decode(self, data: bytes) -> Any:
        """Return any record with a tag. Behind zlib travel records of the log alone, which
        `decode_log` reads. Raises MalformedRequest, and nothing else: anybody who may write to a
        topic chooses these bytes, and each of its readers comes to them."""
        try:
            fields = _unpacked(data)
            cls = CLASS_BY_TAG[fields[1]]
            return _RESTORED_HERE.get(cls, record_restorer(cls))(fields[2:])
        except Exception as error:
            raise MalformedRequest(f"{len(data)} bytes are no record: {_words(error)}") from error

    def decode_as(self, cls: type[RecordT], data: bytes) -> RecordT:
        """Return a record that must be a `cls`; a VersionEvent also as the versions topics hold it
        (JSON). Raises MalformedRequest, and nothing else."""
        public = cls is VersionEvent and data[:1] == b"{"
        record = _version_event(data) if public else self.decode(data)
        if type(record) is not cls:
            raise MalformedRequest(f"expected {cls.__name__}, found {type(record).__name__}")
        if isinstance(record, VersionEvent) and not 0 <= record.table_id <= INTEGER_MOST:
            raise MalformedRequest(f"a version event of table {record.table_id}, which is no id")
        return record

    def digest(self, data: bytes) -> bytes:
        """Return what the next record names as `previous` (L2)."""
        return blake2b(data, digest_size=DIGEST_BYTES).digest()

    def decode_request_in_slices(
        self, content_type: str, data: bytes
    ) -> Generator[None, None, ChangeRequest]:
        """Return what `decode_request` does, and yield now and then."""
        return decode_request_in_slices(content_type, data)

    def decode_request(self, content_type: str, data: bytes) -> ChangeRequest:
        return decode_request(content_type, data)


def _version_event(data: bytes) -> Any:
    """Raises MalformedRequest, and nothing else."""
    try:
        return _VERSION_EVENT(tuple(decode_event(data)))
    except Exception as error:
        words = f"{len(data)} bytes are no version event: {_words(error)}"
        raise MalformedRequest(words) from error


def row_key(key: Sequence[Any]) -> bytes:
    """Return the record key of a row on its rows topic: the primary key's storage values as one
    array.

    Equal keys have equal bytes (every storage value has one type and one shortest form), which is
    what compaction goes by.
    """
    return _packed(tuple(key))


def restore_row_key(data: bytes) -> tuple[Any, ...]:
    """Return the storage values of a record key. Raises MalformedRequest."""
    try:
        key = msgpack.unpackb(data, use_list=False, strict_map_key=False)
    except UNREADABLE as error:
        raise MalformedRequest(f"{len(data)} bytes are no row key: {_words(error)}") from error
    if type(key) is not tuple:
        raise MalformedRequest("a row key is an array of values")
    return key


def unpack_together(packed: Collection[bytes]) -> tuple[Any, ...]:
    """Return what each of them is, in a third of the time that one after the other takes. Raises
    one of UNREADABLE when any is not exactly one value."""
    together: tuple[Any, ...] = msgpack.unpackb(
        _array_head(len(packed)) + b"".join(packed), use_list=False, strict_map_key=False
    )
    return together


def _zipped(data: bytes) -> bytes:
    return zlib.compress(data, 1) if len(data) > ZIPPED_ABOVE_BYTES else data


def _plain(value: Any) -> Any:
    """What MessagePack has no form for but means the same as something it has."""
    if isinstance(value, IntKeys):
        return value.to_wire()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} has no wire form")


_PACKING: Final = Packing(_plain)


def _packed(value: Any) -> bytes:
    return _PACKING.pack(value)


def is_zipped(data: bytes) -> bool:
    return data[:1] == _ZLIB  # with which no array of MessagePack begins


def unzip_record(data: bytes) -> bytes:
    """Return a record of the log as it was packed, however it has travelled. Raises one of
    UNREADABLE."""
    if not is_zipped(data):
        return data
    reader = zlib.decompressobj()
    found = reader.decompress(data, UNZIPPED_BYTES_MAX)
    if reader.unconsumed_tail:
        raise ValueError(f"more than {UNZIPPED_BYTES_MAX} bytes when unpacked")
    if not reader.eof:
        raise ValueError("not all of what zlib has packed")
    return found


def _place_of(data: bytes) -> tuple[Any, ...]:
    """Return epoch, incarnation, sequence and previous digest of a Decisions or a Claim that can't
    be read otherwise; () of anything else. In every format they stand where they are now."""
    try:
        fields = msgpack.unpackb(unzip_record(data), use_list=False, strict_map_key=False)
        _, tag, epoch, incarnation = fields[:4]
        sequence, previous = fields[4:6] if tag == _DECISIONS_TAG else (0, fields[4])
    except UNREADABLE:
        return ()
    place = (epoch, incarnation, sequence, previous)
    named = tag in (_DECISIONS_TAG, _CLAIM_TAG)
    return place if named and tuple(map(type, place)) == (int, bytes, int, bytes) else ()


def _unpacked(data: bytes) -> tuple[Any, ...]:
    fields = msgpack.unpackb(data, use_list=False, strict_map_key=False)
    if type(fields) is not tuple or len(fields) < 2 or type(fields[0]) is not int:
        raise ValueError("not an array that starts with format and tag")
    if fields[0] != FORMAT:
        raise ValueError(
            f"it is of wire format {fields[0]}, and this release reads format {FORMAT} only; "
            f"a release of Leasehold that reads wire format {fields[0]} is needed"
        )
    return fields


def _words(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text[:200]


def _array_head(length: int) -> bytes:
    if length < 16:
        return bytes((0x90 | length,))
    if length < 1 << 16:
        return b"\xdc" + length.to_bytes(2, "big")
    return b"\xdd" + length.to_bytes(4, "big")


def _written(record: tuple[Any, ...], head: int) -> tuple[Any, ...]:
    """Return a record's fields without those behind `head` that say nothing, at the end: what has
    nothing new in it has the bytes that older releases write and read."""
    count = len(record)
    while count > head and not record[count - 1]:
        count -= 1
    return record[:count]


def _commit_fields(commit: Commit) -> tuple[Any, ...]:
    if not commit.catalog:
        # By far the most: as older releases write and read it.
        if commit.notifications is None and not commit.principal:
            return commit[:_COMMIT_HEAD]
        return _written(commit, _COMMIT_HEAD)
    written = commit._replace(catalog=tuple(map(_tagged_write, commit.catalog)))
    if commit.backfills:  # a chunk's, so that it has catalog writes, too
        spans = [_written(backfill, _BACKFILL_HEAD) for backfill in commit.backfills]
        written = written._replace(backfills=tuple(spans))  # type: ignore[arg-type]
    return _written(written, _COMMIT_HEAD)


def _tagged_write(write: CatalogWrite) -> Any:
    fields = _written(write, _CHUNK_HEAD) if type(write) is ChunkDecided else write
    return (TAG_BY_CLASS[type(write)], *fields)


def _decisions(fields: tuple[Any, ...]) -> Decisions:
    """Restore a Decisions. The log is trusted (written by a master of this database), so that row
    changes are restored without looking at every value; shapes that are off still fail, as
    UNREADABLE errors."""
    count = len(fields)
    if count < _DECISIONS_HEAD or count > _DECISIONS_FIELDS:
        fields = complete_fields(Decisions, fields)
    elif count < _DECISIONS_FIELDS:
        fields += _DECISIONS_TAIL[count - _DECISIONS_HEAD :]
    epoch, incarnation, sequence, previous, first, commits, refusals = fields[:7]
    through, answered, grants, closed_us, id_horizon_us, reset_us, *last = fields[7:]
    queue_topics, attempts, barriers, feature_level = last
    return Decisions(
        epoch,
        incarnation,
        sequence,
        previous,
        first,
        tuple([_commit(commit) for commit in commits]),
        tuple([_REFUSAL(refusal) for refusal in refusals]) if refusals else (),
        through,
        answered,
        tuple([_GRANT(grant) for grant in grants]) if grants else (),
        closed_us,
        id_horizon_us,
        reset_us,
        queue_topics,
        tuple([_ATTEMPT(attempt) for attempt in attempts]) if attempts else (),
        tuple([_BARRIER(barrier) for barrier in barriers]) if barriers else (),
        feature_level,
    )


def _commit(fields: Any) -> Commit:
    principal, notifications = _COMMIT_TAIL
    if len(fields) != _COMMIT_HEAD:
        fields = complete_fields(Commit, fields)
        principal, told = fields[_COMMIT_HEAD:]
        notifications = None if told is None else _NOTIFICATIONS(told)
    request_id, attempt, at_us, versions, changes, rows, reply_to, backfills, catalog, answer = (
        fields[:_COMMIT_HEAD]
    )
    restored: tuple[Any, ...] = (
        request_id,
        attempt,
        at_us,
        versions,
        tuple(
            [
                _new(
                    RowChange,
                    (_KINDS[change[0]], *change[1:])
                    if len(change) == 8
                    else (_KINDS[change[0]], *change[1:], {}),
                )
                for change in changes
            ]
        ),
        rows,
        reply_to,
        tuple([_backfill(backfill) for backfill in backfills]) if backfills else (),
        tuple([_CATALOG(write) for write in catalog]) if catalog else (),
        answer,
        principal,
        notifications,
    )
    return _new(Commit, restored)


def _backfill(fields: tuple[Any, ...]) -> Backfill:
    """Restore a backfill as a row change is: values of images and genids are not looked at one by
    one."""
    if len(fields) != _BACKFILL_FIELDS:
        fields = complete_fields(Backfill, fields)
    *head, keys, images, genids, span, copied = fields
    if type(images) is not tuple or type(genids) is not tuple:
        raise ValueError("Fill: expected arrays of images and genids")
    if not {dict}.issuperset(map(type, images + genids)):
        raise ValueError("Fill: expected maps as images and genids")
    between = None if span is None else _SPAN(span)
    rows = None if copied is None else _copied_rows(copied)
    return _new(Backfill, (*head, restore_keys(keys), images, genids, between, rows))


def _copied_rows(fields: Any) -> CopiedRows:
    """Restore rows that are copied as they are: whoever has a table of his own looks at their
    digest alone."""
    if type(fields) is not tuple:
        raise ValueError("CopiedRows: expected an array")
    fields = complete_fields(CopiedRows, fields)
    columns, key_width, locks, rows, digest = fields
    if not {tuple}.issuperset(map(type, (columns, locks, rows))):
        raise ValueError("CopiedRows: expected arrays of columns, locks and rows")
    if not {int}.issuperset(map(type, (key_width, digest))):
        raise ValueError("CopiedRows: expected the key's width and a digest")
    if not {tuple}.issuperset(map(type, rows)):
        raise ValueError("CopiedRows: expected an array of each row")
    return _new(CopiedRows, fields)


_RESULT: Final = record_restorer(Result)
_OUTCOME_TYPES: Final = (int, int, int, int, bool, str, str, dict, bool)  # all but `answer`


def _result_batch(fields: tuple[Any, ...]) -> ResultBatch:
    """Restore hundreds of outcomes, each looked at in one go: a third of the restorer's time."""
    (results,) = fields
    if type(results) is not tuple:
        raise ValueError("ResultBatch.results: expected an array")
    return ResultBatch(tuple([_result(result) for result in results]))


def _result(fields: Any) -> Result:
    if type(fields) is tuple and len(fields) == 3:
        request_id, offset, outcome = fields
        plain = type(request_id) is bytes and type(offset) is int and type(outcome) is tuple
        # Only a refusal has details, which the restorer looks at.
        plain = plain and len(outcome) == 10 and not outcome[7]
        if plain and tuple(map(type, outcome[:9])) == _OUTCOME_TYPES:
            return _new(Result, (request_id, offset, _new(Outcome, outcome)))
    restored: Result = _RESULT(fields)  # of an older writer, or it says what is wrong
    return restored


_RESTORED_HERE: Final[Mapping[type[Any], Restorer]] = {
    Decisions: _decisions,
    ResultBatch: _result_batch,
}
