"""What a candidate for mastership can do next in the log model."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.model.records.log import Claim, Commit, Decisions, Grant, LogPosition
from leasehold.replication.log.admission import Verdict
from tests.models.coherency_part import SETTINGS, CoherencyPart, Seen, Sent
from tests.models.log_records import Known, Records
from tests.models.log_world import Bounds, Candidate, Rules, Told, World, incarnation, placed


class CandidateSteps:
    def __init__(
        self, rules: Rules, bounds: Bounds, records: Records, coherency: CoherencyPart
    ) -> None:
        self._rules = rules
        self._bounds = bounds
        self._records = records
        self._coherency = coherency

    def steps(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        candidate = world.candidates[who]
        if candidate.master and candidate.read < len(world.log):
            yield self.reads(world, who)
        room = len(world.log) + len(world.net) < self._bounds.records + 1
        if candidate.master:
            if candidate.flight < 0 and room:
                yield from self.appends(world, who)
            yield from self.answers(world, who)
            yield from self._fail(world, who)
            yield from self._hand_over(world, who)
        elif room:
            yield from self.bids(world, who)
        for ack in dict.fromkeys(world.acks[who]):
            yield self.hears(world, who, ack)
        if candidate.master:
            for told in sorted(world.told):
                heard = self._coherency.heard(candidate.watch, told, world.now)
                if heard != candidate.watch:
                    yield (
                        f"candidate {who} is told that {told.applied} records are applied",
                        placed(world, who, candidate._replace(watch=heard)),
                    )
        if (who == 0 or self._bounds.any_crash) and world.crashes < self._bounds.crashes:
            yield self._crash(world, who)

    def reads(self, world: World, who: int) -> tuple[str, World]:
        candidate = world.candidates[who]
        number = world.log[candidate.read]
        before = self._records.known(world.log[: candidate.read])
        known = self._records.known(world.log[: candidate.read + 1])
        after = candidate._replace(read=candidate.read + 1)
        record = self._records.records[number]
        if known.verdict is Verdict.CLAIMED and not known.stopped:
            assert isinstance(record, Claim)
            after = after._replace(master=False, flight=-1, pending=(), watch=())
            if self._is_own_claim(record, who, candidate):
                after = self._takes_office(after, known, world)
        if known.verdict is Verdict.APPLY and not known.stopped:
            assert isinstance(record, Decisions)
            leases = self._coherency.grants_read(after.leases, record.grants, world.now)
            after = after._replace(leases=leases)
        if known.verdict is Verdict.APPLY and candidate.master and number == candidate.flight:
            offset = candidate.read
            after = after._replace(flight=-1)
            if self._rules.own_record_read_back:
                after = after._replace(pending=(*candidate.pending, offset))
        verdict = known.stopped or known.verdict.value
        label = f"candidate {who} reads {self._records.words[number]}: {verdict}"
        if after.master and not candidate.master:
            label += ", and is master now"
        moved = placed(world, who, after)
        if candidate.master and self._rules.told_when_read:
            moved = self._tells(moved, before.position, candidate.read, number)
        return label, moved

    def _tells(self, world: World, position: LogPosition, offset: int, number: int) -> World:
        """All that it reads while it is master, to whoever listens to it."""
        told = Told(position.epoch, position.incarnation, offset, number)
        if len(world.records_told) >= self._bounds.telling + self._bounds.copies:
            return world
        return world._replace(records_told=world.records_told | {told})

    def _is_own_claim(self, claim: Claim, who: int, candidate: Candidate) -> bool:
        if claim.node != str(who):
            return False
        own = incarnation(who, candidate.incarnation)
        return claim.incarnation == own or not self._rules.own_claim_by_incarnation

    def _takes_office(self, candidate: Candidate, known: Known, world: World) -> Candidate:
        """L7: what may not have been answered is answered by it, as C6 lets it."""
        serve_from_ns, watch = self._coherency.takes_over(candidate.leases, world.now)
        pending = (candidate.read - 1,) if known.requests else ()
        return candidate._replace(
            master=True, pending=pending, serve_from_ns=serve_from_ns, watch=watch
        )

    def appends(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """The next record: with a commit, or with grants alone."""
        watch, read = world.candidates[who].watch, world.candidates[who].read
        for shorter in range(self._bounds.lengths):
            length_ms = SETTINGS.duration_ms - shorter
            grants, seen = self._coherency.grants(watch, read, world.now, length_ms)
            yield from self._appends(world, who, grants, seen)
            if not grants:
                break

    def _appends(
        self, world: World, who: int, grants: tuple[Grant, ...], seen: tuple[Seen, ...]
    ) -> Iterator[tuple[str, World]]:
        candidate = world.candidates[who]
        position = self._records.known(world.log[: candidate.read]).position
        after = candidate._replace(watch=seen)
        choices: list[tuple[Commit, ...]] = [()] if grants else []
        if world.commits < self._bounds.commits:
            request = str(world.commits).encode()
            choices.append((Commit(request, 1, position.commit_us + 1, {}, (), 1),))
        for commits in choices:
            record = Decisions(
                epoch=position.epoch,
                incarnation=incarnation(who, candidate.incarnation),
                sequence=position.sequence + 1,
                previous=position.digest,
                first_lsn=position.lsn + 1,
                commits=commits,
                refusals=(),
                decided_through={},
                answered_through=0,
                grants=grants,
            )
            number = self._records.number(record)
            moved = placed(world, who, after._replace(flight=number))
            if not self._rules.told_when_read:
                moved = self._tells(moved, position, candidate.read, number)
            answered = world.answered
            if not self._rules.own_record_read_back:
                answered |= {int(commit.request_id) for commit in commits}
            yield (
                f"candidate {who} appends {self._records.words[number]}",
                moved._replace(
                    net=tuple(sorted((*world.net, number))),
                    commits=world.commits + len(commits),
                    answered=answered,
                ),
            )

    def bids(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """Whenever it likes: an election's time-out may come at any moment of a pause."""
        candidate = world.candidates[who]
        position = self._records.known(world.log[: candidate.read]).position
        if position.epoch >= self._bounds.epochs:
            return
        claim = Claim(
            position.epoch + 1,
            incarnation(who, candidate.incarnation),
            position.digest,
            str(who),
        )
        number = self._records.number(claim)
        if number in world.net or number in world.log:
            return
        net = tuple(sorted((*world.net, number)))
        yield f"candidate {who} bids: {self._records.words[number]}", world._replace(net=net)

    def answers(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        candidate = world.candidates[who]
        if not self._rules.repeats_wait_too:
            known = self._records.known(world.log[: candidate.read]).requests
            if not known <= world.answered:
                yield (
                    f"candidate {who} is asked again and answers at once",
                    world._replace(answered=world.answered | known),
                )
        if not candidate.pending:
            return
        offset = candidate.pending[0]
        seen, serve_from_ns = candidate.watch, candidate.serve_from_ns
        if self._coherency.may_answer(seen, serve_from_ns, offset, world.now):
            answered = world.answered | self._records.known(world.log[: offset + 1]).requests
            after = candidate._replace(pending=candidate.pending[1:])
            yield (
                f"candidate {who} gives the answers of offset {offset}",
                placed(world, who, after)._replace(answered=answered),
            )

    def _fail(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """The append timed out for its sender; the record may land all the same, later."""
        candidate = world.candidates[who]
        if candidate.flight < 0 or world.errors == self._bounds.errors:
            return
        after = candidate._replace(flight=-1)
        if self._rules.epoch_given_up_after_error:
            after = after._replace(master=False, pending=(), watch=())
        yield (
            f"candidate {who} is told that its append failed",
            placed(world, who, after)._replace(errors=world.errors + 1),
        )

    def _hand_over(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        """It leaves, with nothing of it under way, and with answers that it has not given (L7). Its
        farewell is a hint: whoever likes may bid at any moment anyway."""
        candidate = world.candidates[who]
        if candidate.flight >= 0 or world.resigns == self._bounds.resigns:
            return
        after = candidate._replace(master=False, pending=(), serve_from_ns=0, watch=())
        yield (
            f"candidate {who} hands its term over",
            placed(world, who, after)._replace(resigns=world.resigns + 1),
        )

    def _crash(self, world: World, who: int) -> tuple[str, World]:
        candidate = world.candidates[who]
        known = self._records.known(world.log[: candidate.read])
        leases = self._coherency.restarted(world.now, known.position.longest_grant_ms)
        after = Candidate(candidate.read, candidate.incarnation + 1, leases=leases)
        words_after = "restarts"
        if not self._rules.own_claim_by_incarnation:
            # The process finds that the last Claim is its node's and goes on as master.
            last = [self._records.records[n] for n in world.log[: candidate.read]]
            claims = [r for r in last if isinstance(r, Claim) and r.epoch == known.position.epoch]
            if claims and claims[-1].node == str(who):
                after = self._takes_office(after, known, world)
                words_after = "restarts and goes on as master"
        return (
            f"candidate {who} crashes and {words_after}",
            placed(world, who, after)._replace(crashes=world.crashes + 1),
        )

    def hears(self, world: World, who: int, ack: Sent) -> tuple[str, World]:
        candidate = world.candidates[who]
        waiting = list(world.acks[who])
        waiting.remove(ack)
        acks = tuple(tuple(waiting) if n == who else a for n, a in enumerate(world.acks))
        if candidate.master:
            seen = self._coherency.acked(candidate.watch, ack, candidate.read, world.now)
            candidate = candidate._replace(watch=seen)
        leases = self._coherency.acked_before_the_claim(candidate.leases, ack, world.now)
        candidate = candidate._replace(leases=leases)
        return (
            f"candidate {who} hears that the replicant has applied below {ack.applied}",
            placed(world, who, candidate)._replace(acks=acks),
        )
