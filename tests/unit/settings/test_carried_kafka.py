"""Settings of Kafka that another machine can use."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from leasehold.model.errors import ConfigurationError
from leasehold.settings.carried_kafka import carry
from leasehold.settings.environment import KafkaSettings
from tests.support.cluster.redis_server import self_signed


def test_what_files_hold_travels_and_their_names_are_not_used(tmp_path: Path) -> None:
    """Goal: pickled, sent and unpickled, with the files gone, the settings still make a client."""
    certificate, key = self_signed(tmp_path)
    kafka = KafkaSettings(security="SSL", ca=certificate, certificate=certificate, key=key)
    sent = pickle.dumps(carry(kafka))
    text, private = certificate.read_text(), key.read_text()
    for path in (certificate, key):
        path.unlink()
    carried = pickle.loads(sent)
    options = carried.librdkafka()
    assert options["ssl.ca.pem"] == options["ssl.certificate.pem"] == text
    assert options["ssl.key.pem"] == private
    assert not [name for name in options if name.endswith(".location")]
    AdminClient(options)  # librdkafka reads the texts, and refuses what is none
    spark = carried.spark_options()
    assert spark["kafka.ssl.truststore.certificates"] == text
    assert spark["kafka.ssl.keystore.key"] == private
    assert "kafka.ssl.truststore.location" not in spark
    assert private not in repr(carried)


def test_without_files_all_is_as_it_was() -> None:
    for kafka in (
        KafkaSettings(bootstrap="a:1"),
        KafkaSettings(security="SASL_SSL", username="u", password="p"),
    ):
        assert carry(kafka).librdkafka() == kafka.librdkafka()
        assert carry(kafka).spark_options() == kafka.spark_options()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_KAFKA_CA names"):
        carry(KafkaSettings(security="SSL", ca=tmp_path / "none.pem"))
