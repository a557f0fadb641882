"""DDL statement → plan: what is created at once, or a job and its steps.

Each kind of statement has a module of its own; the paths of elements are in `steps/`, and
`explain.py` shows a plan. Element ids come from the descriptor's `next_element_id`, which only
rises, so that no id is ever used for a second element.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import Job, Phase
from leasehold.model.errors import FeatureNotSupported
from leasehold.schema_change.plan.alter_table import plan_alter_table
from leasehold.schema_change.plan.busy_tables import NO_EARLIER_DROPS, EarlierDrops
from leasehold.schema_change.plan.create_table import plan_create_table
from leasehold.schema_change.plan.drop_table import plan_drop_table
from leasehold.schema_change.plan.indexes import (
    plan_create_index,
    plan_drop_index,
    plan_rename_index,
)
from leasehold.schema_change.plan.job_size import check_job_size
from leasehold.schema_change.plan.other_objects import plan_other
from leasehold.schema_change.plan.relation_kinds import as_named
from leasehold.schema_change.plan.rename_schema import plan_rename_schema
from leasehold.schema_change.plan.results import (
    Changes,
    CreateTablePlan,
    JobPlan,
    NothingToDo,
    Plan,
    RestartPlan,
)
from leasehold.schema_change.plan.sequences import plan_sequence
from leasehold.schema_change.plan.set_schema import plan_set_schema
from leasehold.schema_change.plan.table_like import expand_likes
from leasehold.schema_change.plan.truncate import plan_truncate
from leasehold.schema_change.steps.steps import steps_of
from leasehold.sql.syntax.object_statements import (
    Comment,
    DropAbsent,
    EnumStatement,
    MakeBuiltIn,
    NamespaceStatement,
    RenameNamespace,
    ViewStatement,
)
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    CreateIndex,
    CreateTable,
    DropIndex,
    DropTable,
    RenameIndex,
    SetSchema,
    Truncate,
)

SETTINGS: Final[Mapping[str, int]] = {
    "rows_per_second": 0,
    "chunk_rows": 5_000,
    "postpone": 0,
    "cancel_blockers_after_ms": 0,
}
"""The settings of a new job."""
NO_CONTEXT: Final = CommitContext(0, b"")


def plan(
    statement: Change,
    catalog: Catalog,
    *,
    sql: str = "",
    request_id: bytes = b"",
    context: CommitContext = NO_CONTEXT,
    earlier: EarlierDrops = NO_EARLIER_DROPS,
    in_place: bool = True,
    computed: bool = True,
    narrows: bool = True,
) -> Plan:
    """Return what `statement` asks for, on the newest versions of `catalog`, as of `context`.
    `in_place`: changes that touch no row may be written (`Feature.CHANGES_IN_PLACE`); else they are
    made as releases did that had none. `computed`: likewise columns that follow others, whose
    values nodes and readers of images compute (`COMPUTED_BACKFILLS`); else images tell.
    `narrows`: likewise of columns that get a narrower type where they stand (`NARROWED_TYPES`);
    else another column takes their place.

    Raises UnknownTable, UnknownColumn, UnknownObject (42704), DuplicateObject (42P07),
    DuplicateColumn (42701), InvalidDefinition (42P16), InvalidObject (42P17), NotGenerated (55000),
    DependentObjects (2BP01), NotNullViolation (23502), TableBusy (55006), FeatureNotSupported,
    OutOfRange (limits), what expressions raise.
    """
    statement = as_named(statement, catalog)
    made: Changes | CreateTablePlan | RestartPlan | NothingToDo
    match statement:
        case CreateTable():
            if statement.likes:
                statement = expand_likes(statement, catalog).table
            return plan_create_table(statement, catalog)
        case Truncate():
            return plan_truncate(statement, catalog)
        case CreateIndex():
            made = plan_create_index(statement, catalog)
        case DropTable():
            made = plan_drop_table(statement, catalog, earlier)
        case DropIndex():
            made = plan_drop_index(statement, catalog, earlier)
        case RenameIndex():
            made = plan_rename_index(statement, catalog)
        case SetSchema():
            made = plan_set_schema(statement, catalog)
        case AlterTable():
            made = plan_alter_table(
                statement,
                catalog,
                context,
                earlier,
                in_place=in_place,
                computed=computed,
                narrows=narrows,
            )
        case DropAbsent() | Comment() | MakeBuiltIn():
            return plan_other(statement, catalog)
        case _ if isinstance(statement, EnumStatement):
            raise FeatureNotSupported(
                "EXPLAIN shows the steps of a schema change of one table: a type is changed at"
                " once, and its columns with it"
            )
        case RenameNamespace():
            made = plan_rename_schema(statement, catalog)
        case _ if isinstance(statement, NamespaceStatement):
            raise FeatureNotSupported(
                "EXPLAIN shows the steps of a schema change of one table: a schema is made and"
                " dropped at once"
            )
        case _ if isinstance(statement, ViewStatement):
            raise FeatureNotSupported(
                "EXPLAIN shows the steps of a schema change: a view is made, changed and dropped at"
                " once"
            )
        case _ if isinstance(statement, RoleStatement):
            raise FeatureNotSupported(
                "EXPLAIN shows the steps of a schema change: what is said of roles and privileges"
                " is done at once"
            )
        case _:
            made = plan_sequence(statement, catalog, earlier)
    if isinstance(made, NothingToDo | RestartPlan | CreateTablePlan):
        return made
    check_job_size(made.versions)
    steps, point = steps_of(made.paths)
    job = Job(
        job_id=catalog.next_job_id(),
        sql=sql,
        table_id=made.table.table_id,
        table=made.table.name,
        request_id=request_id,
        kind=made.kind,
        subject=made.subject,
        steps=steps,
        point=point,
        versions=made.versions,
        settings=SETTINGS,
        needs=made.needs,
        joins=made.joins,
        created_us=context.now_us,
        marks=((0, Phase.PUBLISHING.value, context.now_us),),
        renames=made.renames,
    )
    return JobPlan(job, made.notices, made.made, made.within, made.paths)
