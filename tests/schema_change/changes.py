"""A schema change that the model runs: SQL, planned by the real parser and the real plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.job import Job
from leasehold.model.records.log import DescriptorWrite, MinVersion
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, JobPlan, Plan
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.schema_change.steps.steps import steps_of
from leasehold.sql.ddl.schema_statements import parse_ddl
from leasehold.sql.syntax.statements import (
    Explain,
    Statement,
)
from tests.support.schema_change.looked_through import looked_through
from tests.support.schema_change.next_descriptor import next_descriptor

A, B, C = 2, 3, 4  # element ids of the columns a, b and c of TABLE and of those who add c
TABLE: Final = "CREATE TABLE t (id integer PRIMARY KEY, a integer, b integer)"
Domain = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Change:
    """One schema change of table t: `job` as planned on `base`. `domain`: column name → values that
    writers put there, others hold 0. `origin`: the version that the rows may be from. `may_fail`:
    rows may break what it promises, and the job ends failed then."""

    name: str
    base: Descriptor
    job: Job
    domain: Domain = field(default_factory=dict)
    origin: Descriptor | None = None
    may_fail: bool = False

    def by(self, *paths: ElementPath) -> Change:
        """The same change on other ways: an order that the plan does not make."""
        steps, point = steps_of(paths)
        return replace(self, job=replace(self.job, steps=steps, point=point))

    def by_an_earlier_release(self) -> Change:
        """The same change as an earlier release has planned it."""
        return replace(self, job=replace(self.job, steps=looked_through(self.job.steps)))


def planned(
    asked: str | Statement, catalog: Catalog, *, in_place: bool = True, computed: bool = True
) -> Plan:
    statement = parse_ddl(asked) if isinstance(asked, str) else asked
    assert not isinstance(statement, Explain)
    return plan(statement, catalog, in_place=in_place, computed=computed)


def catalog_of(descriptor: Descriptor) -> Catalog:
    catalog = Catalog()
    body = descriptor.to_wire()
    catalog.apply(DescriptorWrite(descriptor.table_id, descriptor.version, body), 0, 0)
    return catalog


def standing(*statements: str) -> Descriptor:
    """Table t once the statements are done, as its version 1."""
    catalog = Catalog()
    for sql in statements:
        made = planned(sql, catalog)
        if isinstance(made, CreateTablePlan):
            catalog = catalog_of(made.descriptor)
            continue
        assert isinstance(made, JobPlan), sql
        for number in range(len(made.job.steps)):
            after = next_descriptor(replace(made.job, step=number), catalog)
            catalog.apply(DescriptorWrite(1, after.version, after.to_wire()), 0, 0)
            catalog.apply(MinVersion(1, after.version), 0, 0)
    return replace(catalog.newest(1), version=1, modified_us=0)


def changed(
    asked: str | Statement,
    *given: str,
    name: str = "",
    domain: Domain | None = None,
    origin: tuple[str, ...] = (),
    may_fail: bool = False,
    in_place: bool = True,
    computed: bool = True,
) -> Change:
    """The change that is `asked` for, on the table made by `given` (TABLE without any). `in_place`
    False: beside processes of a release that knows no changes without a fill; `computed` False:
    beside some that know no columns which nodes and readers of images compute."""
    base = standing(*(given or (TABLE,)))
    made = planned(asked, catalog_of(base), in_place=in_place, computed=computed)
    assert isinstance(made, JobPlan), made
    rows_of = standing(*origin) if origin else None
    return Change(name or str(asked), base, made.job, domain or {}, rows_of, may_fail)
