"""Each ⚠ rule of verification, of what is computed at commit and of replays, and what breaks it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.sequence import SequencePosition
from leasehold.catalog.sequence import move_position as sequence_move_position
from leasehold.catalog.states import READABLE
from leasehold.model.keys import Key
from leasehold.model.records.jobs import Chunk
from leasehold.model.records.log import ChangeKind, RowChange
from leasehold.model.records.requests import Operation, ReadRange, TableReads
from leasehold.replica.rows_seen import HeldRows
from leasehold.replica.write_set import WriteSet
from leasehold.replication.master import backfill, chunk_decider
from leasehold.sql_session.statement_log import StatementLog
from leasehold.transaction import (
    decide,
    pinned_version,
    read_set,
    referential_actions,
    replay_comparison,
    sequence_operations,
    verify,
)
from leasehold.transaction.commit_time_updates import AtCommit
from leasehold.transaction.isolation import Isolation
from leasehold.transaction.referential_actions import Actions
from leasehold.transaction.sequence_operations import SequenceValues
from tests.models.mutants.breaking import Breaks

BREAKS: Final = Breaks()


@dataclass(frozen=True, slots=True)
class VerifyRules:
    reads_are_validated: bool = True  # T1, from serializable up
    ranges_are_validated: bool = True  # … what came into a range as well as what was in it
    what_is_gone_counts: bool = True  # … and what was in it and is deleted, or has moved out
    visited_rows_are_validated: bool = True  # SELECTV
    master_composes: bool = True  # T0: after-images come from the master's own row
    min_version_fences: bool = True  # D5
    genids_are_verified: bool = True  # T1
    pinned_is_checked: bool = True  # D3: a statement reads rows two versions ahead of its own
    backfill_leaves_genids: bool = True  # chunks: a schema change gives writers verify errors
    mirror_follows: bool = True  # a write goes to both tables while a primary key changes
    uncommittable_is_recognised: bool = True  # T2: what can never commit is replayed for ever
    arbiters_are_verified: bool = True  # T1: what ON CONFLICT has not found is not there now
    uncomputable_runs_again: bool = True  # T2: what was told to be computed is found out
    setting_begins_an_epoch: bool = True  # blocks from before a RESTART are nobody's any more
    altering_begins_an_epoch: bool = True  # nor those of before another INCREMENT
    given_back_in_its_lap: bool = True  # a lap later a sequence stands where it stood
    actions_when_enforced: bool = True  # a foreign key acts from write-only on, not once public
    move_carries_all: bool = True  # a move: pairs that its writer can't see go along
    moved_is_new: bool = True  # a row under another key is looked at as if it were inserted


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


@dataclass(frozen=True, slots=True)
class LockRules:
    locked_rows_are_written: bool = True  # T1: two that lock one row, and change others, collide
    selects_behind_locks_are_compared: bool = True  # T2: what a client has read under a lock
    unwritten_locks_are_checked: bool = True  # who has only read has read one moment
    changed_rows_are_held: bool = True  # what is shown behind an update or a delete is compared
    updates_before_what_is_shown_are_verified: bool = True  # … and is of one moment with its row


def broken(rules: Any) -> AbstractContextManager[None]:
    return BREAKS.broken_in(rules)


# -------------------------------------------------------------- what was read


@BREAKS("reads_are_validated", read_set, "_check_table")
@BREAKS("visited_rows_are_validated", read_set, "_check_visited")
@BREAKS("min_version_fences", Catalog, "_check_fence")
@BREAKS("pinned_is_checked", pinned_version, "check_pinned")
@BREAKS("arbiters_are_verified", verify._Request, "_seek")
def _let_it_pass(_kept: Any, *_: Any) -> None:
    pass


@BREAKS("ranges_are_validated", read_set, "_check_table")
def _validate_keys_alone(kept: Any, descriptor: Descriptor, read: TableReads, *more: Any) -> None:
    kept(descriptor, read._replace(ranges=()), *more)


class _WithoutWhatIsGone:
    def __init__(self, past: read_set.Past) -> None:
        self.written_in = past.written_in

    def gone_from(self, *_: Any) -> Key | None:
        return None


@BREAKS("what_is_gone_counts", read_set, "_check_part")
def _look_at_what_is_there(
    kept: Any,
    descriptor: Descriptor,
    index_id: int,
    part: ReadRange,
    lsn: int,
    past: Any,
    *more: Any,
) -> None:
    kept(descriptor, index_id, part, lsn, _WithoutWhatIsGone(past), *more)


# -------------------------------------------------------------- row locks


@BREAKS("locked_rows_are_written", WriteSet, "_lock_operations")
def _write_no_locked_row(_kept: Any, *_: Any) -> Iterator[Operation]:
    yield from ()


@BREAKS("selects_behind_locks_are_compared", StatementLog, "add_query")
def _log_as_if_nothing_were_locked(kept: Any, log: StatementLog, *more: Any, **named: Any) -> Any:
    with patch.object(log, "held", HeldRows()):
        return kept(log, *more, **named)


@BREAKS("changed_rows_are_held", WriteSet, "_hold")
def _hold_no_changed_row(_kept: Any, *_: Any) -> None:
    pass


@BREAKS("unwritten_locks_are_checked", WriteSet, "locks_stand")
def _let_them_stand(_kept: Any, *_: Any) -> bool:
    return True


# -------------------------------------------------------------- what is changed


@BREAKS("master_composes", decide, "compose")
def _compose_from_what_the_writer_sees(
    kept: Any, descriptor: Descriptor, kind: ChangeKind, row: Any, *more: Any
) -> Any:
    if row is not None:
        row = {e: v for e, v in row.items() if e in descriptor.public_ids}
    return kept(descriptor, kind, row, *more)


@BREAKS("genids_are_verified", decide, "_composed")
def _expect_nothing(kept: Any, operation: Operation, *more: Any) -> Any:
    return kept(operation._replace(expect=None), *more)


@BREAKS("uncommittable_is_recognised", verify._Request, "_is_of_own_making")
@BREAKS("uncomputable_runs_again", decide, "_is_found_out_by_replay")
@BREAKS("given_back_in_its_lap", sequence_operations, "_may_be_a_lap_later")
def _never(_kept: Any, *_: Any) -> bool:
    return False


@BREAKS("arbiters_are_verified", verify, "decide")
def _ask_no_arbiter(kept: Any, operation: Operation, *more: Any, **named: Any) -> Any:
    return kept(operation._replace(arbiters=()), *more, **named)


@BREAKS("mirror_follows", verify, "follow_writes")
def _write_to_one_table(_kept: Any, *_: Any) -> Generator[None, None, list[Any]]:
    yield from ()
    return []  # a generator's, as that of `follow_writes`


@BREAKS("move_carries_all", decide, "land_row")
@BREAKS("move_carries_all", referential_actions, "land_row")
def _carry_what_the_writer_sees(kept: Any, bound: Any, image: Any) -> Any:
    return kept(bound, {e: v for e, v in image.items() if e in bound.descriptor.by_id})


@BREAKS("moved_is_new", decide, "_checked_as_new")
def _do_not_look_at_it(_kept: Any, _bound: Any, image: Any) -> Any:
    return image


@BREAKS("actions_when_enforced", Actions, "_references_to")
def _act_once_public(kept: Any, actions: Actions, table_id: int) -> list[Any]:
    return [each for each in kept(actions, table_id) if each.key.state in READABLE]


# -------------------------------------------------------------- sequences


@BREAKS("setting_begins_an_epoch", SequenceValues, "operation")
def _set_it_in_the_epoch(
    kept: Any, numbers: SequenceValues, operation: Operation, descriptor: Descriptor
) -> None:
    numbers.settle()
    _, state = numbers._drawing.state(descriptor)

    def move_position(
        sequence: Any, name: str, last: int, called: bool, _epoch: int
    ) -> SequencePosition:
        return sequence_move_position(sequence, name, last, called, state.epoch)

    with patch.object(sequence_operations, "move_position", move_position):
        kept(numbers, operation, descriptor)


@BREAKS("altering_begins_an_epoch", sequence_operations, "continue_position")
def _go_on_in_the_epoch(
    kept: Any, sequence: Any, state: SequencePosition, *more: Any
) -> SequencePosition:
    after: SequencePosition = kept(sequence, state, *more)
    return after._replace(epoch=state.epoch)


# -------------------------------------------------------------- backfills


@BREAKS("backfill_leaves_genids", backfill, "written")
def _write_the_mirrored_row_anew(kept: Any, mirror: Descriptor, *more: Any) -> RowChange:
    change: RowChange = kept(mirror, *more)
    return change._replace(locks=mirror.locks, carried={})


@BREAKS("backfill_leaves_genids", backfill, "slice_chunk")
@BREAKS("backfill_leaves_genids", chunk_decider, "slice_chunk")
def _write_filled_rows_anew(
    kept: Any, chunk: Chunk, start: int, rows: int, catalog: Catalog, *more: Any
) -> Any:
    part = kept(chunk, start, rows, catalog, *more)
    descriptor = catalog.version(chunk.table_id, chunk.version)
    anew = tuple(
        RowChange(
            ChangeKind.UPDATE,
            backfilled.table_id,
            backfilled.version,
            key,
            image,
            genids,
            descriptor.locks,
        )
        for backfilled in part.backfills
        if backfilled.images
        for key, image, genids in zip(
            backfilled.keys, backfilled.images, backfilled.genids, strict=True
        )
    )
    if not anew:
        return part
    before = (*part.before, *(None,) * len(anew))
    return part._replace(changes=(*part.changes, *anew), before=before, backfills=())


# -------------------------------------------------------------- computed at commit, replays


@BREAKS("read_rows_stay", AtCommit, "read")
def _forget_what_was_read(
    _kept: Any, _at_commit: AtCommit, _table_id: int, _key: Key | None
) -> None:
    pass


@BREAKS("shown_rows_stay", AtCommit, "shown")
@BREAKS("updates_before_what_is_shown_are_verified", AtCommit, "shown")
def _forget_what_was_shown(_kept: Any, _at_commit: AtCommit) -> None:
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
