"""What is made of a change request that met a verify error: its next attempt, or its giving up.

The verify/retry stream reads a conflict (the request and the row image that refused it), waits
`backoff_ms`, and submits what `recompute` gives under the same id. Rules: L5 (the attempt is
counted up, ⚠ a replay carries no old version pin, giving up is itself a decided attempt), T1 (⚠ a
constant that rests on a row as it was seen is never written over a newer one), T2 (what can never
commit is not replayed), R1 (so each request ends in exactly one final result).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.model.errors import Refused
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    Expression,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.transaction.binding import binding

ATTEMPTS_MAX: Final = 10
BACKOFF_BASE_MS: Final = 50
BACKOFF_MAX_MS: Final = 10_000


def is_recomputed(request: ChangeRequest) -> bool:
    """Whether the next attempt may be decided on rows that have changed since its sender has seen
    them.

    ⚠ Only where all that expects a row as it was seen is computed anew of the newest one. A
    constant may have been computed of the row that was seen, a delete decided by it, and an update
    of no columns guards the others; one of them is enough, since the whole may rest on it. With
    ANY_GENID, or without `expect`, nothing is said of what the row was, unless `before` says it."""
    if any(operation.before is not None for operation in request.operations):
        return False
    return all(
        operation.expect is None
        or operation.expect == ANY_GENID
        or operation.kind is OperationKind.INSERT
        or (
            bool(operation.values)
            and all(type(value) is Expression for value in operation.values.values())
        )
        for operation in request.operations
    )


def recompute(
    request: ChangeRequest,
    image: RowImage | None,
    *,
    table: str = "",
    descriptor: Descriptor | None = None,
    attempts_max: int = ATTEMPTS_MAX,
) -> ChangeRequest:
    """The next attempt of a refused `request`, in view of the row that refused it.

    Where the row is still there, its operation now expects *the row*, not a genid of it
    (ANY_GENID): its values are expressions, which the master evaluates on its own newest row, so
    nothing depends on the image and there is nothing left to verify. To expect the image's genid
    would verify the stream's own delay: a row that changes faster than a micro-batch takes would
    use all attempts up (in the demo a third of such requests did). Constants are no such values
    (`is_recomputed`): a master ends them itself, and those that one of an earlier version has sent
    here are given up.
    `image` None: the row is gone, or an old version was pinned. Pins are dropped first; a row that
    was expected and is gone is a final refusal: nothing meant for it means anything now.

    `table` is the name of the image's table (needed only when the request touches several),
    `descriptor` any version of it, by which keys are compared as they are stored; without one,
    keys are compared as they were sent.

    Gives up (`give_up` True, to be decided as attempt n + 1) after `attempts_max` attempts, when
    the row is gone, when something rests on the row as it was, and when it can't be told which
    single operation was refused (T2: two operations on one row that both expect it can never
    commit).
    """
    assert request.on_conflict is OnConflict.RETRY, "the requester replays or fails by itself"
    assert request.operations, "only row operations meet verify errors"
    following = request._replace(attempt=request.attempt + 1, give_up=False, used={})
    gives_up = following._replace(give_up=True)
    if following.attempt > attempts_max:
        return gives_up
    unpinned = tuple(o._replace(schema_version=None) for o in request.operations)
    if image is None:
        was_pinned = unpinned != request.operations or bool(request.used)
        return following._replace(operations=unpinned) if was_pinned else gives_up
    refused = [
        number
        for number, operation in enumerate(unpinned)
        if operation.expect is not None and _meant(operation, image, table, descriptor)
    ]
    if not refused and _expecting(unpinned) == 1:
        refused = [n for n, operation in enumerate(unpinned) if operation.expect is not None]
    if len(refused) != 1 or not is_recomputed(request):
        return gives_up
    operations = list(unpinned)
    operations[refused[0]] = operations[refused[0]]._replace(expect=ANY_GENID)
    return following._replace(operations=tuple(operations))


def _expecting(operations: tuple[Operation, ...]) -> int:
    return sum(1 for operation in operations if operation.expect is not None)


def _meant(
    operation: Operation, image: RowImage, table: str, descriptor: Descriptor | None
) -> bool:
    """Whether an operation is about the image's row."""
    if table and operation.table != table:
        return False
    if descriptor is not None:
        try:
            return binding(descriptor).key(operation.key) == image.key
        except Refused:
            return False
    key = operation.key
    sent = tuple(key.values()) if isinstance(key, Mapping) else tuple(key)
    # A mapping's order is the sender's own; as many equal values are taken for the same key.
    return sorted(map(repr, sent)) == sorted(map(repr, image.key))


def backoff_ms(attempt: int, unit_random: float) -> int:
    """How long to wait before attempt `attempt` + 1, in ms.

    Doubles from BACKOFF_BASE_MS to BACKOFF_MAX_MS; half of it is jitter, from `unit_random` in
    [0, 1), so that requests refused together do not come back together.
    """
    assert attempt >= 1, attempt
    assert 0.0 <= unit_random < 1.0, unit_random
    ceiling = min(BACKOFF_MAX_MS, BACKOFF_BASE_MS << min(attempt - 1, 30))
    return ceiling // 2 + int(ceiling / 2 * unit_random)
