"""A world whose nodes have rows that a CHECK is put over, and that are looked through in slices of
two: nobody but the nodes looks. Rows are written, and change places, between any two things that
happen; a node's own copy may be wrong.

What is right is known from the outside: when the CHECK goes public no row breaks it on any node
that was wanted at the end, and a job may only fail for a row that did.
"""

from __future__ import annotations

from leasehold.catalog.elements import Check
from leasehold.catalog.job import Job, Phase, Status, job_from_wire
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.log import CatalogWrite, CheckSlice, JobWrite
from tests.support.schema_change.job_harm import Harm
from tests.support.schema_change.made_job import report_of
from tests.support.schema_change.made_statements import add_check, alter
from tests.support.schema_change.walk_world import KEYS, Copy, WalkWorld

VALUES, BAD = 12, 11  # so that few jobs end at their first row
CHECKED = alter("t", add_check(f"a <> {BAD}"))


class CheckWalkWorld(WalkWorld):
    """`moved_whole`: a row that changes its key is checked although its columns stay as they were
    (else it is the harm that this rule prevents)."""

    moved_whole = True

    def _check(self) -> Check | None:
        return next(iter(self.table().checks), None) if self.catalog.tables() else None

    # ------------------------------------------------------------ rows

    def perform_row(self) -> bool:
        """One row is inserted, updated, touched, deleted, or moves to another key."""
        key, value = self.random.randrange(KEYS), self.random.randrange(VALUES)
        target = self.random.choice((key, key, self.random.randrange(KEYS)))
        master = self.copies["m"]
        before = master.rows.get(key)
        after = self.random.choice((value, before, None))
        moves = target != key
        if (after is None and before is None) or (moves and (before is None or after is None)):
            return False
        if moves and target in master.rows:
            return True  # 23505
        # Enforced in the newest version: whoever writes under the one before is held to it, too.
        looked_at = after != before or (moves and self.moved_whole)
        if self._check() is not None and after == BAD and looked_at:
            return True  # 23514
        self.log.append(())
        for copy in self.copies.values():
            copy.rows.pop(key, None)
            if after is not None:
                copy.rows[target] = after
        return True

    # ------------------------------------------------------------ damage, and what nodes say

    def _damage(self) -> None:
        """A fault of one node, or of all alike, before anybody has looked; never later, when a row
        that was right in its slice may be wrong again."""
        if self.damaged:
            return
        self.damaged = True
        keys = sorted(self.copies["m"].rows)
        nodes = self.random.choice([(), tuple(self.copies), ("m",), self.nodes[-1:]])
        for node in nodes if keys else ():
            self.copies[node].rows[self.random.choice(keys)] = BAD

    def _verify(self, job: Job, lsn: int) -> None:
        if job.phase is not Phase.VERIFYING or job.status is not Status.RUNNING:
            return
        self._damage()
        self.wanted = self.coherent | {"m"}
        if any(BAD in copy.rows.values() for copy in self.copies.values()):
            self.harmless_so_far = False
        for node, copy in self.copies.items():
            self.reports.append(self._look(job, node, copy, lsn))

    def _look(self, job: Job, node: str, copy: Copy, lsn: int) -> CheckReport:
        part = job.look or CheckSlice(0, (), 99)
        above = [(k,) for k in sorted(copy.rows) if not part.after or (k,) > tuple(part.after)]
        inside = above[: part.rows_max]
        wrong = sum(copy.rows[key] == BAD for (key,) in inside)
        return report_of(job, node, lsn, self.table().version, wrong)._replace(
            rows=len(inside),
            entries={},
            checksum=b"",
            until=inside[-1] if len(above) > len(inside) else None,
            took_ms=self.took_ms,
        )

    # ------------------------------------------------------------ harm

    def append(self, *writes: CatalogWrite) -> None:
        for write in writes:
            if isinstance(write, JobWrite):
                self._judge_next(job_from_wire(write.body))
        super().append(*writes)

    def _judge(self) -> None:
        """What goes out with a version was judged when it was proved."""

    def _judge_next(self, job: Job) -> None:
        """The last slice was right, so says this record: no row breaks it wherever it was to be
        looked at."""
        proved = job.step and job.steps[job.step - 1].verifies and job.phase is Phase.PUBLISHING
        if not proved or job.status is not Status.RUNNING or self.job().step == job.step:
            return
        for node in sorted((self.wanted & self.coherent) | {"m"}):
            wrong = [key for key, value in self.copies[node].rows.items() if value == BAD]
            if wrong:
                raise Harm(f"d ⊨ S: verified, yet {node} is wrong at {sorted(wrong)}")

    def begin_job(self) -> None:
        for key in range(KEYS):
            value = self.random.randrange(BAD)
            for copy in self.copies.values():
                copy.rows[key] = value
        self.ddl(CHECKED)
