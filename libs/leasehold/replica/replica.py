"""An embedded replica: the tables in this process, coherent, read without a network.

with leasehold.open_replica() as replica:
    flight = replica.get("flights", 4711)
    replica.transact(lambda tx: tx.update("flights", 4711, {"delay": flight["delay"] + 1}))
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from leasehold import __version__
from leasehold.adapters.metrics.exposition import Exposition
from leasehold.adapters.metrics.process_samples import process_samples
from leasehold.adapters.os.clock import new_request_id
from leasehold.adapters.sqlite.layout import sqlite_errors
from leasehold.adapters.sqlite.query import Limits
from leasehold.adapters.sqlite.statement_memory import TEMP_FOLDER, statement_memory
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import Part, PartWish
from leasehold.model.closing import Closing
from leasehold.model.errors import (
    ConfigurationError,
    GaveUp,
    InternalFailure,
    LeaseholdError,
    NotCoherent,
    Refused,
    SnapshotTooOld,
    StaleVersion,
    VerifyError,
)
from leasehold.model.records.requests import ChangeRequest, OnConflict
from leasehold.node.bootstrap import bootstrap
from leasehold.node.kafka_node import KafkaNode
from leasehold.replica.queries import BYTES_MAX, as_dicts, as_tuples, query
from leasehold.replica.queries import ROWS_MAX as QUERY_ROWS_MAX
from leasehold.replica.reads import key_in, public_index
from leasehold.replica.row_values import named, named_values
from leasehold.replica.sequences.session_values import DrawnSequenceValues, SessionSequenceValues
from leasehold.replica.serving_node import COHERENT_TIMEOUT_S, ServingNode
from leasehold.replica.write_set import WriteSet
from leasehold.replication.node_settings import NodeSettings
from leasehold.settings.client import ClientSettings
from leasehold.settings.extras import need_extra
from leasehold.settings.private_files import make_node_folder
from leasehold.settings.snapshot import token_kept_here
from leasehold.sql.planning.plan import Plans
from leasehold.transaction.isolation import Sees, chosen
from leasehold.values.dates import AsOf

T = TypeVar("T")
REPLAYS_MAX: Final = 100
ROWS_MAX: Final = 10_000
LOG: Final = logging.getLogger("leasehold.replica")


@dataclass(frozen=True, slots=True)
class Transacted(Generic[T]):
    """A transaction that was committed. `value`: what the function returned in the run that counts.
    `lsn`: 0 when it wrote nothing. `attempts`: runs of the function, 1 = never replayed."""

    value: T
    lsn: int
    attempts: int


def open_replica(
    settings: ClientSettings | None = None,
    *,
    path: Path | str | None = None,
    tables: Collection[str] | None = None,
    where: Mapping[str, str] | None = None,
    columns: Mapping[str, Collection[str]] | None = None,
    wait_s: float = COHERENT_TIMEOUT_S,
) -> Replica:
    """Open a replica in this process and wait until it is coherent.

    `tables`: those that it holds, all without any (LEASEHOLD_REPLICA_TABLES says it, too). `where`:
    which rows, by table, as a range of the first column of its primary key
    (`{"seats": "flight >= 100 AND flight < 200"}`). `columns`: which columns, by table, beside
    those of the primary key. What is named there need not be named in `tables`. It answers about
    nothing else: whatever might need more is refused (NotHeldHere). With another part than before
    it begins anew with a copy of what it is to hold.

    `path`: its store, kept between runs so that it only has to catch up (default: the folder of
    this node, LEASEHOLD_DATA/LEASEHOLD_NODE). `wait_s` 0 does not wait. Raises NotCoherent when
    that takes longer, ConfigurationError when another process has the store open, or when it can't
    hold those tables alone, SnapshotUnavailable when nobody has a copy for it, BusUnavailable when
    Kafka can't be reached: try again later.
    """
    given = settings or ClientSettings.read()
    wish = given.replica.wish
    if tables is not None or where is not None or columns is not None:
        wish = PartWish.of(tables, where, columns)
    if tables is not None and not wish.tables:
        raise ConfigurationError("a replica holds one table at least: name it in tables=")
    replica = Replica(given, path, wish)
    try:
        if wait_s:
            replica.wait_coherent(wait_s)
    except BaseException:
        replica.close()
        raise
    return replica


class Replica(Closing):
    """Methods may be called from any thread; `close` (or leaving the `with`) leaves none behind."""

    def __init__(
        self,
        settings: ClientSettings,
        path: Path | str | None = None,
        wish: PartWish | None = None,
    ) -> None:
        cluster = settings.cluster
        self._settings = settings
        file = Path(path) if path else cluster.folder / "store.db"
        if not path:
            make_node_folder(cluster.folder)
        snapshot = settings.snapshot
        if snapshot.token is None:
            snapshot = replace(snapshot, token=token_kept_here(cluster.data))
        wish = settings.replica.wish if wish is None else wish
        bootstrap(file, cluster.node, settings.topics, settings.kafka, snapshot, wish=wish)
        memory = statement_memory(file.parent / TEMP_FOLDER, cluster)
        self.store = SqliteStore(file, cache_mb=cluster.store_cache_mb, memory=memory)
        self._plans = Plans()
        self._stop = threading.Event()
        try:
            self._node = KafkaNode(
                NodeSettings(
                    cluster.node,
                    candidate=False,
                    serving=True,
                    release=__version__,
                    disk_reserve_bytes=cluster.disk_reserve_bytes,
                )
                .with_session_ttl(settings.session_ttl_ms)
                .with_history(cluster.history_ms, cluster.row_history_ms),
                settings.topics,
                settings.kafka,
                settings.redis,
                self.store,
                file=file,
            )
        except BaseException:
            self.store.close()
            raise
        self.serving = ServingNode(self._node, self.store, settings)
        self._thread = threading.Thread(target=self._run, name="leasehold-replica", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------ life

    def _run(self) -> None:
        try:
            with sqlite_errors(self.store.path):
                self._node.run(self._stop)
        except LeaseholdError as error:
            self._node.error = error
            LOG.error("replica stopped: %s", error.message)
        except Exception as error:
            # A defect: without this whoever reads would wait for a thread that is gone.
            LOG.exception("replica stopped")
            words = f"the replica stopped by itself ({type(error).__name__}: {error})"
            self._node.error = InternalFailure(words)
        finally:
            self.serving.wake_waiters()

    @property
    def coherent(self) -> bool:
        return self.serving.coherent

    @property
    def part(self) -> Part:
        """What of the database it holds; `part.words()` says it."""
        return self.store.part

    @property
    def lsn(self) -> int:
        """LSN of the last transaction applied here."""
        return self._node.node.position.lsn

    def collector(self) -> Any:
        """Return a collector for prometheus_client's registry, with all that this replica
        measures: `REGISTRY.register(replica.collector())`. Of several replicas of one process
        each has a registry of its own. Raises ConfigurationError without the extra `metrics`."""
        need_extra("metrics", "Replica.collector", "prometheus_client")
        from leasehold.adapters.metrics.collector import ExpositionCollector

        exposition = Exposition()
        exposition.add("version and clients", process_samples)
        exposition.add("store", self.store.measures.samples)
        exposition.add("node", self._node.samples)
        exposition.add("requests", self.serving.samples)
        return ExpositionCollector(exposition)

    def wait_coherent(self, timeout_s: float = COHERENT_TIMEOUT_S) -> None:
        """Return once it is coherent. Raises NotCoherent when that takes longer, or what stopped
        the replica."""
        self.serving.wait_coherent(timeout_s)

    def wait_applied(self, lsn: int, timeout_s: float = COHERENT_TIMEOUT_S) -> None:
        """Return once the transaction `lsn` (of a RowEvent, say) is applied here and reads see it.
        Raises NotCoherent when that takes longer."""
        sees_below = self.serving.sees_below
        self.serving.wait_for(lambda: sees_below(lsn + 1), timeout_s, f"to apply LSN {lsn}")

    def close(self) -> None:
        """Give the coherency lease back, stop the thread, close the store. May be called twice."""
        if self._stop.is_set():
            return
        self._stop.set()
        self.serving.close()
        self._thread.join()
        self.store.close()

    # ------------------------------------------------------------ reads

    def get(self, table: str, key: Any, *, wait_s: float = 0.0) -> dict[str, Any] | None:
        """Return a row of this primary key (a value, a tuple, or a mapping), by column name; or
        None.

        Coherent: it shows every write that was answered before the call. While this replica is not,
        it waits up to `wait_s` (so do the other reads), then raises NotCoherent. Raises
        UnknownTable. Needs no descriptor lease: descriptor and row are of one snapshot (D3).
        """
        if self.serving.coherent:  # C2: before the snapshot, which is the statement
            found = self.store.row_at_once(table, lambda newest: key_in(newest, key))
            if found is not None:
                descriptor, values = found
                return None if values is None else named_values(descriptor, values)
        reads = self.serving.single_read(wait_s)
        with reads.snapshot() as snapshot:
            descriptor = snapshot.newest(table)
            row = snapshot.get(descriptor, key_in(descriptor, key))
        return None if row is None else self.part.shown(descriptor, named(descriptor, row))

    def scan(
        self,
        table: str,
        low: Any = None,
        high: Any = None,
        *,
        rows_max: int = ROWS_MAX,
        wait_s: float = 0.0,
    ) -> Iterator[dict[str, Any]]:
        """Yield rows with low <= key < high in key order, as of one moment; prefixes of a key
        work."""
        reads = self.serving.single_read(wait_s)
        with reads.snapshot() as snapshot:
            descriptor = snapshot.newest(table)
            first, last = reads.bound(descriptor, low), reads.bound(descriptor, high)
            for _, row in snapshot.scan(descriptor, first, last, rows_max=rows_max):
                yield self.part.shown(descriptor, named(descriptor, row))

    def get_by(
        self, index: str, values: Any, *, rows_max: int = ROWS_MAX, wait_s: float = 0.0
    ) -> Iterator[dict[str, Any]]:
        """Yield rows whose index key starts with `values`, in index order: values of columns, or of
        what the index has an expression for. A partial index finds the rows that it holds.

        `index`: `table.index` or the name alone. Raises UnknownColumn (42703) for an index that
        does not exist, or is not public yet: elements that aren't public don't exist for a query.
        """
        reads = self.serving.single_read(wait_s)
        given = values if isinstance(values, tuple) else (values,)
        with reads.snapshot() as snapshot:
            descriptor, found = public_index(snapshot.tables(), index)
            snapshot.newest(descriptor.name)  # whether it is held here
            stored = reads.index_key(descriptor, found, given)
            rows = snapshot.get_by(descriptor, found.element_id, stored, rows_max=rows_max)
            for _, row in rows:
                yield self.part.shown(descriptor, named(descriptor, row))

    def query(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        tuples: bool = False,
        rows_max: int = QUERY_ROWS_MAX,
        time_s: float | None = None,
        wait_s: float = 0.0,
    ) -> list[Any]:
        """Return rows of a SELECT, VALUES or EXPLAIN in PostgreSQL's dialect, as dicts by column
        name or as `tuples`; `parameters` are those that the text calls $1, $2 …

        Coherent, and of one moment. Writes nothing. Raises NotCoherent; a Refused with PostgreSQL's
        SQLSTATE and the position in the text; QueryCanceled after `time_s` seconds; RequestTooLarge
        above `rows_max`.
        """
        limits = Limits(time_s, rows_max, BYTES_MAX)
        self.serving.single_read(wait_s).check_coherent()
        with self.store.open_snapshot() as snapshot:
            prepared, rows = query(self._plans, snapshot, sql, parameters, limits)
            return list((as_tuples if tuples else as_dicts)(prepared, rows))

    def tables(self) -> tuple[Descriptor, ...]:
        """Return the newest descriptors in this store, by table id."""
        with self.store.open_snapshot() as snapshot:
            return snapshot.tables()

    def descriptor_at(self, table: str, lsn: int) -> Descriptor:
        """Return the table that was called `table` at `lsn`, as it was then.

        Raises SnapshotTooOld (72000) for a time whose history is no longer kept, NotCoherent for
        one that is not here yet, UnknownTable.
        """
        with self.store.open_snapshot() as snapshot:
            return snapshot.descriptor_at(table, lsn)

    # ------------------------------------------------------------ transactions

    def transact(
        self,
        work: Callable[[WriteSet], T],
        *,
        isolation: str | None = None,
        as_of: AsOf | None = None,
        verify_retry: bool = True,
        replays_max: int = REPLAYS_MAX,
        timeout_s: float = 30.0,
        label: str = "",
    ) -> Transacted[T]:
        """Run `work` on a write set, submit it, and run it again after a verify error.

        `isolation`: a level of `transaction/isolation.py`, or PostgreSQL's name of one; without it
        read committed. `as_of`, an LSN or a time with its time zone: a snapshot of then.
        `verify_retry` False, and snapshot in any case: a verify error is raised (40001), nothing
        runs twice. `label` says what it is, to whoever waits for it (`leasehold jobs`); without one
        it is the name of `work`. No row values in it, please.

        `work` may run several times: it must have no effects but those on the write set. Nothing of
        it is answered before its end, so a replay contradicts no answer, at any level (T2). When it
        returns, its answer is committed on every coherent node. Raises what `work` raises, GaveUp
        after `replays_max` replays, the Refused that the master decided, SnapshotTooOld (72000),
        OutcomeUnknown (08007) when no answer came in time: ask with the same work only if it may be
        applied twice.
        """
        level = chosen(isolation, past=as_of is not None)
        run_again = level.replays and verify_retry
        request_id = new_request_id()
        label = label or f"transaction {getattr(work, '__qualname__', type(work).__name__)}"
        submitted = 0
        last: ChangeRequest | None = None
        for run in range(1, replays_max + 2):
            if level.sees is not Sees.BARRIER and as_of is None:
                self.wait_coherent(timeout_s)
            try:
                snapshot_lsn = self.serving.snapshot_lsn(level, as_of, timeout_s)
                with closing(self.serving.reads(label, snapshot_lsn)) as reads:
                    drawn = DrawnSequenceValues(
                        self.serving.sequence_values, SessionSequenceValues()
                    )
                    writes = WriteSet(reads, level, drawn, reads.budget)
                    value = work(writes)
                    on_conflict = OnConflict.REPLAY if run_again else OnConflict.FAIL
                    request = writes.request(request_id, submitted + 1, on_conflict)
                    if request is None and writes.locks_stand():
                        return Transacted(value, 0, run)
                    if request is None:
                        self._check_runs_again(run_again=run_again)
                        continue
                    outcome = self.serving.submit(request, timeout_s)
            except (StaleVersion, SnapshotTooOld):
                if not run_again:
                    raise
                continue  # a schema change or the collection passed it by; nothing was sent
            except NotCoherent:
                if as_of is not None or level.sees is Sees.BARRIER:
                    raise
                continue
            if outcome.lsn:
                return Transacted(value, outcome.lsn, run)
            if outcome.final:
                raise outcome.make_error()
            submitted, last = outcome.attempt, request
            self.serving.sessions.count_replay()
        raise self._give_up(last, timeout_s)

    def _check_runs_again(self, *, run_again: bool) -> None:
        """Raise VerifyError where a transaction that has only read, and locked rows that have
        changed since, is not run again."""
        if not run_again:
            raise VerifyError("a row that this transaction has locked was changed since, or locked")
        self.serving.sessions.count_replay()

    def _give_up(self, last: ChangeRequest | None, timeout_s: float) -> Refused:
        """Return the error, after the master has decided that it is given up (L5): asking later
        gets a final answer."""
        tries = 0 if last is None else last.attempt
        if last is not None:
            self.serving.submit(last.giving_up(), timeout_s)
        return GaveUp(
            f"the transaction was refused {tries} times by a verify error; others change the"
            " same rows faster than it runs"
        )
