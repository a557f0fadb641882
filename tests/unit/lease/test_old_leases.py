"""What an agent says of versions it holds on to: when, of which, and no more than is bounded."""

from __future__ import annotations

from leasehold.lease.agent.events import Idle
from leasehold.lease.agent.held_leases import LABEL_CHARS_MAX, SQL_CHARS_MAX, HeldLease, Use
from leasehold.lease.agent.old_version_report import (
    EVERY_NS,
    FIRST_AFTER_NS,
    WORK_TOLD_MAX,
    OldLeases,
)
from leasehold.lease.commands import Lease
from leasehold.model.ports import Now
from tests.support.lease.story import SECOND, TTL, Actor, Master, World

MS = SECOND // 1_000


class Story:
    """An agent with work under version 1, then version 2 is published."""

    def __init__(self, *labels: str) -> None:
        self.world = World()
        self.master: Master = self.world.ready_master()
        self.agent: Actor = self.world.agent("n1")
        self.old = OldLeases(self.agent.holder)
        self.used = self.agent.use()
        self.took_up_ns = self.world.now_ns
        self.world.pass_time(2 * SECOND, self.agent)
        self.uses = [Use(label, "", self.world.now_ns) for label in labels]
        for use in self.uses:
            assert self.agent.holder.leases.acquire_named(1, use, self.world.now_ns)
        self.master.publish()

    @property
    def now(self) -> Now:
        return Now(self.world.now_ns, self.world.now_ns // 1_000 + 7)

    def later(self, duration_ns: int) -> None:
        self.world.now_ns += duration_ns

    def leave(self) -> None:
        lease = self.agent.holder.leases.find(Lease(1, 1))
        assert isinstance(lease, HeldLease)
        self.agent.end(self.used)
        for use in self.uses:
            if self.agent.holder.leases.release_named(lease, use):
                self.agent.do(Idle())


def test_a_wait_that_is_over_in_a_moment_is_not_told() -> None:
    story = Story("book")
    assert story.old.due_ns() == story.world.now_ns + FIRST_AFTER_NS
    story.later(FIRST_AFTER_NS - 1)
    assert story.old.reports(story.now) == []
    story.leave()
    story.later(SECOND)
    assert (story.old.due_ns(), story.old.reports(story.now)) == (None, [])


def test_it_is_told_again_and_again_with_ages_while_it_lasts() -> None:
    story = Story("book")
    story.later(FIRST_AFTER_NS)
    (told,) = story.old.reports(story.now)
    assert (told.agent, told.table_id, told.version, told.users) == ("n1", 1, 1, 2)
    assert told.session == story.agent.holder.session.id
    assert told.work == (("book", "", FIRST_AFTER_NS // MS),)
    assert told.old_ms == FIRST_AFTER_NS // MS
    assert told.held_ms == (story.world.now_ns - story.took_up_ns) // MS
    assert 0 < told.expires_ms < TTL // MS
    assert told.sent_us == story.now.wall_us
    story.later(EVERY_NS - 1)
    assert story.old.reports(story.now) == []
    story.later(1)
    (again,) = story.old.reports(story.now)
    assert again.old_ms == told.old_ms + EVERY_NS // MS


def test_who_holds_the_newest_only_says_nothing() -> None:
    world = World()
    world.ready_master()
    agent = world.agent("n1")
    agent.use()
    assert OldLeases(agent.holder).due_ns() is None


def test_what_is_told_is_bounded_and_one_line() -> None:
    long = "x" * 10_000
    story = Story("two\nlines\x1b[31m", *(long for _ in range(WORK_TOLD_MAX + 3)))
    story.uses[1].sql = long
    story.later(FIRST_AFTER_NS)
    (told,) = story.old.reports(story.now)
    assert len(told.work) == WORK_TOLD_MAX
    assert told.users == WORK_TOLD_MAX + 5
    assert told.work[0][0] == "two lines [31m"
    assert all(len(label) <= LABEL_CHARS_MAX for label, _, _ in told.work)
    assert len(told.work[1][1]) == SQL_CHARS_MAX
