"""The model of a primary key that goes with CASCADE: another table refers to it, whose foreign key
is dropped along (`lost_reference`).

As `hidden_mirrors.py` and `mirrors.py`, of whose writes a few are left, with a row of a table `c`
that refers to `t (id)`. While a version of `c` relies on the foreign key, the row that it refers to
is there, for everybody who may read; while one enforces it, nobody is refused who refers to a row
that he finds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.states import State
from leasehold.model.errors import ForeignKeyViolation, Refused
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.transaction.verify import verify
from tests.schema_change.hidden_mirrors import REQUEST, HiddenMirrors
from tests.schema_change.mirrors import (
    CONTEXT,
    LSN,
    Mirrors,
    Rows,
    Seen,
    World,
    Write,
    _data,
    _store,
)
from tests.support.memory_store.consistency import KeyValueData, violations

CHILD, K, P = 2, 1, 2
REFERS: Final = "CREATE TABLE c (k integer PRIMARY KEY, p integer REFERENCES t (id))"
DROPPED: Final = (
    "ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE",
    f"CREATE TABLE t (id integer PRIMARY KEY, v integer);{REFERS}",
)
CHANGED: Final = (
    "ALTER TABLE t DROP CONSTRAINT t_pkey CASCADE, ADD PRIMARY KEY (k)",
    f"CREATE TABLE t (id integer PRIMARY KEY, k integer, v integer);{REFERS}",
)
VALUES: Final = (1, 2)


class Referred(Mirrors):
    """Beside either of the models of `t`."""

    def starts(self) -> Iterator[tuple[str, World]]:
        for label, world in super().starts():
            for value in (None, *VALUES):
                held = world.held
                there = {key[0] for t, key, _ in held.rows if t == 1}
                if value is None:
                    yield label, world
                elif value in there:
                    yield (
                        f"{label}, and c refers to {value}",
                        world._replace(held=self._with(held, value)),
                    )

    def _with(self, held: Rows, value: int) -> Rows:
        key = self.catalog.newest(CHILD).foreign_keys[0]
        rows = (*held.rows, (CHILD, (1,), ((K, 1), (P, value))))
        entries = (*held.entries, (CHILD, key.index, (value,), (1,)))
        return Rows(tuple(sorted(rows, key=repr)), tuple(sorted(entries, key=repr)))

    # ------------------------------------------------------------ invariant

    def _beside(self, held: Rows, catalog: Catalog, data: dict[int, KeyValueData]) -> str:
        mirrors = {table: found for table, found in data.items() if table != CHILD}
        return super()._beside(held, catalog, mirrors) or self._referring(held, catalog)

    def _referring(self, held: Rows, catalog: Catalog) -> str:
        data = _data(held, CHILD)
        known = {e.element_id for version in catalog.versions(CHILD) for e in version.elements}
        dead = frozenset(known - {e.element_id for e in catalog.newest(CHILD).elements})
        for child in _used(catalog):
            found = violations(data, child, dead)
            if found:
                return f"version {child.version} of c: {found[0].words}"
            for key in child.foreign_keys:
                if key.state is State.PUBLIC and not self._found_by(held, catalog):
                    return f"version {child.version} of c relies on {key.name}: no such row"
        return ""

    def _found_by(self, held: Rows, catalog: Catalog) -> bool:
        parents = _shown(held, catalog)
        return all(
            dict(pairs)[P] in parents
            for t, _, pairs in held.rows
            if t == CHILD and P in dict(pairs)
        )

    # ------------------------------------------------------------ transitions

    def writes(self, held: Rows, seen: Seen) -> Iterator[Write]:
        yield from super().writes(held, seen)
        for child in _used(seen.catalog):
            for operation in _of_child():
                words = f"{operation.kind.name} c {dict(operation.values)}"
                label = f"{words} for version {child.version}"
                yield from self._child_written(label, held, seen, operation, child.version)

    def _child_written(
        self, label: str, held: Rows, seen: Seen, operation: Operation, version: int
    ) -> Iterator[Write]:
        store = _store(held)
        asked = ChangeRequest(REQUEST, (operation._replace(schema_version=version),))
        try:
            decided = verify(asked, seen.catalog, store.row, LSN, store.holders, CONTEXT)
        except ForeignKeyViolation:
            if operation.values["p"] in _shown(held, seen.catalog):
                harm = "refused, though the row that it refers to is there"
                yield Write(label, held, harm)
        except Refused:
            pass
        else:
            yield self._applied(label, seen, store, decided.changes)


@dataclass
class ReferredDropped(Referred, HiddenMirrors):
    """The key goes; of what may be written that is left which a foreign key looks at."""

    def _hidden(self, keys: tuple[Any, ...]) -> Iterator[list[Operation]]:
        if len(keys) < len(VALUES):
            yield from ([_of(OperationKind.INSERT, {}, {"id": v, "v": 0})] for v in VALUES)
        for key in keys:
            yield from ([_of(OperationKind.UPDATE, key, {"id": v})] for v in VALUES)
            yield [_of(OperationKind.DELETE, key, {})]

    def _keyed(self, rows: int) -> Iterator[list[Operation]]:
        for v in VALUES:
            if rows < len(VALUES):
                yield [_of(OperationKind.INSERT, {"id": v}, {"v": 0})]
            yield [_of(OperationKind.UPDATE, {"id": v}, {"id": 3 - v})]
            yield [_of(OperationKind.DELETE, {"id": v}, {})]


@dataclass
class ReferredChanged(Referred):
    """Another key takes its place."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.left = frozenset({4})
        self._requests = {"id": _of_parent("id", "k"), "k": _of_parent("k", "id")}


# ------------------------------------------------------------------ parts


def _of(kind: OperationKind, key: Any, values: dict[str, Any], table: str = "t") -> Operation:
    return Operation(kind, table, key, values)


def _of_parent(key: str, other: str) -> tuple[ChangeRequest, ...]:
    kinds = OperationKind
    single = []
    for v in VALUES:
        single += [_of(kinds.INSERT, {key: v}, {other: o, "v": 0}) for o in VALUES]
        single += [_of(kinds.UPDATE, {key: v}, {other: o}) for o in VALUES]
        single.append(_of(kinds.DELETE, {key: v}, {}))
    return tuple(ChangeRequest(REQUEST, (operation,)) for operation in single)


def _of_child() -> tuple[Operation, ...]:
    kinds, key = OperationKind, {"k": 1}
    written = [_of(k, key, {"p": v}, "c") for k in (kinds.INSERT, kinds.UPDATE) for v in VALUES]
    return (*written, _of(kinds.DELETE, key, {}, "c"))


def _used(catalog: Catalog) -> list[Descriptor]:
    """Versions of `c` that may be in use."""
    kept = catalog.versions(CHILD)
    return [d for d in kept if d.version >= catalog.min_version(CHILD)][-3:]


def _shown(held: Rows, catalog: Catalog) -> set[Any]:
    """What rows of `t` have for `id`: the same for whoever may read."""
    table = catalog.resolve("t").table_id
    return {dict(pairs).get(1) for t, _, pairs in held.rows if t == table}
