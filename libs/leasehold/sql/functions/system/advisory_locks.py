"""Advisory locks: functions that take and give locks which mean what their callers say.

They are taken when they are computed, once for each time; what that comes to is the session's to
know (`System.act`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.sql.functions.function import BIGINT, BOOLEAN, INTEGER, Function
from leasehold.sql.functions.system.session import system_of
from leasehold.values.types import Type

VOID: Final = Type("void")
_KINDS: Final = ((BIGINT,), (INTEGER, INTEGER))


def _halves(numbers: tuple[int, ...]) -> tuple[int, int, int]:
    """Return how pg_locks tells a key: objsubid, classid and objid."""
    if len(numbers) == 1:
        return 1, numbers[0] >> 32 & 0xFFFFFFFF, numbers[0] & 0xFFFFFFFF
    return 2, numbers[0] & 0xFFFFFFFF, numbers[1] & 0xFFFFFFFF


def _does(action: str, result: Type, *how: bool) -> Callable[..., Any]:
    def compute(context: CommitContext, *numbers: int) -> Any:
        done = system_of(context).act(action, *_halves(numbers), *how)
        return int(done) if result is BOOLEAN else ""

    return compute


def _lock_functions() -> list[Function]:
    made: list[Function] = []
    for kinds in _KINDS:
        for shared in (False, True):
            mode = "_shared" if shared else ""
            for tries in (False, True):
                result = BOOLEAN if tries else VOID
                verb = "pg_try_advisory" if tries else "pg_advisory"
                for of_transaction in (False, True):
                    name = f"{verb}{'_xact' if of_transaction else ''}_lock{mode}"
                    how = (not shared, of_transaction, not tries)
                    made.append(_function(name, kinds, result, _does("take_lock", result, *how)))
            compute = _does("give_lock", BOOLEAN, not shared)
            made.append(_function(f"pg_advisory_unlock{mode}", kinds, BOOLEAN, compute))
    return made


def _function(
    name: str, kinds: tuple[Type, ...], result: Type, compute: Callable[..., Any]
) -> Function:
    return Function(name, kinds, result, compute, volatility="volatile", steers=True)


def _give_all(context: CommitContext) -> str:
    system_of(context).act("give_all_locks")
    return ""


FUNCTIONS: Final[tuple[Function, ...]] = (
    *_lock_functions(),
    _function("pg_advisory_unlock_all", (), VOID, _give_all),
)
