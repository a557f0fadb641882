"""Goal: the master lets a request do what the role of its principal may, under the newest catalog,
and nothing else; a refusal is final, and in the log.

Method: requests of several roles to a master and a follower; what was granted and revoked between
them counts at once. What a principal is told by, and how that is proved, is not looked at here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.model.records.log import Disposition
from leasehold.model.records.requests import ChangeRequest
from tests.support.replication.world import World, insert, update

MADE = (
    "create table t (id bigint primary key, a integer, b text);"
    "create table n (id serial primary key, t bigint references t on delete cascade);"
    "create table i (id int generated always as identity primary key, a int); create sequence s;"
    "create role ann login; create role bob login; create role staff; grant staff to ann"
)


class Roles(World):
    """A world whose requests say who asks; the way by which that travels is not theirs."""

    def ask_as(self, role: str, request: dict[str, Any], as_role: str = "") -> str:
        """Return the SQLSTATE, "" = committed, or the words where it is refused with 42501."""
        found = self.ask({**request, "on_conflict": "fail", "who": [role, as_role]})
        return "" if found.lsn else found.message if found.code == "42501" else found.code


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[Roles]:
    decode = MessagePackCodec.decode_request

    def decoded(codec: MessagePackCodec, content_type: str, data: bytes) -> ChangeRequest:
        fields = json.loads(data)
        role, as_role = fields.pop("who", ("", ""))
        request = decode(codec, content_type, json.dumps(fields).encode())
        return request._replace(principal=role, as_role=as_role)

    monkeypatch.setattr(MessagePackCodec, "decode_request", decoded)
    made = Roles()
    assert made.ask({"sql": MADE}).lsn == 1
    assert made.ask_as("", insert(1, a=1, b="x")) == ""
    yield made
    assert made.follower.catalog.access.objects == made.node.catalog.access.objects


DENIED = "permission denied for table t"
DELETE = {"table": "t", "op": "delete", "key": {"id": 1}}
UPSERT = {"table": "t", "op": "upsert", "key": {"id": 1}, "values": {"a": 7}}
COMPUTED = update(1, a={"expr": "length(b)"})
MOVED = update(1, id=5)
NUMBERED = {"table": "n", "op": "insert", "values": {"t": 1}}
IDENTITY = {"table": "i", "op": "insert", "values": {"a": 1}}


def of_sequence(**values: Any) -> dict[str, Any]:
    return {"table": "s", "op": "update", "key": {"log_cnt": 0}, "values": values}


@pytest.mark.parametrize(
    ("request_", "steps"),
    [
        (insert(2, a=1), [("", DENIED), ("insert on t", "")]),
        (insert(2, a=1), [("insert (a) on t", DENIED), ("insert (id) on t", "")]),
        (update(1, a=1), [("insert, delete on t", DENIED), ("update (a) on t", "")]),
        (update(1, a=1), [("update (b) on t", DENIED), ("update on t", "")]),
        (MOVED, [("update (a) on t", DENIED), ("update (id) on t", "")]),
        (COMPUTED, [("update on t", DENIED), ("select (a) on t", DENIED), ("select (b) on t", "")]),
        (DELETE, [("insert, update on t", DENIED), ("delete on t", "")]),
        (
            UPSERT,
            [("insert on t", DENIED), ("update (a) on t", DENIED), ("select (id) on t", "")],
        ),
        (
            NUMBERED,
            [
                ("insert on n", "permission denied for sequence n_id_seq"),
                ("usage on sequence n_id_seq", ""),
            ],
        ),
        (IDENTITY, [("insert on i", "")]),
        (
            of_sequence(take=2),
            [("select on sequence s", "permission denied for sequence s"), ("usage on s", "")],
        ),
        (
            of_sequence(set=7),
            [("usage on sequence s", "permission denied for sequence s"), ("update on s", "")],
        ),
        (
            {"transaction": [insert(3), update(1, a=2)]},
            [("insert on t", DENIED), ("update on t", "")],
        ),
    ],
)
def test_rows_need_their_privileges(
    world: Roles, request_: dict[str, Any], steps: list[tuple[str, str]]
) -> None:
    for granted, answer in steps:
        if granted:
            assert world.ask_as("", {"sql": f"grant {granted} to ann"}) == ""
        assert world.ask_as("bob", request_) != ""
        assert world.ask_as("ann", request_) == answer


def test_a_refusal_is_final_and_says_why(world: Roles) -> None:
    number = world.put({**insert(2), "who": ["ann", ""], "on_conflict": "replay"})
    for _ in range(2):
        world.tick()
        world.pump()
    (refusal,) = world.decided()[-1].refusals or world.decided()[-2].refusals
    assert (refusal.code, refusal.disposition) == ("42501", Disposition.FINAL)
    assert [each.code for each in world.answers(number)] == ["42501"]


def test_a_revoke_counts_for_the_next_request(world: Roles) -> None:
    world.ask_as("", {"sql": "grant insert on t to staff"})
    assert world.ask_as("ann", insert(2)) == ""
    world.ask_as("", {"sql": "revoke insert on t from staff"})
    assert world.ask_as("ann", insert(3)) == DENIED


def test_a_principal_must_be_a_role_that_may_log_in(world: Roles) -> None:
    for request in (insert(9), {"sql": "create table m (id int primary key)"}, {"clock": "reset"}):
        assert world.ask_as("nobody", request) == "28000"
        assert world.ask_as("staff", request) == "28000"
        assert world.ask_as("bob", request, "staff").startswith("permission denied to set role")
    world.ask_as("", {"sql": "grant insert on t to staff; alter role ann noinherit"})
    assert world.ask_as("ann", insert(2)) == DENIED
    assert world.ask_as("ann", insert(2), "staff") == ""


def test_what_foreign_keys_do_is_nobodys_privilege(world: Roles) -> None:
    world.ask_as("", {"table": "n", "op": "insert", "values": {"t": 1}})
    world.ask_as("", {"sql": "grant delete on t to ann"})
    assert world.ask_as("ann", DELETE) == ""


def test_schema_statements_and_jobs_are_the_owners_or_of_who_may_steer(world: Roles) -> None:
    index = {"sql": "create index by_a on t (a)"}
    assert world.ask_as("ann", index) == "must be owner of table t"
    world.ask_as("", {"sql": "alter table t owner to ann"})
    assert world.ask_as("ann", index) == ""
    pause, resume = ({"job": 1, "action": each} for each in ("pause", "resume"))
    assert "leasehold_steer_jobs" in world.ask_as("bob", pause)
    assert world.ask_as("ann", pause) == ""
    world.ask_as("", {"sql": "grant leasehold_steer_jobs to bob"})
    assert world.ask_as("bob", resume) == ""
    assert world.ask_as("ann", {"clock": "reset"}).startswith("must be superuser")
    assert world.ask_as("", {"clock": "reset"}) == ""


def test_a_barrier_is_for_all_and_a_check_of_stores_for_who_may_steer(world: Roles) -> None:
    barrier: dict[str, Any] = {"barrier": []}
    check: dict[str, Any] = {"barrier": [-1]}
    assert world.ask_as("ann", barrier) == ""
    assert world.ask_as("nobody", barrier) == "28000"
    assert world.ask_as("ann", check).startswith("permission denied to check the stores of nodes")
    assert world.ask({"sql": "grant leasehold_steer_jobs to ann"}).lsn
    assert world.ask_as("ann", check) == ""


def test_who_makes_a_table_may_write_it_in_the_same_request(world: Roles) -> None:
    made = {
        "sql": "create table m (id serial primary key, a int)",
        "transaction": [{"table": "m", "op": "insert", "values": {"a": 1}}],
    }
    assert world.ask_as("ann", made) == "permission denied for database leasehold"
    world.ask_as("", {"sql": "grant create on database leasehold to ann"})
    assert world.ask_as("ann", made) == ""
    assert world.ask_as("bob", {"table": "m", "op": "insert", "values": {"a": 2}}) != ""


def test_what_the_master_does_for_a_statement_needs_no_privilege(world: Roles) -> None:
    """Who owns a sequence may restart it, though he has taken UPDATE from himself."""
    world.ask_as("", {"sql": "alter sequence s owner to ann; revoke all on sequence s from ann"})
    assert world.ask_as("ann", of_sequence(set=7)) == "permission denied for sequence s"
    assert world.ask_as("ann", {"sql": "alter sequence s restart"}) == ""


def test_a_password_in_the_clear_is_refused_and_kept_nowhere(world: Roles) -> None:
    found = world.ask({"sql": "create role eve password 'secret'"})
    assert (found.code, found.dead_lettered) == ("0A000", False)
    assert not any(b"secret" in record for record in world.log)
