"""S8: whose a change request is, through a whole database in one process: signed requests, chunks
of backfills and next attempts; what isn't proven is refused, kept, told and audited.

Method: a database with a master key. What strangers send is put on its queues as bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leasehold.adapters.codec.request_bytes import MESSAGE_PACK, pack_fields
from leasehold.adapters.os.clock import new_request_id
from leasehold.catalog.job import Status
from leasehold.catalog.roles import FIRST_ROLE
from leasehold.dev.database import REPLY_TO, Answer, DevDatabase
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.ids import format_request_id
from leasehold.model.records.requests import Outcome
from leasehold.model.signatures import RequestKeys, Signer, derive_role_key, read_keys, signer

MASTER = "a-master-key-of-more-than-enough-characters"
KEYS = read_keys(MASTER)
DATABASE = "dev"
BOSS = FIRST_ROLE.name
ROW = {"table": "t", "op": "upsert", "key": {"id": 1}, "values": {"n": 1}}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevDatabase]:
    made = DevDatabase(tmp_path_factory.mktemp("dev"), replicants=1, keys=KEYS)
    try:
        made.ask({"sql": "create table t (id bigint primary key, n integer)"})
        yield made
    finally:
        made.close()


def send(database: DevDatabase, content_type: str, body: bytes, request_id: bytes) -> Outcome:
    """Put bytes on the queue of requests, and return the answer to the id in them."""
    with database.held():
        database.cluster.put(content_type, body)
    answers = database._outcomes
    assert database.until(lambda: request_id in answers, 10)
    return answers.pop(request_id)


def signed(
    database: DevDatabase, sign: Signer, fields: dict[str, Any] | None = None, role: str = ""
) -> Outcome:
    request_id = new_request_id()
    media_type, body = pack_fields({**(fields or ROW), "id": request_id, "reply_to": REPLY_TO})
    content_type = sign("requests", role, media_type, body)
    return send(database, content_type, body, request_id)


def role_keys(database: DevDatabase, name: str, master: str = MASTER) -> RequestKeys:
    number = FIRST_ROLE.key_number
    return RequestKeys(of_role=derive_role_key(master.encode(), DATABASE, name, number))


def still_answers(database: DevDatabase) -> Answer:
    answer = database.ask(ROW)
    assert answer.committed, answer
    return answer


def audited(database: DevDatabase) -> list[AuditEvent]:
    master = database.cluster.master()
    assert master is not None
    return list(master.driver.audited)


def test_s8_signed_requests_backfills_and_retries_work(database: DevDatabase) -> None:
    still_answers(database)
    made = database.ask({"sql": "create index t_n on t (n)"})
    job = database.wait_job(made.outcome.answer["job"])
    assert job is not None
    assert job.status is Status.SUCCEEDED
    retried = {**ROW, "op": "update", "values": {"n": {"expr": "n + 1"}}, "expect": 7}
    answer = database.ask(retried)
    assert (answer.outcome.attempt, answer.committed) == (2, True)
    assert database.check().differences == ()


def test_s8_a_role_s_own_key_signs_in_its_name_alone(database: DevDatabase) -> None:
    own = role_keys(database, BOSS)
    assert signed(database, signer(own, DATABASE, BOSS)).lsn
    assert signed(database, signer(own, DATABASE, "pg_monitor")).code == "28000"
    revoked = RequestKeys(of_role=derive_role_key(MASTER.encode(), DATABASE, BOSS, "10.7"))
    refused = signed(database, signer(revoked, DATABASE, BOSS))
    assert (refused.code, refused.final) == ("28000", True)
    assert "leasehold role key" in refused.message


@pytest.mark.parametrize(
    "content_type",
    [
        MESSAGE_PACK,
        f"{MESSAGE_PACK}; role={BOSS}",
        f"{MESSAGE_PACK}; signature={'a' * 64}",
        f"{MESSAGE_PACK}; role={BOSS}; key=10.0; signature={'a' * 64}",
        f"{MESSAGE_PACK}; role=%FF; signature={'a' * 64}",
        f"{MESSAGE_PACK}; {'x' * 500}",
    ],
)
def test_s8_what_is_not_proven_is_refused_told_and_kept(
    database: DevDatabase, content_type: str
) -> None:
    request_id = new_request_id()
    _, body = pack_fields({"sql": "drop table t", "id": request_id, "reply_to": REPLY_TO})
    outcome = send(database, content_type, body, request_id)
    assert (outcome.code, outcome.final, outcome.lsn) == ("28000", True, 0)
    still_answers(database)
    letters = [letter for _, letter in database.dead_letters()]
    assert (letters[-1].code, letters[-1].body) == ("28000", body)


def test_s8_no_forgery_settles_the_id_of_another(database: DevDatabase) -> None:
    """An unsigned request under an id that a true one has had: the true one's answer is given
    again. Under one that it will have: the true one is decided all the same."""
    answer = still_answers(database)
    known = database._outcomes.copy()
    taken = next(i for i in known if format_request_id(i) == answer.request_id)
    database._outcomes.pop(taken)
    media_type, body = pack_fields({"sql": "drop table t", "id": taken, "reply_to": REPLY_TO})
    assert send(database, media_type, body, taken).lsn == answer.outcome.lsn

    fresh = new_request_id()
    media_type, body = pack_fields({**ROW, "id": fresh, "reply_to": REPLY_TO})
    assert send(database, media_type, body, fresh).code == "28000"
    content_type = signer(KEYS, DATABASE)("requests", "", media_type, body)
    assert send(database, content_type, body, fresh).lsn


def test_s8_a_signed_request_sent_again_changes_nothing(database: DevDatabase) -> None:
    add = {**ROW, "op": "update", "values": {"n": {"expr": "n + 1"}}}
    still_answers(database)
    request_id = new_request_id()
    media_type, body = pack_fields({**add, "id": request_id, "reply_to": REPLY_TO})
    content_type = signer(KEYS, DATABASE)("requests", "", media_type, body)
    first = send(database, content_type, body, request_id)
    assert send(database, content_type, body, request_id) == first
    row = database.get("t", {"id": 1})
    assert row is not None
    assert row["n"] == 2


def test_s8_chunks_that_the_database_has_not_signed_are_passed_over(
    database: DevDatabase,
) -> None:
    """One that a role has signed for itself, and one that nobody has."""
    topic = database.cluster.topics.backfill.name
    own = signer(role_keys(database, BOSS), DATABASE, BOSS)
    before = len(database.dead_letters())
    for content_type in (MESSAGE_PACK, own("backfill", "", MESSAGE_PACK, b"\x91\x01")):
        with database.held():
            headers = {"content-type": content_type}
            database.cluster.bus.append(topic, 0, b"", b"\x91\x01", headers)
    assert database.until(lambda: len(database.dead_letters()) >= before + 2, 10)
    assert {letter.code for _, letter in database.dead_letters()[before:]} == {"28000"}
    still_answers(database)


def test_s8_large_bytes_of_nobody_are_kept_in_part(database: DevDatabase) -> None:
    request_id = new_request_id()
    fields = {"sql": "x" * 50_000, "id": request_id, "reply_to": REPLY_TO}
    assert send(database, *pack_fields(fields), request_id).code == "28000"
    still_answers(database)
    _, letter = database.dead_letters()[-1]
    assert letter.body is not None
    assert len(letter.body) == 4096
    assert letter.detail["body_bytes"] > 50_000


def test_s8_no_password_of_nobody_s_is_kept(database: DevDatabase) -> None:
    for sql in ("create role a PassWord 'x'", "create role a password '" + "x" * 200_000 + "'"):
        request_id = new_request_id()
        fields = {"sql": sql, "id": request_id, "reply_to": REPLY_TO}
        assert send(database, *pack_fields(fields), request_id).code == "28000"
        still_answers(database)
        _, letter = database.dead_letters()[-1]
        assert (letter.code, letter.body) == ("28000", b"")


def test_s8_mutated_messages_neither_pass_nor_stop_anything(database: DevDatabase) -> None:
    rng = random.Random(35)
    sign = signer(KEYS, DATABASE)
    lsn = still_answers(database).outcome.lsn
    for _ in range(300):
        fields = {"sql": "drop table t", "id": new_request_id(), "reply_to": -1}
        media_type, body = pack_fields(fields)
        content_type = sign("requests", "", media_type, body)
        where = rng.randrange(len(body) + len(content_type))
        if where < len(body):
            changed = bytearray(body)
            changed[where] ^= 1 << rng.randrange(8)
            body = bytes(changed)
        else:
            # Of the proof: a media type in capitals is the same one.
            at = rng.randrange(content_type.index("signature="), len(content_type))
            letter = chr(rng.randrange(1, 0x300))
            content_type = content_type[:at] + letter + content_type[at + 1 :]
            if content_type == sign("requests", "", media_type, body):
                continue
        with database.held():
            database.cluster.put(content_type, body)
    assert still_answers(database).outcome.lsn == lsn + 1
    refusals = [event for event in audited(database) if event.kind is Audited.REFUSED]
    assert sum(event.times for event in refusals) >= 290
    assert all(len(event.words) < 1_000 for event in refusals)


def test_who_changed_what_is_audited_and_stands_with_its_job(database: DevDatabase) -> None:
    made = database.ask({"sql": "alter table t add column word text default 'secret'"})
    database.wait_job(made.outcome.answer["job"])
    steered = database.ask({"job": made.outcome.answer["job"], "action": "dismiss"})
    events = audited(database)
    schema = [event for event in events if event.kind is Audited.SCHEMA]
    assert (schema[-1].subject, schema[-1].role) == ("t", BOSS)
    assert not any("secret" in str(event) for event in events)
    assert steered.outcome.code or events[-1].kind is Audited.JOB


def test_without_a_key_all_is_as_it_was_and_a_claim_is_believed(tmp_path: Path) -> None:
    database = DevDatabase(tmp_path, replicants=1)
    try:
        made = database.ask(
            {"sql": "create table t (id bigint primary key, n integer)"}, principal=BOSS
        )
        assert made.committed
        still_answers(database)
        assert database.ask(ROW, principal="nobody").outcome.code == "28000"
    finally:
        database.close()


def test_unsigned_requests_are_of_the_role_that_is_set(tmp_path: Path) -> None:
    database = DevDatabase(tmp_path, replicants=1, keys=KEYS, unsigned_role=BOSS)
    try:
        database.ask({"sql": "create table t (id bigint primary key, n integer)"})
        request_id = new_request_id()
        media_type, body = pack_fields({**ROW, "id": request_id, "reply_to": REPLY_TO})
        assert send(database, media_type, body, request_id).lsn
        claim = f"{media_type}; role=nobody"
        other = new_request_id()
        _, body = pack_fields({**ROW, "id": other, "reply_to": REPLY_TO})
        assert send(database, claim, body, other).lsn
    finally:
        database.close()
