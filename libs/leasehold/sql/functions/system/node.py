"""Functions by which a client steers its node and the database: sessions are cancelled, jobs are,
change requests are submitted.

They do it once for each time they are computed, when that is; so call them alone in a SELECT.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.catalog.elements import CommitContext
from leasehold.sql.functions.function import BIGINT, BOOLEAN, INTEGER, TEXT, Function
from leasehold.sql.functions.system.session import system_of


def _does(action: str) -> Callable[..., Any]:
    def compute(context: CommitContext, *values: Any) -> int:
        return int(system_of(context).act(action, *values))

    return compute


def _steers(name: str, action: str, *kinds: Any) -> Function:
    return Function(name, kinds, BOOLEAN, _does(action), volatility="stable")


FUNCTIONS: Final[tuple[Function, ...]] = (
    *(
        _steers(name, "cancel_session", INTEGER)
        for name in ("pg_cancel_backend", "leasehold.cancel_session")
    ),
    *(
        _steers(name, "end_session", INTEGER)
        for name in ("pg_terminate_backend", "leasehold.end_session")
    ),
    *(
        _steers(f"leasehold.{action}_job", f"{action}_job", BIGINT)
        for action in ("cancel", "pause", "resume", "postpone", "complete", "dismiss")
    ),
    _steers("leasehold.set_job", "set_job", BIGINT, TEXT, BIGINT),
    _steers("leasehold.resubmit_letter", "resubmit_letter", BIGINT),
    _steers("leasehold.submit_request", "submit_request", TEXT),
)
