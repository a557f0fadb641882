"""The ledger in Redis: one Lua call per command, the run id checked inside it (D6).

`ledger.lua` answers as `lease/ledger/ledger.py` does. This file turns commands into arguments, what
comes back into replies, by the fields that both have, and every trouble with the connection into
LedgerUnavailable, in bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

import redis

from leasehold.adapters.redis.client import make_client
from leasehold.adapters.redis.server_look import NO_CLUSTER
from leasehold.lease.commands import (
    LEASES_PER_SESSION_MAX,
    LOCKS_PER_CALL_MAX,
    SESSION_ID_MAX,
    TABLES_PER_CALL_MAX,
    Acquire,
    ClaimLocks,
    Command,
    DropTable,
    EndSession,
    ExpireAgent,
    GiveLock,
    GiveLocks,
    Holders,
    KillSession,
    ListLocks,
    Liveness,
    MarkReady,
    Newest,
    OpenSession,
    Publish,
    Register,
    RegisterEpoch,
    Release,
    Renew,
    SeedTables,
    SetMinVersion,
    Snapshot,
    TakeLock,
    Vouch,
)
from leasehold.lease.replies import (
    Dropped,
    Ended,
    EpochRegistered,
    Expired,
    Granted,
    HolderList,
    Killed,
    LedgerRefused,
    LivenessReport,
    LockGiven,
    LockList,
    LocksClaimed,
    LockTaken,
    LockWaits,
    MinVersionSet,
    NewestVersions,
    Opened,
    Published,
    Ready,
    Registered,
    Released,
    Renewed,
    Reply,
    Seeded,
    SnapshotReport,
    Vouched,
)
from leasehold.model.errors import LedgerUnavailable
from leasehold.settings.environment import RedisSettings

CALL_TIMEOUT_S: Final = 2.0
"""For connecting, and for each call. A renewal may fail several times within a TTL."""

AGENT_BYTES_MAX: Final = 255
NUMBER_MAX: Final = SESSION_ID_MAX
"""Lua's numbers are doubles."""

_OF_CLUSTERS: Final = (
    redis.exceptions.MovedError,
    redis.exceptions.ClusterCrossSlotError,
    redis.exceptions.ClusterDownError,
)
"""Answers that only a Redis Cluster gives."""

Arguments = list[str | int]


