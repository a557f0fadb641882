"""What transactions tell, from a record to the sessions of a node that listen."""

from __future__ import annotations

from collections.abc import Collection
from random import Random

import pytest

from leasehold.model.records.log import Commit, Decisions
from leasehold.model.records.notifications import Notification, Notifications
from leasehold.replica.notifications import Listener, NodeNotifications, Told

ALL = 1 << 30


class Node:
    """A node's sessions that listen, and what was done to them."""

    def __init__(self, bytes_max: int = 1 << 20) -> None:
        self.woken: list[list[int]] = []
        self.ended: list[int] = []
        self.notifications = NodeNotifications("r1", self._wake, self._end, bytes_max)
        self._lsn = 0

    def _wake(self, processes: Collection[int]) -> None:
        self.woken.append(list(processes))

    def _end(self, process: int, why: str) -> bool:
        assert "taken none of its notifications" in why
        self.ended.append(process)
        return True

    def apply(self, *told: Notifications | None) -> None:
        """Apply a record of these commits, which readers don't see yet."""
        commits = tuple(
            Commit(b"", 1, 1, {}, (), 0, notifications=notifications) for notifications in told
        )
        record = Decisions(1, b"", 1, b"", self._lsn + 1, commits, (), {}, 0, ())
        self._lsn += len(commits)
        self.notifications.applied(record)

    def commit(self) -> None:
        self.notifications.committed(self._lsn)

    def tell(self, *told: Notifications | None) -> None:
        self.apply(*told)
        self.commit()

    def listener(self, process: int, *channels: str) -> Listener:
        made = Listener(process)
        self.notifications.listen(made, channels)
        return made

    def take(self, listener: Listener, bytes_max: int = ALL) -> list[Told]:
        return self.notifications.take(listener, bytes_max)


def sent(*pairs: tuple[str, str], node: str = "", process: int = 0) -> Notifications:
    return Notifications(tuple(Notification(*pair) for pair in pairs), node, process)


def test_who_listens_is_told_in_the_order_of_commits() -> None:
    node = Node()
    one, other = node.listener(1, "a", "b"), node.listener(2, "b")
    node.tell(sent(("a", "1"), ("b", "2")), None, sent(("c", "3")))
    node.tell(sent(("b", "4"), ("a", "5")))
    assert [told[:2] for told in node.take(one)] == [("a", "1"), ("b", "2"), ("b", "4"), ("a", "5")]
    assert [told.payload for told in node.take(other)] == ["2", "4"]
    assert node.take(one) == []
    assert node.woken == [[1, 2], [1, 2]]


def test_nothing_is_told_before_readers_see_it() -> None:
    node = Node()
    one = node.listener(1, "a")
    node.apply(sent(("a", "1")))
    node.apply(sent(("a", "2")))
    assert (one.waits, node.take(one)) == (False, [])
    node.commit()
    assert (one.waits, len(one.waiting)) == (True, 2)
    assert [told.payload for told in node.take(one)] == ["1", "2"]
    assert not one.waits


def test_who_begins_to_listen_is_told_what_its_reads_do_not_see() -> None:
    """N1: it was applied while nobody listened, and is committed behind LISTEN."""
    node = Node()
    node.apply(sent(("a", "1")))
    one = node.listener(1, "a")
    node.commit()
    assert [told.payload for told in node.take(one)] == ["1"]


def test_what_is_applied_again_is_told_once() -> None:
    """By a node that went down before it was committed."""
    node = Node()
    one = node.listener(1, "a")
    node.apply(sent(("a", "1")))
    for _ in range(2):
        node.apply(sent(("a", "2")), None, sent(("a", "3")))
        node._lsn -= 3
    node.commit()
    assert [told.payload for told in node.take(one)] == ["1", "2", "3"]


def test_a_process_is_one_of_this_node() -> None:
    node = Node()
    one = node.listener(1, "a")
    node.tell(sent(("a", "x"), node="r1", process=7), sent(("a", "y"), node="r2", process=1))
    node.tell(sent(("a", "z")))
    assert node.take(one) == [Told("a", "x", 7), Told("a", "y", 0), Told("a", "z", 0)]


