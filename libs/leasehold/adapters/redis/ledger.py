"""The ledger in Redis: one Lua call per command, the run id checked inside it (D6).

`ledger.lua` answers as `lease/ledger/ledger.py` does. This file turns commands into
arguments and
replies back, and every trouble with the connection into LedgerUnavailable, in bounded time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from hashlib import sha1
from pathlib import Path
from typing import Any, Final

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from leasehold.lease.commands import (
    LEASES_PER_SESSION_MAX,
    SESSION_ID_MAX,
    TABLES_PER_CALL_MAX,
    Acquire,
    Command,
    DropTable,
    ExpireAgent,
    Holders,
    KillSession,
    Lease,
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
)
from leasehold.lease.replies import (
    Dropped,
    EpochRegistered,
    Expired,
    Granted,
    HolderList,
    Holding,
    Killed,
    LedgerRefused,
    LivenessReport,
    MinVersionSet,
    NewestVersions,
    Opened,
    Published,
    Ready,
    RefusalReason,
    Registered,
    Released,
    Renewed,
    Reply,
    Seeded,
    SessionStatus,
    SnapshotReport,
    TableStatus,
)
from leasehold.model.errors import LedgerUnavailable
from leasehold.settings.environment import RedisSettings

CALL_TIMEOUT_S: Final = 2.0
"""For connecting, and for each call. A renewal may fail several times within a TTL."""

AGENT_BYTES_MAX: Final = 255
NUMBER_MAX: Final = SESSION_ID_MAX
"""Lua's numbers are doubles."""

Arguments = list[str | int]


class RedisLedger:
    """The ledger by one connection, not for several threads at once. `database` prefixes the
    keys."""

    def __init__(
        self, settings: RedisSettings, database: str, call_timeout_s: float = CALL_TIMEOUT_S
    ) -> None:
        self._client: redis.Redis = redis.Redis.from_url(
            settings.url,
            decode_responses=True,
            protocol=2,
            socket_timeout=call_timeout_s,
            socket_connect_timeout=call_timeout_s,
            # What to do after a lost answer is the protocol's to decide, not the client's.
            retry=Retry(NoBackoff(), 0),
            single_connection_client=False,
            max_connections=2,
            **settings.client_options(),
        )
        self._connection: Any = None
        self._prefix = f"leasehold:{{{database}}}"
        self._where = settings.where

    def call(self, command: Command) -> Reply:
        """Raises LedgerUnavailable: the outcome is then unknown, and asking again is allowed."""
        arguments = [_NAMES[type(command)], *_ARGUMENTS[type(command)](command)]
        _check_numbers(arguments)
        source, digest = _script()
        try:
            try:
                raw = self._ask("EVALSHA", digest, arguments)
            except redis.exceptions.NoScriptError:  # a Redis that was restarted has no scripts
                raw = self._ask("EVAL", source, arguments)
        except (redis.RedisError, OSError) as error:
            raise LedgerUnavailable(
                f"Redis at {self._where} did not answer a {type(command).__name__} ({error}). "
                "Reads and writes go on; schema changes wait until it is back.",
                ledger=self._where,
                command=type(command).__name__,
            ) from error
        return _reply(raw)

    def call_all(self, commands: Sequence[Command]) -> list[Reply]:
        """The replies to `commands`, in order, for what one round trip takes and not one each. For
        commands that only look: after an error nobody knows which of them were carried out.

        Raises LedgerUnavailable.
        """
        if not commands:
            return []
        first = self.call(commands[0])  # afterwards the script is there
        _, digest = _script()
        given = [[_NAMES[type(c)], *_ARGUMENTS[type(c)](c)] for c in commands[1:]]
        for arguments in given:
            _check_numbers(arguments)
        connection = self._open_connection()
        try:
            connection.send_packed_command(
                connection.pack_commands(
                    ("EVALSHA", digest, 1, self._prefix, *arguments) for arguments in given
                )
            )
            raw = [connection.read_response() for _ in given]
        except (redis.RedisError, OSError) as error:
            connection.disconnect()  # replies that were not read belong to nobody
            raise LedgerUnavailable(
                f"Redis at {self._where} did not answer {len(commands)} questions ({error}). "
                "Reads and writes go on; schema changes wait until it is back.",
                ledger=self._where,
            ) from error
        return [first, *map(_reply, raw)]

    def _ask(self, how: str, script: str, arguments: Arguments) -> Any:
        connection = self._open_connection()
        connection.send_command(how, script, 1, self._prefix, *arguments)
        return connection.read_response()

    def _open_connection(self) -> Any:
        """Past the client's pool and retries, which take longer than all the rest of a call."""
        connection = self._connection
        if connection is None:
            connection = self._connection = self._client.connection_pool.get_connection()
        elif _stale(connection):
            connection.disconnect()  # to send makes it anew
        return connection

    def close(self) -> None:
        self._client.close()


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


def _check_numbers(arguments: Sequence[str | int]) -> None:
    for argument in arguments:
        if isinstance(argument, int):
            assert 0 <= argument <= NUMBER_MAX, f"{argument} is no number for the ledger"
        else:
            assert len(argument.encode()) <= AGENT_BYTES_MAX, f"too long a name: {argument:.40}…"


