"""Jepsen's workloads for Comdb2 (scenario 37): what clients do, and what must not come of it.

Each says its own promise. Where a level promises less its clients do less (a bank whose clients
write what they have computed needs a level that notices; otherwise SQL computes it), or the check
is for the levels from which on it holds.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from itertools import permutations
from typing import Any, Final

from leasehold.transaction.isolation import Isolation
from tests.isolation.crowd import Attempt, StatementBatch
from tests.isolation.cycles import Transaction, anomalies

Rows = Callable[[str], list[Any]]
Each = list[Attempt]


class Bank:
    """Transfers keep the total; nobody sees another one, or a debt."""

    accounts: Final = 4
    total: Final = 400

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._isolation = isolation
        self._chance = chance
        rows = ", ".join(f"({number}, 100)" for number in range(self.accounts))
        self.setup = (
            "create table bank (id bigint primary key, balance bigint not null);"
            f" insert into bank values {rows}"
        )

    def script(self, attempt: Attempt) -> StatementBatch:
        chance = self._chance
        way = chance.choice(("all", "each", "computed", "computed", "written", "written"))
        if way == "all":
            attempt.seen["rows"] = (yield "select id, balance from bank").rows
            return True
        if way == "each":
            seen = []
            for number in chance.sample(range(self.accounts), self.accounts):
                seen += (yield f"select id, balance from bank where id = {number}").rows
            attempt.seen["one by one"] = seen
            return True
        source, target = chance.sample(range(self.accounts), 2)
        many = chance.randrange(1, 40)
        if way == "computed":
            taken = yield (
                f"update bank set balance = balance - {many} where id = {source}"
                f" and balance >= {many}"
            )
            if not taken.rowcount:
                return False
            yield f"update bank set balance = balance + {many} where id = {target}"
            return True
        # Below snapshot what was read is verified where it is said.
        select = "select" if self._isolation.one_snapshot else "selectv"
        found = (yield f"{select} id, balance from bank where id in ({source}, {target})").rows
        balances = dict(found)
        if balances[source] < many:
            return False
        yield f"update bank set balance = {balances[source] - many} where id = {source}"
        yield f"update bank set balance = {balances[target] + many} where id = {target}"
        return True

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        shown = [(f"transaction {each.number}", each.seen.get("rows")) for each in attempts]
        if self._isolation.one_snapshot:
            shown += [(f"{each.number}, slowly", each.seen.get("one by one")) for each in attempts]
        shown.append(("the end", rows("select id, balance from bank order by id")))
        return [
            f"{where}: {found}"
            for where, found in shown
            if found is not None
            and (sum(b for _, b in found) != self.total or any(b < 0 for _, b in found))
        ]


class Register:
    """Reads, writes and compare-and-set of single values are linearizable. `items` keeps which
    values there were, in order, so that the checker of cycles judges the rest."""

    keys: Final = 2

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._chance = chance
        self._values = 0
        self._known = dict.fromkeys(range(self.keys), 0)
        rows = ", ".join(f"({key}, 0, '')" for key in range(self.keys))
        self.setup = (
            "create table register (id bigint primary key, value bigint not null, items text);"
            f" insert into register values {rows}"
        )

    def script(self, attempt: Attempt) -> StatementBatch:
        key = self._chance.randrange(self.keys)
        way = self._chance.choice(("read", "read", "write", "cas"))
        attempt.seen["key"] = key
        if way == "read":
            value = (yield f"select value from register where id = {key}").rows[0][0]
            self._known[key] = attempt.seen["read"] = value
            return True
        self._values += 1
        value, old = self._values, self._known[key]
        attempt.seen["wrote"] = value
        if way == "write":
            done = yield self._set(key, value)
        else:
            done = yield f"{self._set(key, value)} and value = {old}"
            if done.rowcount:
                attempt.seen["read"] = old
        return bool(done.rowcount)

    def _set(self, key: int, value: int) -> str:
        return f"update register set value = {value}, items = items || ',{value}' where id = {key}"

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        found = rows("select id, items from register order by id")
        final = {key: tuple(int(v) for v in items.split(",") if v) for key, items in found}
        history = []
        for each in attempts:
            told = Transaction(each.number, [], [], each.committed, each.begun, each.ended)
            key = each.seen["key"]
            if "wrote" in each.seen:
                told.appends.append((key, each.seen["wrote"]))
            if "read" in each.seen:
                told.reads.append((key, _up_to(final[key], each.seen["read"])))
            history.append(told)
        return sorted(anomalies(history, final, real_time=True))


def _up_to(values: tuple[int, ...], last: int) -> tuple[int, ...]:
    """What was there when `last` was the newest; 0 = nothing yet."""
    if not last:
        return ()
    return values[: values.index(last) + 1] if last in values else (last,)


class Sets:
    """What was acknowledged is there, in every later read too; what was refused never is."""

    setup = "create table sets (id bigint primary key)"

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._chance = chance
        self._values = 0

    def script(self, attempt: Attempt) -> StatementBatch:
        if self._chance.random() < 0.3:
            attempt.seen["begun"] = attempt.begun
            attempt.seen["read"] = [v for (v,) in (yield "select id from sets").rows]
            return True
        values = list(range(self._values, self._values + self._chance.choice((1, 1, 3))))
        self._values += len(values)
        attempt.seen["added"] = values
        rows = ", ".join(f"({value})" for value in values)
        yield f"insert into sets values {rows}"
        return True

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        added = [each for each in attempts if "added" in each.seen]
        found: list[str] = []
        end = Attempt(-1, 1 << 60, seen={"read": [v for (v,) in rows("select id from sets")]})
        for reader in (*(each for each in attempts if "read" in each.seen), end):
            seen = set(reader.seen["read"])
            if len(seen) != len(reader.seen["read"]):
                found.append(f"{reader} shows a value twice")
            for each in added:
                values = set(each.seen["added"])
                if each.committed and each.ended < reader.begun and not values <= seen:
                    found.append(f"{reader} lacks {values - seen}, acknowledged before")
                if values & seen and not values <= seen:
                    found.append(f"{reader} shows a part of {values}")
                if values & seen and not each.committed:
                    found.append(f"{reader} shows {values & seen}, which was refused")
        return found


class DirtyReads:
    """Nobody sees what was never committed, or what one transaction overwrote itself."""

    rows: Final = 4

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._isolation = isolation
        self._chance = chance
        self._values = 0
        rows = ", ".join(f"({number}, -1)" for number in range(self.rows))
        self.setup = (
            "create table dirty (id bigint primary key, value bigint not null);"
            f" insert into dirty values {rows}"
        )

    def script(self, attempt: Attempt) -> StatementBatch:
        if self._chance.random() < 0.4:
            attempt.seen["read"] = [v for (v,) in (yield "select value from dirty").rows]
            return True
        first, last = self._values, self._values + 1
        self._values += 2
        attempt.seen["wrote"] = last
        # Who does not see his own writes writes no row twice.
        for value in (first, last) if self._isolation.own_writes else (last,):
            for number in self._chance.sample(range(self.rows), self.rows):
                yield f"update dirty set value = {value} where id = {number}"
        return self._chance.random() < 0.6

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        lasting = {
            each.seen["wrote"] for each in attempts if each.committed and "wrote" in each.seen
        }
        shown = [(f"transaction {each.number}", each.seen.get("read", ())) for each in attempts]
        shown.append(("the end", [v for (v,) in rows("select value from dirty order by id")]))
        return [
            f"{where} shows {set(values) - lasting - {-1}}"
            for where, values in shown
            if not set(values) <= lasting | {-1}
        ]


class AtomicWrites(DirtyReads):
    """All rows of a transaction are there at once: a statement never sees a mixture, and from
    snapshot up a transaction does not either."""

    def script(self, attempt: Attempt) -> StatementBatch:
        way = self._chance.random()
        if way < 0.2:
            seen = []
            for number in self._chance.sample(range(self.rows), self.rows):
                found = yield f"select value from dirty where id = {number}"
                seen.append(found.rows[0][0])
            attempt.seen["one by one"] = seen
            return True
        if way < 0.4:
            found = yield (
                "select a.value from dirty a join dirty b on a.value = b.value group by a.value"
            )
            attempt.seen["together"] = [v for (v,) in found.rows]
            return True
        return (yield from super().script(attempt))

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        kinds = ("read", "together", *(("one by one",) if self._isolation.one_snapshot else ()))
        shown = [(each.number, each.seen[k]) for each in attempts for k in kinds if k in each.seen]
        shown.append((-1, [v for (v,) in rows("select value from dirty order by id")]))
        return [f"{number} shows {values}" for number, values in shown if len(set(values)) > 1]


class A6:
    """The anomaly of a transaction that only reads: a deposit, a withdrawal that costs one more
    where both accounts together do not cover it, and somebody who looks. What they saw and left
    must be so in some order of theirs. `account` 1: savings, 0: checking."""

    pairs: Final = 12

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._chance = chance
        roles = ("withdraw", "deposit", "look", "look")
        self._turns = iter([(pair, role) for pair in range(self.pairs) for role in roles])
        rows = ", ".join(f"({2 * n + a}, {n}, {a}, 0)" for n in range(self.pairs) for a in (0, 1))
        self.setup = (
            "create table a6 (id bigint primary key, pair bigint, account bigint, value bigint);"
            f" create index a6_pair on a6 (pair); insert into a6 values {rows}"
        )

    def script(self, attempt: Attempt) -> StatementBatch:
        pair, role = self._turn()
        attempt.seen |= {"pair": pair, "role": role}
        found = (yield f"select account, value from a6 where pair = {pair}").rows
        values = dict(found)
        if role == "look":
            attempt.seen["read"] = (values[0], values[1])
            return True
        account, value = _left(role, values[0], values[1])
        where = f"pair = {pair} and account = {account}"
        return bool((yield f"update a6 set value = {value} where {where}").rowcount)

    def _turn(self) -> tuple[int, str]:
        """Those of one pair come one after the other, so that they are under way together. When
        each pair has had its turn, there is nothing but looking."""
        turn = next(self._turns, None)
        return turn or (self._chance.randrange(self.pairs), "look")

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        final: dict[int, dict[int, int]] = defaultdict(dict)
        for pair, account, value in rows("select pair, account, value from a6 order by id"):
            final[pair][account] = value
        by_pair: dict[int, Each] = defaultdict(list)
        for each in attempts:
            if each.committed:
                by_pair[each.seen["pair"]].append(each)
        return [
            f"pair {pair}: {final[pair]}, {[each.seen for each in those]}"
            for pair, those in by_pair.items()
            if not _in_some_order(those, (final[pair][0], final[pair][1]))
        ]


def _left(role: str, checking: int, savings: int) -> tuple[int, int]:
    """(account, value)."""
    if role == "deposit":
        return 1, savings + 20
    return 0, checking - 10 - (checking + savings < 10)


def _in_some_order(attempts: Each, final: tuple[int, int]) -> bool:
    def fits(order: tuple[Attempt, ...]) -> bool:
        values = [0, 0]
        for each in order:
            if each.seen["role"] == "look":
                if each.seen["read"] != tuple(values):
                    return False
            else:
                account, value = _left(each.seen["role"], values[0], values[1])
                values[account] = value
        return tuple(values) == final

    return any(fits(order) for order in permutations(attempts))


class G2:
    """Two look whether there is a row for a key, and each makes one elsewhere if there is none: of
    each pair one commits."""

    def __init__(self, isolation: Isolation, chance: random.Random) -> None:
        self._chance = chance
        self._turns = 0
        table = "(id bigint primary key, key bigint, value bigint)"
        self.setup = f"create table g2a {table}; create table g2b {table}"

    def script(self, attempt: Attempt) -> StatementBatch:
        key, own = divmod(self._turns, 2)
        self._turns += 1
        number = self._turns
        for table in self._chance.sample(("g2a", "g2b"), 2):
            found = yield f"select id from {table} where key = {key} and value % 3 = 0"
            if found.rows:
                return False
        attempt.seen["key"] = key
        yield f"insert into {('g2a', 'g2b')[own]} values ({number}, {key}, 30)"
        return True

    def wrong(self, attempts: Each, rows: Rows) -> list[str]:
        text = "select key, id from g2a union all select key, id from g2b order by key, id"
        made: dict[int, list[int]] = defaultdict(list)
        for key, number in rows(text):
            made[key].append(number)
        committed = sum(each.committed for each in attempts if "key" in each.seen)
        found = (
            [f"{committed} commits, {made}"] if committed != sum(map(len, made.values())) else []
        )
        return found + [f"key {key}: {both}" for key, both in made.items() if len(both) > 1]
