"""The small tables of a store: log position, descriptors, min versions, jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import apsw
import msgpack

from leasehold.adapters.sqlite.access import StoredAccess, read_access
from leasehold.adapters.sqlite.dead_elements import (
    VersionBrief,
    brief_of,
    dead_elements,
    needed_elements,
)
from leasehold.adapters.sqlite.history import collected_elements, keep_elements, raise_floor
from leasehold.adapters.sqlite.layout import (
    LEVEL_LAYOUT,
    count_change,
    history_tables,
    raise_layout,
    tables_of_rows,
)
from leasehold.adapters.sqlite.row_history import kept_from
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.job import Status
from leasehold.catalog.states import State
from leasehold.model.ports import StoredCatalog
from leasehold.model.records.log import Attempt, LogPosition

# All of it: a store that an earlier program has written has fewer columns while it is only read.
_GET_POSITION: Final = (
    "SELECT * FROM position"  # as TABLES, QUEUE_TOPICS, TIMES and LEVEL of the layout
)
_POSITION_FIELDS: Final = slice(1, 11)
_QUEUE_TOPICS: Final = 13
_TIMES: Final = slice(14, 17)
_LEVEL: Final = 17
_PUT_POSITION: Final = """
UPDATE position SET log_offset = ?, epoch = ?, incarnation = ?, sequence = ?, digest = ?, lsn = ?,
    commit_us = ?, decided_through = ?, answered_through = ?, longest_grant_ms = ?,
    closed_us = ?, id_horizon_us = ?, reset_us = ?, lane_topics = ?, feature_level = ?
