"""What a node tells SQL clients of itself and of its database, and what it does for them.

Called by a session's own thread, in its statement: it never runs on the node's loop, and takes no
lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from leasehold.adapters.codec.json_text import json_text, parse_json
from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.os.clock import boottime_ns, new_request_id, unix_us
from leasehold.admin.dead_letters import OF_FIRST_TRY, readable_request
from leasehold.admin.rows import CLUSTER_ROWS
from leasehold.catalog.schema_names import LEASEHOLD
from leasehold.lease.replies import LockUse
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.errors import (
    FeatureNotSupported,
    LedgerUnavailable,
    MalformedRequest,
    NoMaster,
)
from leasehold.model.ids import format_request_id
from leasehold.model.records.requests import ChangeRequest, JobControl, LockFence
from leasehold.pgwire.wire_errors import Canceled
from leasehold.replica.advisory_locks import ROWS, LockName, process_of
from leasehold.replica.serving_node import SqlNode
from leasehold.schema_change.job.control import refuse_unaskable
from leasehold.sql.system_catalog import oids
from leasehold.sql.system_catalog.relations import Relation
from leasehold.sql_session.advisory_locks import SessionLocks, Taken
from leasehold.sql_session.catalog_rows import catalog_rows
from leasehold.sql_session.listening import SessionListening
from leasehold.sql_session.others import HIDDEN, Others
from leasehold.sql_session.session_role import SessionRole
from leasehold.values import jsonb

ANSWER_TIMEOUT_S: Final = 10.0
Row = Mapping[str, Any]


class NodeTelling:
    """The port `sql.system_relations.NodeSide`."""

    def __init__(
        self,
        node: SqlNode,
        role: SessionRole,
        cursors: Callable[[], Iterable[Row]] = tuple,
        locks: SessionLocks | None = None,
        warn: Callable[[str, str], None] = lambda sqlstate, words: None,
        listening: SessionListening | None = None,
        check_may_write: Callable[[], None] = lambda: None,
    ) -> None:
        """Tell of a node, and of the `cursors` and `locks` of the session that asks, which is that
        `role`, and what it listens to. `warn` tells its client a code and words. `check_may_write`
        raises ReadOnlyTransaction where its transaction may not write."""
        self._node = node
        self._role = role
        self._others = Others(role)
        self._session_locks, self._warn = locks, warn
        self._listening = listening
        self._check_may_write = check_may_write
        self._own: Mapping[str, Callable[[], Iterable[Row]]] = {
            "transactions": self._transactions,
            "dead_letter": self._dead_letters,
            "settings": self._settings,
            "catalog": lambda: catalog_rows(self._node),
            "pg_stat_activity": self._activity,
            "pg_locks": self._locks,
            "pg_cursors": cursors,
        }

    # ------------------------------------------------------------ rows

    def rows(self, relation: Relation) -> Iterable[Row]:
        of_cluster = CLUSTER_ROWS.get(relation.name) if relation.schema == LEASEHOLD else None
        if of_cluster is None:
            return self._own[relation.name]()
        view = self._node.cluster()
        if relation.name == "leases" and "ledger" in view.unreachable:
            raise LedgerUnavailable(view.unreachable["ledger"])
        return map(self._others.shown, of_cluster(view, unix_us()))

    def _pinned(self) -> dict[str, tuple[str, int, dict[int, int]]]:
        """Return label → its SQL, its age in ms, and the versions that it has pinned by table
        id."""
        found: dict[str, tuple[str, int, dict[int, int]]] = {}
        now_ns = boottime_ns()
        for use, table, version in self._node.uses():
            age_ms = (now_ns - use.since_ns) // 1_000_000
            _, _, versions = found.setdefault(use.label, (use.sql, age_ms, {}))
            versions[table] = version
        return found

    def _transactions(self) -> Iterator[Row]:
        """Yield those of SQL sessions, and of programs that embed this node. A single one pins
        nothing, as its descriptors and rows are of one snapshot (D3)."""
        pinned = self._pinned()
        names = {table.table_id: table.name for table in self._node.tables()}

        def as_json(versions: Mapping[int, int]) -> str:
            return jsonb.text_of(
                {names.get(table, str(table)): version for table, version in versions.items()}
            )

        now_us = unix_us()
        for one in self._node.sessions.activities():
            if one.state == "idle":
                continue
            _, _, versions = pinned.pop(one.label, ("", 0, {}))
            told = {
                "node": self._node.name,
                "pid": one.process,
                "user_name": one.user,
                "application_name": one.application,
                "label": one.label,
                "pinned": as_json(versions),
            }
            if not self._others.sees(one.role_id):
                yield {**told, "state": "", "sql": HIDDEN}
                continue
            yield {
                **told,
                "state": one.state,
                "isolation": one.isolation,
                "sql": one.sql,
                "began": one.began_us,
                "age_ms": None if one.began_us is None else (now_us - one.began_us) // 1_000,
                "statement_ms": (now_us - one.statement_us) // 1_000,
            }
        for label, (sql, age_ms, versions) in pinned.items():
            yield {
                "node": self._node.name,
                "label": label,
                "state": "active",
                "sql": sql if self._others.sees_all else HIDDEN,
                "began": now_us - age_ms * 1_000,
                "age_ms": age_ms,
                "pinned": as_json(versions),
            }

    def _activity(self) -> Iterator[Row]:
        for one in self._node.sessions.activities():
            told = {
                "datid": oids.DATABASE,
                "datname": self._node.database,
                "pid": one.process,
                "usesysid": one.role_id,
                "usename": one.user,
                "application_name": one.application,
            }
            if not self._others.sees(one.role_id):
                yield {**told, "query": HIDDEN}
                continue
            yield {
                **told,
                "backend_start": one.opened_us,
                "xact_start": None if one.state == "idle" else one.began_us,
                "query_start": one.statement_us or None,
                "state": one.state,
                "query": one.sql,
                "backend_type": "client backend",
            }

    def _locks(self) -> Iterator[Row]:
        """Yield what transactions have pinned, which is read and never blocked, while a schema
        change waits for it; and the advisory locks of the whole database."""
        yield from map(self._advisory, self._node.advisory_locks.uses())
        pinned = self._pinned()
        for one in self._node.sessions.activities():
            _, _, versions = pinned.get(one.label, ("", 0, {}))
            for table in versions:
                yield {
                    "locktype": "relation",
                    "database": oids.DATABASE,
                    "relation": oids.table_oid(table),
                    "virtualtransaction": f"{one.process}/1",
                    "pid": one.process,
                    "mode": "AccessShareLock",
                    "granted": 1,
                    "fastpath": 1,
                }

    def _advisory(self, use: LockUse) -> Row:
        """Return an advisory lock as a row, or a row that was claimed (`objid` is a digest of its
        key). A process's number says something on its own node."""
        process = process_of(use.owner)
        if use.space == ROWS:
            return {
                "locktype": "tuple",
                "database": oids.DATABASE,
                "relation": oids.table_oid(use.high),
                "objid": use.low,
                "virtualtransaction": f"{use.agent}/{process}",
                "pid": process if self._node.advisory_locks.is_own(use) else None,
                "mode": "ExclusiveLock" if use.exclusive else "RowShareLock",
                "granted": int(use.granted),
                "fastpath": 0,
            }
        return {
            "locktype": "advisory",
            "database": oids.DATABASE,
            "classid": use.high,
            "objid": use.low,
            "objsubid": use.space,
            "virtualtransaction": f"{use.agent}/{process}",
            "pid": process if self._node.advisory_locks.is_own(use) else None,
            "mode": "ExclusiveLock" if use.exclusive else "ShareLock",
            "granted": int(use.granted),
            "fastpath": 0,
        }

    def _dead_letters(self) -> Iterator[Row]:
        for number, letter in self._node.dead_letters():
            known = len(letter.request_id) == 16
            request = readable_request(letter)
            if not self._others.reads_letter(letter.principal):
                continue
            yield {
                "letter": number,
                "request_id": format_request_id(letter.request_id) if known else None,
                "attempt": letter.attempt,
                "sqlstate": letter.code,
                "message": letter.message,
                "detail": jsonb.text_of(dict(letter.detail)),
                "decided": letter.decided_us,
                "lane": letter.queue,
                "lane_offset": letter.offset,
                "content_type": letter.content_type,
                "request": None if request is None else jsonb.text_of(request),
                "asked_by": letter.principal or None,
            }

    def _settings(self) -> Iterator[Row]:
        self._others.check_settings()
        for name, value in self._node.described().items():
            yield {"node": self._node.name, "name": name, "value": value}

    # ------------------------------------------------------------ steering

    def act(self, action: str, *values: Any) -> bool:
        if action in ("cancel_session", "end_session"):
            asked = self._node.sessions.role_of(values[0])
            if asked is not None:
                self._others.check_signals(action, asked)
        sessions = self._node.sessions
        match action:
            case "take_lock" | "give_lock" | "give_all_locks":
                return self._lock(action, *values)
            case "cancel_session":
                reason = Canceled("canceling statement due to user request")
                return self._signal("cancelled", values[0], partial(sessions.cancel, reason=reason))
            case "end_session":
                return self._signal("ended", values[0], self._end_session)
            case "cancel_job" | "pause_job" | "resume_job" | "dismiss_job":
                return self._steer(values[0], action.removesuffix("_job"), {})
            case "postpone_job" | "complete_job":
                return self._steer(values[0], "set", {"postpone": int(action == "postpone_job")})
            case "set_job":
                job, name, value = values
                return self._steer(job, "set", {name: value})
            case "resubmit_letter":
                return self._resubmit(values[0])
            case "submit_request":
                return self._submit(_parse(values[0]))
        raise AssertionError(action)

    def _lock(
        self,
        action: str,
        space: int = 0,
        high: int = 0,
        low: int = 0,
        exclusive: bool = True,
        of_transaction: bool = False,
        wait: bool = False,
    ) -> bool:
        """Take an advisory lock, or give it back."""
        locks = self._session_locks
        if locks is None:
            raise FeatureNotSupported("advisory locks are for SQL sessions: leasehold.connect()")
        taken = Taken(LockName(space, high, low), exclusive)
        match action:
            case "take_lock":
                return locks.take(taken, ends_with_transaction=of_transaction, wait=wait)
            case "give_all_locks":
                locks.give_all()
                return True
        if locks.give(taken):
            return True
        mode = "ExclusiveLock" if exclusive else "ShareLock"
        self._warn("01000", f"you don't own a lock of type {mode}")
        return False

    def fence(self) -> LockFence | None:
        return None if self._session_locks is None else self._session_locks.fence()

    def listening(self) -> tuple[Sequence[str], float]:
        heard = self._listening
        return ((), 0.0) if heard is None else (heard.channels, heard.usage)

    def _signal(self, done: str, process: int, act: Callable[[int], bool]) -> bool:
        """End a session or what it runs, of which the audit log is told before. Raises
        AuditUnavailable, and what `act` raises."""
        named = {one.process: one.user for one in self._node.sessions.activities()}
        if process in named:
            self._node.audit.record(
                AuditEvent(
                    Audited.ENDED,
                    user=self._role.session_name,
                    role=self._role.name,
                    subject=f"session {process} of {named[process]}",
                    words=done,
                )
            )
        return act(process)

    def _end_session(self, process: int) -> bool:
        if process < 0 and process in {one.process for one in self._node.sessions.activities()}:
            raise FeatureNotSupported(
                f"session {process} is of a program that embeds this node, which closes it itself;"
                " its statement can be cancelled: leasehold.cancel_session"
            )
        return self._node.sessions.end(process)

    def _steer(self, job: int, action: str, settings: Mapping[str, int]) -> bool:
        """Steer a job, and return True. Raises what the master refuses with: UnknownJob (42704),
        WrongJobState (55000) …"""
        asked = JobControl(job, action, settings)
        refuse_unaskable(asked)
        known = self._node.jobs().get(job)
        if known is not None:
            self._others.check_steers(known.table_id)
        return self._ask(ChangeRequest(b"", control=asked))

    def _resubmit(self, number: int) -> bool:
        """Submit a dead letter's request again, in the name of this role; False: it sees no such
        letter. Raises MalformedRequest for one that was not kept whole, and what the master
        refuses with."""
        found = next((one for at, one in self._node.dead_letters() if at == number), None)
        if found is None or not self._others.reads_letter(found.principal):
            return False
        if found.body is None:
            raise MalformedRequest("its request was not kept; submit another one in its place")
        return self._submit(readable_request(found))

    def _submit(self, fields: Any) -> bool:
        """Submit a request of rows, or of SQL, by its fields. Raises MalformedRequest,
        ReadOnlyTransaction."""
        self._check_may_write()
        if not isinstance(fields, dict):
            raise MalformedRequest("a request is an object with fields")
        # An old id has its answer for ever (L5): a new try is a new request.
        sent = {name: value for name, value in fields.items() if name not in OF_FIRST_TRY}
        sent["id"] = format_request_id(new_request_id())
        request = decode_request("", json_text(sent).encode())
        if not request.operations and request.sql is None:
            raise MalformedRequest("a request for rows, or with SQL, is what is submitted here")
        return self._ask(request)

    def _ask(self, request: ChangeRequest) -> bool:
        """Submit a request in the name of this role, and return True once it is done. Raises what
        the master refuses with."""
        principal, as_role = self._role.asks_as
        sent = request._replace(id=new_request_id(), principal=principal, as_role=as_role)
        outcome = self._node.submit(sent, ANSWER_TIMEOUT_S)
        if outcome.lsn:
            return True
        if not outcome.final:
            raise NoMaster("nobody decided it; ask again")
        raise outcome.make_error()


def _parse(text: str) -> Any:
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as error:
        raise MalformedRequest(f"it is no JSON: {error}") from None
