"""Settings: defaults, files, masking, and one clear error per mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    describe,
    from_environment,
    to_environment,
)

SASL = {
    "LEASEHOLD_KAFKA_SECURITY": "SASL_SSL",
    "LEASEHOLD_KAFKA_USERNAME": "ada",
    "LEASEHOLD_KAFKA_PASSWORD": 'pa"ss\\word',
}


def test_defaults_stay_on_this_machine() -> None:
    assert from_environment(KafkaSettings, {}).bootstrap == "127.0.0.1:19092"
    assert from_environment(RedisSettings, {}).url == "redis://127.0.0.1:16379/0"
    cluster = from_environment(ClusterSettings, {})
    assert cluster.listen == "127.0.0.1"
    assert cluster.folder == Path(".leasehold/data/n1")


def test_empty_means_not_set() -> None:
    """Compose files pass variables through whether they are set or not."""
    assert from_environment(KafkaSettings, {"LEASEHOLD_KAFKA_CA": ""}).ca is None


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("LEASEHOLD_DASHBOARD_PORT", "99999", "a whole number from 1 to 65535"),
        ("LEASEHOLD_DASHBOARD_PORT", "1_0", "a whole number from 1 to 65535"),
        ("LEASEHOLD_DASHBOARD_PORT", "-", "a whole number from 1 to 65535"),
        ("LEASEHOLD_DATABASE", "a.b", "a letter, then letters"),
        ("LEASEHOLD_NODE", "../x", "a letter, then letters"),
        ("LEASEHOLD_LISTEN", "broker.example", "an IPv4 address of this machine"),
        ("LEASEHOLD_LISTEN", "::1", "an IPv4 address of this machine"),
        ("LEASEHOLD_LOG_LEVEL", "loud", "one of DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_expected(
    variable: str, value: str, expected: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_environment(ClusterSettings, {variable: value})
    assert variable in caught.value.message
    assert repr(value) in caught.value.message
    assert expected in caught.value.message


@pytest.mark.parametrize("value", ["broker", "broker:", "broker:0", "broker:x", ":9092", "a:1,b"])
def test_wrong_broker_addresses(value: str) -> None:
    with pytest.raises(ConfigurationError, match=r"LEASEHOLD_KAFKA is .* expected host:port"):
        from_environment(KafkaSettings, {"LEASEHOLD_KAFKA": value})


@pytest.mark.parametrize(
    "value",
    [
        *("http://h:1", "redis://", "redis://h:x/0", "h:6379"),
        *("redis+sentinel://h:1", "redis+sentinel://h/name", "redis+sentinel://h:1,g/name"),
        *("redis+sentinel://h:1/name/db", "redis+sentinel:///name", "sentinel://h:1/name"),
    ],
)
def test_wrong_redis_addresses(value: str) -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_REDIS is"):
        from_environment(RedisSettings, {"LEASEHOLD_REDIS": value})


def test_secrets_are_masked_wherever_they_are_shown() -> None:
    kafka = from_environment(KafkaSettings, SASL)
    redis = from_environment(
        RedisSettings,
        {"LEASEHOLD_REDIS": "redis://u:hidden@h:1/0", "LEASEHOLD_REDIS_PASSWORD": "hidden"},
    )
    assert describe(kafka)["LEASEHOLD_KAFKA_PASSWORD"] == "********"
    assert describe(kafka)["LEASEHOLD_KAFKA_USERNAME"] == "ada"
    assert describe(redis)["LEASEHOLD_REDIS"] == "redis://u:********@h:1/0"
    assert "hidden" not in str(describe(redis))
    assert "word" not in repr(kafka).replace("password", "")
    assert "hidden" not in repr(redis)


def test_an_error_shows_no_password_either() -> None:
    with pytest.raises(ConfigurationError, match="LEASEHOLD_REDIS is") as caught:
        from_environment(RedisSettings, {"LEASEHOLD_REDIS": "redis://u:hidden@h:port/0"})
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    ("kafka", "redis", "told"),
    [
        ("PLAINTEXT", "redis://h:1/0", True),
        ("SSL", "redis://h:1/0", False),
        ("SSL", "redis://:word@h:1/0", False),
        ("SSL", "rediss://h:1/0", True),
        ("SASL_PLAINTEXT", "redis://h:1/0", False),
        ("SASL_PLAINTEXT", "redis://:word@h:1/0", True),
        ("SASL_PLAINTEXT", "redis://h:1/0?password=word", True),
        ("SASL_SSL", "rediss://h:1/0", False),
        ("SASL_SSL", "rediss://u:word@h:1/0", True),
    ],
)
def test_rows_go_by_no_way_that_is_guarded_less_unless_somebody_says_so(
    kafka: str, redis: str, told: bool
) -> None:
    reached = from_environment(KafkaSettings, {**SASL, "LEASEHOLD_KAFKA_SECURITY": kafka})
    assert RedisSettings(url=redis).publishes_records(reached) == told
    assert RedisSettings(url=redis, fast_log="on").publishes_records(reached)
    assert not RedisSettings(url=redis, fast_log="off").publishes_records(reached)
    assert RedisSettings(url=redis).publishes_requests(reached) == told
    assert RedisSettings(url=redis, fast_requests="on").publishes_requests(reached)
    assert not RedisSettings(url=redis, fast_requests="off").publishes_requests(reached)
    if kafka == "SASL_PLAINTEXT":
        assert RedisSettings(url="redis://h:1/0", password="word").publishes_records(reached)
        assert RedisSettings(url="redis://h:1/0", password="word").publishes_requests(reached)


def test_each_way_is_turned_off_by_itself() -> None:
    off = from_environment(RedisSettings, {"LEASEHOLD_FAST_REQUESTS": "OFF"})
    assert not off.publishes_requests(KafkaSettings())
    assert off.publishes_records(KafkaSettings())
    off = from_environment(RedisSettings, {"LEASEHOLD_FAST_LOG": "off"})
    assert off.publishes_requests(KafkaSettings())
    assert not off.publishes_records(KafkaSettings())
    with pytest.raises(ConfigurationError, match="LEASEHOLD_FAST_REQUESTS"):
        from_environment(RedisSettings, {"LEASEHOLD_FAST_REQUESTS": "maybe"})


def test_a_password_behind_an_address_is_one_too() -> None:
    """redis-py takes it from there; an @ in it is no end of a login."""
    url = "redis://h:1/0?db=2&password=hi@dden&ssl_Password=hidden"
    redis = from_environment(RedisSettings, {"LEASEHOLD_REDIS": url})
    shown = describe(redis)["LEASEHOLD_REDIS"]
    assert shown == "redis://h:1/0?db=2&password=********&ssl_Password=********"
    assert redis.where == "redis://h:1/0"
    assert RedisSettings(url="rediss://u:hidden@h:1/0").where == "rediss://h:1/0"


def test_redis_is_found_by_sentinels() -> None:
    """The user and the password before the addresses are the servers'; Sentinels have their own."""
    redis = from_environment(
        RedisSettings,
        {
            "LEASEHOLD_REDIS": "rediss+sentinel://ada:hidden@a:1,b:2/ledger/3",
            "LEASEHOLD_REDIS_SENTINEL_USERNAME": "watcher",
            "LEASEHOLD_REDIS_SENTINEL_PASSWORD": "word",
            "LEASEHOLD_REDIS_CA": "ca.pem",
        },
    )
    assert redis.sentinels == (("a", 1), ("b", 2))
    assert redis.sentinel_service == "ledger"
    assert redis.server_url == "rediss://ada:hidden@a/3"
    assert redis.where == "rediss+sentinel://a:1,b:2/ledger/3"
    assert "hidden" not in str(describe(redis)) + repr(redis)
    tls = {"ssl": True, "ssl_ca_certs": "ca.pem"}
    own = {"username": "watcher", "password": "word"}
    assert redis.sentinel_options() == {"driver_info": None, **own, **tls}
    plain = RedisSettings(url="redis+sentinel://a:1/ledger")
    assert plain.server_url == "redis://a/0"
    assert plain.sentinel_options() == {"driver_info": None}
    assert RedisSettings(url="redis://a:1/0").sentinels == ()


