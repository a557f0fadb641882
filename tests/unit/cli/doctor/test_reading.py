"""Goal: facts are what is there: settings and their files, ends of certificates, what Redis says,
what nodes say while they are listened to; a part that hangs or breaks hides no other.

Method: environments, files and answers by hand; certificates by openssl.
"""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import pytest

from leasehold.adapters.kafka.topic_span import SAMPLE_RECORDS, sample_offsets
from leasehold.adapters.os.certificates import end_of, read_ends_us
from leasehold.adapters.os.clock import unix_us
from leasehold.adapters.redis.server_look import read_info
from leasehold.cli.doctor import command
from leasehold.cli.doctor.finding import Finding, Unseen, Verdict
from leasehold.cli.doctor.gather import NodeListener, ask_parts
from leasehold.cli.doctor.read_settings import read_settings
from leasehold.cli.main import main
from leasehold.cli.output import Output
from leasehold.model.errors import BusUnavailable
from leasehold.settings.groups import SPARK_NAMES, known_names
from spark_streaming.spark_settings import SparkSettings
from tests.support.admin import view_events as events
from tests.support.admin.doctor_facts import good_facts, node_report
from tests.support.cli.json_output import check_printed
from tests.support.pgwire.certificates import make_certificate

DAY_US = 24 * 3600 * 1_000_000
US = 1_000_000
EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


def test_settings_that_can_not_be_read_or_contradict_themselves_are_told() -> None:
    seen = read_settings(
        {
            "LEASEHOLD_KAFKA": "nowhere",
            "LEASEHOLD_REDIS": "redis://127.0.0.1:6379/0",
            "LEASEHOLD_SNAPSHOT_TLS_CERT": "/there/is/none.pem",
            "LEASEHOLD_DISK_RESERVE_MB": "-1",
            "LEASEHOLD_EMPTY": "",
            "HOME": "/",
        }
    )
    words = " ".join(error.words for error in seen.errors)
    assert "LEASEHOLD_KAFKA is 'nowhere'" in words
    assert "LEASEHOLD_DISK_RESERVE_MB is '-1'" in words
    assert "LEASEHOLD_EMPTY" not in seen.given, "an empty variable is not set"
    assert "HOME" not in seen.given
    assert [each.variable for each in seen.unreadable] == ["LEASEHOLD_SNAPSHOT_TLS_CERT"]
    assert read_settings({}).errors == ()


def test_what_is_right_for_a_client_is_no_error_because_no_server_would_take_it() -> None:
    client = {"LEASEHOLD_SQL_HOST": "db.example", "LEASEHOLD_SQL_TLS": "verify"}
    assert read_settings(client).errors == ()
    neither = {"LEASEHOLD_SQL_PORT": "many"}
    (error,) = read_settings(neither).errors
    assert "LEASEHOLD_SQL_PORT" in error.words


def test_no_secret_is_told(monkeypatch: pytest.MonkeyPatch, capsys: object) -> None:
    seen = read_settings({"LEASEHOLD_REQUEST_KEY": "hush", "LEASEHOLD_SNAPSHOT_TOKEN": "hush hush"})
    assert len(seen.errors) == 2
    assert "hush" not in repr(seen)


def test_files_with_secrets_are_looked_at(tmp_path: Path) -> None:
    open_file, own = tmp_path / "password", make_certificate(tmp_path, "kafka", options=EC)
    open_file.write_text("x")
    open_file.chmod(0o644)
    seen = read_settings(
        {
            "LEASEHOLD_KAFKA_PASSWORD_FILE": str(open_file),
            "LEASEHOLD_KAFKA_CERTIFICATE": str(own.cert),
            "LEASEHOLD_KAFKA_KEY": str(own.key),
            "LEASEHOLD_DATABASE_FILE": str(open_file),  # no secret
            "LEASEHOLD_REDIS_FILE": str(tmp_path / "none"),  # may have a password
        }
    )
    assert {(each.variable, each.mode) for each in seen.secret_files} == {
        ("LEASEHOLD_KAFKA_PASSWORD_FILE", 0o644),
        ("LEASEHOLD_KAFKA_KEY", 0o600),
    }
    assert [each.variable for each in seen.unreadable] == ["LEASEHOLD_REDIS_FILE"]
    (certificate,) = seen.certificates
    assert 1 < (certificate.ends_us - unix_us()) / DAY_US <= 2


def test_each_certificate_of_a_file_has_an_end(tmp_path: Path) -> None:
    first, second = (make_certificate(tmp_path, name, options=EC) for name in ("a", "b"))
    both = tmp_path / "both.pem"
    both.write_bytes(first.cert.read_bytes() + second.cert.read_bytes())
    ends = read_ends_us(both)
    assert len(ends) == 2
    for nothing in (first.key, tmp_path / "empty"):
        (tmp_path / "empty").write_bytes(b"")
        with pytest.raises(ValueError, match="no certificate"):
            read_ends_us(nothing)


def sequence(*parts: bytes) -> bytes:
    return bytes([0x30, sum(map(len, parts))]) + b"".join(parts)


def at(tag: int, text: bytes) -> bytes:
    return bytes([tag, len(text)]) + text


