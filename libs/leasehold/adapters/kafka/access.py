"""Access that Kafka denies, told apart from a broker that is away: waiting does not cure it."""

from __future__ import annotations

from typing import Final

from confluent_kafka import KafkaError

from leasehold.model.errors import BusUnavailable
from leasehold.settings.environment import KafkaSettings

_AUTHENTICATION: Final = frozenset(
    {
        KafkaError._AUTHENTICATION,
        KafkaError.SASL_AUTHENTICATION_FAILED,
        KafkaError.UNSUPPORTED_SASL_MECHANISM,
        KafkaError.ILLEGAL_SASL_STATE,
    }
)
_UNANSWERED: Final = "handshake failed: Local: "
"""librdkafka's words for a log-in that the broker did not answer in time, or ended: as one that is
starting or busy does. It reports them under the same code as a refusal."""
_TLS: Final = frozenset({KafkaError._SSL})
# Not GROUP_AUTHORIZATION_FAILED: librdkafka looks for the group that its consumers must name, but
# we never join one.
_AUTHORIZATION: Final = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


class AccessDenied(BusUnavailable):
    """Kafka answers, and says no to this user or certificate, or shows none that we trust."""


def denial(error: KafkaError, settings: KafkaSettings) -> str | None:
    """A sentence with what to check if `error` means that access is denied, else None."""
    if error.code() in _AUTHENTICATION and _UNANSWERED not in error.str():
        return _sentence(error, settings, f"access denied as {_who(settings)}", _identity(settings))
    if error.code() in _TLS:
        check = "LEASEHOLD_KAFKA_CA, LEASEHOLD_KAFKA_CERTIFICATE and LEASEHOLD_KAFKA_KEY"
        return _sentence(error, settings, "no TLS connection that both sides trust", check)
    if error.code() in _AUTHORIZATION:
        check = f"{_identity(settings)}, and the broker's access control lists"
        return _sentence(error, settings, f"access denied as {_who(settings)}", check)
    return None


def _sentence(error: KafkaError, settings: KafkaSettings, what: str, check: str) -> str:
    return f"Kafka at {settings.bootstrap}: {what} ({error.str()}); check {check}"


def _who(settings: KafkaSettings) -> str:
    if settings.uses_sasl:
        return f"user {settings.username}"
    if settings.uses_tls and settings.certificate is not None:
        return f"the owner of certificate {settings.certificate}"
    return "a client without a name"


def _identity(settings: KafkaSettings) -> str:
    if settings.uses_sasl:
        return (
            "LEASEHOLD_KAFKA_USERNAME, LEASEHOLD_KAFKA_PASSWORD and"
            f" LEASEHOLD_KAFKA_SASL_MECHANISM (now {settings.sasl_mechanism})"
        )
    if settings.uses_tls and settings.certificate is not None:
        return "LEASEHOLD_KAFKA_CERTIFICATE"
    return f"LEASEHOLD_KAFKA_SECURITY (now {settings.security})"
