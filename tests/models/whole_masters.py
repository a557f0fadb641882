"""What masters do in the whole model: claim, look, call the ledger, append, answer.

A deposed master never learns that it is one: to read the next Claim would only stop it. And all of
its lateness is in what it does next, so a living master reads its own records as they land.
"""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.lease.commands import Command
from leasehold.model.errors import Refused
from leasehold.model.records.log import Claim, Commit, Decisions, DescriptorWrite
from leasehold.model.records.requests import ChangeRequest, Operation, OperationKind
from leasehold.replication.log.admission import Verdict
from leasehold.transaction.verify import verify
from tests.models.coherency_part import CoherencyPart, Sent
from tests.models.lease_objects import Objects
from tests.models.log_records import Records
from tests.models.whole_jobs import Changed, Event, Jobs, Replied, Tick
from tests.models.whole_schema import Schema, Schemas
from tests.models.whole_world import (
    NO_MASTER,
    NOTHING,
    SHUT_OUT,
    TABLE,
    Bounds,
    Master,
    Rules,
    World,
    incarnation,
    now_ns,
    placed,
)

Step = tuple[str, World]
LAST_VERSION = 3
REQUEST = b"0"


class Masters:
    """`reached`: what the model came by, so that a test can tell that rules mattered."""

    def __init__(
        self,
        rules: Rules,
        bounds: Bounds,
        records: Records,
        schemas: Schemas,
        objects: Objects,
        coherency: CoherencyPart,
    ) -> None:
        self._rules = rules
        self._bounds = bounds
        self._records = records
        self._schemas = schemas
        self._objects = objects
        self._coherency = coherency
        self.jobs = Jobs(rules, objects)
        self.reached: set[str] = set()
        self._prefixes: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}
        self._requests: dict[tuple[tuple[int, ...], int], Commit | None] = {}

    # ------------------------------------------------------------ what a master has read

    def prefix(self, world: World, who: int) -> tuple[int, ...]:
        """The log up to the Claim that deposes it."""
        key = world.log, who
        found = self._prefixes.get(key)
        if found is None:
            found = world.log
            for end in range(1, len(found) + 1):
                if self._records.known(found[:end]).position.epoch > who + 1:
                    found = found[: end - 1]
                    break
            self._prefixes[key] = found
        return found

    def _is_deposed(self, world: World, who: int) -> bool:
        return len(self.prefix(world, who)) < len(world.log)

    def schema(self, world: World, who: int) -> Schema:
        return self._schemas.at(self.prefix(world, who))

    def forgotten(self, world: World) -> World:
        """Without what a deposed master can do no more: its records are passed over by every
        reader (L1), and once the next epoch is registered the ledger refuses it (D2)."""
        fenced = self._rules.lease.epoch_fence and world.losses == self._bounds.losses
        registered = self._objects.ledger(world.ledger).epoch
        for who, master in enumerate(world.masters):
            if master.jobs == NO_MASTER or not self._is_deposed(world, who):
                continue
            after = master._replace(flight=-1)
            if not master.pending:
                after = after._replace(watch=(), serve_from_ns=0)
            if fenced and registered > who + 1:
                after = after._replace(jobs=SHUT_OUT)
            if after != master:
                world = placed(world, who, after)
        net = tuple(number for number in world.net if not self._is_passed_over(world, number))
        return world if net == world.net else world._replace(net=net)

    def _is_passed_over(self, world: World, number: int) -> bool:
        known = self._records.known((*world.log, number))
        return known.verdict is Verdict.SKIP and not known.stopped

    # ------------------------------------------------------------ transitions

    def steps(self, world: World) -> Iterator[Step]:
        for number in world.net:
            yield self._lands(world, number)
        for who, master in enumerate(world.masters):
            if master.jobs == NO_MASTER:
                yield from self._claim(world, who)
                continue
            if master.jobs != SHUT_OUT and self.schema(world, who).newest < LAST_VERSION:
                yield from self._ledger(world, who, master)
            if (
                not self._is_deposed(world, who)
                and master.flight < 0
                and len(world.log) + len(world.net) <= self._bounds.records
            ):
                yield from self._append(world, who, master)
            yield from self._answer(world, who, master)

    def _claim(self, world: World, who: int) -> Iterator[Step]:
        """L1: from the log's end; the overtaken Claims are in the log model."""
        if self._bounds.takeovers < who or len(world.log) > self._bounds.records:
            return
        position = self._records.known(world.log).position
        claim = Claim(who + 1, incarnation(who), position.digest, str(who))
        world = world._replace(log=(*world.log, self._records.number(claim)))
        known = self._records.known(world.log)
        schema = self._schemas.at(world.log)
        master = Master(
            jobs=self.jobs.begin(who, schema.catalog, who + 1),
            pending=(len(world.log) - 1,) if known.requests else (),
            serve_from_ns=self._serve_from_ns(world.now, known.position.longest_grant_ms),
        )
        current = self._objects.ledger(world.ledger).tables.get(TABLE, NOTHING).current
        ahead = current > schema.newest
        yield f"{who} claims epoch {who + 1}", placed(world, who, master)._replace(ahead=ahead)

    def _serve_from_ns(self, now: int, longest_grant_ms: int) -> int:
        """C6, of a process that has just started: it knows nobody who has a lease."""
        leases = self._coherency.restarted(now, longest_grant_ms)
        return self._coherency.takes_over(leases, now)[0]

    def _ledger(self, world: World, who: int, master: Master) -> Iterator[Step]:
        looked = self._steps_job(world, who, Tick())
        if looked != world:
            yield f"master {who} looks at the ledger", looked
        for token, command in self.jobs.pending(master.jobs):
            after = self._steps_job(world, who, Replied(token, command))
            if after != world:
                yield f"master {who}'s call arrives: {command}", after

    def _steps_job(self, world: World, who: int, event: Event) -> World:
        prefix = self.prefix(world, who)
        stepped = self.jobs.step(
            world.masters[who].jobs,
            event,
            now_ns(world),
            self._schemas.at(prefix).catalog,
            prefix,
            world.ledger,
            world.run,
        )
        harm = stepped.harm or self._disobeyed(world, who, stepped.obeyed)
        master = world.masters[who]._replace(jobs=stepped.jobs)
        return placed(world, who, master)._replace(ledger=stepped.ledger, harm=harm)

    def _disobeyed(self, world: World, who: int, obeyed: tuple[Command, ...]) -> str:
        registered = self._objects.ledger(world.ledger).epoch
        if obeyed and registered > who + 1:
            name = type(obeyed[0]).__name__
            return f"D2: the ledger has obeyed the deposed master {who}: {name}"
        return ""

    # ------------------------------------------------------------ the log

    def _append(self, world: World, who: int, master: Master) -> Iterator[Step]:
        if len(world.log) + len(world.net) > self._bounds.records:
            return
        prefix = self.prefix(world, who)
        schema = self._schemas.at(prefix)
        known = self._records.known(prefix)
        grants, seen = self._coherency.grants(master.watch, len(prefix), world.now)
        master = master._replace(watch=seen)
        choices: list[tuple[Master, tuple[Commit, ...]]] = [(master, ())] if grants else []
        taken = self.jobs.take_write(master.jobs, schema.catalog, prefix, known.position.lsn + 1)
        if taken is not None and schema.newest < LAST_VERSION:
            commit = Commit(b"", 1, known.position.commit_us + 1, {}, (), 0, catalog=taken[1])
            choices.append((master._replace(jobs=taken[0]), (commit,)))
        if world.decided < self._bounds.writes and not known.requests:
            for version in range(1, schema.newest + 1):
                decided = self._decided(prefix, version)
                choices += [(master, (decided,))] if decided is not None else []
        for after, commits in choices:
            record = Decisions(
                epoch=who + 1,
                incarnation=incarnation(who),
                sequence=known.position.sequence + 1,
                previous=known.position.digest,
                first_lsn=known.position.lsn + 1,
                commits=commits,
                refusals=(),
                decided_through={},
                answered_through=0,
                grants=grants,
            )
            number = self._records.number(record)
            decided_now = any(commit.request_id for commit in commits)
            yield (
                f"master {who} appends {self._records.words[number]}",
                placed(world, who, after._replace(flight=number))._replace(
                    net=tuple(sorted((*world.net, number))),
                    decided=world.decided + decided_now,
                ),
            )

    def _decided(self, prefix: tuple[int, ...], version: int) -> Commit | None:
        """A request made while `version` was the newest, by whoever held it; it may have been on
        its way ever since (D5)."""
        key = prefix, version
        if key not in self._requests:
            insert = Operation(
                OperationKind.INSERT, "t", {"id": 1}, {"a": 1}, schema_version=version
            )
            request = ChangeRequest(REQUEST, (insert,))
            position = self._records.known(prefix).position
            catalog = self._schemas.at(prefix).catalog
            try:
                decided = verify(request, catalog, lambda *_: None, position.lsn + 1)
            except Refused:
                self._requests[key] = None
            else:
                self._requests[key] = Commit(
                    REQUEST, 1, position.commit_us + 1, decided.versions, decided.changes, 1
                )
        return self._requests[key]

    def _lands(self, world: World, number: int) -> Step:
        net = list(world.net)
        net.remove(number)
        offset = len(world.log)
        label = f"lands in the log at {offset}: {self._records.words[number]}"
        world = world._replace(log=(*world.log, number), net=tuple(net))
        known = self._records.known(world.log)
        if known.stopped:
            return f"{label}: {known.stopped}", world
        who = known.position.epoch - 1
        master = world.masters[who]
        record = self._records.records[number]
        assert isinstance(record, Decisions), "a Claim lands at once"
        if number != master.flight:
            return label, world
        requests = any(commit.request_id for commit in record.commits)
        pending = (*master.pending, offset) if requests else master.pending
        world = placed(world, who, master._replace(flight=-1, pending=pending))
        if any(commit.catalog for commit in record.commits):
            self._reached(world, record)
            if not self._schemas.at(world.log).harm:
                world = self._steps_job(world, who, Changed(known.position.lsn))
        return label, world

    def _reached(self, world: World, record: Decisions) -> None:
        writes = [write for commit in record.commits for write in commit.catalog]
        if world.ahead and any(isinstance(write, DescriptorWrite) for write in writes):
            self.reached.add("the next master has taken over a ledger that is ahead")
        if self._schemas.at(world.log).newest == LAST_VERSION:
            self.reached.add("both steps are published")

    # ------------------------------------------------------------ answers

    def _answer(self, world: World, who: int, master: Master) -> Iterator[Step]:
        if not master.pending:
            return
        offset, *others = master.pending
        seen, serve_from_ns = master.watch, master.serve_from_ns
        if self._coherency.may_answer(seen, serve_from_ns, offset, world.now):
            after = placed(world, who, master._replace(pending=tuple(others)))
            yield f"master {who} gives the answer", after._replace(answered=True)

    def acked(self, world: World, ack: Sent) -> World:
        """Whoever believes to be master hears it."""
        for who, master in enumerate(world.masters):
            if master.jobs != NO_MASTER:
                end = len(self.prefix(world, who))
                seen = self._coherency.acked(master.watch, ack, end, world.now)
                world = placed(world, who, master._replace(watch=seen))
        return world
