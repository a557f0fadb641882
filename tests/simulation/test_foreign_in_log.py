"""Whatever somebody else writes to the log, wherever: no node stops, all stay coherent, each
request has one answer, and nothing of it is applied (L1, L2, L4).

Method: a stage with writes, a barrier, a check and a change of master, by which a log of some forty
records comes to be. Behind each of its records, or behind one of them, stands a record of one kind,
made with what whoever reads the log knows there. The simulation's own judges look on: what counts,
what is answered, who may read.

Whoever writes the next record of the chain, with its digest, can change what is in it: that kind is
tried as well, and ends in the same state on all nodes.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any, Final

import msgpack
import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.in_process.bus import Message
from leasehold.model.records.acks import Ack
from leasehold.model.records.log import (
    Barrier,
    ChangeKind,
    CheckSlice,
    Claim,
    Commit,
    Decisions,
    LogPosition,
    RowChange,
)
from tests.simulation.stage import Stage

CODEC: Final = MessagePackCodec()
SEED: Final = int(os.environ.get("SEED") or random.SystemRandom().getrandbits(32))
STRANGER: Final = b"stranger" * 2
ROW: Final = RowChange(ChangeKind.INSERT, 1, 1, (9,), {1: 9, 2: 666}, {}, (0,))
CHANGES_ROW: Final = Commit(b"", 1, 1 << 60, {}, (ROW,), 1)


class Place:
    """What is known behind a record of the log: where readers are, and what stands there."""

    def __init__(self, at: LogPosition, log: list[bytes], chance: random.Random) -> None:
        self.at = at
        self.log = log
        self.chance = chance

    def next(self, **other: Any) -> Decisions:
        """The record that a master would write next, but for `other`."""
        at = self.at
        record = Decisions(
            at.epoch, at.incarnation, at.sequence + 1, at.digest, at.lsn + 1, (), (), {}, 0, ()
        )
        return record._replace(**other)

    def spoiled(self, data: bytes) -> bytes:
        at = self.chance.randrange(len(data))
        return data[:at] + self.chance.randbytes(1) + data[at + 1 :]


Kind = Callable[[Place], list[bytes]]


def encoded(*records: Any) -> list[bytes]:
    return [CODEC.encode(record) for record in records]


def linked(place: Place) -> list[bytes]:
    """Two records of a chain that nobody has."""
    first = place.next(sequence=77, commits=(CHANGES_ROW,))
    (data,) = encoded(first)
    return [data, *encoded(first._replace(sequence=78, previous=CODEC.digest(data)))]


KINDS: Final[dict[str, Kind]] = {
    "nothing": lambda _: [b""],
    "one byte": lambda _: [b"\0"],
    "random bytes": lambda p: [p.chance.randbytes(p.chance.randrange(300))],
    "half of the last": lambda p: [p.log[-1][: len(p.log[-1]) // 2]],
    "the last, spoiled": lambda p: [p.spoiled(p.log[-1])],
    "the last again": lambda p: [p.log[-1]],
    "some again": lambda p: p.log[-5:],
    "all again": lambda p: p.log[:8],
    "an acknowledgement": lambda _: encoded(Ack("x", b"", "", 1, 1, 1, 0, True, "", 1)),
    "a row, place read before": lambda p: encoded(
        p.next(sequence=p.at.sequence, commits=(CHANGES_ROW,))
    ),
    "a row, another before it": lambda p: encoded(
        p.next(previous=b"p" * 16, commits=(CHANGES_ROW,))
    ),
    "a row, later place": lambda p: encoded(p.next(sequence=99, commits=(CHANGES_ROW,))),
    "a row, another LSN": lambda p: encoded(p.next(first_lsn=1 << 40, commits=(CHANGES_ROW,))),
    "a row of the past": lambda p: encoded(p.next(commits=(CHANGES_ROW._replace(commit_us=1),))),
    "a row of a term before": lambda p: encoded(p.next(epoch=0, commits=(CHANGES_ROW,))),
    "a row of the next term": lambda p: encoded(
        p.next(epoch=p.at.epoch + 1, incarnation=STRANGER, sequence=1, commits=(CHANGES_ROW,))
    ),
    "a row of a term to come": lambda p: encoded(p.next(epoch=10**6, commits=(CHANGES_ROW,))),
    "a row of another process": lambda p: encoded(
        p.next(incarnation=STRANGER, commits=(CHANGES_ROW,))
    ),
    "a claim of this term": lambda p: encoded(Claim(p.at.epoch, STRANGER, p.at.digest, "m9")),
    "a claim that does not fit": lambda p: encoded(
        Claim(p.at.epoch + 1, STRANGER, b"p" * 16, "m9")
    ),
    "a claim of a term to come": lambda p: encoded(Claim(10**6, STRANGER, p.at.digest, "m9")),
    "of another format": lambda p: [
        msgpack.packb((7, *msgpack.unpackb(*encoded(p.next(previous=b"p" * 16)))[1:]))
    ],
    "fields that are none": lambda p: [
        msgpack.packb((*msgpack.unpackb(*encoded(p.next()))[:9], None, None, None))
    ],
    "a barrier": lambda _: encoded(Barrier(STRANGER)),
    "a check of nothing": lambda _: encoded(Barrier(STRANGER, 10**9)),
    "a repair": lambda _: encoded(Barrier(STRANGER, 1, "m9")),
    "a slice": lambda _: encoded(Barrier(STRANGER, 1, "r1", CheckSlice(0, (), 1))),
}
BESIDE_A_MASTER: Final[dict[str, Kind]] = {
    "a chain that nobody has": linked,
    "a claim, and rows behind it": lambda p: [
        *(bid := encoded(Claim(p.at.epoch + 1, STRANGER, b"p" * 16, "m9"))),
        *encoded(
            p.next(
                epoch=p.at.epoch + 1,
                incarnation=STRANGER,
                sequence=1,
                previous=CODEC.digest(bid[0]),
                commits=(CHANGES_ROW,),
            )
        ),
    ],
}
"""Who writes two of a chain while there is no master, keeps candidates from a claim: they can't
tell it from one that they have missed."""
IN_THE_CHAIN: Final[dict[str, Kind]] = {
    "a claim that fits": lambda p: encoded(Claim(p.at.epoch + 1, STRANGER, p.at.digest, "m9")),
    "a heartbeat that fits": lambda p: encoded(p.next()),
    "a row that fits": lambda p: encoded(
        p.next(commits=(CHANGES_ROW._replace(commit_us=p.at.time_us + 1),))
    ),
}


class Intruder:
    """Appends records of one kind to a stage's log, behind each of the places chosen, by number."""

    def __init__(self, stage: Stage, kind: Kind, chosen: Callable[[int], bool]) -> None:
        self.stage = stage
        self.kind = kind
        self.chosen = chosen
        self.places = 0
        self.written: list[bytes] = []
        self._log = stage.cluster.topics.log.name
        self._data: list[bytes] = [m.value or b"" for m in stage.cluster.bus.read(self._log)]
        self._judged = stage.cluster.bus.on_append
        self._chance = random.Random(f"{SEED}")
        self._writes = False
        stage.reference.foreign_records = True
        stage.cluster.bus.on_append = self._appended

    def _appended(self, topic: str, partition: int, message: Message) -> None:
        self._judged(topic, partition, message)
        if topic != self._log or self._writes:
            return
        self._data.append(message.value or b"")
        self.places += 1
        if self.chosen(self.places):
            self.stage.scheduler.later(0, self._write)

    def _write(self) -> None:
        self._writes = True
        place = Place(self.stage.reference.position, self._data, self._chance)
        for data in self.kind(place):
            self.written.append(data)
            self.stage.cluster.bus.append(self._log, 0, b"", data)
        self._writes = False