def test_a_channel_that_is_left_is_told_nothing_more() -> None:
    node = Node()
    one = node.listener(1, "a", "b")
    node.tell(sent(("a", "1"), ("b", "2")))
    node.notifications.listen(one, ["b"])
    node.tell(sent(("a", "3"), ("b", "4")))
    assert [told.payload for told in node.take(one)] == ["2", "4"]
    node.tell(sent(("b", "5")))
    node.notifications.listen(one, ())
    assert not one.waits
    assert node.notifications.usage == 0


def test_a_portion_is_bounded_and_the_rest_stays() -> None:
    node = Node()
    one = node.listener(1, "a")
    node.tell(sent(*(("a", str(number)) for number in range(10))))
    assert [told.payload for told in node.take(one, 1)] == ["0"], "one at least"
    assert one.waits
    assert [told.payload for told in node.take(one)] == [str(number) for number in range(1, 10)]


def test_who_takes_nothing_is_ended_before_there_is_no_room() -> None:
    """The one with the most, and nobody else; what it had is free again."""
    node = Node(bytes_max=10_000)
    slow, other = node.listener(1, "a", "b"), node.listener(2, "b")
    payload = "x" * 1_000
    for number in range(8):
        node.tell(sent(("a", payload + str(number))))
    node.tell(sent(("b", "1")))
    assert not node.ended
    assert 0.8 < node.notifications.usage < 1
    for number in range(2):
        node.tell(sent(("a", payload + str(number))))
    assert node.ended == [1]
    assert slow.is_lost
    assert not other.is_lost
    assert node.take(slow) == []
    assert [told.payload for told in node.take(other)] == ["1"]
    assert node.notifications.usage == 0
    node.notifications.listen(slow, ["a"])
    node.tell(sent(("a", "1")))
    assert node.take(slow) == [], "it is gone"


def test_a_session_that_leaves_takes_no_room() -> None:
    node = Node()
    one = node.listener(1, "a")
    node.tell(sent(("a", "1")))
    node.notifications.leave(one)
    assert node.notifications.usage == 0
    node.tell(sent(("a", "2")))
    assert node.woken == [[1]]


def test_a_wait_ends_with_what_comes_with_a_cancel_and_with_the_node() -> None:
    node = Node()
    one = node.listener(1, "a")
    assert not node.notifications.wait(one, 0.0, lambda: False)
    assert not node.notifications.wait(one, 600.0, lambda: True)
    node.tell(sent(("a", "1")))
    assert node.notifications.wait(one, 600.0, lambda: False)
    node.take(one)
    node.notifications.close()
    assert not node.notifications.wait(one, 600.0, lambda: False)


@pytest.mark.parametrize("seed", range(20))
def test_random_sessions_are_told_what_a_model_tells(seed: int) -> None:
    """Each listener has, of every commit that came while it listened, what its channels were
    told."""
    random, node = Random(seed), Node()
    channels = ["a", "b", "c"]
    listeners = [node.listener(number) for number in range(4)]
    wanted: list[list[str]] = [[] for _ in listeners]
    found: list[list[str]] = [[] for _ in listeners]
    for number in range(200):
        place = random.randrange(len(listeners))
        match random.randrange(3):
            case 0:
                kept = random.sample(channels, random.randrange(4))
                gone = listeners[place].channels - set(kept)
                open_ = wanted[place][len(found[place]) :]
                del wanted[place][len(found[place]) :]
                wanted[place] += [told for told in open_ if told[0] not in gone]
                node.notifications.listen(listeners[place], kept)
            case 1:
                channel = random.choice(channels)
                node.tell(sent((channel, f"{channel}{number}")))
                for heard, listener in zip(wanted, listeners, strict=True):
                    if channel in listener.channels:
                        heard.append(f"{channel}{number}")
            case _:
                size = random.choice([1, 250, ALL])
                found[place] += [told.payload for told in node.take(listeners[place], size)]
    for heard, listener in zip(found, listeners, strict=True):
        heard += [told.payload for told in node.take(listener)]
    assert found == wanted, seed
    assert node.notifications.usage == 0
