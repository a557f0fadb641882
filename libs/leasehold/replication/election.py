"""The election: the states of a candidate before its Claim, and when it bids for mastership.

No record of the master's for the election time; *then* ask for the log's end, apply up to it (a
node waking from a pause has an old impression of the log), append the Claim, read it back.

A master that leaves says where its records end (`take_farewell`): who has read up to there bids at
once. One that was killed says nothing, but the kernel closes its connections: where somebody has
listened on the term's channel and nobody does any longer, while no record comes, the candidate does
not wait for the election time (`take_look`). Nothing rests on either: if anything else follows, the
Claim is skipped (L1).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from leasehold.model.errors import LogStopped
from leasehold.model.records.log import LogPosition
from leasehold.model.time_units import NS_PER_MS
from leasehold.replication.fast_path.log import NOBODY, Term
from leasehold.replication.log.identity import TO_DO


@dataclass(frozen=True, slots=True)
class ElectionSettings:
    """A candidate bids after `timeout_ms` without a record of the master's, longer than the longest
    turn that a master may take on a busy machine; `stagger_ms` is added per `rank` so that standbys
    don't bid at once; a bid not read back in `bid_ms` is given up.

    After `silent_ms` without a record, two heartbeats of the master, it is looked every `look_ms`
    whether the master still listens; before that every `learn_ms`, until it was seen to. It is gone
    where nobody has listened for `gone_ms`, and a look more per rank: whoever merely lost its
    connection has another one by then."""

    timeout_ms: int = 2_000
    silent_ms: int = 400
    look_ms: int = 50
    learn_ms: int = 500
    gone_ms: int = 100
    stagger_ms: int = 300
    rank: int = 0
    bid_ms: int = 5_000


class Stage(Enum):
    FOLLOWING = "following"
    ASKED_END = "asked end"
    CATCHING_UP = "catching up"
    BID = "bid"


class Election:
    """The state machine: methods return what to do next, None, "ask" (AskLogEnd) or "claim"."""

    def __init__(self, settings: ElectionSettings, now_ns: int) -> None:
        self._settings = settings
        self._heard_ns = now_ns
        self._stage = Stage.FOLLOWING
        self._since_ns = now_ns
        self._end = 0
        self._read = 0  # what had been read when the end was asked for
        self._left: tuple[int, int] | None = None  # the epoch that was left, the end of its records
        self._listened: Term = NOBODY  # whose master was seen to listen
        self._looked_ns: int | None = None  # when it was looked last; None: never
        self._deaf_ns: int | None = None  # since when nobody listens, as far as is known

    @property
    def stage(self) -> Stage:
        return self._stage

    def deadline_ns(self, term: Term = NOBODY) -> int:
        """Return when something is due next. `term`: whose master is followed."""
        if self._stage is Stage.FOLLOWING and term != NOBODY:
            return min(self._bid_ns(), self._look_ns(term))
        return self._bid_ns()

    def _bid_ns(self) -> int:
        """Return when to bid, or to give a bid up, if nothing else happens."""
        if self._stage is Stage.FOLLOWING:
            wait_ms = self._settings.timeout_ms + self._settings.stagger_ms * self._settings.rank
            return self._heard_ns + wait_ms * NS_PER_MS
        return self._since_ns + self._settings.bid_ms * NS_PER_MS

    def note_master(self, now_ns: int) -> None:
        """Note that a record of the master's was read (or another node's Claim counted)."""
        self._heard_ns = now_ns
        self._stage = Stage.FOLLOWING
        self._deaf_ns = None

    def look_is_due(self, term: Term, now_ns: int) -> bool:
        """Whether to look now if the master of that term, the one that is followed, listens;
        remember that it was looked."""
        if self._stage is not Stage.FOLLOWING or term == NOBODY or now_ns < self._look_ns(term):
            return False
        self._looked_ns = now_ns
        return True

    def _look_ns(self, term: Term) -> int:
        """Return when to look next."""
        settings = self._settings
        silent_ns = self._heard_ns + settings.silent_ms * NS_PER_MS
        if self._looked_ns is None:
            return self._heard_ns
        learnt = term == self._listened
        often_ns = max(silent_ns, self._looked_ns + settings.look_ms * NS_PER_MS)
        return often_ns if learnt else self._looked_ns + settings.learn_ms * NS_PER_MS

    def take_look(self, term: Term, now_ns: int, *, listens: bool) -> None:
        """Take whether the master of that term listens. Where it was never seen to, its fast paths
        are off, or can't be used, and that nobody listens says nothing."""
        if listens:
            self._listened, self._deaf_ns = term, None
        elif term == self._listened and self._deaf_ns is None:
            self._deaf_ns = now_ns

    def _is_gone(self, term: Term, now_ns: int) -> bool:
        """Whether the master of that term has ended without a word, as far as can be told."""
        settings = self._settings
        if self._deaf_ns is None or term != self._listened:
            return False
        deaf_ms = settings.gone_ms + settings.look_ms * settings.rank
        silent_ns = now_ns - self._heard_ns
        looked_again = self._looked_ns is not None and self._looked_ns > self._deaf_ns
        return (
            looked_again
            and now_ns - self._deaf_ns >= deaf_ms * NS_PER_MS
            and silent_ns >= settings.silent_ms * NS_PER_MS
        )

    def take_farewell(self, epoch: int, end: int) -> None:
        """Take it that the master of that epoch appends nothing at the offset `end` or behind."""
        self._left = epoch, end

    def was_left(self, epoch: int) -> bool:
        """Whether the master of that epoch has said farewell."""
        return self._left is not None and self._left[0] == epoch

    def _is_left(self, position: LogPosition) -> bool:
        """Whether nothing more is to come from the master of the term."""
        if self._left is None:
            return False
        epoch, end = self._left
        return epoch == position.epoch and position.offset >= end

    def tick(self, position: LogPosition, now_ns: int) -> str | None:
        if self._stage is Stage.FOLLOWING:
            if self._is_left(position):
                return self._enter(Stage.BID, now_ns, "claim")
            # In a log without any Claim there is nobody to wait for.
            nobody = position.epoch == 0 and self._settings.rank == 0
            gone = self._is_gone((position.epoch, position.incarnation), now_ns)
            if nobody or gone or now_ns >= self._bid_ns():
                return self._ask(position, now_ns)
            return None
        if now_ns >= self._bid_ns():
            self._heard_ns = now_ns
            self._stage = Stage.FOLLOWING
            return None
        if self._stage is Stage.CATCHING_UP and position.offset >= self._end:
            return self._enter(Stage.BID, now_ns, "claim")
        return None

    def take_end(self, end: int, position: LogPosition, now_ns: int) -> str | None:
        """Take the broker's answer to the question asked after the time-out. Raises LogStopped
        (L2): a log does not end before what was read of it."""
        if self._stage is not Stage.ASKED_END:
            return None
        if end < self._read:
            raise LogStopped(
                f"L2: this node has read the log up to offset {self._read}, and it ends at {end}"
                " now: the broker lost acknowledged records, or the topic was deleted and made"
                f" anew. {TO_DO}"
            )
        self._end = end
        self._enter(Stage.CATCHING_UP, now_ns, None)
        return self.tick(position, now_ns)

    def give_up_bid(self, now_ns: int) -> None:
        """Follow, and try again after the time: the Claim was skipped."""
        self._heard_ns = now_ns
        self._stage = Stage.FOLLOWING

    def fail_bid(self, now_ns: int) -> None:
        """Follow, and try again after the time, a farewell or not: the Claim's fate is unknown."""
        self._left = None
        self.give_up_bid(now_ns)

    def bid_again(self, position: LogPosition, now_ns: int) -> str:
        """Bid for the next epoch without waiting: this node gave its own up (L4)."""
        self._heard_ns = now_ns
        return self._ask(position, now_ns)

    def _ask(self, position: LogPosition, now_ns: int) -> str:
        self._read = position.offset
        self._enter(Stage.ASKED_END, now_ns, None)
        return "ask"

    def _enter(self, stage: Stage, now_ns: int, answer: str | None) -> str | None:
        self._stage = stage
        self._since_ns = now_ns
        return answer
