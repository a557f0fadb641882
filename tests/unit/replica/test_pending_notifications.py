"""What a transaction is going to tell: folded, taken back with savepoints, told anew when it runs
again, and limited."""

from __future__ import annotations

import pytest

from leasehold.model.budget import UNBOUNDED_BYTES, Budget
from leasehold.model.errors import InvalidArgument, RequestTooLarge
from leasehold.model.records.notifications import (
    NOTIFICATIONS_BYTES_MAX,
    NOTIFICATIONS_MAX,
    Notification,
)
from leasehold.replica.pending_notifications import PendingNotifications, checked_notification


def made(*told: tuple[int, str]) -> PendingNotifications:
    pending = PendingNotifications(Budget(UNBOUNDED_BYTES))
    for position, payload in told:
        pending.add(position, Notification("c", payload))
    return pending


def payloads(pending: PendingNotifications) -> list[str]:
    found = pending.of_session("r1", 7)
    return [] if found is None else [each.payload for each in found.sent]


def test_each_is_told_once_in_the_order_of_the_first() -> None:
    pending = made((1, "b"), (1, "a"), (2, "b"), (2, "c"), (3, "a"))
    assert payloads(pending) == ["b", "a", "c"]
    found = pending.of_session("r1", 7)
    assert found is not None
    assert (found.node, found.process) == ("r1", 7)
    assert made().of_session("r1", 7) is None
    assert not made()


def test_a_savepoint_takes_back_what_was_told_since() -> None:
    pending = made((1, "a"))
    mark = pending.mark()
    pending.add(2, Notification("c", "b"))
    deeper = pending.mark()
    pending.add(3, Notification("c", "d"))
    pending.back_to(deeper)
    assert payloads(pending) == ["a", "b"]
    pending.back_to(mark)
    assert payloads(pending) == ["a"]
    pending.back_to(mark)
    assert payloads(pending) == ["a"], "a savepoint may be gone back to again"
    empty = made()
    mark = empty.mark()
    empty.add(1, Notification("c", "a"))
    empty.back_to(mark)
    assert not empty


def test_a_statement_that_runs_again_tells_anew_in_its_place() -> None:
    """What others have told stays, what was told twice, too."""
    first = made((1, "a"), (2, "old"), (3, "b"), (4, "old"))
    running = made()
    running.take_over(first)
    running.begin_statement(2)
    running.add(2, Notification("c", "new"))
    assert payloads(running) == ["a", "new", "b", "old"]
    assert payloads(first) == ["a", "old", "b"], "the first run may be compared with another one"


def test_a_statement_that_is_taken_back_when_it_runs_again_tells_nothing() -> None:
    first = made((1, "a"), (4, "z"))
    running = made()
    running.take_over(first)
    mark = running.mark()
    running.begin_statement(3)
    running.add(3, Notification("c", "taken back"))
    running.back_to(mark)
    assert payloads(running) == ["a", "z"]


def test_a_transaction_tells_so_many_and_no_more() -> None:
    pending = made(*((1, str(number)) for number in range(NOTIFICATIONS_MAX)))
    pending.add(1, Notification("c", "7"))  # it has told that
    with pytest.raises(RequestTooLarge, match="at most 10000 notifications"):
        pending.add(2, Notification("c", "7"))
    pending.begin_statement(1)
    assert not pending
    pending.add(2, Notification("c", "7"))


def test_a_transaction_tells_so_many_bytes_and_no_more() -> None:
    pending = made()
    count = NOTIFICATIONS_BYTES_MAX // Notification("c", "x" * 7_000).size
    for number in range(count):
        pending.add(1, Notification("c", f"{number:07000}"))
    with pytest.raises(RequestTooLarge, match="2048 KiB"):
        pending.add(1, Notification("c", "x" * 7_000))


def test_what_is_held_is_given_back() -> None:
    budget = Budget(UNBOUNDED_BYTES)
    pending = PendingNotifications(budget)
    mark = pending.mark()
    pending.add(1, Notification("c", "x" * 5_000))
    held = budget.held
    pending.back_to(mark)
    assert budget.held < held
    assert budget.held == 0


@pytest.mark.parametrize(
    ("channel", "payload", "words"),
    [
        ("", "x", "channel name cannot be empty"),
        ("c" * 64, "x", "channel name too long"),
        ("é" * 32, "x", "channel name too long"),
        ("c", "x" * 8_000, "payload string too long"),
        ("c", "é" * 4_000, "payload string too long"),
    ],
)
def test_names_and_payloads_are_as_long_as_postgresqls(
    channel: str, payload: str, words: str
) -> None:
    with pytest.raises(InvalidArgument, match=words):
        checked_notification(channel, payload)
    assert checked_notification("c" * 63, "x" * 7_999) == ("c" * 63, "x" * 7_999)
