"""The next attempt of a refused request: L5, T2, R1."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    Expression,
    OnConflict,
    Operation,
    OperationKind,
)
from leasehold.transaction.retry import (
    ATTEMPTS_MAX,
    BACKOFF_BASE_MS,
    BACKOFF_MAX_MS,
    backoff_ms,
    is_recomputed,
    recompute,
)
from leasehold.values.types import Type


def update(key: Any, expect: int | None, **more: Any) -> Operation:
    return Operation(
        OperationKind.UPDATE, "t", key, {"seats": Expression("seats - 1")}, expect, **more
    )


def request(*operations: Operation, attempt: int = 1, **more: Any) -> ChangeRequest:
    return ChangeRequest(b"x" * 16, operations, attempt=attempt, **more)


def image(*key: Any, genids: dict[int, int] | None = None) -> RowImage:
    return RowImage(1, key, genids or {0: 900}, 3, 1, 0, {})


def test_l5_attempt_is_counted_up_and_the_row_is_expected() -> None:
    refused = request(update({"id": 7}, 100))
    again = recompute(refused, image(7))
    assert again == refused._replace(attempt=2, operations=(update({"id": 7}, ANY_GENID),))


def test_expression_stays_an_expression() -> None:
    again = recompute(request(update({"id": 7}, 100)), image(7))
    assert again.operations[0].values == {"seats": Expression("seats - 1")}


def test_a_hot_row_does_not_use_the_attempts_up() -> None:
    """Whatever changed it meanwhile: nothing of the request depends on the image."""
    again = recompute(request(update({"id": 7}, 100)), image(7, genids={0: 5, 1: 901}))
    assert again.operations[0].expect == ANY_GENID


def test_l5_replay_carries_no_old_version_pin() -> None:
    pinned = request(update({"id": 7}, 100, schema_version=3), used={"u": 2})
    again = recompute(pinned, image(7))
    assert again.operations[0].schema_version is None
    assert again.used == {}


def test_stale_version_without_an_image_is_replayed_without_the_pin() -> None:
    again = recompute(request(update({"id": 7}, 100, schema_version=3)), None)
    assert not again.give_up
    assert again.operations[0] == update({"id": 7}, 100)
    assert not recompute(request(update({"id": 7}, None), used={"u": 2}), None).give_up


CONSTANT = update({"id": 7}, 100)._replace(values={"seats": 9})
MIXED = update({"id": 7}, 100)._replace(values={"seats": Expression("seats - 1"), "by": "me"})
DELETE = Operation(OperationKind.DELETE, "t", {"id": 7}, {}, 100)
GUARD = update({"id": 7}, 100)._replace(values={})


@pytest.mark.parametrize("resting", [CONSTANT, MIXED, DELETE, GUARD])
def test_t1_what_rests_on_the_row_as_it_was_is_given_up(resting: Operation) -> None:
    """Whichever operation of the request was refused: the whole may rest on that row."""
    assert recompute(request(resting), image(7)).give_up
    other = update({"id": 8}, 200)
    assert recompute(request(resting, other), image(8)).give_up
    assert not is_recomputed(request(other, resting))


def test_who_says_nothing_of_what_the_row_was_is_recomputed() -> None:
    for expect in (None, ANY_GENID):
        operations = [each._replace(expect=expect) for each in (CONSTANT, MIXED, DELETE, GUARD)]
        assert is_recomputed(request(*operations))
    assert is_recomputed(request(CONSTANT._replace(kind=OperationKind.INSERT)))


def test_a_pin_that_was_too_old_is_dropped_and_the_row_is_still_the_one_that_was_seen() -> None:
    again = recompute(request(CONSTANT._replace(schema_version=3)), None)
    assert (again.operations, again.give_up) == ((CONSTANT,), False)


def test_row_that_is_gone_is_final() -> None:
    again = recompute(request(update({"id": 7}, 100)), None)
    assert again.give_up
    assert again.attempt == 2


def test_l5_giving_up_is_the_attempt_after_the_last() -> None:
    last_but_one = request(update({"id": 7}, 100), attempt=ATTEMPTS_MAX - 1)
    last = recompute(last_but_one, image(7))
    assert (last.attempt, last.give_up) == (ATTEMPTS_MAX, False)
    over = recompute(last, image(7))
    assert (over.attempt, over.give_up) == (ATTEMPTS_MAX + 1, True)
    assert recompute(request(update({"id": 7}, 1)), image(7), attempts_max=1).give_up


def test_only_the_refused_operation_of_a_transaction_expects_anew() -> None:
    first, second = update({"id": 7}, 100), update({"id": 8}, 200)
    again = recompute(request(first, second), image(8))
    assert [operation.expect for operation in again.operations] == [100, ANY_GENID]


def test_operation_without_expect_gets_none() -> None:
    blind, seen = update({"id": 7}, None), update({"id": 7}, 100)
    again = recompute(request(blind, seen), image(7))
    assert [operation.expect for operation in again.operations] == [None, ANY_GENID]


def test_keys_are_compared_by_their_storage_form_where_a_descriptor_is_given() -> None:
    table = Descriptor(1, "t", 1, (Column(1, "day", Type("date"), nullable=False),), (1,))
    operations = update({"day": "2020-01-01"}, 100), update({"day": "2020-01-02"}, 200)
    again = recompute(request(*operations), image(18263), table="t", descriptor=table)
    assert [operation.expect for operation in again.operations] == [100, ANY_GENID]


def test_other_tables_operation_with_the_same_key_is_left_alone() -> None:
    other = update((7,), 100)._replace(table="u")
    again = recompute(request(other, update((7,), 200)), image(7), table="t")
    assert [operation.expect for operation in again.operations] == [100, ANY_GENID]


def test_key_that_can_not_be_compared_is_the_only_operation_that_expects() -> None:
    again = recompute(request(update({"day": "2020-01-01"}, 100)), image(18262))
    assert again.operations[0].expect == ANY_GENID


def test_t2_two_operations_that_expect_one_row_are_given_up() -> None:
    assert recompute(request(update((7,), 100), update((7,), 100)), image(7)).give_up


def test_refused_operation_that_is_not_found_is_given_up_not_guessed() -> None:
    assert recompute(request(update((7,), 100), update((8,), 100)), image(9)).give_up


def test_only_retried_requests_come_here() -> None:
    with pytest.raises(AssertionError):
        recompute(request(update((7,), 1), on_conflict=OnConflict.FAIL), image(7))


def test_r1_every_request_ends() -> None:
    current = request(update((7,), 1))
    for _ in range(ATTEMPTS_MAX):
        assert not current.give_up
        current = recompute(current, image(7))
    assert current.give_up


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_backoff_is_bounded_and_jittered_by_half(attempt: int, unit_random: float) -> None:
    waited = backoff_ms(attempt, unit_random)
    ceiling = min(BACKOFF_MAX_MS, BACKOFF_BASE_MS * 2 ** min(attempt - 1, 30))
    assert ceiling // 2 <= waited <= ceiling
    assert backoff_ms(attempt + 1, unit_random) >= waited


def test_backoff_differs_for_requests_refused_together() -> None:
    assert backoff_ms(5, 0.1) < backoff_ms(5, 0.9)
