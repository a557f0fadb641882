"""Goal: every record of the log is counted that is there, whatever Faust passes over."""

from __future__ import annotations

from leasehold.dashboard.activity.log_order import PATIENCE_S, LogOrder


def test_records_in_their_order_are_all_counted() -> None:
    order = LogOrder()
    assert order.follow([5, 6, 7], 0.0) == (3, None)
    assert order.follow([8], 0.0) == (1, None)
    assert order.follow([], 0.0) == (0, None)
    assert order.follow([6, 7, 8, 9], 0.0) == (4, None), "again, as after a rebalance"
    assert (order.next, order.lost) == (10, 0)


def test_what_was_passed_over_is_read_again_once() -> None:
    order = LogOrder()
    assert order.follow([5, 6, 9, 10], 0.0) == (2, 7)
    assert order.follow([11, 12], 0.1) == (0, None), "fetched before it was asked for again"
    assert order.follow([7, 8, 9, 10, 11, 12], 0.2) == (6, None)
    assert order.follow([20], 0.3) == (0, 13), "another gap is asked for anew"
    assert order.lost == 0


def test_a_start_behind_what_was_counted_is_a_gap() -> None:
    order = LogOrder()
    order.next = 5
    assert order.follow([7], 0.0) == (0, 5)
    assert order.follow([3, 4, 5, 6, 7], 0.1) == (5, None)


def test_what_is_no_longer_there_is_not_waited_for_for_ever() -> None:
    order = LogOrder()
    assert order.follow([5, 9], 0.0) == (1, 6)
    assert order.follow([10], PATIENCE_S - 0.1) == (0, None)
    assert order.follow([10, 11], PATIENCE_S) == (2, None)
    assert (order.next, order.lost) == (12, 4)
