"""Two writers of one row, each of its own column: how often do they collide?

A transaction names the locks of the columns that it has read or writes. Under one lock each
writer's commit makes the other run again; under two locks neither notices the other.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from leasehold.adapters.os.clock import boottime_ns
from leasehold.replica.replica import Replica
from leasehold.replica.write_set import WriteSet


class Duel(NamedTuple):
    """The result of `fight`. `added`: column → committed transactions, each of which has added one
    to it."""

    added: dict[str, int]
    replays: int
    seconds: float

    @property
    def committed(self) -> int:
        return sum(self.added.values())

    @property
    def collision_rate(self) -> float:
        """Share of the runs that were in vain."""
        runs = self.committed + self.replays
        return self.replays / runs if runs else 0.0

    def __str__(self) -> str:
        return (
            f"{self.committed:,} committed and {self.replays:,} replayed in {self.seconds:.1f} s,"
            f" {self.collision_rate:.1%} of all runs collided"
        )


def fight(replica: Replica, table: str, key: Any, columns: Sequence[str], seconds: float) -> Duel:
    """Run a thread per column, each as fast as it goes. Raises what a transaction raises."""
    added = dict.fromkeys(columns, 0)
    replays = dict.fromkeys(columns, 0)
    errors: list[BaseException] = []
    end_ns = boottime_ns() + int(seconds * 1e9)

    def write(column: str) -> None:
        work = _add_one(table, key, column)
        try:
            while boottime_ns() < end_ns and not errors:
                replays[column] += replica.transact(work).attempts - 1
                added[column] += 1
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            errors.append(error)

    threads = [threading.Thread(target=write, args=(column,)) for column in columns]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return Duel(added, sum(replays.values()), seconds)


def _add_one(table: str, key: Any, column: str) -> Callable[[WriteSet], None]:
    def work(tx: WriteSet) -> None:
        row = tx.get(table, key, columns=[column])
        assert row is not None, f"{table} has no row {key!r}"
        tx.update(table, key, {column: row[column] + 1})

    return work
