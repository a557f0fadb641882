"""What requests tell those who listen: it stands in their commits, once everybody reads that."""

from __future__ import annotations

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.features import Feature, FeatureGate
from leasehold.model.records.log import Decisions
from leasehold.model.records.notifications import Notification, Notifications
from tests.support.replication.world import TABLE, World

NOTIFY = [["c", "x"], ["d", ""], ["c", "x"]]
TOLD = Notifications((Notification("c", "x"), Notification("d", "")))


class Follower:
    """What is told of a node's records: (what, LSN)."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def applied(self, record: Decisions) -> None:
        self.seen += [("applied", record.first_lsn + n) for n, _ in enumerate(record.commits)]

    def committed(self, lsn: int) -> None:
        self.seen.append(("committed", lsn))


def test_it_stands_in_the_commit_of_rows_of_statements_and_alone() -> None:
    world = World()
    assert world.ask({"sql": TABLE, "notify": NOTIFY}).lsn
    row = {"table": "t", "op": "insert", "values": {"id": 1}}
    assert world.ask({**row, "notify": NOTIFY}).lsn
    alone = world.ask({"notify": NOTIFY, "notifier": ["r1", 7]})
    assert (alone.lsn, alone.rows_affected) == (3, 0)
    assert world.ask({**row, "notify": NOTIFY}).code == "23505"
    assert world.ask({"transaction": [row], "on_conflict": "fail"}).code == "23505"
    sent = TOLD._replace(node="r1", process=7)
    assert [commit.notifications for commit in world.commits()] == [TOLD, TOLD, sent]
    assert world.follower.position == world.node.position


def test_it_waits_until_everybody_reads_it() -> None:
    """Rows beside it wait, too: nothing of the request is done."""
    world = World()
    world.ask({"sql": TABLE})
    assert world.node.master is not None
    changes = world.node.master.changes
    for gate in (
        FeatureGate(lambda number, now_ns: number < Feature.NOTIFICATIONS),
        FeatureGate(level=lambda: Feature.NOTIFICATIONS - 1),
    ):
        changes.features = gate
        row = {"table": "t", "op": "insert", "values": {"id": 1}}
        for request in ({"notify": NOTIFY}, {**row, "notify": NOTIFY}):
            outcome = world.ask(request)
            assert (outcome.code, outcome.final) == ("0A000", True)
            assert "notifications" in outcome.message
        assert world.ask({"table": "t", "op": "upsert", "key": {"id": 1}, "values": {"a": 1}}).lsn
    assert all(commit.notifications is None for commit in world.commits())


def test_a_follower_is_told_of_a_record_before_and_when_readers_see_it() -> None:
    world, follower = World(), Follower()
    world.follower.followers = (follower,)
    world.ask({"sql": TABLE})
    world.ask({"notify": NOTIFY})
    assert follower.seen == [("applied", 1), ("committed", 1), ("applied", 2), ("committed", 2)]


def test_a_commit_that_tells_nothing_has_the_bytes_it_had() -> None:
    """Those that releases read which know no notifications."""
    world, codec = World(), MessagePackCodec()
    world.ask({"sql": TABLE})
    world.ask({"notify": NOTIFY})
    without, told = world.commits()
    assert len(codec.pack_commit(told._replace(notifications=None))) < len(codec.pack_commit(told))
    assert codec.pack_commit(without)[0] & 0x0F == 10, "ten fields"
    assert codec.pack_commit(told)[0] & 0x0F == 12