# --- commands → arguments ----------------------------------------------------------------------


def _flat(command: Any) -> Arguments:
    return list(command)


def _register(command: Register) -> Arguments:
    arguments: Arguments = [command.agent, command.session, command.counter]
    assert len(command.leases) <= LEASES_PER_SESSION_MAX + 1, "more leases than can be held"
    for lease in command.leases:
        arguments += lease
    return arguments


def _publish(command: Publish) -> Arguments:
    assert 1 <= len(command.changes) <= TABLES_PER_CALL_MAX, "a publish names its tables"
    assert len({change.table for change in command.changes}) == len(command.changes)
    arguments: Arguments = [command.epoch, command.intent]
    for change in command.changes:
        arguments += change
    return arguments


def _seed(command: SeedTables) -> Arguments:
    assert len(command.tables) <= TABLES_PER_CALL_MAX, "a re-seeding goes in parts"
    arguments: Arguments = [command.epoch, command.run_id, command.part, int(command.final)]
    for seed in command.tables:
        assert 1 <= seed.min_version <= seed.current, f"D5: {seed}"
        arguments += seed
    return arguments


_NAMES: Final[dict[type, str]] = {
    OpenSession: "open",
    Renew: "renew",
    Register: "register",
    Acquire: "acquire",
    Release: "release",
    RegisterEpoch: "register_epoch",
    Publish: "publish",
    SetMinVersion: "set_min_version",
    SeedTables: "seed",
    MarkReady: "mark_ready",
    KillSession: "kill",
    ExpireAgent: "expire",
    DropTable: "drop",
    Holders: "holders",
    Liveness: "liveness",
    Newest: "newest",
    Snapshot: "snapshot",
}

_ARGUMENTS: Final[dict[type, Callable[[Any], Arguments]]] = {
    **dict.fromkeys(_NAMES, _flat),
    Register: _register,
    Publish: _publish,
    SeedTables: _seed,
}


# --- replies -----------------------------------------------------------------------------------


def _reply(raw: Any) -> Reply:
    kind, run_id, *rest = raw
    return _REPLIES[kind](run_id, *rest)


def _flag(text: str) -> bool:
    return text == "1"


def _holdings(raw: list[list[str]]) -> tuple[Holding, ...]:
    return tuple(Holding(int(t), int(v), int(session), agent) for t, v, session, agent in raw)


def _refused(run_id: str, reason: str, *rest: Any) -> LedgerRefused:
    *numbers, holders = rest
    table, current, min_version, epoch, counter, total = map(int, numbers)
    return LedgerRefused(
        RefusalReason(reason),
        run_id,
        table,
        current,
        min_version,
        epoch,
        counter,
        total,
        _holdings(holders),
    )


def _liveness(run_id: str, epoch: str, seeded: str, ready: str, raw: Any) -> LivenessReport:
    sessions = tuple(
        SessionStatus(int(session), agent, int(counter), int(held), _flag(expiring))
        for session, agent, counter, held, expiring in raw
    )
    return LivenessReport(run_id, int(epoch), _flag(seeded), _flag(ready), sessions)


def _snapshot(run_id: str, *rest: Any) -> SnapshotReport:
    *liveness, raw = rest
    tables = tuple(
        TableStatus(
            int(table),
            int(current),
            int(min_version),
            int(intent),
            tuple((int(version), int(count)) for version, count in leases),
        )
        for table, current, min_version, intent, leases in raw
    )
    return SnapshotReport(*_liveness(run_id, *liveness), tables)


_REPLIES: Final[dict[str, Callable[..., Reply]]] = {
    "refused": _refused,
    "opened": lambda run, session: Opened(run, int(session)),
    "renewed": lambda run, counter: Renewed(run, int(counter)),
    "registered": lambda run, seeded, refused: Registered(
        run, _flag(seeded), tuple(Lease(int(t), int(v)) for t, v in refused)
    ),
    "granted": lambda run, *numbers: Granted(run, *map(int, numbers)),
    "released": lambda run, was_held: Released(run, _flag(was_held)),
    "epoch registered": lambda run, seeded, ready: EpochRegistered(
        run, _flag(seeded), _flag(ready)
    ),
    "published": lambda run, already: Published(run, _flag(already)),
    "min version set": lambda run, version, total, holders: MinVersionSet(
        run, int(version), int(total), _holdings(holders)
    ),
    "seeded": lambda run, complete, swept: Seeded(run, _flag(complete), int(swept)),
    "ready": Ready,
    "killed": lambda run, freed: Killed(run, int(freed)),
    "expired": lambda run, sessions: Expired(run, tuple(map(int, sessions))),
    "dropped": lambda run, freed: Dropped(run, int(freed)),
    "holders": lambda run, ready, total, holders: HolderList(
        run, _flag(ready), int(total), _holdings(holders)
    ),
    "liveness": _liveness,
    "newest": lambda run, raw: NewestVersions(
        run, tuple((int(table), int(current)) for table, current in raw)
    ),
    "snapshot": _snapshot,
}
