"""What writers can do to one row under a version, and what must never happen to them.

The decisions are `verify`'s, the pairs `key_values`'. A writer is harmed when it is refused by what
its version does not show it, or when a write changes what it did not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import READABLE
from leasehold.model.errors import (
    CheckViolation,
    DivisionByZero,
    DuplicateKey,
    ForeignKeyViolation,
    NotNullViolation,
    OutOfRange,
    Refused,
    TooLong,
)
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.rows.index_entries import entries_kept
from leasehold.rows.key_values import EntryChange
from leasehold.transaction.verify import verify
from leasehold.values.storage import to_storage
from tests.models.mutants.transaction import VerifyRules, broken
from tests.schema_change.changes import Domain
from tests.schema_change.rules import EVERY_RULE, Rules
from tests.schema_change.versions import Version
from tests.schema_change.world import ID, Row, Write, make_row
from tests.support.memory_store.key_values import key_values

INSERT, UPDATE, DELETE = OperationKind.INSERT, OperationKind.UPDATE, OperationKind.DELETE
KEY: Final = 0  # primary key of the row that is written; others follow


class Outcome(NamedTuple):
    """What became of a write: the row after it, or the refusal; `harm` to the writer. `others`: the
    other rows after it, where a foreign key has done something to them."""

    write: Write
    row: Row
    harm: str = ""
    others: tuple[Row, ...] | None = None


class Writers:
    """Outcomes by (row, version); the other rows matter where keys must be unique."""

    def __init__(self, domain: Domain, rules: Rules = EVERY_RULE) -> None:
        self._domain = domain
        self._rules = rules
        self._writes: dict[Version, tuple[Write, ...]] = {}
        self._outcomes: dict[tuple[Any, ...], tuple[Outcome, ...]] = {}

    def writes(self, version: Version) -> tuple[Write, ...]:
        """Everything that a writer at this version can ask for one row."""
        if version.descriptor.state not in READABLE:
            return ()  # nothing may name the table
        if version not in self._writes:
            self._writes[version] = tuple(self._made(version))
        return self._writes[version]

    def _made(self, version: Version) -> Iterator[Write]:
        named = [
            (None, *((c.name, value) for value in self._domain.get(c.name, (0,))))
            for c in version.public
            if not c.generated  # refused whatever the value
        ]
        for values in product(*named):
            yield Write(INSERT, tuple(value for value in values if value is not None))
        for options in named:
            yield from (Write(UPDATE, (value,)) for value in options if value is not None)
        yield Write(DELETE)

    # ------------------------------------------------------------ deciding

    def outcomes(self, row: Row, others: tuple[Row, ...], version: Version) -> tuple[Outcome, ...]:
        """Of every write under `version`. Of writes that name the same columns and come to the
        same row one stands for all."""
        others = others if version.looks_at_others else ()
        key = row, others, version
        if key not in self._outcomes:
            self._outcomes[key] = tuple(self._tried(row, others, version))
        return self._outcomes[key]

    def _tried(self, row: Row, others: tuple[Row, ...], version: Version) -> Iterator[Outcome]:
        known: set[Any] = set()
        for write in self.writes(version):
            if (write.kind is INSERT) == row.exists:
                continue  # refused or without a row, whatever the version
            try:
                after, beside = self.decide_all(row, others, version.catalog, write)
            except Refused as error:
                harm = refusal(error, write, version)
                if harm:
                    yield Outcome(write, row, harm)
                continue
            mark = after, beside, tuple(name for name, _ in write.values)
            if after is not None and mark not in known:
                known.add(mark)
                yield Outcome(write, after, others=None if beside == others else beside)

    def decide(
        self,
        row: Row,
        others: tuple[Row, ...],
        catalog: Catalog,
        write: Write,
        version: int | None = None,
        *,
        seen: int | None = None,
        table: str = "",
    ) -> Row | None:
        """The row after the master has decided `write` on it; None when it met no row. `seen`: the
        genid its writer saw. Raises what `verify` raises."""
        return self.decide_all(row, others, catalog, write, version, seen=seen, table=table)[0]

    def decide_all(
        self,
        row: Row,
        others: tuple[Row, ...],
        catalog: Catalog,
        write: Write,
        version: int | None = None,
        *,
        seen: int | None = None,
        table: str = "",
    ) -> tuple[Row | None, tuple[Row, ...]]:
        """That, and the other rows, to which foreign keys may have done something."""
        operation = Operation(
            write.kind,
            table or catalog.newest(1).name,
            (KEY,),
            dict(write.values),
            expect=seen,
            schema_version=version,
        )
        places = dict(enumerate((row, *others), start=KEY))

        def holders(_: Descriptor, index: int, values: Any, most: int) -> list[tuple[int]]:
            width = len(values)
            keys = {k: [(i, e[:width]) for i, e in each.entries] for k, each in places.items()}
            return [(k,) for k, known in keys.items() if (index, values) in known][:most]

        def stored(_: Descriptor, key: Any) -> Any:
            return places[key[0]].stored(key[0])

        rules = VerifyRules(
            min_version_fences=self._rules.fence, actions_when_enforced=self._rules.acts_early
        )
        request = ChangeRequest(b"", (operation,))
        with broken(rules):
            decided = verify(request, catalog, stored, 2, holders)
        if not decided.changes:
            return None, others
        change = decided.changes[0]
        descriptor = catalog.version(1, change.version)
        named = ((descriptor.column(name), value) for name, value in write.values)
        changed = {c.element_id: to_storage(c.written_type)(value) for c, value in named}
        if change.kind is ChangeKind.INSERT:
            changed[ID] = KEY
        after = applied(row, descriptor, change.kind, changed, self._rules)
        # The image that the log carries and the pairs that the states allow are the same row
        # (left-overs of a dead column apart, which a store keeps elsewhere).
        if change.image is not None and self._rules.write_missing and (row.exists or not row.pairs):
            assert {ID: KEY, **dict(after.pairs)} == change.image, (row, change, after)
        for derived in decided.changes[1:]:
            (place,) = derived.key
            own = catalog.version(1, derived.version)
            before = after if place == KEY else places[place]
            put = {e: (derived.image or {}).get(e) for e in own.by_id if e != ID}
            known = dict(before.pairs)
            set_now = {e: v for e, v in put.items() if known.get(e) != v}
            made = applied(before, own, derived.kind, set_now, self._rules)
            if place == KEY:
                after = made
            places[place] = made
        return after, tuple(places[n] for n in range(KEY + 1, KEY + 1 + len(others)))


def applied(
    row: Row,
    descriptor: Descriptor,
    kind: ChangeKind,
    changed: Mapping[int, Any],
    rules: Rules = EVERY_RULE,
) -> Row:
    """Pair by pair, as F1 counts: what a version can't see, it leaves alone."""
    known = dict(row.pairs)
    before: Image | None = {ID: KEY, **known} if row.exists else None
    result = key_values(descriptor, kind, before, changed)
    put, new = dict(result.put), [e for e in result.entries if e.put is not None]
    if not rules.write_missing and kind is ChangeKind.UPDATE:
        put = {e: value for e, value in put.items() if e in changed}
        had = {i.element_id: entry_of(before or {}) for i, entry_of in entries_kept(descriptor)}
        new = [e for e in new if e.put != had[e.index_id]]
    pairs = {e: value for e, value in known.items() if e not in result.delete} | put
    kept = with_entries(row, [e._replace(put=None) for e in result.entries])
    put_entries = {(e.index_id, e.put) for e in new if e.put is not None}
    return make_row(result.exists, pairs, kept | put_entries)


