"""The model of a table that gets a primary key, or loses it: one of the two tables has the key that
nobody sees (T7).

As `mirrors.py`; but a hidden key is a new value each time. Which one it is doesn't matter, only
what has the same one: so after each operation they are called by what they are at.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final
from uuid import UUID

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from tests.schema_change.mirrors import Mirrors, Rows, World, _pairs

KEY, V, HIDDEN, INDEX = 1, 2, 3, 4
ROWS_MAX: Final = 2
VALUES: Final = (1, 2)
REQUEST: Final = bytes.fromhex("0191000000007000b000000000000000")
DROPPED: Final = (
    "ALTER TABLE t DROP CONSTRAINT t_pkey",
    "CREATE TABLE t (id integer PRIMARY KEY, v integer)",
)
ADDED: Final = ("ALTER TABLE t ADD PRIMARY KEY (id)", "CREATE TABLE t (id integer, v integer)")


def hidden(number: int) -> str:
    return str(UUID(int=number))


@dataclass
class HiddenMirrors(Mirrors):
    """Column `id` is the key in one table and not in the other; there two rows may have one value.
    (That it must not be NULL is in the model of two keys. `v` changes where the key is dropped:
    beside one that is added it would only multiply the states.)"""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.dropped = not self.catalog.resolve("t").hidden_key
        self.left = frozenset({HIDDEN, INDEX})
        self._asked: dict[Any, list[ChangeRequest]] = {}

    def starts(self) -> Iterator[tuple[str, World]]:
        if self.dropped:
            for there in product((True, False), repeat=len(VALUES)):
                kept = [v for v, is_there in zip(VALUES, there, strict=True) if is_there]
                rows = tuple((1, (v,), _pairs({KEY: v, V: 0})) for v in kept)
                yield f"{kept}", World(Rows(rows), 0)
            return
        for count in range(ROWS_MAX + 1):
            for values in product(VALUES, repeat=count):
                made = tuple(
                    (1, (hidden(n),), _pairs({KEY: v, V: 0, HIDDEN: hidden(n)}))
                    for n, v in enumerate(values, 1)
                )
                yield f"{values}", self.kept(World(Rows(made), 0))

    # ------------------------------------------------------------ what may be asked

    def requests(self, held: Rows, descriptor: Descriptor) -> Iterable[ChangeRequest]:
        keys = tuple(sorted(key for t, key, _ in held.rows if t == descriptor.table_id))
        known = keys if descriptor.hidden_key else len(keys)
        asked = descriptor.hidden_key, bool(descriptor.former), known
        if asked not in self._asked:
            made = self._hidden(keys) if descriptor.hidden_key else self._keyed(len(keys))
            self._asked[asked] = [ChangeRequest(REQUEST, tuple(group)) for group in made]
        return self._asked[asked]

    def _hidden(self, keys: tuple[Any, ...]) -> Iterator[list[Operation]]:
        """By who has found rows and says so by what they are."""
        if len(keys) < ROWS_MAX:
            yield from ([_insert({}, {"id": v, "v": 0})] for v in VALUES)
        for key in keys:
            yield from ([_update(key, {"id": v})] for v in VALUES)
            if self.dropped:
                yield [_update(key, {"v": 1})]
            yield [_delete(key)]
            yield [_delete(key), _insert({}, {"id": 1, "v": 0})]
        if len(keys) == ROWS_MAX and self.dropped:
            for a, b in (VALUES, VALUES[::-1]):
                yield [_update(keys[0], {"id": a}), _update(keys[1], {"id": b})]

    def _keyed(self, rows: int) -> Iterator[list[Operation]]:
        for v in VALUES:
            if rows < ROWS_MAX:
                yield [_insert({"id": v}, {"v": 0})]
            if self.dropped:
                yield [_update({"id": v}, {"v": 1})]
            yield [_update({"id": v}, {"id": 3 - v})]
            yield [_delete({"id": v})]
            yield [_delete({"id": v}), _insert({"id": v}, {"v": 0})]
        yield [_update({"id": 1}, {"id": 2}), _update({"id": 2}, {"id": 1})]
        if not rows:
            again = _insert({"id": 1}, {"v": 0})
            yield [again, _update({"id": 1}, {"id": 2}), again]

    def deserved(self, held: Rows, named: Descriptor, request: ChangeRequest) -> bool:
        return self.dropped and super().deserved(held, named, request)

    def may_fail(self, held: Rows) -> bool:
        values = [dict(pairs).get(KEY) for table, _, pairs in held.rows if table == 1]
        return not self.dropped and len(set(values)) < len(values)

    def keys(self, world: World) -> Iterable[Any]:
        if self.dropped:
            return VALUES
        return [key[0] for table, key, _ in world.held.rows if table == 1]

    # ------------------------------------------------------------ which value does not matter

    def kept(self, world: World) -> World:
        held = self._without_left(world)
        found: dict[Any, list[Any]] = defaultdict(list)
        for table, key, pairs in held.rows:
            known = dict(pairs).get(HIDDEN)
            if known is not None:
                masked = tuple(None if part == known else part for part in key)
                found[known].append((table, masked, pairs_of(pairs)))
        for table, index, values, key in held.entries:
            if type(key[0]) is str:
                found[key[0]].append((table, index, values))
        marked = {
            value: (value in world.todo, sorted(map(repr, at))) for value, at in found.items()
        }
        order = sorted(found, key=lambda value: repr(marked[value]))
        names = {value: hidden(number) for number, value in enumerate(order, 1)}

        def named(values: Iterable[Any]) -> tuple[Any, ...]:
            return tuple(names.get(value, value) for value in values)

        rows = (
            (t, named(key), tuple((e, names.get(v, v)) for e, v in pairs))
            for t, key, pairs in held.rows
        )
        entries = ((t, i, values, named(key)) for t, i, values, key in held.entries)
        todo = world.todo if self.dropped else {names[v] for v in world.todo if v in names}
        return world._replace(
            held=Rows(tuple(sorted(rows, key=repr)), tuple(sorted(entries, key=repr))),
            todo=frozenset(todo),
        )

    def _without_left(self, world: World) -> Rows:
        """What a roll-back has left behind is removed at once."""
        catalog = self.all[world.at].catalog
        clean = {
            table: all(
                d.element(HIDDEN) is None
                for d in catalog.versions(table)
                if d.version >= catalog.min_version(table)
            )
            for table in {t for t, _, _ in world.held.rows}
        }
        rows = tuple(
            (t, key, pairs_of(pairs) if clean[t] else pairs) for t, key, pairs in world.held.rows
        )
        return world.held._replace(rows=rows)


def pairs_of(pairs: tuple[tuple[int, Any], ...]) -> tuple[tuple[int, Any], ...]:
    return tuple((e, v) for e, v in pairs if e != HIDDEN)


def _insert(key: Any, values: dict[str, Any]) -> Operation:
    return Operation(OperationKind.INSERT, "t", key, values)


def _update(key: Any, values: dict[str, Any]) -> Operation:
    return Operation(OperationKind.UPDATE, "t", key, values)


def _delete(key: Any) -> Operation:
    return Operation(OperationKind.DELETE, "t", key, {})
