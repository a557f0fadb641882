"""Producer, agent, subscriber and command on a real broker and a real Redis."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from infra.local_cluster import LocalCluster
from leasehold import Agent, ChangeProducer, ClientSettings, Subscriber
from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.redis.ledger import RedisLedger
from leasehold.admin.kafka_events import ACKS_TAIL_RECORDS
from leasehold.admin.report import report
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.main import main
from leasehold.client.pending import RequestStatus
from leasehold.client.subscriber import News, VersionNotice
from leasehold.events.rows import RowEvent
from leasehold.lease.commands import (
    Change,
    MarkReady,
    Publish,
    RegisterEpoch,
    Seed,
    SeedTables,
    SetMinVersion,
)
from leasehold.lease.replies import Published
from leasehold.model.errors import OutcomeUnknown
from leasehold.model.records.log import Claim, Commit
from leasehold.model.records.requests import ChangeRequest, Outcome
from leasehold.model.topics import Topics
from leasehold.replication.coherency import GIVEN_UP
from leasehold.settings.environment import KafkaSettings, RedisSettings
from tests.support.cli.json_output import check_printed
from tests.support.cluster.secure_suite import access_of
from tests.support.cluster.servers_suite import BROKERS
from tests.support.cluster.stage import (
    GATE,
    PUBLIC_GATE,
    Stage,
    ack,
    committed,
    deadline_ns,
    decisions,
    flights,
    refused,
)
from tests.support.cluster.system_cluster import await_ack, await_coherent

SOON_S = 30.0
UPDATE = {"table": "flights", "op": "update", "key": [7], "values": {"gate": "B4"}}


@pytest.fixture
def access(servers: LocalCluster, database: str, redis_settings: RedisSettings) -> dict[str, str]:
    return access_of(servers, "pricing", database)


@pytest.fixture
def settings(access: dict[str, str]) -> ClientSettings:
    return replace(
        ClientSettings.read({**access, "LEASEHOLD_NODE": "pricing"}),
        outcome_timeout_ms=60_000,
        close_timeout_ms=2_000,
    )


@pytest.fixture
def stage(kafka: KafkaSettings, topics: Topics) -> Iterator[Stage]:
    made = Stage(kafka, topics)
    yield made
    made.close()


@pytest.fixture
def ledger(settings: ClientSettings) -> Iterator[RedisLedger]:
    """Open for table 1 at version 1."""
    made = RedisLedger(settings.redis, settings.cluster.database)
    run_id = made.call(RegisterEpoch(1)).run_id
    made.call(SeedTables(1, run_id, (Seed(1, 1, 1),)))
    made.call(MarkReady(1, run_id))
    yield made
    made.close()


@pytest.fixture
def environment(access: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """For commands: they read their settings from it."""
    for name, value in access.items():
        monkeypatch.setenv(name, value)


def key_of(request: ChangeRequest) -> int:
    (number,) = request.operations[0].key
    return int(number)


def test_every_request_of_a_bulk_load_gets_its_own_outcome(
    settings: ClientSettings, stage: Stage
) -> None:
    """In flight are at most 200 of 2,000, and each seventh is refused."""

    def answer(request: ChangeRequest, number: int) -> list[Outcome]:
        return [refused("23505") if key_of(request) % 7 == 0 else committed(number)]

    bounded = replace(settings, in_flight_max=200)
    with stage.answering(answer) as answering, ChangeProducer(bounded) as changes:
        sent = changes.submit_many([{**UPDATE, "key": [number]} for number in range(2_000)])
        assert changes.wait(SOON_S)
        told = changes.statistics
    expected = [
        RequestStatus.REFUSED if n % 7 == 0 else RequestStatus.COMMITTED for n in range(2_000)
    ]
    assert [pending.status for pending in sent] == expected
    assert (told.submitted, told.committed + told.refused) == (2_000, 2_000)
    assert [key_of(request) for request in answering.requests] == list(range(2_000))


def test_t5_the_same_id_asked_again_gets_the_answer(settings: ClientSettings, stage: Stage) -> None:
    """The first asking is not answered: the outcome stays unknown until asked again."""

    def answer(request: ChangeRequest, number: int) -> list[Outcome]:
        return [] if number == 1 else [committed(5)]

    with stage.answering(answer) as answering, ChangeProducer(settings) as changes:
        pending = changes.submit(UPDATE)
        with pytest.raises(OutcomeUnknown):
            pending.result(0.2)
        assert pending.ask_again().result(SOON_S).lsn == 5
    first, second = answering.requests
    assert first == second


def test_agent_and_subscriber_move_with_the_versions(
    kafka: KafkaSettings, settings: ClientSettings, stage: Stage, ledger: RedisLedger
) -> None:
    """Rows read under version 1, then the same column once it is public at version 3."""
    v1, v2, v3 = flights(1), flights(2, GATE), flights(3, PUBLIC_GATE)
    create_rows_topic(kafka, settings, 1)
    stage.version(v1, 1)
    stage.row(v1, (5,), {1: 5, 2: "JFK"}, 2)
    stage.row(v1, (6,), None, 3)
    with Agent(settings) as agent, Subscriber(agent, ["flights"]) as subscriber:
        seen = collect(subscriber, 3)
        rows = [each for each in seen if isinstance(each, RowEvent)]
        assert {row.key["id"]: row.values for row in rows} == {
            5: {"id": 5, "origin": "JFK"},
            6: None,
        }
        for descriptor in (v2, v3):
            assert isinstance(publish(ledger, descriptor.version), Published)
            stage.version(descriptor, 10 + descriptor.version)
            (news,) = collect(subscriber, 1)
            assert isinstance(news, VersionNotice)
            wait_for_lease(agent, descriptor.version)
        stage.row(v3, (5,), {1: 5, 2: "JFK", 3: "B4"}, 20)
        (row,) = collect(subscriber, 1)
        assert isinstance(row, RowEvent)
        assert row.values == {"id": 5, "origin": "JFK", "gate": "B4"}
        assert row.version == 3


def create_rows_topic(kafka: KafkaSettings, settings: ClientSettings, table_id: int) -> None:
    from leasehold.adapters.kafka.topic_creation import ensure_topics

    ensure_topics(kafka, [settings.topics.rows(table_id)])


def publish(ledger: RedisLedger, version: int) -> object:
    ledger.call(SetMinVersion(1, 1, version - 1))
    return ledger.call(Publish(1, (Change(1, version - 1, version),), version))


def wait_for_lease(agent: Agent, version: int) -> None:
    from leasehold.adapters.os.clock import boottime_ns

    give_up_ns = deadline_ns(SOON_S)
    while boottime_ns() < give_up_ns:
        with agent.lease("flights", SOON_S) as descriptor:
            if descriptor.version == version:
                return
    raise AssertionError(f"no lease on version {version} in {SOON_S} s")


def collect(subscriber: Subscriber, count: int) -> list[News]:
    from leasehold.adapters.os.clock import boottime_ns

    give_up_ns = deadline_ns(SOON_S)
    seen: list[News] = []
    while len(seen) < count and boottime_ns() < give_up_ns:
        seen += subscriber.poll(0.2)
    assert len(seen) == count, seen
    return seen


def play_a_database(stage: Stage, topics: Topics) -> None:
    """A master's log, one node that keeps up and one that does not, a table at version 2."""
    stage.put(topics.log.name, Claim(1, b"stage-01", b"", "m1"))
    commit = Commit(b"r" * 16, 1, 1_700_000_000_000_000, {1: 1}, (), 1)
    stage.put(topics.log.name, decisions(1, 1, commits=(commit, commit, commit)))
    stage.put(topics.acks.name, ack("m1", role="master", offset=2, lsn=3))
    stage.put(topics.acks.name, ack("r1", offset=2, lsn=3))
    stage.put(topics.acks.name, ack("r2", offset=1, coherent=False))
    stage.version(flights(1), 1)
    stage.version(flights(2, GATE), 2)
    stage.flush()


