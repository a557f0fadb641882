"""Sessions that write for as long as a test does something to their tables."""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from leasehold.dev.database import DevDatabase
from leasehold.model.errors import LeaseholdError
from tests.support.sql_session.sql_client import SqlClient

Turn = Callable[[SqlClient], None]
DEADLINE_S = 60.0


@contextmanager
def writing(
    database: DevDatabase,
    turns: Sequence[Turn],
    after_error: Callable[[int, SqlClient], None] = lambda _place, _client: None,
) -> Iterator[None]:
    """Each of `turns` again and again in a session of its own, on both nodes by turns. The body
    begins when each of them was done once, and they end when each was done once more, so that no
    body is too short for a writer. One that raises is rolled back, followed by `after_error` with
    its place, and comes again. All that was raised must have been serialization failures, which
    is looked at when all have ended."""
    done = threading.Event()
    errors: list[str] = []
    times = [0] * len(turns)
    changed = threading.Condition()

    def wait_for_each(wanted: list[int]) -> None:
        def met() -> bool:
            ended = not all(thread.is_alive() for thread in threads)
            return ended or all(map(operator.ge, times, wanted))

        with changed:
            assert changed.wait_for(met, DEADLINE_S), (
                f"writers have done {times} of {wanted} turns; they raised {errors}"
            )

    def write(place: int) -> None:
        client = SqlClient(database, f"r{1 + place % 2}")
        while not done.is_set():
            try:
                turns[place](client)
                with changed:
                    times[place] += 1
                    changed.notify_all()
            except LeaseholdError as error:
                errors.append(f"{error.sqlstate} {error}")
                client.session.fail()
                client.ask("rollback")
                after_error(place, client)
            except AssertionError as error:
                errors.append(f"asserted {error}")
                break
        client.session.close()

    threads = [threading.Thread(target=write, args=(place,)) for place in range(len(turns))]
    for thread in threads:
        thread.start()
    try:
        wait_for_each([1] * len(turns))
        yield
        wait_for_each([time + 1 for time in times])
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert [words for words in errors if not words.startswith("40001")] == []
