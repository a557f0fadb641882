"""What has to be right at the end of the demo, and the figures it ends with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from infra.demo.changes import Change
from infra.demo.crew import Crew, latency
from infra.demo.flights import Rows
from infra.demo.menu import DUEL_COLUMNS, PLANE, SEATS, Shown
from leasehold.admin.watch import ClusterWatch
from leasehold.catalog.job import Status
from leasehold.client.change_producer import Statistics
from leasehold.model.errors import ForeignKeyViolation, NotCoherent, OutOfRange
from leasehold.replica.barrier import ask_check
from leasehold.replica.replica import Replica
from leasehold.schema_change.job.transitions import FINDINGS_MAX
from leasehold.schema_change.plan.explain import describe_changes
from leasehold.settings.client import ClientSettings

CHECK_TIMEOUT_S: Final = 60.0
READS_MAX: Final = 10
TAKEOVER_NS: Final = 10_000_000_000
EVERY_TABLE: Final = -1
COLLISIONS_MIN: Final = 0.05
"""Of two writers of one row under one lock: less would mean that they hardly met."""


class Verdict:
    def __init__(self, console: Console) -> None:
        self._console = console
        self.right = True

    def expect(self, holds: bool, words: str) -> None:
        mark = "[green]right[/green]" if holds else "[bold red]WRONG[/bold red]"
        self._console.print(f"  {mark} {words}")
        self.right = self.right and holds


def check_nodes(
    verdict: Verdict, settings: ClientSettings, watch: ClusterWatch, nodes: Sequence[str]
) -> None:
    """All seven conditions of d ⊨ S on every node, and equal checksums at the same position."""
    tables = {t: seen.event.name for t, seen in watch.view.tables.items()}
    subject = ask_check(settings, EVERY_TABLE)
    wanted = {(node, table) for node in nodes for table in tables}

    def reported() -> dict[tuple[str, int], Any]:
        return dict(watch.view.checks.get(subject, {}))

    watch.wait_for(lambda _: wanted <= set(reported()), CHECK_TIMEOUT_S)
    reports = reported()
    missing = sorted({node for node, _ in wanted - set(reports)})
    verdict.expect(not missing, f"every node has checked its store{_but(missing)}")
    findings = sum(r.findings_total for r in reports.values())
    errors = [r.error for r in reports.values() if r.error]
    rows = sum(r.rows for (node, _), r in reports.items() if node == nodes[0])
    verdict.expect(
        findings == 0 and not errors,
        f"d ⊨ S: {findings} findings in {len(tables)} tables, {rows:,} rows on each of"
        f" {len(nodes)} nodes{_but(errors)}",
    )
    for table_id, name in sorted(tables.items()):
        sums = {r.checksum for (_, table), r in reports.items() if table == table_id}
        verdict.expect(len(sums) == 1, f"{name}: checksums are equal on all nodes")


def _but(what: Sequence[Any]) -> str:
    return f"; not: {', '.join(map(str, what))}" if what else ""


def check_sums(verdict: Verdict, replica: Replica, crews: Sequence[Crew]) -> None:
    """Every committed write added exactly one to a flight's `changes`."""
    committed = sum(crew.total("committed") for crew in crews)
    rows = _read(replica, lambda: replica.scan("flights", rows_max=10_000_000))
    to_lax = _read(replica, lambda: replica.get_by("flights_dest", "LAX", rows_max=10_000_000))
    counted = sum(row["changes"] for row in rows)
    verdict.expect(
        counted == committed, f"sum of the flights' changes {counted:,} = committed {committed:,}"
    )
    verdict.expect(
        all(row["status"] == "landed" for row in rows), "every flight has the new column's value"
    )
    indexed, dest = len(to_lax), sum(1 for row in rows if row["dest"] == "LAX")
    verdict.expect(indexed == dest, f"the new index finds all {dest:,} flights to LAX")
    verdict.expect(all("gate" not in row for row in rows), "no flight shows the dropped column")


