"""What a statement reads of what its connection shows: places that its text tells, and those that
rows of other tables say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import apsw

from leasehold.adapters.sqlite.query import Limits, emitted_rows
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import QueryCanceled, Refused
from leasehold.sql.planning.plan import Prepared
from leasehold.sql.planning.read_set import LOOKED_UP_MAX
from leasehold.sql.planning.reads import Lookup, Read, as_stored


def ranges_read(
    connection: apsw.Connection,
    plan: Prepared,
    values: Sequence[Any],
    context: CommitContext,
    limits: Limits,
    as_of: int,
) -> Iterator[Read]:
    """Yield what a statement reads: the places that its text names, and those that rows of other
    tables lead to. The arguments are those of `query.run`. Raises QueryCanceled."""
    yield from plan.reads.of(values)
    for lookup in plan.reads.lookups:
        for prefix in _looked_up(connection, plan, lookup, values, context, limits, as_of):
            if None not in prefix:  # which is equal to nothing
                key = as_stored(tuple(prefix), lookup.scales)
                yield Read(lookup.table_id, lookup.index_id, key)


def _looked_up(
    connection: apsw.Connection,
    plan: Prepared,
    lookup: Lookup,
    values: Sequence[Any],
    context: CommitContext,
    limits: Limits,
    as_of: int,
) -> list[tuple[Any, ...]]:
    """Return the key prefixes that a lookup finds. Where they are too many, or a row fails to which
    the statement itself may never come, it is the whole table, [()]."""
    emitted = lookup.emit(len(plan.parameters), plan.beside)
    try:
        with closing(
            emitted_rows(connection, emitted, values, context=context, limits=limits, as_of=as_of)
        ) as rows:
            found = list(islice(rows, LOOKED_UP_MAX + 1))
    except QueryCanceled:
        raise
    except Refused:
        return [()]
    return found if len(found) <= LOOKED_UP_MAX else [()]