def with_entries(row: Row, changes: Iterable[EntryChange]) -> set[tuple[int, Any]]:
    """The row's entries after those changes."""
    changes = tuple(changes)
    removed = {(e.index_id, e.remove) for e in changes}
    kept = {e for e in row.entries if e not in removed}
    return kept | {(e.index_id, e.put) for e in changes if e.put is not None}


# ------------------------------------------------------------------ harm to writers


def refusal(error: Refused, write: Write, version: Version) -> str:
    """Why a refusal is a harm, "" when a constraint that the writer's version shows and enforces
    is what refused it: then all its columns can be named, and the write has touched one."""
    table = version.descriptor
    said = error.detail
    over: list[str] = []
    match error:
        case NotNullViolation():
            over = [str(said["column"])]
        case CheckViolation():
            check = table.check(str(said["constraint"]))
            over = [table.by_id[e].name for e in check.columns] if check else []
        case DuplicateKey():
            over = _over(table, said["constraint"])
        case DivisionByZero() if "index" in said:  # no entry can be computed
            over = _over(table, said["index"])
        case ForeignKeyViolation():
            foreign = next(f for f in table.foreign_keys if f.name == said["constraint"])
            over = [table.by_id[e].name for e in (*foreign.columns, *foreign.parent_columns)]
            if write.kind is DELETE and foreign.on_delete.acts:
                return f"a delete that {foreign.name!r} is to follow is refused: {error.message}"
        case OutOfRange() | TooLong() if said.get("column") in dict(write.values):
            # The writer's version holds the column to a type that has no such value.
            column = table.column(str(said["column"]))
            kept = to_storage(column.written_type)
            over = [column.name] if _refuses(kept, dict(write.values)[column.name]) else []
        case OutOfRange() if "column" not in said:  # a CHECK that can't be computed
            over = [table.by_id[e].name for check in table.checks for e in check.columns]
        case _ if isinstance(said.get("column"), str):
            # A generated column that can't be computed: the writer names what it comes from.
            made = [c for c in table.generated if c.name == said["column"]]
            over = [table.by_id[e].name for c in made if c.derived for e in c.derived.sources]
    hidden = [name for name in over if name not in table.by_name]
    changed = table.changed_with(table.column(name).element_id for name, _ in write.values)
    touched = write.kind is not UPDATE or {table.by_id[e].name for e in changed} & set(over)
    if over and not hidden and touched:
        return ""
    why = f", for a column that it can't name: {hidden}" if hidden else ""
    return f"a write is refused because of the schema change{why}: {error.message}"


