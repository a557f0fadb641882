"""Rows and requests at, just below and just beyond each limit go the whole way: to the requester's
answer, to a subscriber, to a node that begins from a snapshot, or to a dead letter or a conflict.

Method: the database of a simulation, whose topics take what Kafka's producer takes. After each of
them a small write is answered; nothing vanishes, and nothing waits in vain (`Stage` demands it).
"""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from leasehold.adapters.codec.published import restore_image
from leasehold.adapters.codec.records import MessagePackCodec, restore_row_key
from leasehold.adapters.codec.request_bytes import pack_fields
from leasehold.model.errors import RequestTooLarge
from leasehold.model.records.events import RowImage
from leasehold.model.records.requests import Conflict, DeadLetter, Outcome, Result, ResultBatch
from leasehold.model.topics import PUBLISHED_BYTES_MAX
from leasehold.replication.master import refusals
from leasehold.transaction.retry import recompute
from leasehold.values.types import TEXT_BYTES_MAX
from tests.simulation.stage import Stage

CODEC = MessagePackCodec()
KEYS, TEXTS = 12, 36
KEY_NAMES = [f"k{n}" for n in range(KEYS)]
TABLE = "create table w ({}, a bigint default 7, {}, primary key ({}))".format(
    ", ".join(f"{name} text" for name in KEY_NAMES),
    ", ".join(f"t{n} text" for n in range(TEXTS)),
    ", ".join(KEY_NAMES),
)
SMALL = dict.fromkeys(KEY_NAMES, "x")
WIDE = "中" * TEXT_BYTES_MAX
NOISE = Random(9).randbytes(TEXT_BYTES_MAX // 2).hex()


def asked(op: str, key: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"table": "w", "op": op, "key": key, "on_conflict": "fail", **more}


def settle(stage: Stage, fields: dict[str, Any]) -> Outcome:
    """The answer; a small write behind it is answered, too."""
    outcome = stage.settle(fields)
    assert stage.settle(stage.update(1, 5)).lsn
    return outcome


def published(stage: Stage) -> dict[tuple[Any, ...], Any]:
    """What a subscriber's topic says of each row of `w`."""
    stage.passing(2_000)
    assert stage.master is not None
    assert stage.master.node is not None
    table_id = next(t.table_id for t in stage.master.node.catalog.tables() if t.name == "w")
    topic = stage.cluster.topics.rows(table_id)
    found = {}
    for partition in range(topic.partitions):
        for message in stage.cluster.bus.read(topic.name, partition):
            key = restore_row_key(message.key)
            found[key] = None if message.value is None else restore_image(key, message.value)
    return found


def letters(stage: Stage, topic: str) -> list[Any]:
    stage.passing(2_000)
    found = []
    for partition in range(2):
        for message in stage.cluster.bus.read(topic, partition):
            assert message.value is not None
            assert len(message.key) + len(message.value) <= PUBLISHED_BYTES_MAX
            found.append(CODEC.decode(message.value))
    return found


@pytest.fixture
def stage() -> Stage:
    made = Stage()
    made.settle({"sql": TABLE})
    return made


@pytest.mark.parametrize("text", [WIDE, "x" * TEXT_BYTES_MAX, NOISE], ids=["wide", "same", "noise"])
@pytest.mark.parametrize("beyond", [-1, 0, 1])
def test_a_text_at_its_limit_reaches_a_subscriber(stage: Stage, text: str, beyond: int) -> None:
    value = text[:-1] if beyond < 0 else text + text[:beyond]
    outcome = settle(stage, asked("insert", SMALL, values={"t0": value}))
    assert outcome.code == ("22001" if beyond > 0 else "")
    images = published(stage)
    assert len(images) == (beyond <= 0)
    assert all(isinstance(image, RowImage) for image in images.values())
    assert all(value in image.values.values() for image in images.values())


@pytest.mark.parametrize("spare", [400, 1, 0, -1, -400])
def test_a_row_at_the_limit_of_a_message_is_published_or_refused(stage: Stage, spare: int) -> None:
    """How large it may be is found by the master's own words, then each side of it is tried."""
    full = (PUBLISHED_BYTES_MAX - 40_000) // TEXT_BYTES_MAX
    values = {f"t{n}": "x" * TEXT_BYTES_MAX for n in range(full)}
    rest = f"t{full}"
    first = settle(stage, asked("insert", SMALL, values={**values, rest: "x" * TEXT_BYTES_MAX}))
    assert first.code == "54000"
    size = int(first.message.split(" would have ")[1].split(" bytes")[0])
    room = TEXT_BYTES_MAX - (size - PUBLISHED_BYTES_MAX)
    last = settle(stage, asked("insert", SMALL, values={**values, rest: "x" * (room - spare)}))
    assert last.code == ("54000" if spare < 0 else "")
    images = published(stage)
    assert [type(image) for image in images.values()] == [RowImage] * (spare >= 0)


@pytest.mark.parametrize("op", ["update", "delete"])
@pytest.mark.parametrize("on_conflict", ["fail", "retry"])
def test_a_refusal_that_names_a_large_key_is_answered(
    stage: Stage, op: str, on_conflict: str
) -> None:
    """Twelve texts of three-byte characters are 9 MB in the words, and a hundredth in the log."""
    values = {"values": {"a": {"expr": "a + 1"}}} if op == "update" else {}
    key = dict.fromkeys(KEY_NAMES, WIDE[:-100])
    asks = asked(op, key, expect=7, **values)
    outcome = settle(stage, {**asks, "on_conflict": on_conflict})
    assert outcome.code == "40001"
    assert "verify error in table 'w'" in outcome.message
    assert outcome.detail["detail_cut"] is True
    answer = ResultBatch((Result(bytes(16), 0, outcome),))
    assert len(CODEC.encode(answer)) <= refusals.WORDS_BYTES_MAX


def filled(stage: Stage, texts: int) -> None:
    noise = {f"t{n}": NOISE for n in range(texts)}
    assert settle(stage, asked("insert", SMALL, values=noise)).lsn


def computed(texts: int) -> dict[str, Any]:
    def noise(n: int) -> str:
        return Random(n).randbytes(TEXT_BYTES_MAX // 2).hex()

    return {f"t{n}": {"expr": "$1", "args": [noise(n)], "types": ["text"]} for n in range(texts)}


def test_a_conflict_beside_a_large_row_keeps_what_the_next_attempt_needs(stage: Stage) -> None:
    filled(stage, 24)
    asks = asked("update", SMALL, expect=7, values=computed(18), on_conflict="retry")
    assert settle(stage, asks).lsn
    (conflict,) = letters(stage, stage.cluster.topics.conflicts.name)
    assert isinstance(conflict, Conflict)
    assert conflict.image is not None
    assert conflict.image.values == {}
    request = CODEC.decode_request(conflict.content_type, conflict.body)
    assert not recompute(request, conflict.image, table="w").give_up


def test_a_request_that_no_conflict_has_room_for_is_a_dead_letter(stage: Stage) -> None:
    """As JSON it may be as large as a message; the fields of a conflict come beside it."""
    filled(stage, 1)
    asks = {
        **asked("update", SMALL, expect=7, values=computed(1), on_conflict="retry"),
        "id": stage.cluster.fresh_id(),
        "reply_to": 0,
    }
    stage.cluster.put("application/json", as_json(asks, PUBLISHED_BYTES_MAX - 1))
    outcome = stage.answer(asks["id"])
    assert outcome.code == "40001"
    assert outcome.message.endswith(refusals.TOO_LARGE_TO_RETRY)
    assert stage.settle(stage.update(1, 5)).lsn
    (letter,) = letters(stage, stage.cluster.topics.dead_letter.name)
    assert isinstance(letter, DeadLetter)
    assert letter.detail["body_bytes"] == PUBLISHED_BYTES_MAX - 1


def as_json(fields: dict[str, Any], size: int) -> bytes:
    """The request as JSON of so many bytes: spaces fill it up."""
    plain = {**fields, "id": fields["id"].hex()}
    data = json.dumps(plain).encode()
    return data + b" " * (size - len(data))


def test_a_request_beyond_its_limit_is_refused_where_it_is_made() -> None:
    rows = [asked("insert", {**SMALL, "k0": str(n)}, values={"t0": WIDE}) for n in range(30)]
    operations = [{k: v for k, v in row.items() if k != "on_conflict"} for row in rows]
    with pytest.raises(RequestTooLarge):
        pack_fields({"transaction": operations})


def test_a_node_that_begins_from_a_snapshot_has_the_largest_rows(stage: Stage) -> None:
    """It takes another node's store, and what came after it from the log."""
    filled(stage, 31)
    stage.node("r1").crash()
    stage.stores.put("r1", stage.stores.get("r2").copy())
    other = {**SMALL, "k0": "y"}
    after = {f"t{n}": NOISE for n in range(31)}
    assert settle(stage, asked("insert", other, values=after)).lsn
    stage.node("r1").start()
    stage.until(lambda: "r1" in stage.coherent(), "r1 to be coherent")
    images = published(stage)
    snapshot = stage.stores.get("r1").open_snapshot()
    table = snapshot.newest("w")
    for key in (SMALL, other):
        place = tuple(key.values())
        row = snapshot.get(table, place)
        assert row is not None
        assert row.values == images[place].values
        assert len(images[place].values) == KEYS + 1 + 31
