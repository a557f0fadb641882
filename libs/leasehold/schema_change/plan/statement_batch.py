"""The DDL statements of one request, one after the other: each sees what those before it will have
done, and the request's rows are decided under what all of them leave.

A table that is made here is nobody's yet: further statements on it take all their steps at once,
and are part of its first version. A table that was there keeps its version: its job begins with the
commit, and rows are decided under the version before the job's first step. All that is said of one
such table is one job (`joined_jobs.py`), planned on the table as the statements before leave it.
All that is taken away is one job (`drops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, Final

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Edit, Kind
from leasehold.catalog.element_forms import FOREIGN_KEY_FORM
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.job import NO_WAY_BACK, Job, Step
from leasehold.catalog.job_names import collect_relation_names
from leasehold.catalog.overlay import CatalogAhead
from leasehold.catalog.roles import BOOTSTRAP_ROLE
from leasehold.catalog.sequence import check_restart
from leasehold.catalog.sequence_ownership import (
    check_bounds_operation,
    list_own_sequences,
    set_operation,
)
from leasehold.catalog.states import State
from leasehold.model.errors import FeatureNotSupported, TableBusy, UnknownTable
from leasehold.model.ids import is_enum_id, is_sequence_id
from leasehold.model.records.log import (
    AccessWrite,
    CatalogWrite,
    CommentWrite,
    DescriptorWrite,
    EnumWrite,
    JobWrite,
    MinVersion,
    RoleOrAccessWrite,
    TableTruncated,
)
from leasehold.model.records.requests import Operation
from leasehold.schema_change.plan.answers import answer_of_several, read_notices
from leasehold.schema_change.plan.busy_tables import NO_EARLIER_DROPS, EarlierDrops, is_table
from leasehold.schema_change.plan.default_texts import without_default_texts
from leasehold.schema_change.plan.dependents import cascade_notice
from leasehold.schema_change.plan.dropped_along import (
    LostAlong,
    count_steps_drawn,
    find_lost_along,
    lets_go,
    without_needs,
)
from leasehold.schema_change.plan.drops import (
    as_write_only,
    collect_names,
    find_drops,
    join_drops,
    with_new_tables,
    without_dropped_tables,
    without_elements,
)
from leasehold.schema_change.plan.enums import change_enums, refuse_enum_name
from leasehold.schema_change.plan.foreign_keys import without_deferred
from leasehold.schema_change.plan.job_size import check_job_size
from leasehold.schema_change.plan.joined_jobs import (
    check_versions,
    demand_filled,
    find_joining,
    find_set_not_null,
    is_joinable,
    join_plans,
    only_adds,
    table_after,
    take_all_steps,
)
from leasehold.schema_change.plan.namespaces import (
    change_namespaces,
    check_namespace,
    describe_along,
)
from leasehold.schema_change.plan.other_objects import comment_on
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.primary_key import give_key, read_key_change
from leasehold.schema_change.plan.referred_elements import leaves_referred, new_foreign_keys
from leasehold.schema_change.plan.results import (
    CreateTablePlan,
    JobPlan,
    NothingToDo,
    RestartPlan,
    TruncatePlan,
)
from leasehold.schema_change.plan.rights import check_owners, check_rights, check_truncate
from leasehold.schema_change.plan.role_changes import change_access
from leasehold.schema_change.plan.sequences import split_owner
from leasehold.schema_change.plan.table_like import expand_likes
from leasehold.schema_change.plan.transaction_job import (
    join_tables,
    order_tables,
    refuse_in_transaction,
)
from leasehold.schema_change.plan.views import (
    as_of_view,
    change_views,
    follow_tables,
    refuse_view,
)
from leasehold.sql.syntax.object_statements import (
    Comment,
    EnumStatement,
    NamespaceStatement,
    RenameNamespace,
    ViewStatement,
)
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    CreateSequence,
    CreateTable,
    DropSequence,
    DropTable,
)

Answer = dict[str, Any]
_BEGINNINGS: Final = count(1)
"""Of sequences, in this process."""


@dataclass
class StatementBatch:
    """What the statements of one request come to. `catalog`: as it will be with what was taken so
    far. `made`: tables of this request, at their version 1; `truncated`, `jobs`, `dropped`: what
    becomes of tables that were there; `begun`: sequences that it makes or restarts, with where they
    begin, and which beginning that is; `within`: as they will be, those that have to be inside of
    their new bounds. `in_place`, `computed`, `narrows`: see `plan`. `keeps_deferred`: which foreign
    keys are deferred may be written; `keeps_texts`: how numbers were written that are defaults.
    `whole`: they are of a transaction, whose changes of tables
    that were there are one job with what it makes and drops (`transaction_job.py`); of its versions
    nobody knows the numbers yet, so none is `computed`.
    `trusted`: see `follow_tables`. `comments`: whether they are kept.
    `written`: tables of which the transaction has written rows before the next statement;
    `demands`: columns, (table id, element id), that it sets NOT NULL behind such rows: the master
    makes sure of them when it commits the rows. `temporary`: they are on temporary tables."""

    catalog: CatalogAhead
    made: dict[int, Descriptor] = field(default_factory=dict)
    truncated: dict[int, None] = field(default_factory=dict)
    plans: dict[int, JobPlan] = field(default_factory=dict)  # by table id
    dropped: dict[int, Descriptor] = field(default_factory=dict)
    begun: dict[int, tuple[int, int]] = field(default_factory=dict)
    within: list[Descriptor] = field(default_factory=list)
    _drops: list[Job] = field(default_factory=list)
    _earlier: EarlierDrops = NO_EARLIER_DROPS
    actor: int = BOOTSTRAP_ROLE
    _recorded: Access | None = None  # as the log has it
    in_place: bool = True
    computed: bool = True
    narrows: bool = True
    keeps_deferred: bool = True
    keeps_texts: bool = True
    whole: bool = False
    _drop_plans: list[JobPlan] = field(default_factory=list)
    trusted: bool = False
    comments: bool = True
    written: frozenset[int] = frozenset()
    demands: frozenset[tuple[int, int]] = frozenset()
    temporary: bool = False
    shared: Catalog | None = None
    """Beside temporary tables: those of all sessions, for LIKE."""
    lost_along: frozenset[int] = frozenset()
    """The tables that have lost something to the last statement, a drop of something else."""
    _stays_gone: bool = False
    """What is taken away can't come back: its schema goes with the request."""
    _renamed: str = ""
    """A schema that a job of the request gives another name."""

    @classmethod
    def on(
        cls,
        catalog: Catalog,
        *,
        provisional: bool = False,
        actor: int = BOOTSTRAP_ROLE,
        in_place: bool = True,
        computed: bool = True,
        whole: bool = False,
        demands: Iterable[tuple[int, int]] = (),
    ) -> StatementBatch:
        """Return one of statements that `actor` says."""
        ahead = CatalogAhead.of(catalog, provisional=provisional)
        made = cls(ahead, actor=actor, _recorded=catalog.access, in_place=in_place)
        made.whole, made.computed = whole, computed and not whole
        made.demands = frozenset(demands)
        return made

    @classmethod
    def of_temporary(cls, ids_from: int, access: Access) -> StatementBatch:
        """Return one of statements on temporary tables, beside which there are no others: they have
        ids from `ids_from` on. `access`: the enum types that there are."""
        ahead = CatalogAhead.of(Catalog(), provisional=True, ids_from=ids_from)
        ahead.access = access
        return cls(ahead, _recorded=access, comments=False, temporary=True)

    def copy(self) -> StatementBatch:
        """Return a copy to go on from here without this one."""
        return replace(
            self,
            catalog=self.catalog.copy(),
            made=dict(self.made),
            truncated=dict(self.truncated),
            plans=dict(self.plans),
            dropped=dict(self.dropped),
            begun=dict(self.begun),
            within=list(self.within),
            _drops=list(self._drops),
            _drop_plans=list(self._drop_plans),
        )

    @property
    def jobs(self) -> dict[int, Job]:
        """The jobs of tables that were there, by table id, without what takes away."""
        return {table_id: planned.job for table_id, planned in self.plans.items()}

    @property
    def altered(self) -> dict[int, Descriptor]:
        """The tables of `jobs` as those will leave them, by id."""
        return {
            table_id: table_after(self.catalog.newest(table_id), job)
            for table_id, job in self.jobs.items()
        }

    def _ahead(self) -> CatalogAhead:
        """Return the catalog that the next statement is planned on."""
        joinable = {t: planned.job for t, planned in self.plans.items() if is_joinable(planned)}
        if not joinable:
            return self.catalog
        altered = (table_after(self.catalog.newest(t), job) for t, job in joinable.items())
        return self.catalog.altered(altered, {job.job_id for job in joinable.values()})

    @property
    def writes(self) -> tuple[CatalogWrite, ...]:
        if self.whole:
            assert not self.truncated, "that is a write"
            job = join_tables(self.plans, self._drop_plans, self.made.values())
            # Its types come with its rows: columns have all that they need of them.
            said = (write for write in self._access_writes() if not _is_of_enum(write))
            return (JobWrite(job.job_id, job.to_wire()), *said)
        waits = not collect_names(self.made.values()).isdisjoint(
            collect_names(self.dropped.values())
        )
        shown = map(as_write_only, self.made.values()) if waits else self.made.values()
        made = (DescriptorWrite(t.table_id, t.version, t.to_wire()) for t in shown)
        # D5: nobody has used a lower one.
        numbered = (table for table in self.made.values() if table.version > 1)
        fences = (MinVersion(table.table_id, table.version) for table in numbered)
        jobs = list(self.jobs.values())
        if self._drops:
            taking = join_drops(self._drops, self._earlier.job_id)
            if self._stays_gone:
                taking = replace(taking, point=NO_WAY_BACK)
            jobs.append(with_new_tables(taking, self.made) if waits else taking)
        begun = (JobWrite(job.job_id, job.to_wire()) for job in jobs)
        emptied = map(TableTruncated, self.truncated)
        return (*made, *fences, *emptied, *begun, *self._access_writes())

    def _access_writes(self) -> tuple[RoleOrAccessWrite, ...]:
        before = Access() if self._recorded is None else self._recorded
        return self.catalog.access.writes_since(before)

    @property
    def opening(self) -> tuple[Operation, ...]:
        """The operations before the first of the request's own: where sequences begin, or have to
        be."""
        begun = (set_operation(t, self.start_of(t)[0], called=False) for t in self.own_sequences)
        return (*begun, *map(check_bounds_operation, self.within))

    def start_of(self, sequence: Descriptor) -> tuple[int, int]:
        """Return where a sequence begins, and which of all beginnings in this process that is."""
        return self.begun[sequence.table_id]

    @property
    def own_sequences(self) -> tuple[Descriptor, ...]:
        """The sequences that it makes, and those that it restarts."""
        made = (t for t in self.made.values() if t.sequence is not None)
        gone = self.made.keys() | self.dropped.keys()
        restarted = (self.catalog.newest(s) for s in self.begun if s not in gone)
        return (*made, *restarted)

    def begin_anew(self, sequence_id: int, start: int) -> None:
        """Let a sequence that it has made go on from a number."""
        self._begin(sequence_id, start)

    def _begin(self, sequence_id: int, start: int) -> None:
        """Note a beginning. ⚠ What is taken back to a savepoint and said once more is another
        one."""
        self.begun[sequence_id] = (start, next(_BEGINNINGS))

    @property
    def drops_something(self) -> bool:
        return bool(self._drops)

    def without_drops(self, table: Descriptor) -> Descriptor:
        """Return a table that was there without what this takes away from it."""
        return without_elements(table, self._earlier.elements)

    @property
    def empty(self) -> frozenset[int]:
        """The tables that have no row before the first of the request's own."""
        return frozenset((*self.made, *self.truncated))

    def take(
        self,
        change: Change,
        sql: str,
        request_id: bytes,
        context: CommitContext,
        rows_about: Callable[[int], int],
    ) -> Answer:
        """Add what a statement asks for; return what is answered of it. Raises what `plan`
        raises, and InsufficientPrivilege (42501)."""
        if isinstance(change, RoleStatement):
            return self._take_roles(change)
        if isinstance(change, CreateTable) and change.temporary is not self.temporary:
            raise FeatureNotSupported(
                f"temporary table {change.name!r} is for a SQL session, which keeps it to itself"
            )
        if not self.keeps_deferred:
            change = without_deferred(change)
        if not self.keeps_texts:
            change = without_default_texts(change)
        ahead = self._ahead()
        if isinstance(change, CreateTable) and change.likes:
            return self._take_like(change, ahead, (sql, request_id, context, rows_about))
        if self._renamed:
            raise self._renames_schema()
        change = as_of_view(change, ahead.access)
        check_namespace(change, ahead)
        refuse_enum_name(change, ahead.access)
        if isinstance(change, ViewStatement):
            return self._take_view(change, ahead)
        if isinstance(change, EnumStatement):
            return self._take_enum(change, ahead, (sql, request_id, context, rows_about))
        if isinstance(change, NamespaceStatement):
            return self._take_namespace(change, ahead, (sql, request_id, context, rows_about))
        if isinstance(change, Comment) and self.comments:
            commented = comment_on(change, ahead, self.actor)
            if commented is not None:
                self.catalog.access = commented
                return {"access": True}
        refuse_view(change, self.catalog.access)
        check_rights(change, ahead, self.actor)
        if isinstance(change, CreateSequence) and change.options.owner is not None:
            plain, owning = split_owner(change)
            answered = self.take(plain, sql, request_id, context, rows_about)
            if owning is None or "table" not in answered:
                return answered  # nobody is to own it, or it was there
            return {**answered, **self.take(owning, sql, request_id, context, rows_about)}
        said = (sql, request_id, context, rows_about)
        lost = self._let_go(change, ahead, said)
        if lost:
            ahead = self._ahead()
        if isinstance(change, AlterTable) and (keyed := self._key_new_table(change, ahead, said)):
            return keyed
        try:
            planned = plan(
                change,
                ahead,
                sql=sql,
                request_id=request_id,
                context=context,
                earlier=self._earlier,
                in_place=self.in_place,
                computed=self.computed,
                narrows=self.narrows,
            )
        except TableBusy as error:
            raise self._explain_busy(error) from error
        if isinstance(planned, NothingToDo):
            return {"notice": planned.notice}
        before = ahead.access
        after, along = follow_tables(change, ahead, trusted=self.trusted)
        match planned:
            case CreateTablePlan(table):
                self._check_beside_jobs((table, *planned.sequences), ())
                for made in planned.sequences:
                    self._make(made)
                self._make(table)
                for made in (*planned.sequences, table):
                    if made.sequence is not None:
                        self._begin(made.table_id, made.sequence.start)
                answer: Answer = {"table": table.table_id}
            case RestartPlan(sequence, start):
                self._begin(sequence.table_id, start)
                answer = {"restarted": sequence.name}
            case TruncatePlan(tables):
                for planned_job in self.plans.values():
                    if not {*planned_job.job.tables}.isdisjoint(t.table_id for t in tables):
                        raise self._already_changed(planned_job.job)
                check_truncate(self.catalog.access, self.actor, tables)
                check_owners(self.catalog.access, self.actor, planned.restarted)
                for sequence in planned.restarted:
                    assert sequence.sequence is not None, sequence
                    self._begin(sequence.table_id, sequence.sequence.start)
                self.truncated |= dict.fromkeys(
                    t.table_id for t in tables if t.table_id not in self.made
                )
                answer = {"truncated": tuple(table.name for table in tables)}
            case JobPlan(job) if isinstance(change, DropTable | DropSequence) and find_drops(job):
                self._forget_alterations(job)
                self._refuse_shared(planned)
                self._drop_plans += [planned] if job.table_id not in self.made else []
                own = tuple(list_own_sequences(self.catalog.newest(job.table_id)))
                answer = self._drop(job, rows_about)
                for sequence_id in own:
                    self._drop_owned(sequence_id, sql, request_id, context, rows_about)
            case JobPlan(job) if job.table_id in self.made:
                self._refuse_beside(planned)
                for made in planned.made:
                    assert made.sequence is not None, made
                    self._make(made)
                    self._begin(made.table_id, made.sequence.start)
                for table_id in (job.table_id, *sorted(find_joining(planned))):
                    table = take_all_steps(self.made[table_id], job)
                    self._check_beside_jobs((table,), ())
                    self._make_altered(table)
                answer = {"table": job.table_id}
            case JobPlan(job) if find_drops(job) and not self._joins_table(job):
                self._drop_plans.append(planned)
                self._refuse_shared(planned)
                answer = {"job": self._add_drop(self._count_rows(job, rows_about))}
            case JobPlan(job):
                self._refuse_name_that_goes(job)
                owner = self.catalog.access.owner_of(job.table_id)
                for made in planned.made:
                    self._give(made.table_id, owner)
                self.within += planned.within
                number = self._begin_job(planned, rows_about)
                answer = {"job": number} if job.table_id in self.plans else {"table": job.table_id}
        for write in after.writes_since(before):  # beside what was said of owners meanwhile
            self.catalog.access = self.catalog.access.applied(write)
        notices = (*(cascade_notice(each.words) for each in lost), *planned.notices, *along)
        if notices:
            answer["notice"] = "; ".join(notices)
        if len(notices) > 1:
            answer["notices"] = notices
        return answer

    def _let_go(
        self, change: Change, ahead: CatalogAhead, said: tuple[Any, ...]
    ) -> tuple[LostAlong, ...]:
        """Take what others lose by a drop with CASCADE, each as a change of its own table, whoever
        owns that, and return it. So it joins what the request says of that table beside. ⚠ Without
        a job of the whole transaction two jobs would end apart: then only tables of this request
        lose theirs by themselves, and the drop takes the rest along."""
        found = tuple(
            each
            for each in find_lost_along(change, ahead, {*self.plans} if self.whole else ())
            if self.whole or each.table.table_id in self.made
        )
        self._take_as_first_role((each.change for each in found), said)
        self.lost_along = frozenset(each.table.table_id for each in found)
        return found

    def _take_like(self, change: CreateTable, ahead: CatalogAhead, said: tuple[Any, ...]) -> Answer:
        """Make a table like others, then the indexes and comments that it is to have."""
        check_rights(change, ahead, self.actor)
        if change.if_not_exists and is_table(ahead, change.name):
            return self.take(replace(change, likes=()), *said)
        made = expand_likes(change, ahead, self.shared)
        answer = self.take(made.table, *said)
        for each in made.behind:
            self.take(each, *said)
        return answer

    def _take_view(self, change: ViewStatement, ahead: CatalogAhead) -> Answer:
        access, notices = change_views(change, ahead, self.actor)
        if access is ahead.access:
            return {"notice": notices[0]}
        self.catalog.access = access
        answer: Answer = {"access": True}
        if notices:
            answer["notices"] = notices
        return answer

    def _take_namespace(
        self, change: NamespaceStatement, ahead: CatalogAhead, said: tuple[Any, ...]
    ) -> Answer:
        """Make, drop or rename a schema, which is done at once; what lies in it goes, or gets its
        name, by a job, whoever owns it."""
        made = change_namespaces(change, ahead, self.actor)
        if made.access is ahead.access:
            return {"notice": made.notices[0]}
        if isinstance(change, RenameNamespace):
            return self._rename_namespace(change, made.access, ahead, said)
        if not made.along:
            self.catalog.access = made.access
            return {"access": True}
        if self.whole:
            raise FeatureNotSupported(
                f"DROP SCHEMA {change.name} CASCADE inside of a transaction block is not supported"
                " while something lies in it",
                hint="Send it by itself, outside of BEGIN.",
            )
        self._stays_gone = True
        answers = self._take_as_first_role(made.along, said)
        namespace = self.catalog.access.namespaces_by_name[change.name]
        self.catalog.access = self.catalog.access.without_namespace(namespace.namespace_id)
        beside = (words for each in answers for words in read_notices(each))
        along = dict.fromkeys((*describe_along(made.along), *beside))
        return answer_of_several(answers, tuple(along))

    def _rename_namespace(
        self, change: RenameNamespace, access: Access, ahead: CatalogAhead, said: tuple[Any, ...]
    ) -> Answer:
        sql, request_id, context, rows_about = said
        planned = plan(change, ahead, sql=sql, request_id=request_id, context=context)
        if not isinstance(planned, JobPlan):
            self.catalog.access = access
            return {"access": True}
        if self.whole:
            raise FeatureNotSupported(
                f"ALTER SCHEMA {change.name} RENAME inside of a transaction block is not supported"
                " while tables lie in it",
                hint="Send it by itself, outside of BEGIN.",
            )
        others = self.made.keys() | self.plans.keys() | self.dropped.keys() | self.begun.keys()
        if not others.isdisjoint(planned.job.tables):
            raise self._already_changed(planned.job)
        self._renamed = change.name
        return {"job": self._begin_job(planned, rows_about)}

    def _renames_schema(self) -> FeatureNotSupported:
        return FeatureNotSupported(
            f"an earlier statement of this request renames schema {self._renamed!r}, which is so"
            " only when its job has ended: send this one by itself, after it"
        )

    def _take_as_first_role(self, changes: Iterable[Change], said: tuple[Any, ...]) -> list[Answer]:
        """Take changes that follow from one that was allowed."""
        actor, self.actor = self.actor, BOOTSTRAP_ROLE
        try:
            return [self.take(each, *said) for each in changes]
        finally:
            self.actor = actor

    def _take_enum(
        self, change: EnumStatement, ahead: CatalogAhead, said: tuple[Any, ...]
    ) -> Answer:
        """Change a type at once, and the tables that have columns of it, whoever owns them."""
        made = change_enums(change, ahead, self.actor)
        changed = made.access is not ahead.access
        self.catalog.access = made.access
        answers = self._take_as_first_role(made.tables, said)
        notices = [*made.notices, *(n for each in answers for n in read_notices(each))]
        answer = answer_of_several(answers, notices)
        return {"access": True, **answer} if changed or answers else answer

    def _key_new_table(
        self, change: AlterTable, catalog: Catalog, said: tuple[Any, ...]
    ) -> Answer | None:
        """Give a table of this request the primary key that a statement of its own says, with the
        columns of it that it adds; None: it says something else. `said`: as `take` has it."""
        named = (t for t in self.made.values() if t.name == change.table and t.sequence is None)
        table = next(named, None)
        if table is None or not table.hidden_key:
            return None
        asked = read_key_change(table, change.actions)
        if asked is None or asked.key is None:
            return None
        if asked.new:
            columns = tuple(replace(each, key=None) for each in asked.new)
            self.take(replace(change, actions=columns), *said)
            table, catalog = self.made[table.table_id], self._ahead()
        made = give_key(table, asked.key, catalog)
        self._check_beside_jobs((made,), ())
        self._make(made)
        return {"table": made.table_id}

    def _refuse_beside(self, planned: JobPlan) -> None:
        """A job that is done at once may have no part in tables that are not this request's
        alone."""
        job = planned.job
        others = find_joining(planned) - self.made.keys()
        if not others:
            return
        there = [self.catalog.newest(t).name for t in sorted(others) if self.catalog.has(t)]
        if not there:
            raise FeatureNotSupported(
                f"table {job.table!r} is made by the same request: make it with that primary key,"
                " or without one",
                table=job.table,
            )
        raise FeatureNotSupported(
            f"this changes table {job.table!r}, which the same request makes, together with"
            f" {', '.join(map(repr, there))}, which was there before it: send it by itself, after"
            " the request that makes the table",
            table=job.table,
        )

    def _joins_table(self, job: Job) -> bool:
        """Whether a job that takes elements of a table away is a part of that table's own."""
        return job.table_id in self.plans or (self.whole and len(job.tables) == 1)

    def _forget_alterations(self, job: Job) -> None:
        """Forget what was said of a table that goes by the same transaction."""
        if self.whole and job.table_id in self.plans:
            gone = self.plans.pop(job.table_id)
            self.catalog.forget_job(gone.job.job_id)

    def _begin_job(self, planned: JobPlan, rows_about: Callable[[int], int]) -> int:
        """Note the job of a table that was there, or let it join the one that there is; return its
        number."""
        if self.whole:
            refuse_in_transaction(planned)
        earlier = self.plans.get(planned.job.table_id)
        self._refuse_shared(planned, earlier)
        own = [edit for step in planned.job.steps for edit in step.edits]
        self._check_beside_jobs((), [e for e in own if not e.table_id], planned.job.table_id)
        demanded = self._find_demands(planned)
        if earlier is None:
            planned = demand_filled(planned, demanded)
        else:
            joined = join_plans(earlier, planned, demanded, with_rows=self.whole)
            if joined is None:
                del self.plans[planned.job.table_id]
                self.catalog.forget_job(earlier.job.job_id)
                return earlier.job.job_id
            check_versions(self.catalog.newest(planned.job.table_id), joined)
            planned = joined
        if self.whole:
            self._check_size(planned.job.versions)
            order_tables({**self.plans, planned.job.table_id: planned})
        job = self._count_rows(planned.job, rows_about)
        self.plans[job.table_id] = replace(planned, job=job)
        self.catalog.put_job(job)
        return job.job_id

    def _find_demands(self, planned: JobPlan) -> frozenset[int]:
        """Return the columns of a table that rows of this transaction are to have filled, and note
        those that a statement behind such rows sets NOT NULL."""
        table_id = planned.job.table_id
        if table_id in self.written:
            self.demands |= {(table_id, element) for element in find_set_not_null(planned)}
        return frozenset(element for table, element in self.demands if table == table_id)

    def _refuse_shared(self, asked: JobPlan, own: JobPlan | None = None) -> None:
        """Refuse a job of tables that another one of this request changes (D9), or needs as they
        are; `own`: the one that it joins."""
        job = asked.job
        for planned in self.plans.values():
            if planned is own:
                continue
            needed = {*planned.job.needs} & {*job.tables}
            if {*planned.job.tables} & {*job.tables}:
                raise self._already_changed(planned.job)
            left = self._leaves(asked, planned.job) or lets_go(planned, needed, self.altered)
            if needed and not (self.whole and left):
                raise self._already_changed(planned.job)
            if {*planned.job.tables} & {*job.needs} and not self._leaves(planned, job):
                raise self._already_changed(planned.job)

    def _leaves(self, planned: JobPlan, job: Job) -> bool:
        """Say whether what a job needs in the table of another one is left as it is. Both are one
        in a transaction; else the one may come after the other."""
        if only_adds(planned):
            return True
        table_id = planned.job.table_id
        if not self.whole or is_sequence_id(table_id):
            return False
        there = self.catalog.newest(table_id)
        return leaves_referred(there, planned, new_foreign_keys(job))

    def _check_beside_jobs(
        self, made: Iterable[Descriptor], edits: Iterable[Edit], table_id: int = 0
    ) -> None:
        """Check what is made at once, or by one job, against the other jobs of this request: a name
        that they let go is taken until they end, and what they make unique is not so yet.

        Raises FeatureNotSupported."""
        made, edits = tuple(made), tuple(edits)
        keys = [key for table in made for key in table.foreign_keys]
        bodies = [e.after for e in edits if e.kind is Kind.FOREIGN_KEY and e.before is None]
        keys += [FOREIGN_KEY_FORM.from_wire(body) for body in bodies if body is not None]
        names = collect_names(made)
        names |= {e.name for e in edits if e.kind in (Kind.TABLE, Kind.INDEX) and e.after}
        for number, planned in self.plans.items():
            there = self.catalog.newest(number)
            after = table_after(there, planned.job)
            going = collect_names((there,)) - collect_names((after,))
            for name in names & going if number != table_id else ():
                raise self._too_early(planned.job, f"gives up the name {name!r}")
            for key in (key for key in keys if key.parent == number):
                index = key.parent_index
                comes = index and all(index != each.element_id for each in there.indexes)
                # ⚠ One job fills it before rows are looked up by it (`order_tables`), another not.
                if comes and number != table_id and not self.whole:
                    raise self._too_early(planned.job, "makes unique what is referred to")
                if number == table_id or only_adds(planned):
                    continue
                if not (self.whole and leaves_referred(there, planned, [key])):
                    raise self._already_changed(planned.job)

    def _too_early(self, job: Job, what: str) -> FeatureNotSupported:
        return FeatureNotSupported(
            f"an earlier statement of this request {what} (table {job.table!r}), which is so only"
            " when its job has ended: send this one by itself, after it",
            table=job.table,
        )

    def _count_rows(self, job: Job, rows_about: Callable[[int], int]) -> Job:
        rows = 0 if job.table_id in self.truncated else rows_about(job.table_id)
        return replace(job, rows=rows)

    def _make(self, table: Descriptor) -> None:
        """Name and version mean one table for ever: a name that goes is taken with its numbers."""
        before = next((t for t in self.dropped.values() if t.name == table.name), None)
        if before is not None:
            self._refuse_name_drawn_from(before)
        version, replaces = (1, 0) if before is None else (before.version, before.table_id)
        table = replace(table, version=version, replaces=replaces)
        if table.table_id not in self.made:
            if self.whole:
                self._check_size((table.table_id,))
            self._give(table.table_id, self.actor)
        self.made[table.table_id] = table
        self.catalog.make(table)

    def _refuse_name_drawn_from(self, gone: Descriptor) -> None:
        """Refuse the name of a sequence that goes a step later than what has drawn from it: two
        would have it."""
        paths = (path for planned in self.plans.values() for path in planned.paths)
        if count_steps_drawn(gone.table_id, paths):
            raise FeatureNotSupported(
                f"the name {gone.name!r} goes with a sequence that this very request drops, and"
                " that a column of before draws from until all know that it has lost its default",
                hint="Send the drop first, by itself, or take another name.",
                table=gone.name,
            )

    def _give(self, table_id: int, owner: int) -> None:
        """Say who owns a table or sequence that is made."""
        access = self.catalog.access.without_object(table_id)
        self.catalog.access = access.with_owner(table_id, owner)

    def _unmake(self, table_id: int) -> None:
        del self.made[table_id]
        self.catalog.unmake(table_id)
        self.catalog.access = self.catalog.access.without_object(table_id)

    def _take_roles(self, change: RoleStatement) -> Answer:
        access, remarks = change_access(change, self._ahead(), self.actor)
        self.catalog.access = access
        answer: Answer = {"access": True}
        if remarks:
            answer["remarks"] = tuple(map(tuple, remarks))
        return answer

    def _make_altered(self, table: Descriptor) -> None:
        """Replace a sequence of this request. It stays where it was, unless RESTART is said as
        well, or goes again."""
        if table.state is State.ABSENT:
            self.begun.pop(table.table_id, None)
            self._unmake(table.table_id)
            return
        sequence = table.sequence
        if sequence is not None:
            if sequence.begins is not None:
                self._begin(table.table_id, sequence.begins)
            check_restart(sequence, self.begun[table.table_id][0])
            table = replace(table, sequence=sequence._replace(begins=None))
        self._make(table)

    def _drop(self, job: Job, rows_about: Callable[[int], int]) -> Answer:
        """Drop a table with the foreign keys of others that the statement says go, too."""
        table_id = job.table_id
        self.begun.pop(table_id, None)
        gone = find_drops(job)
        for child_id in {child_id for child_id, _ in gone if child_id in self.made} - {table_id}:
            self._make(without_elements(self.made[child_id], gone))
        if table_id in self.made:
            self._unmake(table_id)
            self.plans = {t: without_needs(each, table_id) for t, each in self.plans.items()}
            return {"table": table_id}
        self.dropped[table_id] = self.catalog.newest(table_id)
        self.catalog.drop(table_id)
        edits = (tuple(e for e in s.edits if e.table_id not in self.made) for s in job.steps)
        versions = {t: v for t, v in job.versions.items() if t not in self.made}
        of_others = replace(job, steps=tuple(map(Step, edits)), versions=versions)
        return {"job": self._add_drop(self._count_rows(of_others, rows_about))}

    def _drop_owned(
        self,
        sequence_id: int,
        sql: str,
        request_id: bytes,
        context: CommitContext,
        rows_about: Callable[[int], int],
    ) -> None:
        """Drop a sequence whose table has gone. It may have gone itself, where its column was
        dropped alone."""
        if not self.catalog.has(sequence_id):
            return
        sequence = self.catalog.newest(sequence_id)
        if not sequence.names or sequence_id in self.dropped:
            return
        change = DropSequence(sequence.name, owned=True)
        planned = plan(
            change,
            self._ahead(),
            sql=sql,
            request_id=request_id,
            context=context,
            earlier=self._earlier,
        )
        assert isinstance(planned, JobPlan), "it is there"
        self._drop_plans += [planned] if sequence_id not in self.made else []
        self._drop(planned.job, rows_about)

    def _add_drop(self, job: Job) -> int:
        """Join a job to those that drop; return the number of the one job for all."""
        gone = find_drops(job)
        if gone & self._earlier.elements:
            raise self._already_changed(job)
        self._check_size(job.versions)
        self._drops.append(job)
        job_id = self._earlier.job_id or job.job_id
        self._earlier = EarlierDrops(job_id, self._earlier.elements | gone)
        # Of tables that go nothing can be asked any more, and their names are free here.
        self.catalog.put_job(without_dropped_tables(join_drops(self._drops, job_id)))
        return job_id

    def _check_size(self, more: Iterable[int]) -> None:
        """Refuse tables with which one job would change too many. Raises OutOfRange."""
        beside = (self.made, *(job.versions for job in self.jobs.values())) if self.whole else ()
        check_job_size({*more}.union(*(job.versions for job in self._drops), *beside))

    def _explain_busy(self, busy: TableBusy) -> TableBusy | FeatureNotSupported:
        own = {job.job_id for job in self.jobs.values()} | ({self._earlier.job_id} - {0})
        number = busy.detail.get("job")
        return self._already_changed(self.catalog.jobs[number]) if number in own else busy

    def _refuse_name_that_goes(self, job: Job) -> None:
        """Refuse a name that a dropped table has. ⚠ D9: a table that goes has its names until it is
        drained, or for good where its drop is cancelled before its first step. A table that is made
        here waits for that, in the same job; a job of another table would not."""
        for name in collect_relation_names(job) & collect_names(self.dropped.values()):
            raise FeatureNotSupported(
                f"the name {name!r} goes with a table that this very request drops, and a table"
                " that was there can have it when that has ended: send the drop first, by itself",
                table=job.table,
            )

    def _already_changed(self, job: Job) -> FeatureNotSupported:
        return FeatureNotSupported(
            f"an earlier statement of this request changes table {job.table!r} already, or needs it"
            " as it is, in a way that does not go together with this one: send this one by itself,"
            " after it",
            table=job.table,
        )

    def refuse_dropped(self, operations: tuple[Operation, ...]) -> None:
        """Refuse rows of a table that the same request drops. Raises UnknownTable."""
        dropped = {name for table in self.dropped.values() for name in table.names}
        made = {table.name for table in self.made.values()}
        for name, version in {(o.table, o.schema_version) for o in operations if dropped}:
            if name in dropped and (version is not None or name not in made):
                raise UnknownTable(f"table {name!r} is dropped by this very request", table=name)


def _is_of_enum(write: RoleOrAccessWrite) -> bool:
    return isinstance(write, EnumWrite) or (
        isinstance(write, AccessWrite | CommentWrite) and is_enum_id(write.object_id)
    )
