"""Which updates are computed at commit; and what the master makes of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column
from leasehold.model.errors import OutOfRange, Refused, UndefinedParameter, VerifyError
from leasehold.model.records.requests import (
    ANY_GENID,
    ChangeRequest,
    Expression,
    OnConflict,
    Operation,
)
from leasehold.transaction.commit_time_updates import AtCommit
from leasehold.transaction.isolation import ISOLATION, Level
from leasehold.transaction.verify import verify
from leasehold.values.types import Type
from tests.support.transaction.written_table import STORES, WrittenTable, insert, opened, update

INT = Type("integer")
TABLE = Descriptor(
    1,
    "t",
    1,
    (Column(1, "id", Type("bigint"), False), Column(2, "a", INT), Column(3, "b", Type("text"))),
    (1,),
    checks=(Check(5, "small", "a < 2147483647", (2,)),),
)
MORE = {"a": Expression("a + $1", (1,), ("integer",))}
NEWEST = [level for level in Level if not ISOLATION[level].one_snapshot]
SEEN = update("t", 1, a=11)._replace(expect=77)
OWN = update("t", 1, a=12)
COMPUTED = update("t", 1, **MORE)._replace(expect=ANY_GENID)


def made(level: Level = Level.READ_COMMITTED) -> AtCommit:
    found = AtCommit(ISOLATION[level])
    found.updated(1, (1,), SEEN, MORE)
    return found


@pytest.mark.parametrize("level", list(Level))
def test_at_levels_that_see_what_is_newest(level: Level) -> None:
    wanted = COMPUTED if level in NEWEST else SEEN
    assert made(level).operations([SEEN, OWN]) == (wanted, OWN)


def test_a_row_that_is_read_by_others_is_as_it_was_seen() -> None:
    at_commit = made()
    at_commit.read(2, None)
    at_commit.read(1, (2,))
    assert at_commit.operations([SEEN]) == (COMPUTED,)
    at_commit.read(1, (1,))
    assert at_commit.operations([SEEN]) == (SEEN,)
    at_commit.updated(1, (1,), SEEN, MORE)
    assert at_commit.operations([SEEN]) == (SEEN,), "and it stays so"
    at_commit.updated(1, (3,), SEEN, MORE)
    at_commit.read(1, None)
    at_commit.updated(1, (4,), SEEN, MORE)
    assert at_commit.operations([SEEN]) == (SEEN,)


def test_a_row_behind_whose_update_something_was_shown_is_as_it_was_seen() -> None:
    at_commit = AtCommit(ISOLATION[Level.READ_COMMITTED])
    at_commit.shown()
    at_commit.updated(1, (1,), SEEN, MORE)
    assert at_commit
    assert at_commit.operations([SEEN]) == (COMPUTED,), "what was shown before it was of then"
    at_commit.shown()
    assert not at_commit
    at_commit.updated(1, (1,), OWN, MORE)
    assert at_commit.operations([SEEN, OWN]) == (SEEN, OWN), "and it stays so"
    at_commit.updated(1, (2,), SEEN, MORE)
    assert at_commit.operations([SEEN]) == (COMPUTED,), "one that comes later is not concerned"


def test_it_goes_on_from_what_is_computed_and_from_nothing_else() -> None:
    at_commit = made()
    at_commit.updated(1, (1,), OWN, MORE)
    assert at_commit.operations([SEEN, OWN]) == (COMPUTED, COMPUTED)
    at_commit.updated(1, (2,), OWN, MORE)
    assert at_commit.operations([OWN._replace()]) == (OWN,), "a row that it has inserted"
    unseen = made(Level.DEFAULT)
    unseen.updated(1, (1,), OWN, MORE)
    assert unseen.operations([SEEN, OWN]) == (SEEN, OWN)


def test_nothing_is_computed_after_an_error_that_was_told() -> None:
    at_commit = made()
    at_commit.nothing()
    assert at_commit.operations([SEEN]) == (SEEN,)


def request(operation: Operation, on_conflict: OnConflict) -> ChangeRequest:
    return ChangeRequest(b"\1" * 16, (operation,), on_conflict=on_conflict)


CANT: list[tuple[str, OnConflict, type[Refused]]] = [
    ("a + $1", OnConflict.REPLAY, VerifyError),
    ("a + $1", OnConflict.FAIL, OutOfRange),
    ("a + $1", OnConflict.RETRY, OutOfRange),
    ("a + $2", OnConflict.REPLAY, UndefinedParameter),
]


@pytest.mark.parametrize("kind", STORES)
@pytest.mark.parametrize(("text", "on_conflict", "error"), CANT)
def test_who_replays_is_told_to(
    text: str, on_conflict: OnConflict, error: type[Refused], kind: str, tmp_path: Path
) -> None:
    """Only he has told somebody that it could be computed."""
    with opened(kind, tmp_path) as store:
        table = WrittenTable(store, TABLE)
        table.send(insert("t", 1, a=2_147_483_646, b="x"))
        asked = COMPUTED._replace(values={"a": Expression(text, (9,), ("integer",))})
        with pytest.raises(Refused) as refused:
            verify(request(asked, on_conflict), table.catalog, store.row, 9)
        assert type(refused.value) is error


@pytest.mark.parametrize("kind", STORES)
def test_arguments_are_values_and_never_text(kind: str, tmp_path: Path) -> None:
    with opened(kind, tmp_path) as store:
        table = WrittenTable(store, TABLE)
        table.send(insert("t", 1, a=1, b="x"))
        for added in ("' || b || '", "$1", None):
            said = Expression("b || $1", (added,), ("text",))
            decided = verify(
                request(COMPUTED._replace(values={"b": said}), OnConflict.REPLAY),
                table.catalog,
                store.row,
                9,
            )
            image = decided.changes[0].image
            assert image is not None
            assert image.get(3) == (None if added is None else f"x{added}")
