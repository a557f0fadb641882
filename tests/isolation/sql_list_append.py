"""Random list-append transactions through SQL sessions: statements of several clients interleaved,
an append recomputed where COMMIT runs it again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from leasehold.model.errors import Refused
from tests.isolation.list_append import LISTS, ListAppend, Running, Step
from tests.isolation.sql_stage import SQL_NODES, SqlStage
from tests.isolation.sql_told import BEGIN
from tests.simulation.simulation import MS
from tests.simulation.stage import Stage
from tests.support.sql_session.sql_client import SqlClient

READS: Final = (
    "select items from lists where id = {0}",
    "select (select i.items from lists i where i.id = o.id) from lists o where o.id = {0}",
    "select b.items from lists a left join lists b on b.id = a.id where a.id = {0}",
    "select a.items from lists a right join lists b on b.id = a.id where b.id = {0}",
    "select items from lists o where id = {0} and exists (select from lists i where i.id = o.id)",
    "select items from lists where id in (select id from lists where id = {0})",
    "select max(b.items) from lists a full join lists b using (id) where b.id = {0} group by b.id",
)
"""The same list, read by key in each of these."""


LOCKS: Final = tuple(
    f"select n from guard where id = 1 {strength}"
    for strength in ("for update", "for share", "for no key update", "for key share of guard")
)
WRITES: Final = (
    "update guard set n = n + 1 where id = 1",
    "update guard set n = 7 where id = 1",
    "insert into guard values (1, 0) on conflict (id) do update set n = excluded.n",
    "update guard set n = n where n >= 0",
    "with w as (update guard set n = n + 1 returning 1) select count(*) from w",
)
"""What one row is locked by."""


class SqlListAppend(ListAppend):
    """`run()`, then `anomalies()`, then `close()`. `ended`: SQLSTATEs of transactions that did not
    commit. `locks`: each begins by one of these, which lock one row."""

    faults = 0.012

    def __init__(self, folder: Path, seed: int, level: str, *, locks: Sequence[str] = ()) -> None:
        self._folder = folder
        self._locks = locks
        super().__init__(seed, level)
        self.ended: list[str] = []
        self.crashes = self._asked = 0
        self.sql_stage.repeats = 0.25
        rows = ", ".join(f"({number}, '')" for number in range(LISTS))
        self.sql_stage.ask_sql("r1", f"insert into lists values {rows}")
        if locks:
            self.sql_stage.ask_sql("r1", "create table guard (id int primary key, n int)")
            self.sql_stage.ask_sql("r1", "insert into guard values (1, 0)")

    def _made_stage(self) -> Stage:
        self.sql_stage = SqlStage(self._folder)
        return self.sql_stage

    def _fault(self) -> None:
        """The master crashes, too, with what it has not told yet."""
        master = self.stage.master
        if master is None or self._rng.random() < 0.5:
            super()._fault()
            return
        name = master.settings.name
        master.crash()
        self.crashes += 1
        back_ms = self._rng.choice((30, 300, 1_500))
        self.stage.scheduler.later(back_ms * MS, lambda: self.stage.restart(name))

    def _step(self, client: Running) -> None:
        tx: Any = client.tx
        try:
            if tx is None:
                tx = SqlClient(self.sql_stage, client.node)
                client.tx = tx
                tx.ask(BEGIN[self.isolation.level])
                if self._locks:
                    tx.ask(self._locks[client.told.number % len(self._locks)])
            elif client.done < len(client.steps):
                self._said(client, tx, client.steps[client.done])
                client.done += 1
            else:
                tx.ask("commit")
                self._close(client, committed=True)
        except Refused as error:
            self.ended.append(error.sqlstate)
            self._close(client, committed=False)
            self.stage.passing(20)

    def _said(self, client: Running, tx: SqlClient, step: Step) -> None:
        what, number, value = step
        if what == "append":
            tx.ask(f"update lists set items = items || ',{value}' where id = {number}")
            client.told.appends.append((number, value))
            return
        own = {v for n, v in client.told.appends if n == number}
        self._asked += 1
        shape = READS[self._asked % len(READS)]
        found = tx.ask(shape.format(number))[0][0]
        if self.isolation.own_writes or not own:
            client.told.reads.append((number, items_of(found)))

    def _close(self, client: Running, *, committed: bool) -> None:
        tx: Any = client.tx
        tx.session.close()
        self._end(client, committed=committed)

    def final(self) -> dict[int, tuple[int, ...]]:
        self.stage.passing(200)
        rows = [
            self.sql_stage.ask_sql(node, "select id, items from lists order by id")
            for node in SQL_NODES
        ]
        assert rows[0] == rows[1], "replicas hold the same"
        return {number: items_of(items) for number, items in rows[0]}

    def close(self) -> None:
        self.sql_stage.close()


def items_of(text: str) -> tuple[int, ...]:
    return tuple(int(item) for item in text.split(",") if item)