class RedisLedger:
    """The ledger by one connection, not for several threads at once. `database` prefixes the
    keys."""

    def __init__(
        self, settings: RedisSettings, database: str, call_timeout_s: float = CALL_TIMEOUT_S
    ) -> None:
        self._client = make_client(
            settings, call_timeout_s, decode_responses=True, max_connections=2
        )
        self._connection: Any = None
        self._prefix = f"leasehold:{{{database}}}"
        self._where = settings.where

    def call(self, command: Command) -> Reply:
        """Carry out a command. Raises LedgerUnavailable: the outcome is then unknown, and asking
        again is allowed."""
        arguments = _arguments(command)
        source, digest = _script()
        try:
            try:
                raw = self._ask("EVALSHA", digest, arguments)
            except redis.exceptions.NoScriptError:  # a Redis that was restarted has no scripts
                raw = self._ask("EVAL", source, arguments)
        except (redis.RedisError, OSError) as error:
            if isinstance(error, _OF_CLUSTERS):
                error = redis.RedisError(f"it is {NO_CLUSTER}")
            raise LedgerUnavailable(
                f"Redis at {self._where} did not answer a {type(command).__name__} ({error}). "
                "Reads and writes go on; schema changes wait until it is back.",
                ledger=self._where,
                command=type(command).__name__,
            ) from error
        return _reply(raw)

    def call_all(self, commands: Sequence[Command]) -> list[Reply]:
        """Return the replies to `commands`, in order, for what one round trip takes and not one
        each. For commands that only look: after an error nobody knows which of them were done.

        Raises LedgerUnavailable.
        """
        if not commands:
            return []
        first = self.call(commands[0])  # afterwards the script is there
        _, digest = _script()
        given = [_arguments(command) for command in commands[1:]]
        try:
            connection = self._open_connection()
            with _closed_unless_answered(connection, len(given)):
                connection.send_packed_command(
                    connection.pack_commands(
                        ("EVALSHA", digest, 1, self._prefix, *arguments) for arguments in given
                    )
                )
                raw = [connection.read_response() for _ in given]
        except (redis.RedisError, OSError) as error:
            raise LedgerUnavailable(
                f"Redis at {self._where} did not answer {len(commands)} questions ({error}). "
                "Reads and writes go on; schema changes wait until it is back.",
                ledger=self._where,
            ) from error
        return [first, *map(_reply, raw)]

    def _ask(self, how: str, script: str, arguments: Arguments) -> Any:
        connection = self._open_connection()
        with _closed_unless_answered(connection):
            connection.send_command(how, script, 1, self._prefix, *arguments)
            return connection.read_response()

    def _open_connection(self) -> Any:
        """Return the connection, past the client's pool and retries, which take longer than all the
        rest of a call."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._client.connection_pool.get_connection()
        elif _stale(connection):
            connection.disconnect()
        if not connection.is_connected:
            # ⚠ To send would connect it, too, but to where it was: Sentinels are asked here alone.
            connection.connect()
        return connection

    def close(self) -> None:
        self._client.close()


@contextmanager
def _closed_unless_answered(connection: Any, calls: int = 1) -> Iterator[None]:
    """Close the connection where what was asked by it may be answered later: the next call would
    take that for its own answer, and a lease for longer than it is. ⚠ redis-py does so for a
    connection to a server, and not for one that it has from Sentinels (8.1)."""
    try:
        yield
    except redis.exceptions.ResponseError:
        if calls > 1:
            connection.disconnect()
        raise  # the one answer
    except BaseException:
        connection.disconnect()
        raise


def _stale(connection: Any) -> bool:
    """Whether Redis has closed the connection since. (To be restarted between two calls is no
    trouble of a call.)"""
    try:
        return bool(connection.is_connected and connection.can_read())
    except (redis.RedisError, OSError):
        return True


@cache
def _script() -> tuple[str, str]:
    source = (Path(__file__).parent / "ledger.lua").read_text(encoding="utf-8")
    return source, sha1(source.encode(), usedforsecurity=False).hexdigest()


# --- commands → arguments ----------------------------------------------------------------------

_NAMES: Final[dict[type, str]] = {
    OpenSession: "open",
    Renew: "renew",
    Register: "register",
    Acquire: "acquire",
    Release: "release",
    EndSession: "end_session",
    RegisterEpoch: "register_epoch",
    Vouch: "vouch",
    Publish: "publish",
    SetMinVersion: "set_min_version",
    SeedTables: "seed",
    MarkReady: "mark_ready",
    KillSession: "kill",
    ExpireAgent: "expire",
    DropTable: "drop",
    TakeLock: "take_lock",
    GiveLock: "give_lock",
    ClaimLocks: "claim_locks",
    GiveLocks: "give_locks",
    ListLocks: "list_locks",
    Holders: "holders",
    Liveness: "liveness",
    Newest: "newest",
    Snapshot: "snapshot",
}


def _arguments(command: Command) -> Arguments:
    """Return the command's name and its fields: numbers and names in their order, then whatever
    records it holds, field by field."""
    _check_limits(command)
    arguments: Arguments = [_NAMES[type(command)]]
    records: list[tuple[int, ...]] = []
    for part in command:
        if isinstance(part, tuple):
            records += part
        else:
            arguments.append(int(part) if isinstance(part, bool) else part)
    for record in records:
        arguments += record
    for argument in arguments:
        if isinstance(argument, int):
            assert 0 <= argument <= NUMBER_MAX, f"{argument} is no number for the ledger"
        else:
            assert len(argument.encode()) <= AGENT_BYTES_MAX, f"too long a name: {argument:.40}…"
    return arguments


def _check_limits(command: Command) -> None:
    match command:
        case Register(leases=leases):
            assert len(leases) <= LEASES_PER_SESSION_MAX + 1, "more leases than can be held"
        case Publish(changes=changes):
            assert 1 <= len(changes) <= TABLES_PER_CALL_MAX, "a publish names its tables"
            assert len({change.table for change in changes}) == len(changes)
        case ClaimLocks(names=names) | GiveLocks(names=names):
            assert 1 <= len(names) <= LOCKS_PER_CALL_MAX, "claims go in parts"
        case SeedTables(tables=tables):
            assert len(tables) <= TABLES_PER_CALL_MAX, "a re-seeding goes in parts"
            for seed in tables:
                assert 1 <= seed.min_version <= seed.current, f"D5: {seed}"


# --- replies -----------------------------------------------------------------------------------

Read = Callable[[Any], Any]


def _reader(hint: Any) -> Read:
    """Return the function that makes what an annotation promises of texts, and of arrays of them,
    as Lua sends them."""
    if get_origin(hint) is tuple:
        return _tuple_reader(*get_args(hint))
    if issubclass(hint, tuple):
        fields = _tuple_reader(*get_type_hints(hint).values())
        return lambda raw: hint(*fields(raw))
    return _read_flag if hint is bool else hint


def _tuple_reader(*hints: Any) -> Read:
    if hints[-1] is Ellipsis:
        each = _reader(hints[0])
        return lambda raw: tuple(map(each, raw))
    readers = tuple(map(_reader, hints))
    return lambda raw: tuple(read(part) for read, part in zip(readers, raw, strict=True))


def _read_flag(text: str) -> bool:
    return text == "1"


_REPLIES: Final[dict[str, Read]] = {
    kind: _reader(reply)
    for kind, reply in {
        "refused": LedgerRefused,
        "opened": Opened,
        "renewed": Renewed,
        "registered": Registered,
        "granted": Granted,
        "released": Released,
        "ended": Ended,
        "epoch registered": EpochRegistered,
        "vouched": Vouched,
        "published": Published,
        "min version set": MinVersionSet,
        "seeded": Seeded,
        "ready": Ready,
        "killed": Killed,
        "expired": Expired,
        "dropped": Dropped,
        "lock taken": LockTaken,
        "lock waits": LockWaits,
        "lock given": LockGiven,
        "locks claimed": LocksClaimed,
        "locks": LockList,
        "holders": HolderList,
        "liveness": LivenessReport,
        "newest": NewestVersions,
        "snapshot": SnapshotReport,
    }.items()
}
"""By what a reply begins with; its fields follow in the order that the class has them."""


def _reply(raw: Any) -> Reply:
    kind, run_id, *rest = raw
    if kind == "refused":  # its reason stands before the run id
        reason, *rest = rest
        rest = [run_id, *rest]
        run_id = reason
    reply: Reply = _REPLIES[kind]([run_id, *rest])
    return reply
