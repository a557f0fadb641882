"""The schema as a prefix of the log has it: the real catalog, and whether its history is sound."""

from __future__ import annotations

from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Phase
from leasehold.model.errors import StoreCorrupted
from leasehold.model.records.log import Commit, Decisions, DescriptorWrite, JobWrite
from leasehold.replication.log.admission import Verdict
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan, Plan
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
)
from tests.models.log_records import Records
from tests.models.whole_world import TABLE, run_id

JOB: Final = 1
CREATE: Final = "CREATE TABLE t (id integer, a integer, PRIMARY KEY (id))"
CHANGE: Final = "ALTER TABLE t ADD COLUMN b integer"
"""Two steps: delete-only as version 2, public as version 3."""


class Schema(NamedTuple):
    """`harm`: what the log itself shows to be broken, "" for nothing."""

    catalog: Catalog
    harm: str = ""

    @property
    def newest(self) -> int:
        return self.catalog.newest(TABLE).version

    @property
    def min_version(self) -> int:
        return self.catalog.min_version(TABLE)

    @property
    def publishing(self) -> int:
        """The version whose intent is in the log and whose descriptor is not; 0: none."""
        job = self.catalog.jobs[JOB]
        return job.versions[TABLE] if job.phase is Phase.PUBLISHING else 0


def planned(sql: str, catalog: Catalog) -> Plan:
    statement = parse_ddl(sql)
    assert not isinstance(statement, Explain)
    return plan(statement, catalog)


def first_catalog() -> Catalog:
    """Table t at version 1, the job's intent in the log, the ledger's run on record."""
    catalog = Catalog()
    made = planned(CREATE, catalog)
    assert isinstance(made, CreateTablePlan)
    catalog.apply(DescriptorWrite(TABLE, 1, made.descriptor.to_wire()), 0, 0)
    job = planned(CHANGE, catalog)
    assert isinstance(job, JobPlan)
    catalog.apply(JobWrite(job.job.job_id, job.job.to_wire()), 0, 0)
    catalog.ledger_run = run_id(1)
    return catalog


class Schemas:
    def __init__(self, records: Records) -> None:
        self._records = records
        self._at: dict[tuple[int, ...], Schema] = {(): Schema(first_catalog())}

    def at(self, prefix: tuple[int, ...]) -> Schema:
        found = self._at.get(prefix)
        if found is None:
            found = self._at[prefix] = self._after(prefix)
        return found

    def _after(self, prefix: tuple[int, ...]) -> Schema:
        schema = self.at(prefix[:-1])
        record = self._records.records[prefix[-1]]
        if self._records.known(prefix).verdict is not Verdict.APPLY or schema.harm:
            return schema
        assert isinstance(record, Decisions)
        for number, commit in enumerate(record.commits):
            if not schema.harm:
                schema = _committed(schema, commit, record.first_lsn + number)
        return schema


def _committed(schema: Schema, commit: Commit, lsn: int) -> Schema:
    used = commit.versions.get(TABLE)
    if used is not None and used < schema.min_version:
        return schema._replace(harm=f"D5: a write under version {used} came after the fence")
    if used is not None and used < schema.newest - 1:
        return schema._replace(harm=f"D1: a write under version {used} of {schema.newest}")
    if not commit.catalog:
        return schema
    catalog = schema.catalog.copy()
    try:
        for write in commit.catalog:
            if isinstance(write, DescriptorWrite) and write.version != schema.min_version + 1:
                words = f"D5: version {write.version} is out, fenced is {schema.min_version}"
                return schema._replace(harm=words)
            catalog.apply(write, commit.commit_us, lsn)
    except (AssertionError, StoreCorrupted) as error:
        return schema._replace(harm=str(error))
    return Schema(catalog)
