"""The schema changes of a transaction block: collected, planned as the master will plan them, and
sent with its rows at COMMIT.

What it says of tables that were there is one job, with what it makes and drops. COMMIT has that
job begun, waits until nothing is left but its point of no return, and then sends the rows, with
which it passes that. Until then the block's statements see the tables as they will be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

from leasehold.catalog.access import Access
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.definitions import quoted
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import CommitContext
from leasehold.catalog.states import State
from leasehold.model import byte_limits
from leasehold.model.errors import NotNullViolation, RequestTooLarge
from leasehold.model.ids import is_sequence_id
from leasehold.rows.defaults import default_of_old_rows
from leasehold.schema_change.plan.answers import Told, read_all_told
from leasehold.schema_change.plan.enums import enum_names
from leasehold.schema_change.plan.joined_jobs import find_demanded
from leasehold.schema_change.plan.results import refuse_lacking
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.schema_change.plan.transaction_job import refuse_altered_sequences
from leasehold.schema_change.plan.views import as_of_view
from leasehold.sql.ddl.schema_statements import (
    STATEMENTS_MAX,
    parse_statements,
)
from leasehold.sql.functions.system.session import caller_of
from leasehold.sql.syntax.object_statements import (
    Comment,
    EnumStatement,
    ViewStatement,
)
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    DropTable,
    Explain,
    RestartIdentity,
    RestartSequence,
)
from leasehold.values.time_zone import UTC, zone_at

TEXT_BYTES_MAX: Final = byte_limits.BLOCK_STATEMENTS
"""The rest of a request's text is for TRUNCATE."""


_DROPS: Final = -1
_SAID_LATER: Final = -2
"""Of a text: it drops tables, and without CASCADE; a later one drops these, too."""


class Shown(NamedTuple):
    """A table that was there, by the name that it has for others, as the block's statements are
    planned on it. `after`: as the block leaves it; `closed`: why it can't see rows of it, "" = it
    can."""

    name: str
    table: Descriptor
    after: Descriptor
    closed: str


