"""The fourteen anomalies of Hermitage, each as a story told by sessions on different replicas.

A story gives True where its anomaly did not come about. Where PostgreSQL lets a session wait, here
it goes on, and one of the two is refused or replayed at COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from leasehold.model.errors import Refused
from tests.isolation.said import EVERY, Said, added, divides, id_is, is_, to
from tests.isolation.session import Session
from tests.simulation.stage import Stage


class Told(Protocol):
    """A session at work on table test, whatever it speaks."""

    def begin(self) -> Told: ...
    def get(self, key: int, *, selectv: bool = False) -> Any: ...
    def select(self, where: Said = EVERY, *, selectv: bool = False) -> dict[int, Any]: ...
    def update(self, change: Said, where: Said = EVERY) -> int: ...
    def put(self, key: int, value: Any) -> int: ...
    def insert(self, key: int, value: Any) -> None: ...
    def delete(self, where: Said) -> int: ...
    def abort(self) -> None: ...
    def commit(self) -> object: ...


class Stands(Protocol):
    """Table test with (1, 10) and (2, 20), and sessions at one level on different replicas."""

    def sessions(self, count: int) -> Sequence[Told]:
        """Begun, one after the other."""
        ...

    def session(self, node: str) -> Told: ...

    def rows(self) -> dict[int, Any]:
        """What is committed, on both replicas."""
        ...


class Scene:
    """Table test with (1, 10) and (2, 20); sessions at one level, on r1 and r2 in turn."""

    def __init__(
        self,
        level: str,
        **options: Any,
    ) -> None:
        self.level = level
        self.stage = Stage()
        self._options = options
        self.stage.settle({"sql": "create table test (id bigint primary key, value bigint)"})
        for key, value in ((1, 10), (2, 20)):
            row = {"table": "test", "op": "insert", "key": {"id": key}, "values": {"value": value}}
            self.stage.settle(row)

    def sessions(self, count: int) -> list[Session]:
        """Begun, one after the other."""
        return [self.session(f"r{1 + n % 2}").begin() for n in range(count)]

    def session(self, node: str, **options: Any) -> Session:
        return Session(self.stage, node, self.level, **{**self._options, **options})

    def rows(self) -> dict[int, Any]:
        """What is committed, on both replicas."""
        seen = [Session(self.stage, node, "read committed").select() for node in ("r1", "r2")]
        assert seen[0] == seen[1], seen
        return seen[0]


def committed(session: Told) -> bool:
    """False where it ends with a serialization failure."""
    try:
        session.commit()
    except Refused as error:
        if error.sqlstate != "40001":
            raise
        return False
    return True


def g0(scene: Stands) -> bool:
    """Write cycles: two transactions write both rows."""
    one, two = scene.sessions(2)
    one.put(1, 11)
    two.put(1, 12)
    one.put(2, 21)
    assert committed(one)
    two.put(2, 22)
    last = committed(two)
    return scene.rows() == ({1: 12, 2: 22} if last else {1: 11, 2: 21})


def g1a(scene: Stands) -> bool:
    """Aborted reads."""
    one, two = scene.sessions(2)
    one.put(1, 101)
    first = two.select()
    one.abort()
    second = two.select()
    assert committed(two)
    return first == second == {1: 10, 2: 20}


def g1b(scene: Stands) -> bool:
    """Intermediate reads."""
    one, two = scene.sessions(2)
    one.put(1, 101)
    first = two.get(1)
    one.put(1, 11)
    assert committed(one)
    second = two.get(1)
    assert committed(two)
    return 101 not in (first, second)


def g1c(scene: Stands) -> bool:
    """Circular information flow: each sees what the other wrote."""
    one, two = scene.sessions(2)
    one.put(1, 11)
    two.put(2, 22)
    seen_by_one, seen_by_two = one.get(2), two.get(1)
    assert committed(one)
    last = committed(two)
    return not (last and seen_by_one == 22 and seen_by_two == 11)


def otv(scene: Stands) -> bool:
    """An observed transaction vanishes."""
    one, two = scene.sessions(2)
    one.put(1, 11)
    one.put(2, 19)
    two.put(1, 12)
    assert committed(one)
    (three,) = scene.sessions(1)
    first = three.get(1)
    two.put(2, 18)
    second = three.get(2)
    committed(two)
    third, fourth = three.get(2), three.get(1)
    assert committed(three)
    assert first == 11
    return second == 19 and (third, fourth) in ((19, 11), (18, 12))


def pmp(scene: Stands) -> bool:
    """Predicate-many-preceders, read."""
    one, two = scene.sessions(2)
    before = one.select(is_(30))
    two.insert(3, 30)
    assert committed(two)
    after = one.select(divides(3))
    assert committed(one)
    return before == after == {}


def pmp_write(scene: Stands) -> bool:
    """Predicate-many-preceders, write: rows that another one moves into or out of a DELETE."""
    one, two = scene.sessions(2)
    one.update(added(10))
    two.delete(is_(20))
    assert committed(one)
    last = committed(two)
    return scene.rows() == ({2: 30} if last else {1: 20, 2: 30})


def p4(scene: Stands) -> bool:
    """Lost update: both write what they have computed from the same row."""
    one, two = scene.sessions(2)
    assert one.get(1) == two.get(1) == 10
    one.put(1, 11)
    two.put(1, 11)
    assert committed(one)
    return not committed(two)


def g_single(scene: Stands) -> bool:
    """Read skew."""
    one, two = scene.sessions(2)
    first = one.get(1)
    assert two.select() == {1: 10, 2: 20}
    two.put(1, 12)
    two.put(2, 18)
    assert committed(two)
    second = one.get(2)
    assert committed(one)
    return (first, second) == (10, 20)


def g_single_predicate(scene: Stands) -> bool:
    """Read skew, by predicates."""
    one, two = scene.sessions(2)
    assert one.select(divides(5)) == {1: 10, 2: 20}
    two.update(to(12), is_(10))
    assert committed(two)
    after = one.select(divides(3))
    assert committed(one)
    return after == {}


def g_single_write(scene: Stands) -> bool:
    """Read skew, then a DELETE by a predicate."""
    one, two = scene.sessions(2)
    assert one.get(1) == 10
    assert two.select() == {1: 10, 2: 20}
    two.put(1, 12)
    two.put(2, 18)
    assert committed(two)
    one.delete(is_(20))
    second = one.get(2)
    last = committed(one)
    assert scene.rows() == {1: 12, 2: 18}, "20 was not there any more when it committed"
    return not last or second != 18


def g2_item(scene: Stands) -> bool:
    """Write skew: each reads both rows and writes one."""
    one, two = scene.sessions(2)
    assert one.select() == two.select() == {1: 10, 2: 20}
    one.put(1, 11)
    two.put(2, 21)
    assert committed(one)
    return not committed(two)


def g2(scene: Stands) -> bool:
    """Anti-dependency cycle by a predicate: each makes a row that the other has not seen."""
    one, two = scene.sessions(2)
    assert one.select(divides(3)) == two.select(divides(3)) == {}
    one.insert(3, 30)
    two.insert(4, 42)
    assert committed(one)
    return not committed(two)


def g2_two_edges(scene: Stands) -> bool:
    """Fekete's: a reader sees the second writer's row and not the first one's."""
    (one,) = scene.sessions(1)
    assert one.select() == {1: 10, 2: 20}
    two = scene.session("r2").begin()
    two.update(added(5), id_is(2))
    assert committed(two)
    three = scene.session("r1").begin()
    assert three.select() == {1: 10, 2: 25}
    assert committed(three)
    one.put(1, 0)
    return not committed(one)


CASES: Final[dict[str, Callable[[Stands], bool]]] = {
    "G0": g0,
    "G1a": g1a,
    "G1b": g1b,
    "G1c": g1c,
    "OTV": otv,
    "PMP": pmp,
    "PMP write": pmp_write,
    "P4": p4,
    "G-single": g_single,
    "G-single predicate": g_single_predicate,
    "G-single write": g_single_write,
    "G2-item": g2_item,
    "G2": g2,
    "G2 two edges": g2_two_edges,
}
