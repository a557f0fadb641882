"""Clients of the in-memory system, each on a replica of its choice, one statement at a time.

What a statement gives is an answer that its client has seen: so replays follow T2. With `answered`
off the statements stand for a function that runs inside the replica, which nobody has heard of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from leasehold.adapters.codec.request_encoding import encode_request
from leasehold.model.errors import Refused, SnapshotTooOld, StaleVersion, VerifyError, refused
from leasehold.model.records.requests import OnConflict, Outcome
from leasehold.replica.as_of import snapshot_lsn_of
from leasehold.replica.reads import Reads
from leasehold.replica.write_set import WriteSet
from leasehold.transaction.isolation import Isolation, chosen
from leasehold.transaction.replay_comparison import Answer, Told, contradiction
from leasehold.values.dates import AsOf
from tests.simulation.stage import ASKER, Stage

REPLAYS_MAX: Final = 10
Row = dict[str, Any]
Where = Callable[[Row], bool]
Statement = Callable[[WriteSet], Answer]


class Session:
    """One transaction, which begins with its first statement or with `begin`. `replays`: how often
    it ran again."""

    def __init__(
        self,
        stage: Stage,
        node: str,
        isolation: str,
        *,
        as_of: AsOf | None = None,
        verify_retry: bool = True,
        answered: bool = True,
        table: str = "test",
    ) -> None:
        self._stage = stage
        self._node = stage.node(node)
        self._as_of = as_of
        self.isolation: Isolation = chosen(isolation, past=as_of is not None)
        self._run_again = self.isolation.replays and verify_retry
        self._answered = answered
        self._table = table
        self._statements: list[Statement] = []
        self.answers: list[Answer] = []
        self.replays = 0
        self.outcome: Outcome | None = None
        self.tx: WriteSet | None = None

    # ------------------------------------------------------------ statements

    def begin(self) -> Session:
        self.tx = self._begun()
        return self

    def _begun(self) -> WriteSet:
        node = self._node
        snapshot_lsn = snapshot_lsn_of(
            self.isolation,
            self._as_of,
            node.store,  # type: ignore[arg-type]
            node.reads,
            self._pass_barrier,
            self._stage.comes_true,
            node.now().wall_us,
        )
        reads = Reads(node.store, node.reads, None, lambda: None, snapshot_lsn=snapshot_lsn)  # type: ignore[arg-type]
        return WriteSet(reads, self.isolation)

    def _pass_barrier(self) -> None:
        self._stage.pass_barrier(self._node)

    def run(self, statement: Statement) -> Any:
        if self.tx is None:
            self.begin()
        assert self.tx is not None
        answer = statement(self.tx)
        self._statements.append(statement)
        self.answers.append(answer)
        return answer.value

    def get(self, key: int, *, selectv: bool = False) -> Any:
        """The row's value, None where there is no row."""
        told = Told.VISITED if selectv else Told.SELECTED

        def statement(tx: WriteSet) -> Answer:
            row = tx.get(self._table, key, selectv=selectv)
            return Answer(told, [] if row is None else [row["value"]])

        found = self.run(statement)
        return found[0] if found else None

    def select(self, where: Where = lambda _: True, *, selectv: bool = False) -> dict[int, Any]:
        """id → value of rows for which it is true."""
        told = Told.VISITED if selectv else Told.SELECTED

        def statement(tx: WriteSet) -> Answer:
            rows = tx.scan(self._table, selectv=selectv)
            return Answer(told, [(r["id"], r["value"]) for r in rows if where(r)])

        return dict(self.run(statement))

    def update(self, change: Callable[[Row], Any], where: Where = lambda _: True) -> int:
        def statement(tx: WriteSet) -> Answer:
            rows = [row for row in tx.scan(self._table) if where(row)]
            done = [tx.update(self._table, row["id"], {"value": change(row)}) for row in rows]
            return Answer(Told.COUNT, sum(done))

        count: int = self.run(statement)
        return count

    def put(self, key: int, value: Any) -> int:
        """UPDATE … SET value = … WHERE id = …"""

        def statement(tx: WriteSet) -> Answer:
            return Answer(Told.COUNT, int(tx.update(self._table, key, {"value": value})))

        count: int = self.run(statement)
        return count

    def insert(self, key: int, value: Any) -> None:
        def statement(tx: WriteSet) -> Answer:
            tx.insert(self._table, key, {"value": value})
            return Answer(Told.COUNT, 1)

        self.run(statement)

    def delete(self, where: Where) -> int:
        def statement(tx: WriteSet) -> Answer:
            rows = [row for row in tx.scan(self._table) if where(row)]
            return Answer(Told.COUNT, sum(tx.delete(self._table, row["id"]) for row in rows))

        count: int = self.run(statement)
        return count

    # ------------------------------------------------------------ its end

    def abort(self) -> None:
        self.tx = None

    def commit(self) -> Outcome | None:
        """None: nothing was written. Raises the Refused that it ends with."""
        request_id = self._stage.cluster.fresh_id()
        submitted = 0
        while True:
            again: Refused
            try:
                if self.tx is None:
                    self._replay()
                assert self.tx is not None
                outcome = self._submitted(request_id, submitted + 1)
                if outcome is None or outcome.lsn:
                    self.outcome = outcome
                    return outcome
                submitted = outcome.attempt
                again = refused(outcome.code, outcome.message, outcome.detail)
                if outcome.final:
                    raise again
            except (StaleVersion, SnapshotTooOld) as error:
                again = error
            if not self._run_again or self.replays >= REPLAYS_MAX:
                raise again
            self.tx = None

    def _replay(self) -> None:
        self.replays += 1
        self.tx = self._begun()
        answers = [statement(self.tx) for statement in self._statements]
        if self._answered:
            words = contradiction(self.isolation, self.answers, answers)
            if words:
                raise VerifyError(words)
        self.answers = answers

    def _submitted(self, request_id: bytes, attempt: int) -> Outcome | None:
        assert self.tx is not None
        on_conflict = OnConflict.REPLAY if self._run_again else OnConflict.FAIL
        request = self.tx.request(request_id, attempt, on_conflict)
        if request is None:
            return None
        sent = encode_request(request._replace(reply_to=ASKER))
        self._stage.cluster.put(*sent)

        def answered() -> bool:
            given = self._stage.results.get(request_id, [])
            return any(o.lsn or o.final or o.attempt == attempt for o in given)

        self._stage.until(answered, f"an answer to {request_id.hex()}", "L7")
        given = self._stage.results[request_id]
        return next(o for o in given if o.lsn or o.final or o.attempt == attempt)
