"""Ways to break the product that the harness has to see: a text of the library for another one, in
a copy that the cluster's processes then run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from infra.local_cluster import ROOT
from tests.faults.parts import LIGHT, WHOLE, WITH_SPARK
from tests.faults.schedule import Event

LIBS: Final = ROOT / "libs"


class Edit(NamedTuple):
    """`old` stands in `path` once, and `new` is put in its place."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutation:
    """With its edit the promise `breaks` is broken. `events`: faults that lead to the harm; else
    `kinds` of which they are drawn, () = all. `levels` of the list-append transactions, () =
    drawn. `parts`: the set that has what it breaks. `beside`: what else is changed, so that the
    harm lasts longer, or a second rule that would hide it is broken, too."""

    edit: Edit
    breaks: str
    events: tuple[Event, ...] = ()
    kinds: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    parts: str = LIGHT.name
    beside: tuple[Edit, ...] = ()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Return all that is changed."""
        return (self.edit, *self.beside)


CUT: Final = {"way": "both"}
UP: Final = {"way": "up"}
"""What a master has sent lands when another one has taken over."""
PAUSED_READERS: Final = tuple(
    Event(at, "pause", who, 1_100) for at, who in ((200, "r1"), (1_800, "e1"))
)
"""Awake again while a lease that is a second too long still runs."""
AWAY: Final = tuple(
    Event(at, "cut", f"{who}-{server}", 2_500, {"way": "both"})
    for at, who in ((200, "r1"), (200, "e1"), (3_200, "r2"))
    for server in ("kafka", "redis")
)
"""Nodes that serve reads and hear nothing: neither the log nor what is told of it before."""
HANDED_OVER: Final = (
    Event(300, "stop", "m1", 1_500),
    *(
        Event(360, "cut", f"{who}-{server}", 3_000, {"way": "both"})
        for who in ("r1", "e1")
        for server in ("kafka", "redis")
    ),
)
"""Readers that hear nothing from just behind the end of a master that hands its term over."""
MASTERS_KILLED: Final = tuple(
    Event(at, "kill", who, 1_000) for at, who in ((200, "m1"), (4_000, "m2"), (8_000, "m1"))
)
SLOW_READER: Final = tuple(
    Event(0, "delay", f"r1-{server}", 6_000, {"way": "both", "late_ms": 150, "jitter_ms": 0})
    for server in ("kafka", "redis")
)
"""Later than the others by more than a node may be again and again, and in time for its lease."""
SLOW_PART: Final = tuple(
    Event(4_000, "delay", f"f1-{server}", 5_000, {"way": "down", "late_ms": 200, "jitter_ms": 0})
    for server in ("kafka", "redis")
)
"""The process whose only replica is a partial one hears late, and in time for its lease."""
LOCK_LOST: Final = tuple(
    Event(at, "cut", f"{who}-{server}", 7_000, {"way": "both"})
    for at, who in ((1_500, "r1"), (10_500, "r2"), (19_500, "r1"))
    for server in ("kafka", "redis")
)
"""Twice as long as a session lasts: another one has the lock, and has used it, before what
stands in the cut comes."""
UNHURT: Final = (Event(200, "cut", "m2-redis", 10_000, {"way": "both"}),)
"""Of a standby, for as long as schema changes take that meet transactions: nobody else is hurt."""
LATE: Final = tuple(
    Event(at, "late_chunks", "backfill", 2_400) for at in range(1_000, 12_000, 2_500)
)
TWO_SERVERS: Final = (Event(100, "redis_two_masters", "f1", 16_000),)
"""An agent goes on with a ledger that the master has left, for as long as another one takes to be
made, seeded and waited for, and two versions to be published."""
TORN: Final = tuple(
    Event(at, "torn_pages", who, 300, {"seed": at})
    for at, who in ((500, "r1"), (1_500, "e1"), (2_500, "r2"))
)
"""Stores that have lost the end of what they had applied."""
SLOW: Final = ("delay", "throttle")
"""Transactions last longer then, so that more of them meet."""
COHERENCY: Final = "leasehold/replication/coherency.py"
HELD_LEASES: Final = "leasehold/lease/agent/held_leases.py"
LEDGER: Final = "leasehold/adapters/redis/ledger.lua"
BROKEN: Final[Mapping[str, Mutation]] = {
    "answer before apply": Mutation(
        Edit(
            COHERENCY,
            "        applied = self.applied_by_all(now_ns)\n"
            "        return applied is None or applied > offset\n",
            "        return True\n",
        ),
        "C1: an answer is given once every coherent node has applied it",
    ),
    "lease a second too long": Mutation(
        Edit(
            COHERENCY,
            "grant.asked_ns + grant.duration_ms * NS_PER_MS)",
            "grant.asked_ns + (grant.duration_ms + 1_000) * NS_PER_MS)",
        ),
        "C3: a lease ends on its holder's clock before it ends on the master's",
        PAUSED_READERS,
    ),
    "outcome forgotten": Mutation(
        Edit(
            "leasehold/replication/outcomes.py",
            "    if remembered is None:\n",
            "    if remembered is None or remembered.lsn:\n",
        ),
        "L5: the same id gets the same answer, and is applied once",
    ),
    "read set too small": Mutation(
        Edit("leasehold/transaction/read_set.py", "        tuple(read.keys),\n", "        (),\n"),
        "T1: nothing that a serializable transaction read has been written since",
        kinds=SLOW,
        levels=("serializable", "linearizable"),
    ),
    "genids not compared": Mutation(
        Edit(
            "leasehold/transaction/decide.py",
            "    if seen is not None and (row is None or not agrees("
            "descriptor, row.genids, seen, locks)):\n",
            "    if seen is not None and row is None:\n",
        ),
        "T1: a row that is changed is as its writer saw it",
        kinds=SLOW,
    ),
    "publish over holders": Mutation(
        Edit(  # who asks for holders of older versions is told of none: no drain, no refusal
            LEDGER,
            "  local total, named = 0, {}\n  local upper",
            "  if below > 0 then return 0, {} end\n  local total, named = 0, {}\n  local upper",
        ),
        "D2: nobody holds a version below the one before the new one",
        (Event(100, "cut", "f1-kafka", 4_000, CUT),),
    ),
    "a lease on any version": Mutation(
        Edit(
            LEDGER,
            "  if version < math.max(row.current - 1, row.min) then"
            " return refuse('too old', row) end\n",
            "",
        ),
        "D1: leases are granted on the two newest versions alone",
        (Event(100, "cut", "f1-redis", 5_500, CUT), Event(100, "cut", "f1-kafka", 9_500, CUT)),
    ),
    "session a TTL too long": Mutation(
        Edit(
            "leasehold/lease/agent/session.py",
            "sent_ns + limits.session_ttl_ns - limits.margin_ns",
            "sent_ns + 2 * limits.session_ttl_ns",
        ),
        "D3: an agent's lease ends by its own clock before the master counts it dead",
        (Event(100, "cut", "f1-redis", 5_500, CUT),),
    ),
    "fence off by one": Mutation(
        Edit(
            "leasehold/catalog/catalog.py",
            "        if version < lowest:\n            raise StaleVersion(\n",
            "        if version < lowest - 1:\n            raise StaleVersion(\n",
        ),
        "D5: no write under a version that is drained",
        (Event(100, "cut", "r1-redis", 6_500, CUT),),
    ),
    "deposed master's record counts": Mutation(
        Edit(
            "leasehold/replication/log/admission.py",
            "    if record.epoch < position.epoch:\n        return Verdict.SKIP, after",
            "    if record.epoch < position.epoch:\n        return Verdict.APPLY, after",
        ),
        "L1: a record of an earlier term counts for nobody",
        (Event(300, "cut", "m1-kafka", 3_500, UP), Event(4_200, "cut", "m2-kafka", 3_500, UP)),
    ),
    "reads without a lease": Mutation(
        Edit(COHERENCY, "return now_ns < self.until_ns", "return self.until_ns > 0"),
        "C2: nobody answers reads whose lease is over",
        AWAY,
    ),
    "a silent node is not waited for": Mutation(
        Edit(
            COHERENCY,
            "waited = [node.has_below() for node in nodes if now_ns < node.wait_until_ns]",
            "waited = [node.has_below() for node in nodes if now_ns < node.wait_until_ns"
            " and now_ns < node.heard_ns + 250 * NS_PER_MS]",
        ),
        "C4: a node is waited for until its lease is over",
        AWAY,
    ),
    "a new master waits for nobody": Mutation(
        Edit(
            COHERENCY,
            "                wait_until_ns=lease.until_ns,\n",
            "                wait_until_ns=claimed_ns,\n",
        ),
        "C6: a new master waits for the leases that its predecessor granted",
        HANDED_OVER,
        # ⚠ A master that leaves waits 250 ms for who does not acknowledge, and on a busy machine
        # the next one begins as late as a lease of 500 ms ends. Any length is safe, as long as it
        # is waited for.
        beside=(Edit(COHERENCY, "    duration_ms: int = 500\n", "    duration_ms: int = 2_000\n"),),
    ),
    "who was slow stays out": Mutation(
        Edit(
            COHERENCY,
            "            if not node.asked_ns or now_ns < node.cool_down_until_ns:\n",
            "            if not node.asked_ns or node.cool_down_until_ns:\n",
        ),
        "C5: who has caught up is coherent again, after a cool-down",
        SLOW_READER,
    ),
    "a part of the tables is not waited for": Mutation(
        Edit(
            COHERENCY,
            "        return self.owed[0] if self.owed else ALL_OFFSETS\n",
            "        return ALL_OFFSETS\n",
        ),
        "C7: a partial replica is waited for where a record is about what it holds",
        SLOW_PART,
    ),
    "an older writer's row": Mutation(
        Edit(
            "leasehold/rows/key_values.py",
            "    image: dict[int, Any] = {} if before is None else dict(before)\n",
            "    seen = descriptor.by_id\n"
            "    image: dict[int, Any] = {e: v for e, v in (before or {}).items() if e in seen"
            " and seen[e].state is State.PUBLIC}\n",
        ),
        "T0: a writer at an older version never reverts a column that it can't see",
        UNHURT,
    ),
    "rows of one request under one hidden key": Mutation(
        Edit(
            "leasehold/model/ids.py",
            "(random + ordinal & _RANDOM_BITS)",
            "(random & _RANDOM_BITS)",
        ),
        "T7: each row of a table without a primary key has a key of its own",
    ),
    "a lease given back while it is used": Mutation(
        Edit(
            HELD_LEASES,
            "        return not self.users and not self.named\n",
            "        return True\n",
        ),
        "D4: a lease is released when nobody uses it any more",
        UNHURT,
        beside=(
            Edit(  # else who uses it is told, and stops (D3)
                HELD_LEASES,
                "        return lease.status is not LeaseStatus.GONE and now_ns",
                "        return now_ns",
            ),
        ),
    ),
    "a version for each statement": Mutation(
        Edit(
            "leasehold/replica/reads.py",
            "        if found is not None:\n            return found[0]\n"
            "        if self._open is not None:\n",
            "        if found is not None:\n            self._release(found[1])\n"
            "        if self._open is not None:\n",
        ),
        "D8: a transaction has one version of a table from its first use to its end",
        UNHURT,
    ),
    "two jobs on one table": Mutation(
        Edit(
            "leasehold/schema_change/plan/busy_tables.py",
            "    job = busy_job(catalog, table.table_id)\n    if job is not None and job.job_id",
            "    job = None\n    if job is not None and job.job_id",
        ),
        "D9: at most one job changes a table",
        UNHURT,
    ),
    "a lock's fence that nobody judges": Mutation(
        Edit(
            "leasehold/replication/master/request_decider.py",
            "        if request.fence is None:\n",
            "        if request.fence is None or request.fence:\n",
        ),
        "D10: what was sent under an advisory lock is committed only while that surely stands",
        LOCK_LOST,
    ),
    "a call that nobody vouches for": Mutation(
        Edit(
            "leasehold/lease/agent/session.py",
            "        return extension.call > 0\n",
            "        return False\n",
        ),
        "D11: a call extends a session once the master has seen it in the ledger that it"
        " publishes through",
        TWO_SERVERS,
        parts=WHOLE.name,
    ),
    "an attempt left out": Mutation(
        Edit(
            "leasehold/transaction/retry.py",
            "    following = request._replace(attempt=request.attempt + 1,",
            "    following = request._replace(attempt=request.attempt + 2,",
        ),
        "R1: each request ends in one final result",
        LATE[:1],
        parts=WITH_SPARK.name,
    ),
    "a position kept beside the store": Mutation(
        Edit(
            "leasehold/adapters/sqlite/store.py",
            "        self._tables.put_position(position)\n        self._counts.commit()\n",
            "        self._tables.put_position(position)\n"
            '        pickled = __import__("pickle").dumps(position)\n'
            '        (self.path.parent / "position").write_bytes(pickled)\n'
            "        self._counts.commit()\n",
        ),
        "L6: what was applied and its position are one commit",
        TORN,
        beside=(
            Edit(
                "leasehold/adapters/sqlite/store.py",
                "        return self._tables.position()\n",
                '        path = self.path.parent / "position"\n'
                "        if path.exists():\n"
                '            return __import__("pickle").loads(path.read_bytes())\n'
                "        return self._tables.position()\n",
            ),
        ),
    ),
    "chunks of a job that is over": Mutation(
        Edit(
            "leasehold/schema_change/job/chunk_acceptance.py",
            "    job = _running(catalog, Phase.BACKFILLING, chunk.job_id, chunk.run)\n"
            "    if job is None or job.copies_rows:\n",
            "    job = catalog.jobs.get(chunk.job_id)\n"
            "    if job is not None:\n"
            "        return True\n"
            "    if job is None or job.copies_rows:\n",
        ),
        "a chunk counts for the run that it names alone, while that goes on",
        LATE,
        parts=WITH_SPARK.name,
    ),
    "outcome lost on takeover": Mutation(
        Edit(
            "leasehold/replication/master/batch.py",
            "        remembered = self._store.outcome(request.id)\n",
            '        here = type(self).__dict__.get("here")\n'
            "        if here is None:\n"
            "            here = type(self).here = set()\n"
            "        remembered = self._store.outcome(request.id) if request.id in here else None\n"
            "        here.add(request.id)\n",
        ),
        "L5, L6: who takes over knows what was decided before",
        MASTERS_KILLED,
    ),
    "no wait for agents": Mutation(
        Edit(
            "leasehold/lease/master/ledger_watch.py",
            "        return self._ttl_ns if self._tables else 0\n",
            "        return 0\n",
        ),
        "D6: a ledger that has lost its state is closed until each lease of before is over",
        (Event(100, "cut", "f1-redis", 5_500, CUT), Event(300, "redis_flush", "redis", 100)),
    ),
    "a session dead too early": Mutation(
        Edit(
            "leasehold/lease/master/session_watch.py",
            "sent_ns - before.since_ns >= self._ttl_ns:",
            "sent_ns - before.since_ns >= self._ttl_ns // 2:",
        ),
        "D7: a session is dead once its counter has stood still for a whole TTL",
        (Event(100, "cut", "f1-redis", 5_500, CUT),),
    ),
    "a CHECK that holds nobody": Mutation(
        Edit(
            "leasehold/transaction/binding.py",
            "            if not holds(image):\n",
            "            if not holds(image) and before is None:\n",
        ),
        "T3: nothing is committed that breaks a constraint",
    ),
    "a number twice": Mutation(
        Edit(
            "leasehold/catalog/sequence.py",
            "SequencePosition(last, True, state.epoch))",
            "SequencePosition(last - step if last % 16 == 0 else last, True, state.epoch))",
        ),
        "T8: a sequence gives no number twice",
    ),
    "half of a commit is fed": Mutation(
        Edit(
            "leasehold/replication/changefeed.py",
            "for position, change in enumerate(commit.changes):",
            "for position, change in enumerate(commit.changes[:1]):",
        ),
        "the feed has each change",
    ),
    "no guard of bytes": Mutation(
        Edit(
            "leasehold/adapters/codec/records.py",
            "            raise MalformedRequest("
            'f"{len(data)} bytes are no record: {_words(error)}") from error\n\n    def decode_as',
            "            raise\n\n    def decode_as",
        ),
        "no input ends a process",
        kinds=("poison",),
    ),
}
MUTATIONS: Final = tuple(BROKEN)


@contextmanager
def mutated(name: str | None, folder: Path) -> Iterator[Path | None]:
    """A folder with the library as `name` breaks it; None without a name."""
    if name is None:
        yield None
        return
    copy = folder / "libs"
    shutil.copytree(LIBS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in BROKEN[name].edits:
        path = copy / edit.path
        text = path.read_text("utf-8")
        assert text.count(edit.old) == 1, (name, edit.path)
        path.write_text(text.replace(edit.old, edit.new), "utf-8")
    yield copy
