"""What a turn costs: each piece of a node's work takes virtual time, so that a turn that is too
long loses leases and terms in a simulation as it does on a machine.

The costs are measured ones, rounded (one core of 2020, interpreted), times a factor: a run on slow
machines meets with few rows what a fast one meets with many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

from leasehold.adapters.codec import request_decoding
from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.cluster import MemoryCluster
from leasehold.in_process.process import MemoryProcess
from leasehold.model import budget
from leasehold.model.budget import WORK_PER_MS
from leasehold.replication.master import request_budget
from leasehold.replication.master.schema_changes import SchemaChanges
from leasehold.transaction import verify
from tests.support.memory_store.store import MemoryStore

US: Final = 1_000
MS: Final = 1_000 * US

ROW_NS: Final = 8 * US
HOLDERS_NS: Final = 9 * US
CHANGE_NS: Final = 16 * US
BACKFILL_NS: Final = 12 * US
OPERATION_NS: Final = 5 * US
DECIDE_NS: Final = 20 * US
COMMIT_NS: Final = 50 * US
BYTE_READ_NS: Final = 20
BYTE_PACKED_NS: Final = 5
DDL_NS: Final = 500 * US
DDL_BYTE_NS: Final = 5 * US

Cost = Callable[..., int]


class WorkMeter:
    """Counts for the node whose turn it is. `longest_ns`: of all turns of a master so far."""

    def __init__(self, cluster: MemoryCluster, factor: int) -> None:
        self._factor = factor
        self._process: MemoryProcess | None = None
        self.longest_ns = 0
        self.longest_of = ""
        for name, node in cluster.nodes.items():
            self._wrap(name, node)

    def _wrap(self, name: str, node: Any) -> None:
        run = node.run

        def wrapped(action: Callable[[], None]) -> None:
            before, self._process = self._process, node
            master = node.node is not None and node.node.master is not None

            def counted() -> None:
                action()
                if master and node.worked_ns > self.longest_ns:
                    self.longest_ns, self.longest_of = node.worked_ns, name

            try:
                run(counted)
            finally:
                self._process = before

        node.run = wrapped

    def works(self, cost_ns: int) -> None:
        if self._process is not None:
            self._process.worked_ns += cost_ns * self._factor


@contextmanager
def work_takes_time(cluster: MemoryCluster, factor: int = 1) -> Iterator[WorkMeter]:
    """While it lasts, what the cluster's nodes do takes virtual time."""
    meter = WorkMeter(cluster, factor)
    with ExitStack() as stack:

        def costs(owner: Any, method: str, cost: Cost) -> None:
            real = getattr(owner, method)

            def working(*arguments: Any, **named: Any) -> Any:
                meter.works(cost(*arguments))
                return real(*arguments, **named)

            stack.enter_context(patch.object(owner, method, working))

        for module in (budget, request_budget):
            costs(module, "check_call", lambda work: work * MS // WORK_PER_MS)
        costs(MemoryStore, "row", lambda *_: ROW_NS)
        costs(MemoryStore, "holders", lambda *_: HOLDERS_NS)
        costs(MemoryStore, "change", lambda *_: CHANGE_NS)
        costs(MemoryStore, "backfill", lambda *a: BACKFILL_NS * len(a[-1].keys))
        costs(MemoryStore, "commit", lambda *_: COMMIT_NS)
        costs(verify, "decide", lambda *_: DECIDE_NS)
        for name in ("read_fields", "read_fields_in_slices"):
            costs(request_decoding, name, lambda *a: BYTE_READ_NS * len(a[-1]))
        costs(request_decoding, "_operation", lambda *_: OPERATION_NS)
        costs(MessagePackCodec, "decode_log", lambda *a: BYTE_READ_NS * len(a[-1]) // 4)
        costs(MessagePackCodec, "digest", lambda *a: BYTE_PACKED_NS * len(a[-1]))
        costs(SchemaChanges, "decide", lambda *a: DDL_NS + DDL_BYTE_NS * len(a[1].sql or ""))
        yield meter