def _refuses(convert: Callable[[Any], Any], value: Any) -> bool:
    try:
        convert(value)
    except Refused:
        return True
    return False


def _over(table: Descriptor, index: object) -> list[str]:
    found = table.read_index(str(index))
    return [table.by_id[e].name for e in sorted(found.over)] if found else []


def lost(before: Row, outcome: Outcome, made: Version, used: tuple[Version, ...]) -> str:
    """What a write under `made` did to columns that it did not name, as readers at the versions
    `used` see it; "" for nothing. A new row has its default there."""
    write, after = outcome.write, outcome.row
    if write.kind is DELETE:
        return ""
    own_columns = made.descriptor.by_id
    named = {made.descriptor.column(name).element_id for name, _ in write.values}
    following = {e for e, c in own_columns.items() if c.derived and named & {*c.derived.sources}}
    acting = [key.columns for key in made.descriptor.enforced_foreign_keys if key.acts]
    following |= {e for columns in acting for e in columns}
    for version in used:
        for column in version.public:
            if column.element_id in named | following:
                continue
            now = after.value(column.element_id)
            if write.kind is UPDATE and now != before.value(column.element_id):
                return f"column {column.name!r} becomes {now} by a write that does not name it"
            own = own_columns.get(column.element_id)
            if column.derived or (own and own.derived):
                continue  # whether it is what its expression says is part of d ⊨ S
            if write.kind is INSERT and now not in (column.default, own.default if own else None):
                return f"column {column.name!r} of a new row is {now}, not its default"
    return ""