def test_a_secret_comes_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_text("from a file\n")
    settings = from_environment(RedisSettings, {"LEASEHOLD_REDIS_PASSWORD_FILE": str(path)})
    assert settings.password == "from a file"
    assert settings.client_options() == {"driver_info": None, "password": "from a file"}


def test_a_missing_file_and_a_double_setting_are_told(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConfigurationError, match=r"PASSWORD_FILE names .*No such file"):
        from_environment(RedisSettings, {"LEASEHOLD_REDIS_PASSWORD_FILE": missing})
    both = {"LEASEHOLD_REDIS_PASSWORD": "x", "LEASEHOLD_REDIS_PASSWORD_FILE": missing}
    with pytest.raises(ConfigurationError, match="both set"):
        from_environment(RedisSettings, both)


def test_a_binary_secret_file_is_refused_without_showing_it(tmp_path: Path) -> None:
    path = tmp_path / "password"
    path.write_bytes(b"\xff\xfehush")
    with pytest.raises(ConfigurationError, match="not UTF-8") as caught:
        from_environment(RedisSettings, {"LEASEHOLD_REDIS_PASSWORD_FILE": str(path)})
    assert "hush" not in caught.value.message


def test_plain_options_of_all_three_clients() -> None:
    kafka = from_environment(KafkaSettings, {"LEASEHOLD_KAFKA": "a:1,b:2"})
    assert kafka.librdkafka() == {"bootstrap.servers": "a:1,b:2", "security.protocol": "plaintext"}
    assert kafka.spark_options() == {
        "kafka.bootstrap.servers": "a:1,b:2",
        "kafka.security.protocol": "PLAINTEXT",
    }
    assert kafka.aiokafka() == {"bootstrap_servers": "a:1,b:2", "security_protocol": "PLAINTEXT"}


