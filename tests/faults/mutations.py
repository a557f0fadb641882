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
from tests.faults.parts import LIGHT, WITH_SPARK
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
    drawn. `parts`: the set that has what it breaks."""

    edit: Edit
    breaks: str
    events: tuple[Event, ...] = ()
    kinds: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    parts: str = LIGHT.name


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
HANDED_OVER: Final = tuple(
    event
    for at, master in ((300, "m1"), (5_300, "m2"), (10_300, "m1"))
    for event in (
        *(
            Event(at, "cut", f"{who}-{server}", 2_500, {"way": "both"})
            for who in ("r1", "e1")
            for server in ("kafka", "redis")
        ),
        Event(at + 20, "stop", master, 1_500),
    )
)
"""Readers that hear nothing, while a master hands its term over."""
MASTERS_KILLED: Final = tuple(
    Event(at, "kill", who, 1_000) for at, who in ((200, "m1"), (4_000, "m2"), (8_000, "m1"))
)
SLOW: Final = ("delay", "throttle")
"""Transactions last longer then, so that more of them meet."""
COHERENCY: Final = "leasehold/replication/coherency.py"
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
        kinds=("late_chunks",),
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
    edit, copy = BROKEN[name].edit, folder / "libs"
    shutil.copytree(LIBS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / edit.path
    text = path.read_text("utf-8")
    assert text.count(edit.old) == 1, (name, edit.path)
    path.write_text(text.replace(edit.old, edit.new), "utf-8")
    yield copy
