"""A statement, prepared: what it is called with, what it gives, and the SQLite text that gives it.

Prepared once for the descriptors it uses and then only run (`Plans`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Final
from zoneinfo import ZoneInfo

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused, TooComplex
from leasehold.sql.binding.bound_tree import BoundQuery, Column
from leasehold.sql.binding.bound_write import BoundAction, BoundWrite, rows_in_the_way
from leasehold.sql.binding.claims import BoundClaim
from leasehold.sql.binding.needed_privileges import NeededPrivilege
from leasehold.sql.binding.queries import Binder
from leasehold.sql.binding.select_for_verify import Visits, add_visits, lock_tables
from leasehold.sql.binding.statement_parts import BoundPart, bind_statement
from leasehold.sql.binding.views import FindNamed, Named, no_names
from leasehold.sql.functions.function import TEXT
from leasehold.sql.planning.commit_time_update import Computed, find_computed
from leasehold.sql.planning.emit import emit
from leasehold.sql.planning.emitted import NOTHING, Beside, Emitted
from leasehold.sql.planning.indexes import Chosen, Indexes
from leasehold.sql.planning.read_set import reads_of
from leasehold.sql.planning.reads import Reads
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.reading import read_statement
from leasehold.values.time_zone import UTC
from leasehold.values.types import Type

PLANS_KEPT_MAX: Final = 1_000
VARIANTS_MAX: Final = 8
COUNTED_EACH: Final = 256
"""Plans that are kept until their characters are counted anew."""
PLAN_CHARACTERS_MAX: Final = 64 * 1024
"""Of a text whose plan is kept. A plan takes about twenty times what its text does."""
PLANS_CHARACTERS_MAX: Final = 4 * 1024 * 1024
"""Of the texts of all plans that are kept."""
"""Of one text: descriptors of two versions, with and without own rows, of now and of the past; by
time zone where one makes a difference."""

Lookup = Callable[[str], Descriptor]
HasChanged = Callable[[int], bool]
"""Has a row of table `id` been written since the LSN that is read as of?"""


@dataclass(frozen=True, slots=True)
class RowClaim:
    """How rows of a query are claimed (`binding/claims.py`). `bounds` gives LIMIT and OFFSET."""

    bounds: Emitted
    skips: bool
    exclusive: bool


@dataclass(frozen=True, slots=True)
class Action:
    """A WHEN of a prepared MERGE; `condition` and `values` are queries over a row that was found,
    None where there are none."""

    bound: BoundAction
    condition: Emitted | None
    values: Emitted | None


@dataclass(frozen=True, slots=True)
class Write:
    """What is done with the rows that a prepared statement that writes finds (`bound_write.py` says
    what they hold). `there`: by arbiter, the query for the row in the way of another one.
    `computed`: what it does as expressions over the one row that it changes. `actions`: what a
    MERGE does, by the first that holds."""

    bound: BoundWrite
    returning: Emitted | None
    update: Emitted | None
    there: dict[int, Emitted]
    computed: Computed | None = None
    actions: tuple[Action, ...] = ()

    @property
    def later(self) -> Iterator[Emitted]:
        """Return what is run for each row."""
        actions = (each for a in self.actions for each in (a.condition, a.values))
        later = (self.returning, self.update, *self.there.values(), *actions)
        return (emitted for emitted in later if emitted is not None)


JSON: Final = Type("json")
"""Of EXPLAIN (FORMAT JSON)."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that is prepared. `tables` are those that it uses, under the name in the text:
    its descriptor says the version. `tag` is the command's (SELECT …). `chosen` says by which index
    each table is found. `columns` None: no rows come back. `ordered`: their order was asked for.
    `visits`: rows of tables that were shown are told of, or those that `visited` finds.
    `asks_system`: it asks what is no table's, of the database, the session or the node. `draws`: it
    has random values; `counts`: it draws numbers from sequences, or asks which were drawn.
    `explain`: it tells how it would run, or (`tells_reads`) what it would read. `zone` is the one
    in which its constants were read, None where that makes no difference. `needs`: the privileges
    of whoever runs it. `named` are the
    views and enum types that it names. `parts` run before it; what it draws, counts, asks and needs
    is what all of it does. `claim`: its rows are claimed, which `visits` tells of."""

    text: str
    tag: str
    columns: tuple[Column, ...] | None
    parameters: tuple[Type, ...]
    tables: dict[str, Descriptor]
    emitted: Emitted
    reads: Reads
    chosen: tuple[Chosen, ...]
    explain: bool = False
    write: Write | None = None
    asks_system: bool = False
    beside: Beside = NOTHING
    ordered: bool = False
    visits: Visits | None = None
    draws: bool = False
    tells_reads: bool = False
    zone: ZoneInfo | None = None
    counts: bool = False
    visited: tuple[Emitted, ...] = ()
    needs: tuple[NeededPrivilege, ...] = ()
    named: tuple[tuple[str, Named], ...] = ()
    parts: tuple[PlannedPart, ...] = ()
    claim: RowClaim | None = None

    def serves_in(self, zone: ZoneInfo) -> bool:
        return self.zone is None or self.zone is zone

    @property
    def plans(self) -> Iterator[Prepared]:
        """Yield the plans of all its parts in the order in which they run, the last is itself."""
        for part in self.parts:
            yield part.plan
        yield self

    @property
    def targets(self) -> dict[int, Descriptor]:
        """Return the tables that it writes, by id."""
        writes = (plan.write for plan in self.plans if plan.write is not None)
        return {w.bound.descriptor.table_id: w.bound.descriptor for w in writes}

    @property
    def runs_whole(self) -> bool:
        """Whether it is done at once, and then answers: a statement that writes, or one of which a
        part does. EXPLAIN of one is a query."""
        return not self.explain and (self.write is not None or bool(self.parts))


@dataclass(frozen=True, slots=True)
class PlannedPart:
    """A part of a statement that runs before the rest of it, by a plan of its own, which shares the
    statement's parameters and tables. What it gives is kept as the rows of the query `number` of
    WITH, `width` values each; 0: nothing comes of it."""

    number: int
    width: int
    plan: Prepared


def prepare(
    text: str,
    lookup: Lookup,
    types: Sequence[Type | None] = (),
    own: frozenset[int] = frozenset(),
    has_changed: HasChanged | None = None,
    zone: ZoneInfo = UTC,
    find_named: FindNamed = no_names,
) -> Prepared:
    """Return a statement's plan. `types` are those of the first parameters, None where open; `own`
    are the ids of tables that the transaction has own rows of; `has_changed` says of a table
    whether it has changed since the earlier LSN that is read, None where what is newest is; `zone`
    is the session's.

    Raises every Refused that a text can meet before it runs, with its position.
    """
    statement, numbered = read_statement(text)
    explain = isinstance(statement, tree.Explain)
    tells_reads = isinstance(statement, tree.Explain) and statement.reads
    as_json = isinstance(statement, tree.Explain) and statement.as_json
    if isinstance(statement, tree.Explain):
        statement = statement.statement
    known = {number: kind for number, kind in enumerate(types, 1) if kind is not None}
    binder = Binder(lookup, known, zone, find_named)
    numbered = max(numbered, len(types))
    visits: Visits | None = None
    try:
        assert not isinstance(statement, tree.Explain)
        bound_parts, main = bind_statement(binder, statement, numbered)
        if isinstance(main, BoundQuery):
            main = binder.show(main, statement.at)
            asked = statement.visits if isinstance(statement, tree.Query) else None
            if asked is not None and not asked.claims:
                lock_tables(binder.needs, main, asked)
                main, visits = add_visits(main, asked)
        needs = binder.needs.all()  # what is bound below is no text's
        used = {descriptor.table_id for descriptor in binder.used.values()}
        changed = () if has_changed is None else filter(has_changed, used)
        beside = Beside(own & used, frozenset(changed))
        maker = _PlanMaker(binder, Indexes(binder, beside.tables), numbered, beside)
        parts = tuple(map(maker.make_part, bound_parts))
        plan = maker.make(text, main, visits)
        plans = [*(part.plan for part in parts), plan]
        write = plan.write
        if write is not None and not explain and not parts:
            write = replace(write, computed=find_computed(write.bound, plan.reads))
        return replace(
            plan,
            tag="EXPLAIN" if explain else plan.tag,
            columns=(
                (Column("QUERY PLAN", JSON if as_json else TEXT),) if explain else plan.columns
            ),
            parameters=tuple(binder.typing.types.get(n, TEXT) for n in range(1, numbered + 1)),
            chosen=tuple(maker.indexes.chosen),
            explain=explain,
            write=write,
            asks_system=any(each.asks_system for each in plans),
            draws=any(each.draws for each in plans),
            tells_reads=tells_reads,
            zone=zone if binder.typing.asked_zone else None,
            counts=any(each.counts for each in plans),
            needs=needs,
            named=(*binder.views.used.items(), *binder.enums.items()),
            parts=parts,
        )
    except RecursionError as error:
        raise TooComplex("the statement is nested too deeply") from error


class _PlanMaker:
    """The maker of the plans of one statement's parts, in their order: each reads what those before
    it have given."""

    def __init__(self, binder: Binder, indexes: Indexes, numbered: int, beside: Beside) -> None:
        self._binder, self.indexes = binder, indexes
        self._numbered, self._beside = numbered, beside

    def make_part(self, part: BoundPart) -> PlannedPart:
        """Return the plan of a part, whose rows are there for those that are made later."""
        whole = part.whole
        if isinstance(whole, BoundClaim):
            bounds = emit(self.indexes.used_in(whole.bounds), self._numbered, self._beside)
            plan = self.make("", whole.query, whole.visits)
            plan = replace(plan, claim=RowClaim(bounds, whole.skips, whole.exclusive))
        else:
            plan = self.make("", whole, None)
        width = 0 if plan.columns is None else max(1, len(plan.columns))
        self._beside = replace(self._beside, kept=self._beside.kept | {part.number})
        return PlannedPart(part.number, width, plan)

    def make(self, text: str, whole: BoundQuery | BoundWrite, visits: Visits | None) -> Prepared:
        """Return a plan without what is said of the statement as a whole."""
        binder, numbered, beside = self._binder, self._numbered, self._beside
        bound = None if isinstance(whole, BoundQuery) else whole
        found = whole if isinstance(whole, BoundQuery) else whole.find
        query = self.indexes.used_in(found)
        emitted = emit(query, numbered, beside)
        apart = () if visits is None else visits.apart or ()
        visited = tuple(emit(self.indexes.used_in(e.query), numbered, beside) for e in apart)
        later = () if bound is None else tuple(bound.later)
        reads = reads_of(query, *later, parameters=numbered)
        columns: tuple[Column, ...] | None = query.columns
        write = None
        if bound is not None:
            columns = None if bound.returning is None else bound.returning.columns
            write = self._write(bound)
        all_emitted = (emitted, *(() if write is None else write.later))
        return Prepared(
            text,
            "SELECT" if bound is None else bound.kind,
            columns,
            tuple(binder.typing.types.get(n, TEXT) for n in range(1, numbered + 1)),
            dict(binder.used),
            emitted,
            reads,
            (),
            write=write,
            asks_system=any(each.asks_system for each in all_emitted),
            beside=beside,
            ordered=bool(query.order),
            visits=visits,
            draws=any(each.draws for each in all_emitted),
            counts=any(each.counts for each in all_emitted),
            visited=visited,
        )

    def _write(self, bound: BoundWrite) -> Write:
        numbered, beside = self._numbered, self._beside

        def emitted(query: BoundQuery, slots: int) -> Emitted:
            return emit(self.indexes.used_in(query), numbered + slots, beside)

        width = len(bound.columns)
        returning = None
        if bound.returning is not None:
            returning = emitted(bound.returning, width + bound.extra)
        conflict = bound.conflict
        if conflict is None:
            slots = width + bound.extra
            actions = tuple(
                Action(
                    each,
                    None if each.condition is None else emitted(each.condition, slots),
                    None if each.values is None else emitted(each.values, slots),
                )
                for each in bound.actions
            )
            return Write(bound, returning, None, {}, actions=actions)
        update = None if conflict.update is None else emitted(conflict.update, 2 * width)
        there = {
            arbiter: emit(query, len(bound.columns), beside)
            for arbiter, query in rows_in_the_way(bound, conflict)
        }
        return Write(bound, returning, update, there)


class Plans:
    """Prepared statements by their text and the types given for parameters; a statement whose
    tables have other descriptors by now is prepared anew. Bounded, in number and in characters of
    their texts: the longest unused goes, and what has a long text is not kept."""

    def __init__(self, kept_max: int = PLANS_KEPT_MAX) -> None:
        self._kept_max = kept_max
        self._kept: OrderedDict[tuple[str, tuple[Type | None, ...]], list[Prepared]] = OrderedDict()
        self._characters = 0  # of all texts that are kept, for each plan of them
        self._until_count = COUNTED_EACH

    def get(
        self,
        text: str,
        lookup: Lookup,
        types: tuple[Type | None, ...] = (),
        own: frozenset[int] = frozenset(),
        has_changed: HasChanged | None = None,
        zone: ZoneInfo = UTC,
        *,
        find_named: FindNamed = no_names,
        making: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> Prepared:
        """Return a plan that is kept, or make one as `prepare` does, in the block that `making`
        gives for the text; what that raises ends the call."""
        name = (text, types)
        for found in self._kept.get(name, ()):
            if _serves(found, lookup, own, has_changed, zone, find_named):
                with suppress(KeyError):  # another thread may have made room meanwhile
                    self._kept.move_to_end(name)
                return found
        with making(text):
            made = prepare(text, lookup, types, own, has_changed, zone, find_named)
        if len(text) <= PLAN_CHARACTERS_MAX:
            self._keep(name, made)
        return made

    def _keep(self, name: tuple[str, tuple[Type | None, ...]], made: Prepared) -> None:
        before = self._kept.get(name, [])
        self._kept[name] = [made, *before][:VARIANTS_MAX]
        self._characters += len(name[0]) * (len(self._kept[name]) - len(before))
        self._until_count -= 1
        if not self._until_count:  # threads may have counted at the same moment, past each other
            self._until_count = COUNTED_EACH
            kept = list(self._kept.items())
            self._characters = sum(len(text) * len(plans) for (text, _), plans in kept)
        while len(self._kept) > self._kept_max or self._characters > PLANS_CHARACTERS_MAX:
            try:
                (text, _), plans = self._kept.popitem(last=False)
            except KeyError:  # another thread has made room
                self._characters = 0
            else:
                self._characters -= len(text) * len(plans)


def _serves(
    prepared: Prepared,
    lookup: Lookup,
    own: frozenset[int],
    has_changed: HasChanged | None,
    zone: ZoneInfo,
    find_named: FindNamed,
) -> bool:
    if not prepared.serves_in(zone):
        return False
    if any(find_named(name) != each for name, each in prepared.named):
        return False
    beside = prepared.beside
    owned = 0
    for name, descriptor in prepared.tables.items():
        try:
            if lookup(name) is not descriptor:
                return False
        except Refused:
            return False
        table = descriptor.table_id
        owned += table in own
        if has_changed is not None and has_changed(table) != (table in beside.past):
            return False
    if has_changed is None and beside.past:
        return False
    return owned == len(beside.own) and beside.own <= own