def _read(replica: Replica, rows: Callable[[], Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All rows of a coherent read. On a busy machine this process may lose its lease between one
    read and the next, so it waits and reads again."""
    for _ in range(READS_MAX - 1):
        replica.wait_coherent(CHECK_TIMEOUT_S)
        with suppress(NotCoherent):
            return list(rows())
    replica.wait_coherent(CHECK_TIMEOUT_S)
    return list(rows())


def check_menu(verdict: Verdict, shown: Shown, replica: Replica, loaded: Sequence[Rows]) -> None:
    """What the small tables hold now, against the data that was loaded."""
    rows = {each.table.name: each.rows for each in loaded}
    _check_unique(verdict, shown, rows["airports"])
    codes = [outcome.code for outcome in shown.broken]
    verdict.expect(
        codes == [ForeignKeyViolation.sqlstate] * 2,
        f"the foreign key refused weather of no airport and an airport's end ({', '.join(codes)})",
    )
    _check_plan(verdict, shown)
    _check_planes(verdict, shown, replica, rows["planes"])
    one, two = shown.duels
    verdict.expect(
        one.collision_rate > COLLISIONS_MIN and two.collision_rate * 4 < one.collision_rate,
        f"with a lock of its own a column's writer collides in {two.collision_rate:.1%} of its"
        f" runs instead of {one.collision_rate:.1%}",
    )


def _check_unique(verdict: Verdict, shown: Shown, airports: Sequence[dict[str, Any]]) -> None:
    names = Counter(row["name"] for row in airports)
    shared = {row["faa"]: row["name"] for row in airports if names[row["name"]] > 1}
    job = shown.unique.job
    named = {key[0]: words for _, _, key, words in job.findings}
    verdict.expect(
        job.error.startswith(f"{len(shared)} rows break ")
        and len(named) == min(len(shared), FINDINGS_MAX)
        and named.keys() <= shared.keys()
        and all(shared[airport][:80] in words for airport, words in named.items()),
        f"the UNIQUE index failed on the {len(shared)} airports whose name is not theirs alone,"
        f" and named {len(named)} of them, and their names",
    )
    before, after = shown.airports
    verdict.expect(
        (after.columns, after.indexes) == (before.columns, before.indexes),
        "the failed job left its table as it was",
    )


def _check_plan(verdict: Verdict, shown: Shown) -> None:
    """EXPLAIN has made nothing, and said what was then done."""
    job = shown.retype.job
    said = [(row["changes"], row["point_of_no_return"]) for row in shown.plan]
    done = [(describe_changes(step), number == job.point) for number, step in enumerate(job.steps)]
    verdict.expect(
        said == done
        and shown.plan[-1]["version"] == job.versions[job.table_id]
        and job.job_id == shown.last_job + 1,
        f"EXPLAIN changed nothing and foresaw all {len(done)} steps",
    )


def _check_planes(
    verdict: Verdict, shown: Shown, replica: Replica, planes: Sequence[dict[str, Any]]
) -> None:
    refused, taken = shown.too_many
    verdict.expect(
        refused.code == OutOfRange.sqlstate and bool(taken.lsn),
        f"{SEATS:,} seats were refused before the type change and taken after it",
    )
    wanted = {row["tailnum"]: (row["seats"], row["engines"]) for row in planes}
    fought = {c: sum(duel.added[c] for duel in shown.duels) for c in DUEL_COLUMNS}
    engines = wanted[PLANE][1]
    wanted[PLANE] = (SEATS + fought["seats"], engines + fought["engines"])
    rows = _read(replica, lambda: replica.scan("planes"))
    found = {row["tailnum"]: (row["seats"], row["engines"]) for row in rows}
    verdict.expect(
        found == wanted,
        f"all {len(wanted):,} planes have their seats and engines still, and the"
        f" {sum(fought.values()):,} that the two writers added to one of them",
    )


def accounted(verdict: Verdict, loaded: Statistics, crews: Sequence[Crew]) -> None:
    """committed + refused + dead-lettered = submitted, and nothing unknown."""
    ended = loaded.committed + loaded.refused + loaded.dead_lettered
    verdict.expect(
        ended == loaded.submitted and loaded.refused == 0,
        f"load: {loaded.committed:,} committed of {loaded.submitted:,} requests",
    )
    for crew in crews:
        parts = [crew.total(name) for name in ("committed", "refused", "dead_lettered")]
        submitted = crew.total("submitted")
        verdict.expect(
            sum(parts) == submitted,
            f"{crew.kind}: {parts[0]:,} committed + {parts[1]:,} refused + {parts[2]:,}"
            f" dead-lettered = {submitted:,} submitted{_errors(crew)}",
        )


def _errors(crew: Crew) -> str:
    found = crew.errors()
    return f" ({', '.join(f'{code} × {n}' for code, n in found.items())})" if found else ""


def summary(
    console: Console,
    crews: Sequence[Crew],
    changes: Sequence[Change],
    begun: int,
    killed_ns: int,
    load_rate: float,
) -> None:
    console.print("[bold]Summary[/bold]")
    for change in changes:
        seconds = (change.end_ns - change.begin_ns) / 1e9
        fill = f", backfill {change.rows_per_second:,.0f} rows/s" if change.rows_per_second else ""
        how = "" if change.job.status is Status.SUCCEEDED else f"{change.job.status} after "
        console.print(f"  {change.sql}: {how}{seconds:.2f} s{fill}")
        for state, publish_ms, drain_ms in change.steps:
            console.print(
                f"    → {state:18} publish {publish_ms:7.1f} ms   drain {drain_ms:7.1f} ms"
            )
    committed = sum(crew.total("committed") for crew in crews)
    console.print(f"  load {load_rate:,.0f} rows/s; {committed:,} transactions of the writers")
    for crew in crews:
        console.print(
            f"  {crew.kind}: {crew.total('replays'):,} replays,"
            f" {crew.total('retried'):,} retries by Spark"
        )
    times = [time for crew in crews for time in crew.times()]
    first, last = changes[0].begin_ns, changes[-1].end_ns
    table = Table("writers", "writes", "p50 ms", "p99 ms", "longest stall ms", box=None)
    calm = [t for t in times if not killed_ns or not killed_ns <= t[0] < killed_ns + TAKEOVER_NS]
    takeover = [t for t in times if killed_ns and killed_ns <= t[0] < killed_ns + TAKEOVER_NS]
    for name, part, low, high in (
        ("before", times, begun, first),
        ("during the changes", calm, first, last),
        ("while the master was replaced", takeover, first, last),
    ):
        found = latency(part, low, high)
        table.add_row(
            name,
            f"{found.count:,}",
            f"{found.p50:.1f}",
            f"{found.p99:.1f}",
            f"{found.stall:.1f}",
        )
    console.print(table)
