"""The master's side of DDL: requests become plans, jobs are driven, late chunks are turned away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from leasehold.model.ports import Now
from leasehold.model.records import (
    CatalogWrite,
    ChangeRequest,
    CheckReport,
    Chunk,
    ChunksEnd,
    DescriptorWrite,
    JobWrite,
    LeaseAck,
)
from leasehold.replication.effects import Effect
from leasehold.schema.catalog import Catalog
from leasehold.schema.chunk_gate import accept_chunk, accept_end
from leasehold.schema.job_control import control
from leasehold.schema.plan import CreateTablePlan, JobPlan, plan
from leasehold.sql.ddl import parse_ddl


@dataclass(frozen=True, slots=True)
class SchemaSettings:
    session_ttl_ms: int = 15_000


class Decision(NamedTuple):
    """What a DDL or job-control request writes, and what its result carries."""

    writes: tuple[CatalogWrite, ...]
    answer: dict[str, Any]


class SchemaChanges:
    def __init__(
        self, settings: SchemaSettings, node: str, catalog: Catalog, epoch: int, now: Now
    ) -> None:
        self._catalog = catalog

    def begin(self, now: Now) -> list[Effect]:
        return []

    def decide(self, request: ChangeRequest, now: Now) -> Decision:
        """Raises Refused."""
        if request.control is not None:
            job = control(self._catalog, request.control, now.wall_us)
            return Decision((JobWrite(job.job_id, job.to_wire()),), {"job": job.job_id})
        assert request.sql is not None
        statement = parse_ddl(request.sql)
        made = plan(
            statement,
            self._catalog,
            sql=request.sql,
            request_id=request.id,
            now_us=now.wall_us,
        )
        if isinstance(made, CreateTablePlan):
            descriptor = made.descriptor
            write = DescriptorWrite(descriptor.table_id, 1, descriptor.to_wire())
            return Decision((write,), {"table": descriptor.table_id})
        if isinstance(made, JobPlan):
            job = made.job
            return Decision((JobWrite(job.job_id, job.to_wire()),), {"job": job.job_id})
        return Decision((), {"notice": made.notice})

    def accepts(self, chunk: Chunk) -> bool:
        return accept_chunk(self._catalog, chunk)

    def accepts_end(self, end: ChunksEnd) -> bool:
        return accept_end(self._catalog, end)

    def has_write(self) -> bool:
        return False

    def next_write(self) -> tuple[CatalogWrite, ...] | None:
        return None

    def appended(self) -> None: ...

    def catalog_changed(self, lsn: int, now: Now) -> list[Effect]:
        return []

    def lease_acked(self, ack: LeaseAck, now: Now) -> list[Effect]:
        return []

    def reported(self, report: CheckReport, now: Now) -> list[Effect]:
        return []

    def ledger_replied(self, token: object, reply: object, now: Now) -> list[Effect]:
        return []

    def tick(self, coherent: frozenset[str], now: Now) -> list[Effect]:
        return []

    def due_ns(self) -> int | None:
        return None