def test_bytes_that_are_no_certificate_are_refused() -> None:
    number, empty = bytes([2, 1, 1]), bytes([0x30, 0])
    times = sequence(at(0x17, b"200101000000Z"), at(0x17, b"490101000000Z"))
    good = sequence(sequence(number, empty, empty, times))
    assert end_of(good) == 2_493_072_000 * US, "of this century"
    late = sequence(at(0x17, b"200101000000Z"), at(0x18, b"21000101000000Z"))
    assert end_of(sequence(sequence(number, empty, empty, late))) == 4_102_444_800 * US
    for bad in (b"", b"\x30", good[:-3], sequence(sequence(number, empty)), sequence(number)):
        with pytest.raises(ValueError, match=r"."):
            end_of(bad)


def test_names_of_all_processes_are_known() -> None:
    own = {each.metadata["env"] for each in SparkSettings.__dataclass_fields__.values()}
    assert own - {"LEASEHOLD_SPARK_JARS"} <= SPARK_NAMES
    assert own <= known_names()
    assert {"LEASEHOLD_KAFKA", "LEASEHOLD_DISK_RESERVE_MB"} <= known_names()


def test_what_redis_says_is_read_whatever_is_missing() -> None:
    told = {
        "redis_version": "7.4.1",
        "used_memory": 1_000,
        "maxmemory": 0,
        "maxmemory_policy": "allkeys-lru",
        "aof_enabled": 1,
        "aof_last_write_status": "err",
        "evicted_keys": 2,
        "server_time_usec": 5_000_000,
    }
    seen = read_info(told, 3_000_000)
    assert (seen.version, seen.memory, seen.policy) == ("7.4.1", 1_000, "allkeys-lru")
    assert (seen.appends, seen.append_fails, seen.evicted) == (True, True, 2)
    assert seen.ahead_us == 2_000_000
    old = read_info({}, 3_000_000)
    assert (old.appends, old.append_fails, old.ahead_us) == (False, False, None)


def test_samples_of_a_topic_overlap_nowhere() -> None:
    for first, end in ((0, 1), (5, 5 + SAMPLE_RECORDS), (0, 70), (0, 100), (7, 100_000)):
        begins = sample_offsets(first, end)
        assert begins[0] == first
        assert all(first <= each < end for each in begins), (first, end)
        assert all(b - a >= SAMPLE_RECORDS for a, b in itertools.pairwise(begins))
    assert sample_offsets(7, 100_000) == (7, 50_003, 99_968)


def test_clocks_are_those_of_nodes_that_are_heard_while_it_listens() -> None:
    first = events.seen(events.ack("m1", "master"), events.ack("r1"), events.ack("gone"))
    now = events.NOW
    listener = NodeListener(first, lambda: now)
    assert not listener.has_heard(first)
    late = now + 10 * US
    view = events.seen(
        events.ack("m1", "master", sent_us=late + 2 * US),
        events.ack("r1", sent_us=late - 1_000),
        events.ack("gone"),
    )
    now = late
    assert not listener.has_heard(view), "they have not told of themselves yet"
    assert [(each.node, each.ahead_us) for each in listener.clocks()] == [
        ("m1", 2 * US),
        ("r1", -1_000),
    ]
    told = events.seen(
        events.ack("m1", "master", sent_us=late + 2 * US),
        events.ack("r1", sent_us=late - 1_000),
        *(node_report(name) for name in ("m1", "r1")),
    )
    assert listener.has_heard(told), "who is silent is not waited for"


def test_a_part_that_is_away_hangs_or_breaks_hides_no_other() -> None:
    hangs = threading.Event()

    def away() -> None:
        raise BusUnavailable("no broker")

    found = ask_parts(
        {"a": lambda: 7, "b": away, "c": lambda: 1 // 0, "d": hangs.wait}, {"b": "start it"}, 0.2
    )
    hangs.set()
    assert found["a"] == 7
    assert found["b"] == Unseen("no broker", "start it")
    assert "ZeroDivisionError" in found["c"].why
    assert found["d"].why == "no answer in 0.2 s"


def test_settings_that_can_not_be_read_are_told_and_nothing_else_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("LEASEHOLD_KAFKA", "nowhere")
    assert main(["doctor", "--json"]) == 1
    told = check_printed(["doctor", "--json"], capsys.readouterr().out)[0]
    by_check = {each["check"]: each for each in told["findings"]}
    assert "LEASEHOLD_KAFKA is 'nowhere'" in by_check["values"]["words"]
    assert by_check["topics"]["verdict"] == "could not look"
    assert told["counts"]["fail"] == 1


def test_people_see_what_is_wrong_and_one_row_for_one_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "look", lambda *_: good_facts())
    assert main(["doctor"]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    assert main(["doctor", "--all"]) == 0
    assert "log's durability" in capsys.readouterr().out
    findings = [
        Finding("topics", "t", Verdict.UNSEEN, "no broker", "start it"),
        Finding("log", "l", Verdict.UNSEEN, "no broker", "start it"),
        Finding("jobs", "j", Verdict.WARN, "it waits", "look"),
        Finding("disks", "d", Verdict.OK, "", ""),
    ]
    command.show(findings, Output(as_json=False), everything=False)
    shown = capsys.readouterr().out
    assert "topics, log  no broker" in shown
    assert "disks" not in shown
    assert "1 ok, 2 could not look, 1 warn" in shown