def test_sasl_and_tls_options(tmp_path: Path) -> None:
    ca, certificate, key = (tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem"))
    certificate.write_text("CERTIFICATE")
    key.write_text("KEY")
    files = {
        "LEASEHOLD_KAFKA_CA": str(ca),
        "LEASEHOLD_KAFKA_CERTIFICATE": str(certificate),
        "LEASEHOLD_KAFKA_KEY": str(key),
    }
    kafka = from_environment(KafkaSettings, {**SASL, **files})
    plain = kafka.librdkafka()
    assert plain["sasl.mechanism"] == "SCRAM-SHA-512"
    assert plain["ssl.ca.location"] == str(ca)
    assert plain["ssl.key.location"] == str(key)
    spark = kafka.spark_options()
    assert spark["kafka.sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="ada" password="pa\\"ss\\\\word";'
    )
    assert spark["kafka.ssl.truststore.location"] == str(ca)
    assert spark["kafka.ssl.keystore.key"] == "KEY"
    with pytest.raises(ConfigurationError, match="can't be used"):
        kafka.aiokafka()  # those files hold no certificate


def test_half_a_login_or_half_a_key_pair_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="needs LEASEHOLD_KAFKA_USERNAME"):
        from_environment(KafkaSettings, {"LEASEHOLD_KAFKA_SECURITY": "SASL_PLAINTEXT"})
    with pytest.raises(ConfigurationError, match="only work together"):
        from_environment(KafkaSettings, {"LEASEHOLD_KAFKA_CERTIFICATE": "/x"})


@pytest.mark.parametrize(
    "settings",
    [
        KafkaSettings(),
        KafkaSettings(security="SASL_SSL", username="u", password="p", ca=Path("/ca")),
        RedisSettings(url="rediss://h:1/2", password="p"),
        ClusterSettings(database="air", node="r7", dashboard_port=9, ready_file=Path("/r")),
    ],
)
def test_to_environment_is_read_back_the_same(settings: object) -> None:
    assert from_environment(type(settings), to_environment(settings)) == settings
