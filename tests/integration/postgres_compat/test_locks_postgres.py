"""Goal: what two sessions that lock rows (SELECT … FOR UPDATE), or change one for a lock, do
between them is, in the end, what PostgreSQL makes of it: one after the other.

Method: the same two applications on each server. The second one locks while the first one is in the
middle: PostgreSQL lets it wait, here it goes on as far as it can before the first one commits, and
runs its block anew where it is told 40001, as applications do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

import psycopg
import pytest

from tests.support.postgres.client_server import Server

pytestmark = pytest.mark.integration

WAIT_S: Final = 30.0
TRIES: Final = 5
Connection = psycopg.Connection[Any]
Work = Callable[[Connection, Callable[[], None]], None]
"""A block without BEGIN and COMMIT; calls what it is given between what it reads and writes."""

TABLES: Final = (
    "create table study (id int primary key, state text)",
    "create table trial (id serial primary key, study int, number int)",
    "create table doctor (id int primary key, shift int, on_call boolean)",
    "insert into study values (1, 'open')",
    "insert into doctor values (1, 1, true), (2, 1, true)",
)


def one_value(connection: Connection, text: str, *values: Any) -> Any:
    found = connection.execute(text.encode(), values).fetchone()
    return None if found is None else found[0]


def add_trial(strength: str) -> Work:
    """Take the next number of a study, if that is open."""

    def work(connection: Connection, pause: Callable[[], None]) -> None:
        state = one_value(connection, f"select state from study where id = 1 for {strength}")
        number = one_value(connection, "select count(*) from trial where study = 1")
        pause()
        if state == "open":
            text = "insert into trial (study, number) values (1, %s)"
            connection.execute(text.encode(), (number + 1,))

    return work


CHANGES: Final = {
    "computed at commit": "update study set state = state || '' where id = 1",
    "constant": "update study set state = 'open' where id = 1",
    "upsert": "insert into study values (1, 'open') on conflict (id) do update set state = 'open'",
}


def add_trial_behind(change: str) -> Work:
    """Take the next number of a study, behind a change of a row that others would wait for."""

    def work(connection: Connection, pause: Callable[[], None]) -> None:
        connection.execute(change.encode())
        number = one_value(connection, "select count(*) from trial where study = 1")
        pause()
        text = "insert into trial (study, number) values (1, %s)"
        connection.execute(text.encode(), (number + 1,))

    return work


def add_counted(connection: Connection, pause: Callable[[], None]) -> None:
    """Let the statement that writes count what is there."""
    connection.execute(CHANGES["computed at commit"].encode())
    connection.execute(
        b"insert into trial (study, number) select 1, count(*) + 1 from trial where study = 1"
    )
    pause()


def add_if_new(connection: Connection, pause: Callable[[], None]) -> None:
    """Change what is not there yet for the one that comes second."""
    connection.execute(CHANGES["computed at commit"].encode())
    text = b"update trial set number = number + 1 where study = 1"
    found = connection.execute(text).rowcount
    pause()
    if not found:
        connection.execute(b"insert into trial (study, number) values (1, 1)")


def add_named(connection: Connection, pause: Callable[[], None]) -> None:
    """Change a row, or insert it under a key that the application chooses, if it was not found."""
    connection.execute(CHANGES["constant"].encode())
    found = connection.execute(b"update trial set number = number + 1 where id = 7").rowcount
    pause()
    if not found:
        connection.execute(b"insert into trial values (7, 1, 1)")


def close_study(strength: str) -> Work:
    """Write into another table that a study is closed without a trial, or with some."""

    def work(connection: Connection, pause: Callable[[], None]) -> None:
        connection.execute(f"select from study where id = 1 for {strength}".encode())
        number = one_value(connection, "select count(*) from trial where study = 1")
        pause()
        connection.execute(b"insert into doctor values (%s, 9, false)", (100 + number,))

    return work


def leave(doctor: int) -> Work:
    """Let a doctor go where another one stays: all rows are locked, and one changes."""

    def work(connection: Connection, pause: Callable[[], None]) -> None:
        text = b"select on_call from doctor where shift = 1 order by id for update"
        staying = sum(on_call for (on_call,) in connection.execute(text).fetchall())
        pause()
        if staying > 1:
            connection.execute(b"update doctor set on_call = false where id = %s", (doctor,))

    return work


STORIES: Final[dict[str, tuple[Work, Work]]] = {
    "two numbers": (add_trial("update"), add_trial("update")),
    "two numbers, keys left alone": (add_trial("no key update"), add_trial("no key update")),
    "two doctors": (leave(1), leave(2)),
    "a share first": (add_trial("share"), close_study("update")),
    "a share behind": (close_study("update"), add_trial("share")),
    "a key share first": (add_trial("key share"), close_study("update")),
    "a key share behind": (close_study("update"), add_trial("key share")),
    **{
        f"two numbers, {name}": (add_trial_behind(change), add_trial_behind(change))
        for name, change in CHANGES.items()
    },
    "a change behind a lock": (add_trial("update"), add_trial_behind(CHANGES["constant"])),
    "a lock behind a change": (add_trial_behind(CHANGES["constant"]), add_trial("update")),
    "a number that a statement counts": (add_counted, add_counted),
    "a row that is not found": (add_if_new, add_if_new),
    "a key that is not found": (add_named, add_named),
}


READ_THE_SAME: Final = (
    "a share behind",
    "a key share behind",
    "a number that a statement counts",
)


@dataclass
class Session:
    """A block, and what became of it. `refused`: how often it was told 40001."""

    server: Server
    work: Work
    paused: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    refused: int = 0
    process: int = 0

    def run(self, pause: Callable[[], None]) -> None:
        try:
            with self.server.psycopg(autocommit=True) as connection:
                self.process = connection.info.backend_pid
                self._run(connection, pause)
        finally:
            self.ended.set()

    def _run(self, connection: Connection, pause: Callable[[], None]) -> None:
        def first_time() -> None:
            if not self.paused.is_set():
                self.paused.set()
                pause()

        for _ in range(TRIES):
            connection.execute(b"begin")
            try:
                self.work(connection, first_time)
                connection.execute(b"commit")
                return
            except psycopg.errors.SerializationFailure:
                self.refused += 1
                connection.execute(b"rollback")
        raise AssertionError("it was refused too often")


def run_both(server: Server, first: Work, second: Work) -> tuple[list[Any], int]:
    """Return what is there in the end, and how often one was refused."""
    with server.psycopg(autocommit=True) as watcher, ThreadPoolExecutor(1) as pool:
        for text in TABLES:
            watcher.execute(text.encode())
        one, other = Session(server, first), Session(server, second)
        running: list[Future[None]] = []
        is_theirs = server.kind == "postgresql"

        def until_the_other_is_in_it() -> None:
            running.append(pool.submit(other.run, until_the_first_has_ended))
            deadline = time.monotonic() + WAIT_S
            waits = b"select 1 from pg_locks where not granted and pid = %s"
            while not other.paused.wait(0.01):
                assert time.monotonic() < deadline
                if other.ended.is_set():
                    return
                if is_theirs and watcher.execute(waits, (other.process,)).rowcount:
                    return

        def until_the_first_has_ended() -> None:
            assert one.ended.wait(WAIT_S)

        one.run(until_the_other_is_in_it)
        running[0].result(WAIT_S)
        found = [
            watcher.execute(text).fetchall()
            for text in (
                b"select study, number from trial order by 1, 2",
                b"select * from doctor order by 1",
                b"select * from study",
            )
        ]
        watcher.execute(b"drop table study, trial, doctor")
    return found, one.refused + other.refused


@pytest.mark.parametrize("name", STORIES)
def test_two_that_lock_a_row_do_it_one_after_the_other(
    servers: tuple[Server, Server], name: str
) -> None:
    """Refused is who would have read something else; who reads the same runs again by itself."""
    (mine, refused), (theirs, waited) = (run_both(server, *STORIES[name]) for server in servers)
    assert mine == theirs
    assert (refused, waited) == (name not in READ_THE_SAME, 0)
