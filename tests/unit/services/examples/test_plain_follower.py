"""The follower of confluent-kafka's where there is no broker; all else on a real one
(tests/integration/services/test_examples.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from infra.ports import Ports
from leasehold.settings.environment import KafkaSettings, from_environment
from services.examples import plain_follower


def test_it_ends_and_says_which_broker_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = f"127.0.0.1:{Ports.free().kafka}"
    monkeypatch.setenv("LEASEHOLD_KAFKA", bootstrap)
    monkeypatch.setattr("signal.signal", lambda *_: None)  # pytest's process keeps its own
    monkeypatch.setattr("sys.argv", ["plain_follower", "flights"])
    monkeypatch.setattr(plain_follower, "QUIET_S", 0.0)
    monkeypatch.setattr(plain_follower, "ASK_TIMEOUT_S", 0.1)
    assert plain_follower.main() == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"Kafka at {bootstrap}: ")
    assert printed.err.count("\n") == 1


def test_it_logs_in_as_leasehold_s_own_processes_do(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("secret\n")
    environ = {
        "LEASEHOLD_KAFKA": "kafka:9093",
        "LEASEHOLD_KAFKA_SECURITY": "SASL_SSL",
        "LEASEHOLD_KAFKA_USERNAME": "followers",
        "LEASEHOLD_KAFKA_PASSWORD_FILE": str(tmp_path / "password"),
        "LEASEHOLD_KAFKA_CA": str(tmp_path / "ca.pem"),
    }
    ours = from_environment(KafkaSettings, environ).librdkafka()
    asked = plain_follower.kafka_settings(environ)
    assert {**asked, "security.protocol": asked["security.protocol"].lower()} == ours
    alone = plain_follower.kafka_settings({"LEASEHOLD_KAFKA": "kafka:9092"})
    assert alone == {"bootstrap.servers": "kafka:9092"}