def test_a_watch_sees_what_the_topics_and_the_ledger_say(
    settings: ClientSettings, stage: Stage, topics: Topics, ledger: RedisLedger
) -> None:
    play_a_database(stage, topics)
    with ClusterWatch(settings) as watch:
        view = watch.first_look(SOON_S)
        assert (view.log.master, view.log.lsn, view.log.end) == ("m1", 3, 2)
        assert sorted(view.nodes) == ["m1", "r1", "r2"]
        assert view.tables[1].event.version == 2
        assert view.ledger is not None
        assert view.ledger.report.ready
        stage.put(topics.log.name, decisions(2, 4, commits=(), refusals=()))
        stage.put(topics.acks.name, ack("r2", offset=3, lsn=3))
        await_coherent(watch, "r2")
        assert watch.wait_for(lambda seen: seen.log.end == 3, SOON_S)


def test_a_node_that_died_is_silent_however_much_others_have_said_since(
    environment: None,
    settings: ClientSettings,
    stage: Stage,
    topics: Topics,
    ledger: RedisLedger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its last word lies far before the acks' tail; one that took its leave is no trouble."""
    play_a_database(stage, topics)
    died_us = unix_us() - 60_000_000
    for _ in range(500):
        for node in ("m1", "r1", "r3", "r4"):
            stage.put(topics.acks.name, ack(node, offset=3, lsn=3, sent_us=died_us))
    stage.put(topics.acks.name, ack("r4", offset=3, lsn=3, asked_ns=GIVEN_UP, sent_us=died_us + 1))
    stage.put(topics.acks.name, ack("r3", offset=4, lsn=3, sent_us=died_us + 1))
    for _ in range(7 * ACKS_TAIL_RECORDS // 2):
        stage.put(topics.acks.name, ack("m1", role="master", offset=9, lsn=3))
        stage.put(topics.acks.name, ack("r1", offset=9, lsn=3))
    stage.flush()
    told = printed(capsys, 1, "status", "--json")
    nodes = {node["node"]: node for node in told["nodes"]}
    assert nodes.keys() - {"r2"} == {"m1", "r1", "r3"}  # r2 said one word only, long ago
    assert (nodes["r3"]["coherency"], nodes["r3"]["offset"]) == ("silent", 4)
    assert nodes["r3"]["age_ms"] >= 60_000
    assert any("r3" in trouble for trouble in told["troubles"])


def test_a_watch_reads_on_while_it_asks_where_hundreds_of_topics_end(
    kafka: KafkaSettings,
    settings: ClientSettings,
    stage: Stage,
    topics: Topics,
    ledger: RedisLedger,
) -> None:
    """Nodes that acknowledge are never silent, and the newest word is there, however many tables
    there are; most of them have no topic, since they never had a row."""
    play_a_database(stage, topics)
    create_rows_topic(kafka, settings, 300)
    for table_id in range(2, 301):
        descriptor = replace(flights(1), table_id=table_id, name=f"flights_{table_id}")
        stage.version(descriptor, table_id)
    stage.flush()
    with ClusterWatch(settings) as watch:
        assert not watch.first_look(SOON_S).not_read
        assert watch.wait_for(lambda seen: len(seen.tables) == 300, SOON_S)
        for lsn in range(4, 24):
            stage.put(topics.acks.name, ack("r1", offset=lsn, lsn=lsn))
            stage.flush()
            wait_for_lsn(watch, "r1", lsn)
            view = watch.view
            assert view.gaps(unix_us()) == []
            nodes = {node["node"]: node for node in report(view, unix_us())["nodes"]}
            assert nodes["r1"]["coherency"] != "silent"
        assert watch.wait_for(lambda seen: "rows/300" in seen.ends, SOON_S)


def printed(capsys: pytest.CaptureFixture[str], code: int, *words: str) -> Any:
    """What a command prints for programs, which is as it is documented."""
    capsys.readouterr()
    assert main(list(words)) == code
    return check_printed(words, capsys.readouterr().out)[0]


def wait_for_lsn(watch: ClusterWatch, node: str, lsn: int) -> None:
    await_ack(watch, node, lambda ack: ack.lsn == lsn, f"at LSN {lsn}")


def test_commands_on_a_running_database(
    environment: None,
    stage: Stage,
    topics: Topics,
    ledger: RedisLedger,
    capsys: pytest.CaptureFixture[str],
) -> None:
    play_a_database(stage, topics)
    told = printed(capsys, 1, "status", "--json")
    assert told["log"]["lsn"] == 3
    assert any("r2" in trouble for trouble in told["troubles"])
    alone = f"on one broker of {BROKERS}"  # as the topics of tests are
    assert any(alone in warning for warning in told["warnings"]), told["warnings"]
    kept = told["log_kept"]
    assert (kept["first_offset"], kept["records"]) == (0, told["log"]["offset"])
    assert kept["first_us"] > 0
    assert kept["bytes_about"] > 0
    told = printed(capsys, 1, "doctor", "--json", "--timeout", "30", "--as", "replicant")
    findings = told["findings"]
    verdicts = {each["check"]: each["verdict"] for each in findings}
    assert verdicts["log's durability"] == "warn"
    good = ("values", "topics", "replicas", "rights", "log", "dead letters", "ledger's durability")
    assert {verdicts[check] for check in good} == {"ok"}, findings
    assert "could not look" not in verdicts.values(), findings
    assert any("node r2" in each["words"] for each in findings if each["check"] == "nodes")
    assert printed(capsys, 0, "versions", "--json", "flights")["version"] == 2
    assert main(["versions", "no_such"]) == 1
    assert "table 'no_such' does not exist" in capsys.readouterr().err
    for form, name in (("avro", "name"), ("json-schema", "title")):
        assert main(["versions", "flights", "--format", form]) == 0
        assert json.loads(capsys.readouterr().out)[name] == "flights"
    told = printed(capsys, 0, "versions", "diff", "flights", "1", "2", "--json")
    assert told["words"] == ["column gate added, delete-only (varchar(8))"]
    assert main(["versions", "history", "flights"]) == 0
    assert "flights version 2: column gate added" in capsys.readouterr().out
    assert main(["versions", "diff", "flights", "1", "3"]) == 1
    assert "has no version 3; the newest is 2" in capsys.readouterr().err
    printed(capsys, 0, "leases", "--json")
    assert main(["jobs", "list"]) == 0
    assert "no job yet" in capsys.readouterr().out
    assert printed(capsys, 0, "dead-letter", "list", "--json") == []


def test_submit_tells_what_became_of_each_line(
    environment: None,
    stage: Stage,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = [json.dumps({**UPDATE, "key": [number]}) for number in range(50)]
    text = "\n".join([*lines, "{broken", "", "[]"])

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(text.encode()))

    def answer(request: ChangeRequest, number: int) -> list[Outcome]:
        return [refused("42P01", dead=True) if number == 3 else committed(number)]

    monkeypatch.setattr("sys.stdin", Stdin)
    with stage.answering(answer):
        told = printed(capsys, 1, "submit", "-", "--json")
    assert (told["submitted"], told["committed"], told["dead_lettered"]) == (50, 49, 1)
    assert told["malformed"] == 2
    assert {trouble["place"] for trouble in told["troubles"]} == {"line 3", "line 51", "line 53"}


def test_ddl_that_is_refused_and_ddl_that_is_done_at_once(
    environment: None, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(request: ChangeRequest, number: int) -> list[Outcome]:
        if request.sql == "CREATE TABLE a (id integer)":
            return [committed(4)._replace(answer={"table": 1})]
        return [refused("42601")]

    with stage.answering(answer):
        told = printed(capsys, 0, "ddl", "CREATE TABLE a (id integer)", "--json")
        assert told["answer"] == {"table": 1}
        assert main(["ddl", "CRATE TABLE"]) == 1
    assert "42601" in capsys.readouterr().err