"""
_NO_TOPICS: Final = b"\x80"
_GET_ATTEMPTS: Final = "SELECT lane, log_offset, rows, lost FROM attempts ORDER BY lane"


def read_position(connection: apsw.Connection) -> LogPosition:
    """The log position stored in the transaction that `connection` sees; of `attempts`, which a
    store of an earlier release has no table for, the writer alone knows."""
    found: tuple[Any, ...] = connection.execute(_GET_POSITION).fetchall()[0]
    position = LogPosition(*found[_POSITION_FIELDS], *found[_TIMES])
    topics = found[_QUEUE_TOPICS] if len(found) > _QUEUE_TOPICS else _NO_TOPICS
    return position._replace(
        decided_through=msgpack.unpackb(position.decided_through),
        queue_topics=msgpack.unpackb(topics),
        feature_level=found[_LEVEL] if len(found) > _LEVEL else 0,
    )


def read_descriptors(connection: apsw.Connection) -> list[Any]:
    """Wire forms of every kept version, in order of table id and version."""
    return [
        msgpack.unpackb(body, strict_map_key=False)
        for (body,) in connection.execute("SELECT body FROM descriptors ORDER BY table_id, version")
    ]


def read_min_versions(connection: apsw.Connection) -> dict[int, int]:
    """Return the min version of each table that has one."""
    found: list[Any] = connection.execute("SELECT table_id, version FROM min_versions").fetchall()
    return dict(found)


def read_catalog(connection: apsw.Connection) -> StoredCatalog:
    jobs = [
        msgpack.unpackb(body, strict_map_key=False)
        for (body,) in connection.execute("SELECT body FROM jobs ORDER BY job_id")
    ]
    return StoredCatalog(
        read_descriptors(connection),
        read_min_versions(connection),
        jobs,
        connection.execute("SELECT ledger_run FROM position").get,
        *read_access(connection),
    )


def read_running_jobs(connection: apsw.Connection) -> list[Any]:
    """Return the wire forms of the jobs that have not ended."""
    bodies = (body for (body,) in connection.execute("SELECT body FROM jobs ORDER BY job_id"))
    jobs = (msgpack.unpackb(body, strict_map_key=False) for body in bodies)
    return [job for job in jobs if not Status(job["status"]).ended]


def read_newest_job(connection: apsw.Connection, table_id: int) -> Any | None:
    """Return the wire form of a table's newest job, which is the only one that may go on (D9);
    None: there is none."""
    for (body,) in connection.execute("SELECT body FROM jobs ORDER BY job_id DESC"):
        job = msgpack.unpackb(body, strict_map_key=False)
        if job["table_id"] == table_id:
            return job
    return None


class StoredTables:
    """Reads and writes of the writer's connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection
        self._execute = connection.cursor().execute
        self.access = StoredAccess(connection)
        self._briefs: dict[tuple[int, int], tuple[bytes, VersionBrief]] = {}
        self._queue_topics: tuple[Mapping[str, str], bytes] = ({}, _NO_TOPICS)
        self._attempts: tuple[Attempt, ...] | None = None  # as they are stored, None: not known
        self._has_level = False  # the file says that its database has a feature level

    def position(self) -> LogPosition:
        found: list[Any] = self._execute(_GET_ATTEMPTS).fetchall()
        attempts = tuple([Attempt(*attempt) for attempt in found])
        return read_position(self._connection)._replace(attempts=attempts)

    def put_position(self, position: LogPosition) -> None:
        through = msgpack.packb(dict(position.decided_through))
        if position.queue_topics is not self._queue_topics[0]:  # one object for all of a term
            self._queue_topics = (position.queue_topics, msgpack.packb(dict(position.queue_topics)))
        level = position.feature_level
        fields = (*position[:7], through, *position[8:13], self._queue_topics[1], level)
        self._execute(_PUT_POSITION, fields)
        if level and not self._has_level:
            # ⚠ Looked at once more in the next transaction: this one may be rolled back.
            self._has_level = self._connection.pragma("user_version") >= LEVEL_LAYOUT
            raise_layout(self._connection, LEVEL_LAYOUT)
        if position.attempts != self._attempts:
            self._put_attempts(position.attempts)

    def _put_attempts(self, attempts: tuple[Attempt, ...]) -> None:
        self._execute("DELETE FROM attempts")
        for attempt in attempts:
            self._execute("INSERT INTO attempts VALUES (?, ?, ?, ?)", tuple(attempt))
        self._attempts = attempts

    def catalog(self) -> StoredCatalog:
        return read_catalog(self._connection)

    def put_descriptor(self, table_id: int, version: int, body: Any) -> None:
        self._execute(
            "INSERT OR REPLACE INTO descriptors VALUES (?, ?, ?)",
            (table_id, version, msgpack.packb(body)),
        )
        count_change(self._connection, table_id)

    def collect_descriptor(self, table_id: int, version: int, until_lsn: int) -> None:
        gone = next(each for each in self._versions(table_id) if each.version == version)
        keep_elements(self._connection, table_id, gone.elements)
        self._execute(
            "DELETE FROM descriptors WHERE table_id = ? AND version = ?", (table_id, version)
        )
        del self._briefs[table_id, version]
        raise_floor(self._connection, until_lsn)
        count_change(self._connection, table_id)

    def put_min_version(self, table_id: int, version: int) -> None:
        self._execute("INSERT OR REPLACE INTO min_versions VALUES (?, ?)", (table_id, version))
        count_change(self._connection, table_id)

    def forget_table(self, table_id: int) -> None:
        for version in self._versions(table_id):
            del self._briefs[table_id, version.version]
            raise_floor(self._connection, version.since_lsn)
        for name in ("descriptors", "min_versions", "collected", "removed"):
            self._execute(f"DELETE FROM {name} WHERE table_id = ?", (table_id,))  # noqa: S608 - ours
        self.access.forget_object(table_id)
        count_change(self._connection, table_id)

    def forget_job(self, job_id: int) -> None:
        self._execute("DELETE FROM jobs WHERE job_id = ?", (job_id,))

    def put_job(self, job_id: int, body: Any) -> None:
        self._execute("INSERT OR REPLACE INTO jobs VALUES (?, ?)", (job_id, msgpack.packb(body)))

    def put_ledger_run(self, run_id: str) -> None:
        self._execute("UPDATE position SET ledger_run = ?", (run_id,))

    def dead_elements(self, table_id: int) -> frozenset[int]:
        """Ids left over on purpose, as of what this transaction sees."""
        lowest = self._min_version(table_id)
        collected = collected_elements(self._connection, table_id)
        return dead_elements(self._versions(table_id), lowest, collected)

    def removable_elements(self, table_id: int) -> frozenset[int]:
        """Return those of the dead elements that nobody can read as of an earlier LSN either."""
        dead, floor = self.dead_elements(table_id), kept_from(self._connection)
        if floor is None or not dead:
            return dead
        return dead - needed_elements(self._versions(table_id), floor)

    def _versions(self, table_id: int) -> list[VersionBrief]:
        """Kept ones, oldest first, as of what this transaction sees. A table has hundreds of
        versions of dozens of columns, and they are looked at after every step of a job: each body
        is read out once. That it is the same one is seen by its bytes, whatever was rolled back."""
        found: list[Any] = self._connection.execute(
            "SELECT version, body FROM descriptors WHERE table_id = ? ORDER BY version",
            (table_id,),
        ).fetchall()
        return [self._brief(table_id, version, body) for version, body in found]

    def _brief(self, table_id: int, version: int, body: bytes) -> VersionBrief:
        known = self._briefs.get((table_id, version))
        if known is not None and known[0] == body:
            return known[1]
        brief = brief_of(from_wire(msgpack.unpackb(body, strict_map_key=False)))
        self._briefs[table_id, version] = (body, brief)
        return brief

    def versions_in_use(self, table_id: int) -> list[Descriptor]:
        lowest = self._min_version(table_id)
        bodies = self._connection.execute(
            "SELECT body FROM descriptors WHERE table_id = ? AND version >= ? ORDER BY version",
            (table_id, lowest),
        ).fetchall()
        return [from_wire(msgpack.unpackb(body, strict_map_key=False)) for (body,) in bodies]

    def leftover(self, table_id: int) -> tuple[bool, bool]:
        """Return whether a table is absent for all who may use it (D5), and whether its rows can be
        read as of an earlier LSN all the same."""
        versions = self._versions(table_id)
        if not versions:
            return True, False  # forgotten before all of its rows were removed
        newest = versions[-1]
        if newest.state is not State.ABSENT:
            return False, True
        floor = kept_from(self._connection)
        fenced = self._min_version(table_id) >= newest.version
        return fenced, floor is not None and newest.since_lsn > floor

    def may_have_leftovers(self) -> list[int]:
        """Return the ids of tables in which something may be dead: all but those of one version
        that is no absent one's, which are most. Among them are tables that were forgotten and have
        rows in the file: these go at each node's own pace."""
        found: list[Any] = self._execute(
            "SELECT table_id, count(*), body FROM descriptors GROUP BY table_id"
        ).fetchall()
        collected: list[Any] = self._execute("SELECT DISTINCT table_id FROM collected").fetchall()
        whole = {
            table_id
            for table_id, versions, body in found
            if versions == 1
            and msgpack.unpackb(body, strict_map_key=False)["state"] != State.ABSENT.label
        }
        whole -= {table_id for (table_id,) in collected}
        there = {*tables_of_rows(self._connection), *history_tables(self._connection)}
        return sorted(there.union(table_id for table_id, _, _ in found) - whole)

    def _min_version(self, table_id: int) -> int:
        found: list[Any] = self._execute(
            "SELECT version FROM min_versions WHERE table_id = ?", (table_id,)
        ).fetchall()
        return int(found[0][0]) if found else 1
