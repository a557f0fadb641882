"""Runs a statement that writes, or of which a part does: its parts one after another, each on the
snapshot that all of it sees, and on what those before it have given back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

import apsw

from leasehold.adapters.sqlite.kept_rows import keep_rows, kept_tables
from leasehold.adapters.sqlite.query import (
    NO_LIMITS,
    ROW_BYTES,
    Limits,
    Rows,
    emitted_rows,
    run,
)
from leasehold.adapters.sqlite.statement_memory import memory_of
from leasehold.adapters.sqlite.write import Done, Writing, Written
from leasehold.catalog.elements import CommitContext
from leasehold.model.budget import size_of
from leasehold.model.errors import FeatureNotSupported, RequestTooLarge
from leasehold.sql.binding.select_for_verify import ShownRow, Visit
from leasehold.sql.functions.system.session import reseed
from leasehold.sql.planning.emitted import Emitted
from leasehold.sql.planning.plan import Prepared, RowClaim

_PLACE_BYTES: Final = 2
ASKED_ROWS_MAX: Final = 200
"""Rows that are asked for at once, to be claimed."""
CLAIMED_ROWS_MAX: Final = 1_000
"""Rows that one statement claims."""
CANDIDATES_MAX: Final = 100_000
"""Rows that one statement looks at, to find some that it can claim."""
ClaimRows = Callable[[RowClaim, Sequence[Sequence[ShownRow]], int], Sequence[bool]]
"""Claims at most so many of several rows, each of them a row of some tables, and returns which of
them it has now as they were shown."""
Look = Callable[[Prepared, tuple[Any, ...], CommitContext], None]


def _look_at_nothing(
    prepared: Prepared, parameters: tuple[Any, ...], context: CommitContext
) -> None:
    """Do nothing."""


def _refuse_claims(
    claim: RowClaim, rows: Sequence[Sequence[ShownRow]], wanted: int
) -> Sequence[bool]:
    raise FeatureNotSupported("SKIP LOCKED and NOWAIT are for SQL sessions: leasehold.connect()")


@dataclass(frozen=True, slots=True)
class StatementRun:
    """The run of one statement. `parameters`, `context`, `limits` and `as_of` are as in
    `query.run`, `visit` is told of rows that are to be verified. `look` is called with the plan of
    each part and its parameters before it runs, when what it reads is there. `claim` claims
    rows."""

    connection: apsw.Connection
    prepared: Prepared
    parameters: tuple[Any, ...]
    context: CommitContext
    limits: Limits = NO_LIMITS
    hidden_keys: Iterator[str] | None = None
    as_of: int = 0
    visit: Visit | None = None
    look: Look = _look_at_nothing
    claim: ClaimRows = _refuse_claims

    def run(self, many: Sequence[tuple[Any, ...]] = ()) -> Written:
        """Return what the statement would write, and its rows; `many`: it is run for each of these
        parameters, as one statement. Raises what its parts raise.

        ⚠ A row that several parts change is changed by the first of them: to the others it is as
        if they had not found it.
        """
        done: dict[int, Done] = {}
        before: list[Written] = []
        parts = self.prepared.parts
        with kept_tables(self.connection, parts):
            for place, part in enumerate(parts):
                written = self._run(part.plan, self._context(place), done)
                before.append(written)
                if part.width:
                    keep_rows(self.connection, part, written.rows)
            written = self._run(self.prepared, self._context(len(parts)), done, many)
        written.before = before
        return written

    def _context(self, place: int) -> CommitContext:
        """Return the context of a part: each draws at random for itself."""
        if not (place and self.prepared.draws):
            return self.context
        seed = self.context.seed + place.to_bytes(_PLACE_BYTES)
        return reseed(self.context, seed)

    def _run(
        self,
        plan: Prepared,
        context: CommitContext,
        done: dict[int, Done],
        many: Sequence[tuple[Any, ...]] = (),
    ) -> Written:
        for values in many or (self.parameters,):
            self.look(plan, values, context)
        if plan.claim is not None:
            return self._read_claimed(plan, plan.claim, context)
        if plan.write is None:
            return self._read(plan, context)
        mine = done.setdefault(plan.write.bound.descriptor.table_id, {})
        keys = self.hidden_keys
        shared = (context, self.limits, keys, self.as_of, mine)
        writing = Writing(self.connection, plan, self.parameters, *shared)
        return writing.run_each(many) if many else writing.run()

    def _read(self, plan: Prepared, context: CommitContext) -> Written:
        found = run(
            self.connection,
            plan,
            self.parameters,
            context=context,
            limits=self.limits,
            as_of=self.as_of,
            visit=self.visit,
        )
        with closing(found), closing(found.compute_all(whole=True)) as rows:
            return Written(rows=rows.all(), is_query=True)

    # ------------------------------------------------------------ rows that are claimed

    def _read_claimed(self, plan: Prepared, claim: RowClaim, context: CommitContext) -> Written:
        """Return the first rows of a query that can be claimed, as many as its LIMIT says behind
        those that OFFSET leaves out, which are claimed too. Raises LockNotAvailable (55P03) where
        none may be passed over, RequestTooLarge (54000)."""
        assert plan.visits is not None
        limit, offset = self._bounds(claim, context)
        end = None if limit is None or limit < 0 else limit + offset
        shown = plan.visits.shown(self.visit)
        taken: list[tuple[Any, ...]] = []
        looked_at = 0
        rows = self._rows(plan.emitted, context, later=True)
        with closing(rows), closing(memory_of(self.connection).open_budget()) as budget:
            while end is None or len(taken) < end:
                left = CLAIMED_ROWS_MAX + 1 - len(taken) if end is None else end - len(taken)
                # Those that others have claimed stand before the free ones, most often.
                count = min(ASKED_ROWS_MAX, max(left, looked_at) if claim.skips else left)
                found = rows.fetch(count)
                if not found:
                    break
                looked_at += len(found)
                if looked_at > CANDIDATES_MAX:
                    raise RequestTooLarge(
                        f"a statement looks at most at {CANDIDATES_MAX} rows to claim some: say"
                        " more in WHERE"
                    )
                asked = [list(plan.visits.find_shown(row)) for row in found]
                held = self.claim(claim, asked, left)
                kept = [row for row, has in zip(found, held, strict=True) if has]
                for row in kept:
                    budget.hold(ROW_BYTES + size_of(row))
                taken += kept
                if len(taken) > CLAIMED_ROWS_MAX:
                    raise RequestTooLarge(
                        f"a statement claims at most {CLAIMED_ROWS_MAX} rows: say LIMIT",
                        hint="SKIP LOCKED takes the next ones when it is run again.",
                    )
        return Written(rows=shown(taken[offset:]), is_query=True)

    def _bounds(self, claim: RowClaim, context: CommitContext) -> tuple[int | None, int]:
        """Return LIMIT, None for none, and OFFSET. Raises SyntaxInvalid for a negative one."""
        with closing(self._rows(claim.bounds, context)) as rows:
            ((limit, offset),) = rows.all()
        return limit, offset or 0

    def _rows(self, emitted: Emitted, context: CommitContext, *, later: bool = False) -> Rows:
        return emitted_rows(
            self.connection,
            emitted,
            self.parameters,
            context=context,
            limits=self.limits,
            as_of=self.as_of,
            later=later,
        )
