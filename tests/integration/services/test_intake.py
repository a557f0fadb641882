"""Goal: events of another system are applied exactly once, however often the intake is killed; what
can't be read is a dead letter, and what an event lacks holds its topic up and no other.

Method: the real master and changefeed; sources that write Debezium's envelope, of which each event
is verified: applied twice it would be refused, and stand among the dead letters.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, Replica, __version__
from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.adapters.kafka.writer import BY_KEY, TopicWriter
from leasehold.admin.dead_letters import DeadLetters
from leasehold.admin.intakes import Intakes, IntakeView
from leasehold.cli.main import main
from leasehold.model.records.requests import DeadLetter
from leasehold.model.topics import Topic
from leasehold.settings.client import ClientSettings
from tests.support.cluster.secure_suite import not_in_secure_mode
from tests.support.cluster.system_cluster import Beside, settings_of, until
from tests.support.intake.foreign_source import ENVELOPE_TEXT, ForeignSource, intake
from tests.support.registry.double import registry_double

pytestmark = not_in_secure_mode("topics of others need rights that only their owner can give")
KILLS: Final = 5
COLUMNS: Final = "id bigint primary key, n int, price numeric(9,2), made timestamp"


@pytest.fixture(scope="module")
def cluster(beside: Beside) -> Iterator[LocalCluster]:
    with beside.running("intake", ("m1", "changefeed")) as made:
        with ChangeProducer(settings_of(made, "setup")) as producer:
            for table in ("orders", "avro_orders", "others"):
                sql = f"create table {table} ({COLUMNS})"
                assert producer.submit({"sql": sql}).result(60).lsn
        yield made


class Written:
    """Topics of a source's own, in the cluster's Kafka."""

    def __init__(self, cluster: LocalCluster) -> None:
        self.settings = settings_of(cluster, "source")
        self._prefix = cluster.cluster_settings.database
        self._writer = TopicWriter(self.settings.kafka, "source")

    def topic(self, name: str, partitions: int = 1) -> str:
        whole = f"shop-{self._prefix}.{name}"
        ensure_topics(self.settings.kafka, [Topic(whole, partitions, {})])
        return whole

    def put(self, topic: str, *messages: tuple[bytes | None, bytes | None]) -> None:
        for key, value in messages:
            self._writer.send(topic, BY_KEY, key, value)
        assert self._writer.flush(30) == 0


@pytest.fixture
def written(cluster: LocalCluster) -> Written:
    return Written(cluster)


@pytest.fixture
def environ(cluster: LocalCluster) -> dict[str, str]:
    return cluster.env("intake")


def rows(replica: Replica, table: str) -> dict[int, tuple[Any, int]]:
    return {row["id"]: (row["n"], int(Decimal(row["price"]) * 100)) for row in replica.scan(table)}


def view(settings: ClientSettings, name: str) -> IntakeView | None:
    return next((each for each in Intakes(settings).views() if each.name == name), None)


def is_done(settings: ClientSettings, name: str, topics: Sequence[str]) -> Callable[[], bool]:
    def look() -> bool:
        found = view(settings, name)
        lags = {} if found is None else {p.topic: p.lag for p in found.places}
        return all(lags.get(topic) == 0 for topic in topics)

    return look


def reached(settings: ClientSettings, name: str) -> int:
    found = view(settings, name)
    return 0 if found is None else sum(place.next for place in found.places)


def has_reached(settings: ClientSettings, name: str, wanted: int) -> bool:
    return reached(settings, name) > wanted


def letters(settings: ClientSettings, name: str) -> list[DeadLetter]:
    found = [letter for _, letter in DeadLetters(settings).read()]
    return [letter for letter in found if letter.detail.get("intake") == name]


def refused_requests(settings: ClientSettings) -> list[DeadLetter]:
    return [each for _, each in DeadLetters(settings).read() if "intake" not in each.detail]


def log_of(folder: Path) -> str:
    return (folder / "intake.log").read_text()


def test_killed_at_any_moment_it_applies_each_event_once(
    written: Written, environ: dict[str, str], replica: Replica, tmp_path: Path
) -> None:
    seed = random.randrange(1 << 32)
    print("seed", seed)
    source = ForeignSource(seed)
    topic = written.topic("orders", 2)
    settings = written.settings
    known = len(refused_requests(settings))
    for kill in range(KILLS + 1):
        written.put(topic, *(source.change(40) for _ in range(300)))
        with intake(
            environ, tmp_path, name="killed", routes=f"{topic}=orders", verify="before"
        ) as process:
            if kill < KILLS:
                wanted = reached(settings, "killed") + source.random.randrange(250)
                until(partial(has_reached, settings, "killed", wanted), "events are taken")
            else:
                until(is_done(settings, "killed", [topic]), "all", seen=lambda: log_of(tmp_path))
                process.send_signal(signal.SIGTERM)
                assert process.wait(30) == 0, log_of(tmp_path)
    until(lambda: rows(replica, "orders") == source.rows, "the source's rows")
    assert len(refused_requests(settings)) == known, "each was applied once"
    assert not letters(settings, "killed")
    found = view(settings, "killed")
    assert found is not None
    assert found.state["counts"]["letters"] == 0


def test_what_can_t_be_taken_is_a_dead_letter_and_holds_nothing_up(
    written: Written,
    environ: dict[str, str],
    replica: Replica,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic, missing = written.topic("others"), written.topic("missing")
    good = {"op": "c", "after": {"id": 1, "n": 5, "price": "1.50", "made": 0}}
    wrong = {"op": "c", "after": {"id": 2, "n": "many", "price": "1", "made": 0}}
    for value in (b"not JSON", json.dumps(wrong).encode(), json.dumps(good).encode()):
        written.put(topic, (None, value))
    written.put(missing, (None, json.dumps(good).encode()))
    routes = f"{topic}=others,{missing}=not_there_yet"
    settings = written.settings
    with intake(environ, tmp_path, name="letters", routes=routes):
        until(is_done(settings, "letters", [topic]), "all", seen=lambda: log_of(tmp_path))
        until(lambda: rows(replica, "others") == {1: (5, 150)}, "the good one")
        until(lambda: bool((view(settings, "letters") or fail()).held), "it says what waits")
        for name, setting in environ.items():
            monkeypatch.setenv(name, setting)
        assert main(["intake", "--json"]) == 1, "one waits"
        (told,) = [
            each for each in json.loads(capsys.readouterr().out) if each["name"] == "letters"
        ]
        assert told["at_work"]
        main(["upgrade", "--json"])
        processes = json.loads(capsys.readouterr().out)["processes"]
        (own,) = [each for each in processes if each["process"] == "intake letters"]
        assert (own["role"], own["release"], own["lacks"]) == ("intake", __version__, [])
        assert told["state"]["held"][0]["topic"] == missing
        assert "not_there_yet" in told["state"]["held"][0]["waits_for"]
        with ChangeProducer(settings) as producer:
            sql = f"create table not_there_yet ({COLUMNS})"
            assert producer.submit({"sql": sql}).result(60).lsn
        until(is_done(settings, "letters", [missing]), "goes on", seen=lambda: log_of(tmp_path))
        until(lambda: rows(replica, "not_there_yet") == {1: (5, 150)}, "by itself")
    found = letters(settings, "letters")
    assert [letter.code for letter in found] == ["08P01", "22P02"]
    assert [letter.detail["offset"] for letter in found] == [0, 1]
    assert found[0].body == b"not JSON"
    words = log_of(tmp_path)
    assert words.count("waits for table") == 1, "said once"
    assert words.count("goes on, after") == 1
    assert main(["dead-letter", "explain", str(DeadLetters(settings).read()[-1][0])]) == 0
    assert topic in capsys.readouterr().out


def fail() -> Any:
    raise AssertionError("there is no such intake")


def test_avro_by_a_registry_that_goes_away_and_comes_back(
    written: Written, environ: dict[str, str], replica: Replica, tmp_path: Path
) -> None:
    topic, plain = written.topic("avro"), written.topic("plain")
    settings = written.settings
    with registry_double() as registry:
        number = registry.number(f"{topic}-value", ENVELOPE_TEXT)
        source = ForeignSource(7, number)
        written.put(topic, *(source.change(30) for _ in range(200)))
        registry.always = (503, {"message": "not now"})
        routes = f"{topic}=avro_orders,{plain}=others"
        asked = {**environ, "LEASEHOLD_REGISTRY": registry.url}
        with intake(asked, tmp_path, name="avro", routes=routes, verify="before") as process:
            until(lambda: "waits for schema" in log_of(tmp_path), "held")
            event = {"op": "c", "after": {"id": 77, "n": 1, "price": "2", "made": 0}}
            written.put(plain, (None, json.dumps(event).encode()))
            until(lambda: rows(replica, "others").get(77) == (1, 200), "the others go on")
            registry.always = None
            until(is_done(settings, "avro", [topic]), "all", seen=lambda: log_of(tmp_path))
            until(lambda: rows(replica, "avro_orders") == source.rows, "the source's rows")
            assert process.poll() is None
    assert not letters(settings, "avro")
    made = replica.get("avro_orders", next(iter(source.rows)))
    assert made is not None
    assert made["made"].year == 2026


def test_settings_that_are_wrong_are_said_and_end_it(
    environ: dict[str, str], tmp_path: Path
) -> None:
    for settings, words in (
        ({}, "LEASEHOLD_INTAKE_ROUTES"),
        ({"routes": "a"}, "topic=table"),
        ({"routes": "a=b", "encoding": "registry"}, "LEASEHOLD_REGISTRY"),
    ):
        with intake(environ, tmp_path, **settings) as process:
            assert process.wait(60) == 2
        assert words in log_of(tmp_path).splitlines()[-1]
    assert os.environ.get("LEASEHOLD_INTAKE_ROUTES") is None
