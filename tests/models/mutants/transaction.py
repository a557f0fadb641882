"""Each ⚠ rule of what is computed at commit and of replays, and what breaks it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from leasehold.model.keys import Key
from leasehold.model.records.requests import Operation
from leasehold.transaction import replay_comparison
from leasehold.transaction.commit_time_updates import AtCommit
from leasehold.transaction.isolation import Isolation
from tests.models.mutants.breaking import Breaks

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class AtCommitRules:
    read_rows_stay: bool = True  # a row that another statement's outcome rests on is as it was seen
    shown_rows_stay: bool = True  # what was told of a row that it has changed is what it becomes
    unseen_updates_stay: bool = True  # where own writes are not seen, two of a row don't add up
    row_has_to_be_there: bool = True  # UPDATE 1 was told
    nothing_after_an_error: bool = True  # the client may have taken another path, of any row


@dataclass(frozen=True, slots=True)
class ReplayRules:
    answers_are_compared: bool = True  # T2


def broken(rules: AtCommitRules | ReplayRules) -> AbstractContextManager[None]:
    return BREAKS.broken_in(rules)


@BREAKS("read_rows_stay", AtCommit, "read")
def _forget_what_was_read(
    _kept: Any, _at_commit: AtCommit, _table_id: int, _key: Key | None
) -> None:
    pass


@BREAKS("shown_rows_stay", AtCommit, "shown")
def _forget_what_was_shown(_kept: Any, _at_commit: AtCommit, _table_id: int, _prefix: Key) -> None:
    pass


@BREAKS("unseen_updates_stay", AtCommit, "__init__")
def _add_up_unseen_updates(kept: Any, at_commit: AtCommit, isolation: Isolation) -> None:
    kept(at_commit, isolation)
    at_commit._own_writes = True


@BREAKS("row_has_to_be_there", AtCommit, "operations")
def _update_a_row_that_is_gone(
    kept: Any, at_commit: AtCommit, made: Sequence[Operation]
) -> tuple[Operation, ...]:
    asked: tuple[Operation, ...] = kept(at_commit, made)
    return tuple(
        now if now is before else now._replace(expect=None)
        for before, now in zip(made, asked, strict=True)
    )


@BREAKS("nothing_after_an_error", AtCommit, "nothing")
def _go_on_after_an_error(_kept: Any, _at_commit: AtCommit) -> None:
    pass


@BREAKS("answers_are_compared", replay_comparison, "_comparable")
def _find_all_answers_alike(_kept: Any, _answer: replay_comparison.Answer) -> None:
    pass
