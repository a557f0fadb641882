"""Ways to break the product that the harness has to see: a text of the library for another one, in
a copy that the cluster's processes then run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from infra.local_cluster import ROOT
from tests.faults.schedule import Event

LIBS: Final = ROOT / "libs"


@dataclass(frozen=True, slots=True)
class Mutation:
    """`old` stands in `path` once; with `new` in its place the promise `breaks` is broken.
    `events`: faults that lead to the harm, () = those that are drawn do soon enough."""

    path: str
    old: str
    new: str
    breaks: str
    events: tuple[Event, ...] = ()


CUT: Final = {"way": "both"}
PAUSED_READERS: Final = tuple(
    Event(at, "pause", who, 1_100) for at, who in ((200, "r1"), (1_800, "e1"))
)
"""Awake again while a lease that is a second too long still runs."""
COHERENCY: Final = "leasehold/replication/coherency.py"
LEDGER: Final = "leasehold/adapters/redis/ledger.lua"
BROKEN: Final[Mapping[str, Mutation]] = {
    "answer before apply": Mutation(
        COHERENCY,
        "        applied = self.applied_by_all(now_ns)\n"
        "        return applied is None or applied > offset\n",
        "        return True\n",
        "C1: an answer is given once every coherent node has applied it",
    ),
    "lease a second too long": Mutation(
        COHERENCY,
        "grant.asked_ns + grant.duration_ms * NS_PER_MS)",
        "grant.asked_ns + (grant.duration_ms + 1_000) * NS_PER_MS)",
        "C3: a lease ends on its holder's clock before it ends on the master's",
        PAUSED_READERS,
    ),
    "outcome forgotten": Mutation(
        "leasehold/replication/outcomes.py",
        "    if remembered is None:\n",
        "    if remembered is None or remembered.lsn:\n",
        "L5: the same id gets the same answer, and is applied once",
    ),
    "read set too small": Mutation(
        "leasehold/transaction/read_set.py",
        "        tuple(read.keys),\n",
        "        (),\n",
        "T1: nothing that a serializable transaction read has been written since",
    ),
    "genids not compared": Mutation(
        "leasehold/transaction/decide.py",
        "    if seen is not None and (row is None or not agrees("
        "descriptor, row.genids, seen, locks)):\n",
        "    if seen is not None and row is None:\n",
        "T1: a row that is changed is as its writer saw it",
    ),
    "publish over holders": Mutation(
        LEDGER,
        "    local holding = from > 0 and blocked(row, from)\n",
        "    local holding = false\n",
        "D2: nobody holds a version below the one before the new one",
        (Event(100, "cut", "f1-kafka", 4_000, CUT),),
    ),
    "session a TTL too long": Mutation(
        "leasehold/lease/agent/session.py",
        "self._sent_ns + self._limits.session_ttl_ns - self._limits.margin_ns",
        "self._sent_ns + 2 * self._limits.session_ttl_ns",
        "D3: an agent's lease ends by its own clock before the master counts it dead",
        (Event(100, "cut", "f1-redis", 5_500, CUT),),
    ),
    "fence off by one": Mutation(
        "leasehold/catalog/catalog.py",
        "        if version < lowest:\n            raise StaleVersion(\n",
        "        if version < lowest - 1:\n            raise StaleVersion(\n",
        "D5: no write under a version that is drained",
    ),
    "deposed master's record counts": Mutation(
        "leasehold/replication/log/admission.py",
        "    if record.epoch < position.epoch:\n        return Verdict.SKIP, after",
        "    if record.epoch < position.epoch - 1:\n        return Verdict.SKIP, after",
        "L1: a record of an earlier term counts for nobody",
        (Event(300, "pause", "m1", 3_500), Event(4_200, "pause", "m2", 3_500)),
    ),
}
MUTATIONS: Final = tuple(BROKEN)


@contextmanager
def mutated(name: str | None, folder: Path) -> Iterator[Path | None]:
    """A folder with the library as `name` breaks it; None without a name."""
    if name is None:
        yield None
        return
    mutation, copy = BROKEN[name], folder / "libs"
    shutil.copytree(LIBS, copy, ignore=shutil.ignore_patterns("__pycache__"))
    path = copy / mutation.path
    text = path.read_text("utf-8")
    assert text.count(mutation.old) == 1, (name, mutation.path)
    path.write_text(text.replace(mutation.old, mutation.new), "utf-8")
    yield copy
