"""The demo's course of events."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from infra.demo import flights
from infra.demo.changes import Change, EventPrinter, Patience, follow
from infra.demo.crew import Crew
from infra.demo.menu import Menu, Shown
from infra.demo.verdict import Verdict, accounted, check_menu, check_nodes, check_sums, summary
from infra.local_cluster import LocalCluster
from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.watch import ClusterWatch
from leasehold.client.change_producer import ChangeProducer
from leasehold.replica.replica import Replica, open_replica
from leasehold.settings.client import ClientSettings

NODES: Final = ("m1", "m2", "r1", "r2", "r3")
BEFORE_S: Final = 8.0
PRODUCER_RATE: Final = 120.0  # writes per second of the four producers together
REPLICA_RATE: Final = 120.0
WRITER_KEYS: Final = 3_000
MASTER_DIES_AT: Final = 0.3
LOAD_IN_FLIGHT_MAX: Final = 400


class Demo:
    def __init__(self, cluster: LocalCluster, console: Console, *, rows_max: int) -> None:
        self._cluster = cluster
        self._console = console
        self._rows_max = rows_max
        self._settings = ClientSettings.read(cluster.env("demo"))
        self._keys: list[list[Any]] = []
        self._killed: dict[str, int] = {}
        self._returns: list[threading.Thread] = []

    def run(self) -> bool:
        """Run the demo. Return whether everything is right."""
        self._start()
        # Few requests in flight: each holds many rows, and the bar shows what was decided.
        steady = replace(self._settings, in_flight_max=LOAD_IN_FLIGHT_MAX)
        with ChangeProducer(steady) as producer, ClusterWatch(self._settings) as watch:
            self._load(producer)
            printer = EventPrinter(self._settings, self._console)
            crews = [
                Crew("producers", self._keys, PRODUCER_RATE, self._cluster.env("producers")),
                Crew("replica", self._keys, REPLICA_RATE, self._cluster.env("embedded")),
            ]
            try:
                changes, begun = self._change(producer, watch, crews)
                with open_replica(self._settings_of("checker")) as replica:
                    shown = Menu(producer, watch, replica, self._console, self._say).run()
                    for crew in crews:
                        crew.stop()
                    self._return_all()
                    return self._judge(watch, replica, crews, changes, shown, begun)
            finally:
                for crew in crews:
                    crew.kill()
                printer.close()

    def _settings_of(self, node: str) -> ClientSettings:
        return replace(self._settings, cluster=replace(self._settings.cluster, node=node))

    # ------------------------------------------------------------ start and load

    def _say(self, words: str) -> None:
        self._console.print(f"[bold green]»[/bold green] {words}")

    def _start(self) -> None:
        self._say("starting Kafka, Redis, master, standby, three replicants, changefeed, Spark")
        begun = time.monotonic()
        self._cluster.start_all(lambda words: self._console.print(f"  {words}"))
        self._console.print(
            f"  up in {time.monotonic() - begun:.1f} s; dashboard:"
            f" http://127.0.0.1:{self._cluster.ports.dashboard}/"
        )

    def _load(self, producer: ChangeProducer) -> None:
        tables = [flights.read_table(table) for table in flights.TABLES]
        if self._rows_max:
            tables[-1] = tables[-1]._replace(rows=tables[-1].rows[: self._rows_max])
        total = sum(len(table.rows) for table in tables)
        self._say(f"loading {total:,} rows as change requests over the topic")
        for each in flights.TABLES:
            made = producer.submit({"sql": each.sql}).result()
            if not made.lsn:
                raise RuntimeError(f"{each.sql}: {made.message}")
        begun = time.monotonic()
        columns = (
            TextColumn("  {task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("rows decided, {task.fields[rate]:,.0f} rows/s"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console) as progress:
            task = progress.add_task("all tables", total=total, rate=0.0)

            def draw() -> None:
                done = min(total, (decided() - created) * flights.ROWS_PER_REQUEST)
                rate = done / max(time.monotonic() - begun, 1e-3)
                progress.update(task, completed=done, rate=rate)

            def decided() -> int:
                told = producer.statistics
                return told.submitted - told.in_flight

            created = decided()
            for table in tables:
                for request in flights.requests(table):
                    producer.submit(request)
                    draw()
            patience = Patience(boottime_ns())
            while not producer.wait(0.2):
                draw()
                patience.told(decided(), boottime_ns())
                if (trouble := patience.lost(boottime_ns())) is not None:
                    raise RuntimeError(f"the load {trouble}: requests have no outcome")
            progress.update(task, completed=total)
        seconds = time.monotonic() - begun
        self._load_rate = total / seconds
        self._loaded = producer.statistics
        self._small_tables = tables[:-1]
        self._console.print(f"  {total:,} rows in {seconds:.1f} s, {self._load_rate:,.0f} rows/s")
        rows = tables[-1].rows
        step = max(1, len(rows) // WRITER_KEYS)
        self._keys = [[row[name] for name in tables[-1].table.key] for row in rows[::step]]
        self._rows = total

    # ------------------------------------------------------------ the changes

    def _change(
        self, producer: ChangeProducer, watch: ClusterWatch, crews: list[Crew]
    ) -> tuple[list[Change], int]:
        for crew in crews:
            crew.wait_ready()
        self._say(
            "eight writers change flights, hot ones too; half send requests that Spark retries,"
            " half transact on an embedded replica"
        )
        begun = boottime_ns()
        threading.Event().wait(BEFORE_S)  # the writers' times before, to compare with
        changes = [
            follow(
                producer,
                watch,
                self._console,
                "ALTER TABLE flights ADD COLUMN gate text",
                lambda _: None,
            ),
            follow(
                producer,
                watch,
                self._console,
                "CREATE INDEX flights_dest ON flights (dest, arr_delay)",
                self._kill_the_master,
            ),
            follow(
                producer,
                watch,
                self._console,
                "ALTER TABLE flights ADD COLUMN status text NOT NULL DEFAULT 'landed'",
                self._kill_a_replicant,
            ),
        ]
        return changes, begun

    def _kill_the_master(self, job: dict[str, Any]) -> None:
        """Kill the master, once, in the middle of the backfill."""
        rows = self._rows_total(job)
        if "master" in self._killed or not rows or job["rows"] < MASTER_DIES_AT * rows:
            return
        self._killed["master"] = boottime_ns()
        self._console.print("  [red]the master m1 is killed[/red] (SIGKILL); m2 stands by")
        self._cluster.kill("m1")
        self._later("m1", 5.0)

    def _kill_a_replicant(self, _: dict[str, Any]) -> None:
        """Kill a replicant, once, in a change that fills no row and so is over in an instant."""
        if "r2" in self._killed:
            return
        self._killed["r2"] = boottime_ns()
        self._console.print("  [red]the replicant r2 is killed[/red] (SIGKILL)")
        self._cluster.kill("r2")
        self._later("r2", 3.0)

    def _rows_total(self, job: dict[str, Any]) -> int:
        return len(self._keys) and (job["rows_total"] or self._rows)

    def _later(self, node: str, seconds: float) -> None:
        def back() -> None:
            threading.Event().wait(seconds)
            self._cluster.start(node)
            self._console.print(f"  [green]{node} is back[/green]")

        thread = threading.Thread(target=back, name=f"return of {node}")
        thread.start()
        self._returns.append(thread)

    def _return_all(self) -> None:
        for thread in self._returns:
            thread.join()

    # ------------------------------------------------------------ the verdict

    def _judge(
        self,
        watch: ClusterWatch,
        replica: Replica,
        crews: list[Crew],
        changes: list[Change],
        shown: Shown,
        begun: int,
    ) -> bool:
        self._say("the writers have stopped; CHECK TABLE on every node at one log position")
        verdict = Verdict(self._console)
        check_nodes(verdict, self._settings, watch, NODES)
        check_sums(verdict, replica, crews)
        check_menu(verdict, shown, replica, self._small_tables)
        accounted(verdict, self._loaded, crews)
        verdict.expect(
            "master" in self._killed, "the master was killed in the middle of a backfill"
        )
        verdict.expect("r2" in self._killed, "a replicant was killed and came back")
        changes = changes + shown.changes
        killed = self._killed.get("master", 0)
        summary(self._console, crews, changes, begun, killed, self._load_rate)
        return verdict.right