def intruded(
    kind: Kind, chosen: Callable[[int], bool], *, dies: bool = True, applied: bool = False
) -> Intruder:
    """The story, with what is written by somebody else; → who wrote it. `applied`: whether his row
    is in the stores at the end."""
    stage = Stage()
    intruder = Intruder(stage, kind, chosen)
    stage.settle(stage.update(1, 11))
    stage.pass_barrier(stage.node("r1"))
    stage.settle({"barrier": [1]})
    stage.passing(700)
    stage.settle(stage.update(2, 22))
    if dies:
        stage.node("m1").crash()
        stage.until(lambda: stage.master is stage.node("m2"), "another master", virtual_ms=60_000)
    stage.settle(stage.update(1, 12))
    stage.pass_barrier(stage.node("r2"))
    if dies:
        stage.node("m1").start()
    stage.passing(1_500)
    stage.settle(stage.update(2, 23))
    stage.cluster.bus.on_append = intruder._judged
    stage.until(lambda: len(stage.coherent()) == 2, "all coherent")
    stage.passing(500)
    assert (stage.row(1)[2], stage.row(2)[2]) == (12, 23)
    for name in ("m1", "m2", "r1", "r2"):
        node = stage.node(name).node
        assert node is not None, f"{name} has ended"
        assert node.position.lsn == stage.reference.position.lsn, name
        rows = [stage.stores.get(name).contents.row(1, (key,)) for key in (1, 2)]
        assert [row and row.values[2] for row in rows] == [12, 23], name
        his = stage.stores.get(name).contents.row(1, (9,))
        assert (his is not None) == applied, name
    return intruder


@pytest.mark.parametrize("kind", [*KINDS])
def test_l2_behind_every_record(kind: str) -> None:
    print(f"seed {SEED}")
    intruder = intruded(KINDS[kind], lambda _: True)
    assert intruder.places > 20
    assert len(intruder.written) >= intruder.places


@pytest.mark.parametrize("kind", [*KINDS])
def test_l2_behind_one_record(kind: str) -> None:
    """Any one, drawn; `test_l2_behind_any_record` takes each of them."""
    print(f"seed {SEED}")
    chosen = random.Random(f"{SEED}/{kind}").randrange(1, 20)
    assert intruded(KINDS[kind], lambda place: place == chosen).written


@pytest.mark.long("each kind of record behind each of some twenty others, one after the other")
@pytest.mark.parametrize("kind", [*KINDS])
def test_l2_behind_any_record(kind: str) -> None:
    chosen, places = 1, 2
    while chosen < places:
        places = intruded(KINDS[kind], lambda place, wanted=chosen: place == wanted).places  # type: ignore[misc]
        chosen += 1


@pytest.mark.parametrize("kind", [*BESIDE_A_MASTER])
def test_l2_a_chain_of_somebody_elses_beside_a_master(kind: str) -> None:
    intruder = intruded(BESIDE_A_MASTER[kind], lambda _: True, dies=False)
    assert len(intruder.written) >= 2 * intruder.places


@pytest.mark.parametrize("kind", [*IN_THE_CHAIN])
@pytest.mark.parametrize("chosen", [1, 3, 6, 9, 14])
def test_l4_whoever_knows_the_chain_takes_the_term_and_stops_nobody(kind: str, chosen: int) -> None:
    """All nodes take it, the master too, which gives up its term; another one follows."""
    applied = kind == "a row that fits"
    assert intruded(IN_THE_CHAIN[kind], lambda place: place == chosen, applied=applied).written
