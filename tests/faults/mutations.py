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
    drawn."""

    edit: Edit
    breaks: str
    events: tuple[Event, ...] = ()
    kinds: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()


CUT: Final = {"way": "both"}
UP: Final = {"way": "up"}
"""What a master has sent lands when another one has taken over."""
PAUSED_READERS: Final = tuple(
    Event(at, "pause", who, 1_100) for at, who in ((200, "r1"), (1_800, "e1"))
)
"""Awake again while a lease that is a second too long still runs."""
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
