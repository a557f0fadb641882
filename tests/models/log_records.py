"""Records by number, and what everyone knows who has read so far: `admit` folded over the log."""

from __future__ import annotations

from typing import Any, NamedTuple

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import (
    CatalogWrite,
    Claim,
    Commit,
    Decisions,
    DescriptorWrite,
    JobWrite,
    LogPosition,
    LogRecord,
    MinVersion,
)
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.log.admission import Verdict
from tests.models.mutants.replication import LogRules, admit_under


class Known(NamedTuple):
    """What everyone who has read so far knows: the position, the requests that are in the log,
    or why reading stopped there."""

    position: LogPosition
    requests: frozenset[int]
    verdict: Verdict
    stopped: str


class Records:
    """Logs are tuples of numbers of records (`records`); `words` are theirs, for traces."""

    def __init__(self, rules: LogRules, *, mismatch_skips: bool = True) -> None:
        """`mismatch_skips`: an overtaken Claim is passed over and no error (L1)."""
        self._admit = admit_under(rules)
        self._mismatch_skips = mismatch_skips
        self.records: list[LogRecord] = []
        self.words: list[str] = []
        self._numbers: dict[Any, int] = {}
        nothing = Known(LogPosition(), frozenset(), Verdict.SKIP, "")
        self._known: dict[tuple[int, ...], Known] = {(): nothing}

    def number(self, record: LogRecord) -> int:
        """Records of equal content are one record: their digest is this number."""
        key: tuple[Any, ...] = tuple(record)
        if isinstance(record, Decisions):
            key = (*record[:5], tuple(map(_content, record.commits)), record.grants)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.records)
            self.records.append(record)
            self.words.append(words(record))
        return found

    def known(self, prefix: tuple[int, ...]) -> Known:
        found = self._known.get(prefix)
        if found is None:
            found = self._known[prefix] = self._judged(prefix)
        return found

    def _judged(self, prefix: tuple[int, ...]) -> Known:
        before = self.known(prefix[:-1])
        if before.stopped:
            return before
        number = prefix[-1]
        record = self.records[number]
        digest = number.to_bytes(2, "big")
        overtaken = (
            isinstance(record, Claim)
            and record.epoch == before.position.epoch + 1
            and record.previous != before.position.digest
        )
        if overtaken and not self._mismatch_skips:
            return before._replace(stopped="the Claim's digest is not that of the record before")
        try:
            verdict, after = self._admit(before.position, len(prefix) - 1, record, digest)
        except LogStopped as error:
            return before._replace(stopped=error.message)
        requests = before.requests
        if verdict is Verdict.APPLY:
            assert isinstance(record, Decisions)
            requests |= {int(c.request_id) for c in record.commits if c.request_id}
        return Known(after, requests, verdict, "")


def _content(commit: Commit) -> Any:
    return commit.request_id, tuple(commit.versions.items()), repr(commit.catalog)


def words(record: LogRecord) -> str:
    """A record in a few words, for traces."""
    if isinstance(record, Claim):
        return f"Claim(epoch {record.epoch} for {record.node}.{record.incarnation[1]})"
    assert isinstance(record, Decisions)
    parts = [text for commit in record.commits for text in _commit(commit)]
    parts += [f"grant for the ask of {grant.asked_ns // NS_PER_MS}" for grant in record.grants]
    return f"Decisions(epoch {record.epoch}.{record.sequence}: {'; '.join(parts)})"


def _commit(commit: Commit) -> list[str]:
    if not commit.request_id:
        return [_write(write) for write in commit.catalog]
    under = "".join(f" under version {version}" for version in commit.versions.values())
    return [f"request {commit.request_id.decode()}{under}"]


def _write(write: CatalogWrite) -> str:
    match write:
        case DescriptorWrite(version=version):
            return f"version {version}"
        case MinVersion(version=version):
            return f"min_version {version}"
        case JobWrite(body=body):
            return f"job: step {body['step']} {body['phase']}"
        case _:
            return repr(write)
