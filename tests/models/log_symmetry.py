"""States of the log model that differ by the names of candidates and replicants alone.

Nothing in the model goes by a name: records, grants and acknowledgements carry it, and it is
compared with others. So a renamed state can do what the state can do, renamed. Who comes first is
told by what he is; where two are the same in that, both orders are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, permutations, product
from typing import Any, TypeAlias

from leasehold.model.records.log import Claim, Decisions, LogRecord
from tests.models.coherency_part import name_of
from tests.models.log_records import Records
from tests.models.log_world import FIRST_READER, Candidate, Reader, World

Order: TypeAlias = tuple[int, ...]
"""Old numbers, by new ones."""


@dataclass
class Symmetry:
    """Gives the state that stands for all that are alike."""

    records: Records
    _renamed: dict[tuple[int, Order, Order], int] = field(default_factory=dict)

    def canonical(self, world: World) -> World:
        """Return the same state for all that are alike."""
        candidates = orders([_of_candidate(world, n) for n in range(len(world.candidates))])
        readers = orders([_of_reader(reader) for reader in world.readers])
        found = [self.renamed(world, *order) for order in product(candidates, readers)]
        return found[0] if len(found) == 1 else min(found, key=hash)

    def renamed(self, world: World, candidates: Order, readers: Order) -> World:
        """Return the state in which candidate `candidates[n]` is called n, and likewise
        replicants."""
        if is_sorted(candidates) and is_sorted(readers):
            return world._replace(acks=tuple(tuple(sorted(sent)) for sent in world.acks))
        names = _Names(candidates, readers)

        def number(old: int) -> int:
            return self._record(old, candidates, readers)

        return world._replace(
            log=tuple(map(number, world.log)),
            net=tuple(sorted(map(number, world.net))),
            candidates=tuple(
                self._candidate(world.candidates[old], names, candidates, readers)
                for old in candidates
            ),
            readers=tuple(_reader(world.readers[old], names) for old in readers),
            acks=tuple(
                tuple(sorted(names.sent(each) for each in world.acks[old])) for old in candidates
            ),
            told=frozenset(map(names.sent, world.told)),
            records_told=frozenset(
                told._replace(
                    incarnation=names.incarnation(told.incarnation), number=number(told.number)
                )
                for told in world.records_told
            ),
        )

    def _candidate(
        self, candidate: Candidate, names: _Names, candidates: Order, readers: Order
    ) -> Candidate:
        flight = candidate.flight
        if flight >= 0:
            flight = self._record(flight, candidates, readers)
        leases = candidate.leases
        known = tuple(sorted(names.sent(each) for each in leases.known))
        watch = tuple(sorted(names.sent(each) for each in candidate.watch))
        return candidate._replace(flight=flight, watch=watch, leases=leases._replace(known=known))

    def _record(self, number: int, candidates: Order, readers: Order) -> int:
        key = number, candidates, readers
        found = self._renamed.get(key)
        if found is None:
            record = self._of_names(self.records.records[number], candidates, readers)
            found = self._renamed[key] = self.records.number(record)
        return found

    def _of_names(self, record: LogRecord, candidates: Order, readers: Order) -> LogRecord:
        assert isinstance(record, Claim | Decisions), record
        names = _Names(candidates, readers)
        previous = b""
        if record.previous:  # the number of a record is its digest
            before = self._record(int.from_bytes(record.previous, "big"), candidates, readers)
            previous = before.to_bytes(2, "big")
        own = names.incarnation(record.incarnation)
        if isinstance(record, Claim):
            return record._replace(incarnation=own, previous=previous, node=str(own[0]))
        grants = []
        for grant in record.grants:
            holder = names.incarnation(grant.incarnation)
            grants.append(grant._replace(node=name_of(holder), incarnation=holder))
        return record._replace(incarnation=own, previous=previous, grants=tuple(sorted(grants)))


class _Names:
    """New names of incarnations: their first byte is a candidate's number, or a replicant's."""

    def __init__(self, candidates: Order, readers: Order) -> None:
        self._new = {old: new for new, old in enumerate(candidates)}
        self._new |= {FIRST_READER + old: FIRST_READER + new for new, old in enumerate(readers)}

    def incarnation(self, old: bytes) -> bytes:
        return bytes((self._new[old[0]],)) + old[1:]

    def sent(self, each: Any) -> Any:
        """Of whatever has an incarnation."""
        return each._replace(incarnation=self.incarnation(each.incarnation))


def is_sorted(order: Order) -> bool:
    return order == tuple(range(len(order)))


def orders(keys: Sequence[Any]) -> Iterator[Order]:
    """Yield the orders by keys: one where they differ, all of those that are equal."""
    if len(keys) == 1:
        yield (0,)
        return
    by_key: dict[Any, list[int]] = {}
    for number, key in enumerate(keys):
        by_key.setdefault(key, []).append(number)
    groups = [list(permutations(by_key[key])) for key in sorted(by_key)]
    for choice in product(*groups):
        yield tuple(chain.from_iterable(choice))


def _of_candidate(world: World, which: int) -> tuple[Any, ...]:
    """What a candidate is, whatever anybody is called. Masters come first."""
    one = world.candidates[which]
    leases = tuple(sorted((each.applied, each.until_ns) for each in one.leases.known))
    watch = tuple(sorted(tuple(seen[1:]) for seen in one.watch))
    acks = tuple(sorted(tuple(sent[1:]) for sent in world.acks[which]))
    return (
        not one.master,
        one.read,
        one.incarnation,
        one.flight < 0,
        one.pending,
        one.serve_from_ns,
        one.leases.unknown_until_ns,
        leases,
        watch,
        acks,
    )


def _of_reader(one: Reader) -> tuple[Any, ...]:
    return (
        one.read,
        one.incarnation,
        one.booted,
        one.asks,
        one.until_ns,
        one.granted[0],
        one.wrong,
        one.left,
    )


def _reader(reader: Reader, names: _Names) -> Reader:
    epoch, incarnation = reader.granted
    if not incarnation:
        return reader
    return reader._replace(granted=(epoch, names.incarnation(incarnation)))
