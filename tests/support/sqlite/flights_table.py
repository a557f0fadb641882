"""One table's life as tests of stores use it: columns, an index and a unique index come and go."""

from __future__ import annotations

from dataclasses import replace

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Column, Index, Missing
from leasehold.catalog.states import State
from leasehold.values.types import Type
from tests.support.descriptors import with_state

TABLE = 7
CARRIER, NUMBER, SEATS, PRICE, GATE = 1, 2, 3, 4, 5
BY_SEATS, BY_GATE, COMPUTED = 6, 7, 9
GATE_DEFAULT = 9
BELT = 8
LOUNGE = 10


def first_version(*, wide_key: bool) -> Descriptor:
    """Flights with a single integer key, or with (carrier, number) as key."""
    carrier = Column(CARRIER, "carrier", Type("text"), nullable=not wide_key)
    return Descriptor(
        table_id=TABLE,
        name="flights",
        version=1,
        columns=(
            carrier,
            Column(NUMBER, "number", Type("integer"), nullable=False),
            Column(SEATS, "seats", Type("bigint")),
            Column(PRICE, "price", Type("double precision")),
        ),
        primary_key=(CARRIER, NUMBER) if wide_key else (NUMBER,),
        next_element_id=11,
    )


def history(*, wide_key: bool) -> tuple[Descriptor, ...]:
    """Versions 1 to 8, each step one that keeps a table consistent.

    Required columns GATE and BELT and the indexes come (delete-only, write-only, public), LOUNGE
    with a default that every row has at once (delete-only, public), then two indexes go the same
    way back and the optional columns PRICE and LOUNGE go (delete-only, absent). COMPUTED is
    partial, over an expression, and covers columns.
    """
    one = first_version(wide_key=wide_key)
    gate = Column(GATE, "gate", Type("integer"), False, GATE_DEFAULT, State.DELETE_ONLY)
    gate = replace(gate, missing=Missing(3, GATE_DEFAULT))
    belt = Column(BELT, "belt", Type("text"), False, "B1", State.DELETE_ONLY)
    belt = replace(belt, missing=Missing(3, "B1"))
    lounge = Column(LOUNGE, "lounge", Type("text"), True, "it's", State.DELETE_ONLY)
    lounge = replace(lounge, missing=Missing(2, "it's", at_once=True))
    by_seats = Index(BY_SEATS, "by_seats", (SEATS, PRICE), state=State.DELETE_ONLY)
    by_gate = Index(BY_GATE, "by_gate", (GATE,), state=State.DELETE_ONLY)
    computed = Index(
        COMPUTED,
        "computed",
        (EXPRESSION, GATE),
        state=State.DELETE_ONLY,
        expressions=("abs(seats % 3)",),
        predicate="price is null or price < 100",
        included=(PRICE, CARRIER),
        mentioned=(SEATS, PRICE),
    )
    indexes = (by_seats, by_gate, computed)
    two = replace(one, version=2, columns=(*one.columns, gate, belt, lounge), indexes=indexes)
    steps = [
        {
            **dict.fromkeys((GATE, BELT, BY_SEATS, BY_GATE, COMPUTED), State.WRITE_ONLY),
            LOUNGE: State.PUBLIC,
        },
        dict.fromkeys((GATE, BELT, BY_SEATS, BY_GATE, COMPUTED), State.PUBLIC),
        dict.fromkeys((BY_SEATS, COMPUTED), State.WRITE_ONLY),
        dict.fromkeys((BY_SEATS, COMPUTED), State.DELETE_ONLY),
        {
            **dict.fromkeys((BY_SEATS, COMPUTED), State.ABSENT),
            **dict.fromkeys((PRICE, LOUNGE), State.DELETE_ONLY),
        },
        dict.fromkeys((PRICE, LOUNGE), State.ABSENT),
    ]
    versions = [one, two]
    for states in steps:
        newest = versions[-1]
        for element_id, state in states.items():
            newest = with_state(newest, element_id, state)
        versions.append(replace(newest, version=versions[-1].version + 1))
    return tuple(versions)