@dataclass(frozen=True, slots=True)
class BlockSchema:
    """The schema as a block has changed it: a value, which a savepoint keeps. `texts`: the
    statements that the request will hold; `zones`: the time zone in which each was said, () = all
    in UTC. `script`: what they come to, on the catalog of the block's first one, with provisional
    ids for its tables; None before that. `count`: statements in all. `late`: the places of those
    that go out with the rows where there is a job to be held for them. `shown`: tables that were
    there and are changed, by id. `demanded`: columns that no row may lack when the
    block is committed, (table id, element id). `origins`: the statement that changes an element
    first, by both. `altered`: the table that was there which each of the texts changes, 0 = it does
    something else, or `_DROPS`. `along`: the tables that lose a default to each of the texts, which
    drops what it draws from. `twice`: the places of those that go out with the rows, and before
    them with the job, whose columns rest on them: what is said of types."""

    texts: tuple[str, ...] = ()
    script: StatementBatch | None = None
    count: int = 0
    zones: tuple[str, ...] = ()
    late: frozenset[int] = frozenset()
    shown: Mapping[int, Shown] = field(default_factory=dict)
    demanded: frozenset[tuple[int, int]] = frozenset()
    origins: Mapping[tuple[int, int], str] = field(default_factory=dict)
    altered: tuple[int, ...] = ()
    along: tuple[frozenset[int], ...] = ()
    twice: frozenset[int] = frozenset()

    @property
    def made(self) -> Mapping[str, Descriptor]:
        """Tables of this block, by name."""
        return {} if self.script is None else {t.name: t for t in self.script.made.values()}

    @property
    def dropped(self) -> Mapping[str, Descriptor]:
        """Tables that were there and are gone for this block, by name, which another one of this
        block may have now."""
        dropped = () if self.script is None else self.script.dropped.values()
        return {name: table for table in dropped for name in table.names}

    @property
    def holds(self) -> bool:
        """Whether its changes of tables are a job that is held for its rows."""
        return bool(self.shown) and self.script is not None and _needs_hold(self.script)

    def find_lacking(self) -> Iterator[NotNullViolation]:
        """Yield, of each table, what it can't be changed for if it has a row."""
        for planned in () if self.script is None else self.script.plans.values():
            try:
                refuse_lacking(planned.job)
            except NotNullViolation as lacking:
                yield lacking

    def request_texts(self, *, late: bool) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the statements that go out with the rows, or those of the job that is held, and
        their zones."""
        places = [n for n in range(len(self.texts)) if (n in self.late) == late or n in self.twice]
        zones = tuple(self.zones[n] for n in places) if self.zones else ()
        return tuple(self.texts[n] for n in places), zones

    @property
    def demands(self) -> tuple[tuple[int, int], ...]:
        """Return the columns that were there, (table id, element id), and that the block sets NOT
        NULL behind rows of its own."""
        return () if self.script is None else tuple(sorted(self.script.demands))

    @property
    def access(self) -> Access | None:
        """Return who may do what, with what the block has made and granted; None: as it is
        committed."""
        return None if self.script is None else self.script.catalog.access

    @property
    def begins_jobs(self) -> bool:
        """Whether something goes on after its commit."""
        script = self.script
        return script is not None and (script.drops_something or bool(script.plans))

    def gone_with(self, schema: BlockSchema) -> list[Descriptor]:
        """Return tables that there are here and not any more in `schema`, which comes after
        this."""
        mine = {t.table_id for t in self.dropped.values()}
        kept = {t.table_id for t in schema.made.values()}
        dropped = [t for t in schema.dropped.values() if t.table_id not in mine]
        return dropped + [t for t in self.made.values() if t.table_id not in kept]

    def begun_by(self, schema: BlockSchema) -> set[int]:
        """Return sequences that begin in `schema`, which comes after this, and not here."""
        before = {} if self.script is None else self.script.begun
        after = {} if schema.script is None else schema.script.begun
        return {each for each, begun in after.items() if before.get(each) != begun}

    def without_drops(self, table: Descriptor) -> Descriptor:
        """Return a table that was there as this block sees it."""
        if table.table_id in self.shown:
            table = self.shown[table.table_id].after
        return table if self.script is None else self.script.without_drops(table)

    def with_change(
        self,
        text: str,
        catalog_now: Callable[[], Catalog],
        context: CommitContext,
        written: Iterable[int] = (),
    ) -> tuple[BlockSchema, list[Told]]:
        """Return it with what `text` asks for, and what is told of that. `written`: tables of which
        the block has written rows. Raises what
        `StatementBatch.take` raises, FeatureNotSupported, RequestTooLarge (54000)."""
        if self.script is None:
            actor = caller_of(context).role_id
            script = StatementBatch.on(catalog_now(), provisional=True, actor=actor, whole=True)
        else:
            script = self.script.copy()
        script.written = frozenset(written)
        texts, drops, late = [*self.texts], [], set(self.late)
        lost = set[int]()
        twice = set(self.twice)
        altered, forgotten = [*self.altered], set[int]()
        along = [*self.along]
        notices: list[Told] = []
        zone = zone_at(context).key
        zones_said = () if zone == UTC.key else (zone,)
        said = parse_statements(text, zones_said, enum_names(script.catalog))
        for statement, sql in said:
            assert not isinstance(statement, Explain), "that changes nothing"
            planned = {*script.plans}
            known = {a.name: script.catalog.newest(t).name for t, a in script.altered.items()}
            of_view = as_of_view(statement, script.catalog.access)
            answer = script.take(statement, sql, b"", context, lambda _: -1)
            if _needs_hold(script):
                refuse_altered_sequences(script.plans.values())
            notices += read_all_told(answer)
            if isinstance(statement, DropTable) and answer.keys() != {"notice"}:
                # Of those that one text drops some may not be there.
                # ⚠ The master does not hear what was said of a table that goes: not its new name.
                drops.append(replace(statement, name=known.get(statement.name, statement.name)))
                lost |= script.lost_along
                forgotten |= planned - script.plans.keys()
            elif answer.keys() != {"notice"}:
                late |= {len(texts)} if _is_late(of_view) else set()
                of_type = isinstance(statement, EnumStatement)
                twice |= {len(texts)} if of_type else set()
                texts.append(sql)
                ended = planned - script.plans.keys()
                altered.append(0 if of_type else _find_altered(script, answer, ended))
                along.append(script.lost_along)
        if drops:
            names = [quoted(each.name) for each in drops]
            cascades = drops[0].cascade
            if forgotten and not cascades and not _gives_names_anew(script):
                # ⚠ What let other tables go before this one is forgotten with it: they go together.
                for place in [n for n, each in enumerate(altered) if each == _DROPS]:
                    names.insert(0, texts[place].removeprefix("DROP TABLE "))
                    altered[place] = _SAID_LATER
            texts.append(f"DROP TABLE {', '.join(names)}{' CASCADE' if cascades else ''}")
            altered.append(0 if cascades else _DROPS)
            along.append(frozenset(lost))
        count = self.count + len(said)
        if count >= STATEMENTS_MAX or _bytes(texts) > TEXT_BYTES_MAX:
            raise RequestTooLarge(
                f"a transaction block has at most {STATEMENTS_MAX - 1} schema changes, of"
                f" {TEXT_BYTES_MAX} bytes in all: COMMIT more often"
            )
        zones = self.zones or (UTC.key,) * len(self.texts)
        zones += (zone,) * (len(texts) - len(zones))
        zones = () if {UTC.key}.issuperset(zones) else zones
        # ⚠ What has come to nothing is not said to the master: it has no job to be a part of.
        kept_places = [n for n, t in enumerate(altered) if t in (0, _DROPS) or t in script.plans]
        if not _gives_names_anew(script):
            # ⚠ A table that is dropped, too, has nothing to lose: said before, its drop would be
            # one of a table that has a job of its own.
            kept_places.sort(key=lambda n: not along[n].isdisjoint(forgotten))
        late = {new for new, n in enumerate(kept_places) if n in late}
        twice = {new for new, n in enumerate(kept_places) if n in twice}
        texts = [texts[n] for n in kept_places]
        altered = [altered[n] for n in kept_places]
        along = [along[n] - forgotten for n in kept_places]
        zones = tuple(zones[n] for n in kept_places) if zones else ()
        shown = dict(_show(script, self.shown))
        demanded = frozenset(
            (t, e) for t, plan in script.plans.items() for e in find_demanded(plan)
        )
        changed = [(t, p.name[1]) for t, plan in script.plans.items() for p in plan.paths]
        origins = {place: self.origins.get(place, text) for place in changed}
        kept = (tuple(texts), script, count, zones, frozenset(late))
        made = BlockSchema(
            *kept, shown, demanded, origins, tuple(altered), tuple(along), frozenset(twice)
        )
        return made, notices


def _gives_names_anew(script: StatementBatch) -> bool:
    """Say whether a table of the block has the name of one that it has dropped."""
    made = {table.name for table in script.made.values()}
    return any(not made.isdisjoint(table.names) for table in script.dropped.values())


def _find_altered(script: StatementBatch, answer: Mapping[str, Any], ended: set[int]) -> int:
    """Return the table that was there whose job a statement is a part of, 0 for another one.
    `ended`: that of which it has taken back all that the block has changed."""
    if ended:
        return ended.pop()
    jobs = {planned.job.job_id: table_id for table_id, planned in script.plans.items()}
    return jobs.get(answer.get("job", 0), 0)


def _bytes(texts: Sequence[str]) -> int:
    return sum(len(text.encode()) for text in texts)


def _show(script: StatementBatch, shown: Mapping[int, Shown]) -> Iterator[tuple[int, Shown]]:
    """Yield the tables that were there as the block's statements are to see their rows. `shown`: as
    those before saw them."""
    for table_id, after in script.altered.items():
        before = script.catalog.newest(table_id)
        known = shown[table_id].table.ahead if table_id in shown else {}
        table = _as_read(before, after, known)
        yield table_id, Shown(before.name, table, after, _why_closed(before, after))


def _as_read(before: Descriptor, after: Descriptor, known: Mapping[int, Any]) -> Descriptor:
    """Return a table as it will be, by what stores have of it now. `known`: what rows have of
    columns by the default that these had at first."""
    there = {column.element_id for column in before.columns}
    entries = {index.element_id for index in before.indexes if index.state is State.PUBLIC}
    new = (c for c in after.by_name.values() if c.element_id not in there)
    return replace(
        after,
        indexes=tuple(index for index in after.indexes if index.element_id in entries),
        ahead={c.element_id: known.get(c.element_id, default_of_old_rows(c)) for c in new},
    )


def _why_closed(before: Descriptor, after: Descriptor) -> str:
    """Return why the block can't read and write a table's rows any more; "": it can."""
    there = {column.element_id for column in before.columns}
    for column in after.by_name.values():
        if column.element_id in there:
            continue
        if column.ordinal:
            return f"column {column.name!r} gets another type"
        if column.name in before.by_name:
            return f"column {column.name!r} has a name that another one has until then"
        if column.generated or (column.has_default and default_of_old_rows(column) is None):
            return f"each row has a value of its own in column {column.name!r}"
    return "it gets other locks" if before.row_locks != after.row_locks else ""


def _needs_hold(script: StatementBatch) -> bool:
    return any(not is_sequence_id(table_id) for table_id in script.plans)


def _is_late(change: Change) -> bool:
    """Say whether a statement goes out with the rows: it is done at once, and moves none."""
    if isinstance(change, AlterTable):
        return all(isinstance(action, RestartIdentity) for action in change.actions)
    return isinstance(change, RoleStatement | RestartSequence | ViewStatement | Comment)
