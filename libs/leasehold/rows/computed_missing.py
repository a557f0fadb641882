"""Values that rows have in a column without an image of their own, where they differ by row: what a
column that follows others has in rows from before it.

`Computed` says all that is needed for one: the expression, and the columns that it names as they
were then, even if the table has them no more. So a reader of an image that lacks the pair has the
value at any later version; and a column over such a one says what that was computed from, in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import msgpack

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.element_forms import missing_to_wire
from leasehold.catalog.elements import THIS_VERSION, Column, Computed, Missing, Source
from leasehold.model.errors import Refused
from leasehold.model.records.events import Image
from leasehold.sql.expressions.expression import compile_expression
from leasehold.sql.expressions.portable import is_portable

COMPUTED_BYTES_MAX: Final = 1_024
"""Of all that says how a value is computed: it travels in every version event."""
TABLE_BYTES_MAX: Final = 32_768
"""Of all columns of a table together."""
SOURCES_MAX: Final = 16

Compute = Callable[[Image], Any]


def make_computed(
    table: Descriptor, column: Column, expression: str, sources: Iterable[int], zone: str
) -> Missing | None:
    """Return what rows from before `column` have there, which is `expression` over the public
    columns `sources` of `table`; None where images have to tell: not everybody would compute the
    same for good, or it would take too many words."""
    named = [table.by_id[element_id] for element_id in sources]
    if zone or not named or len(named) > SOURCES_MAX:
        return None
    if not is_portable(expression, table, column.type):
        return None
    if any(c.missing is not None and c.missing.below == THIS_VERSION for c in named):
        return None  # nobody knows yet from which version on
    said = tuple(Source(c.element_id, c.name, c.type, c.missing) for c in named)
    made = Missing(THIS_VERSION, None, computed=Computed(expression, column.type, said))
    size = _size_of(made)
    others = sum(_size_of(m) for m in table.missing.values() if m.computed is not None)
    return made if size <= COMPUTED_BYTES_MAX and size + others <= TABLE_BYTES_MAX else None


def _size_of(missing: Missing) -> int:
    return len(msgpack.packb(missing_to_wire(missing)))


@lru_cache(maxsize=1_024)
def compile_strictly(computed: Computed) -> Compute:
    """Return a function from a row that has its sources to its value; it raises a Refused where
    that can't be computed. Raises what `compile_expression` raises when it is compiled."""
    columns = tuple(Column(s.element_id, s.name, s.type) for s in computed.sources)
    target = Column(max(c.element_id for c in columns) + 1, "", computed.type)
    seen = Descriptor(0, "", 0, columns, ())
    return compile_expression(computed.expression, seen, target)


@lru_cache(maxsize=1_024)
def compile_computed(computed: Computed) -> Compute:
    """Return a function as `compile_strictly` does, that gives None where it can't be computed."""
    compute = compile_strictly(computed)

    def value(image: Image) -> Any:
        try:
            return compute(image)
        except Refused:
            return None

    return value


def missing_reader(missing: Missing) -> Callable[[int, Image], Any]:
    """Return a function from an image that lacks the pair, and the version that it was made under,
    to the value that its row has: None where it is NULL, or can't be computed."""
    below, constant, _, computed = missing
    if computed is None:
        return lambda made_under, image: constant if made_under < below else None
    compute = compile_computed(computed)
    sources = tuple(
        (source.element_id, missing_reader(source.missing))
        for source in computed.sources
        if source.missing is not None
    )

    def value(made_under: int, image: Image) -> Any:
        if made_under >= below:
            return None
        lacking = {e: read(made_under, image) for e, read in sources if image.get(e) is None}
        return compute({**image, **lacking} if lacking else image)

    return value
