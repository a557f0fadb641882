"""Access control lists of a broker: who may do what, shown, added and taken away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from leasehold.adapters.kafka.access import AccessDenied, denial
from leasehold.adapters.kafka.admin import AdminConnection
from leasehold.adapters.kafka.client import error_of
from leasehold.model.errors import BusUnavailable, ConfigurationError
from leasehold.model.process_rights import (
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
    KafkaRight,
)
from leasehold.settings.environment import KafkaSettings

TIMEOUT_S: Final = 30.0
EVERY_HOST: Final = "*"
RESOURCES: Final[Mapping[str, ResourceType]] = {
    TOPIC: ResourceType.TOPIC,
    GROUP: ResourceType.GROUP,
    TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
}
OPERATIONS: Final[Mapping[str, AclOperation]] = {
    READ: AclOperation.READ,
    WRITE: AclOperation.WRITE,
    CREATE: AclOperation.CREATE,
    DELETE: AclOperation.DELETE,
    DESCRIBE: AclOperation.DESCRIBE,
    DESCRIBE_CONFIGS: AclOperation.DESCRIBE_CONFIGS,
}
_RESOURCE_OF: Final[Mapping[Any, str]] = {kind: name for name, kind in RESOURCES.items()}
_OPERATION_OF: Final[Mapping[Any, str]] = {
    operation: name for name, operation in OPERATIONS.items()
}
_PREFIXED_OF: Final[Mapping[Any, bool]] = {
    ResourcePatternType.LITERAL: False,
    ResourcePatternType.PREFIXED: True,
}
_ANY: Final[Any] = None  # of a name; the client's types don't say so
_EVERYTHING: Final = AclBindingFilter(
    ResourceType.ANY,
    _ANY,
    ResourcePatternType.ANY,
    _ANY,
    _ANY,
    AclOperation.ANY,
    AclPermissionType.ANY,
)


class Given(NamedTuple):
    """A right that a principal, such as `User:anna`, has from every host."""

    principal: str
    right: KafkaRight


class AclAdmin:
    """Access control lists, asked for and changed through one connection. Every method raises
    BusUnavailable, and ConfigurationError where the broker keeps none."""

    def __init__(self, settings: KafkaSettings, client_id: str) -> None:
        self._settings = settings
        self._connection = AdminConnection(settings, client_id)

    def given(self) -> frozenset[Given]:
        """Return all rights that are of the kind that `create` makes. Others, such as denials, and
        rights from one host alone, are left out: nothing here makes or takes those."""
        self._check_may_look()
        asked = self._client().describe_acls(_EVERYTHING, request_timeout=TIMEOUT_S)
        found = (given_by(acl) for acl in self._result("asking for access control lists", asked))
        return frozenset(given for given in found if given is not None)

    def _check_may_look(self) -> None:
        """Raise AccessDenied where this user may not see entries. ⚠ He is told of none, as if there
        were none: librdkafka 2.16 does not pass the refusal on."""
        asked = self._client().describe_cluster(
            include_authorized_operations=True, request_timeout=TIMEOUT_S
        )
        may = self._result("asking what this user may do", asked).authorized_operations
        if AclOperation.DESCRIBE not in (may or ()):  # None: nothing
            words = denial(KafkaError(KafkaError.CLUSTER_AUTHORIZATION_FAILED), self._settings)
            assert words is not None
            raise AccessDenied(words, bootstrap=self._settings.bootstrap)

    def create(self, wanted: Collection[Given]) -> None:
        """Add rights. One that is there already stays, so this may be repeated."""
        if not wanted:
            return
        made = self._client().create_acls(
            [binding(given) for given in sorted(wanted)], request_timeout=TIMEOUT_S
        )
        for acl, future in made.items():
            self._result(f"giving {acl.principal} rights on {acl.name}", future)

    def delete(self, unwanted: Collection[Given]) -> None:
        """Take rights away. One that is not there is gone already."""
        if not unwanted:
            return
        gone = self._client().delete_acls(
            [_exactly(given) for given in sorted(unwanted)], request_timeout=TIMEOUT_S
        )
        for which, future in gone.items():
            self._result(f"taking rights on {which.name} from {which.principal}", future)

    def _client(self) -> Any:
        return self._connection.client_for("")

    def _result(self, doing: str, future: Any) -> Any:
        try:
            found = future.result(timeout=TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            code = error_of(error).code() if isinstance(error, KafkaException) else None
            if code == KafkaError.SECURITY_DISABLED:
                raise ConfigurationError(
                    f"Kafka at {self._settings.bootstrap} has no access control lists: set"
                    " authorizer.class.name on its brokers and controllers"
                    " (org.apache.kafka.metadata.authorizer.StandardAuthorizer)."
                ) from None
            raise self._unavailable(doing, error) from error
        self._connection.works()
        return found

    def _unavailable(self, doing: str, error: KafkaException | TimeoutError) -> BusUnavailable:
        return self._connection.unavailable(doing, error)


def binding(given: Given) -> AclBinding:
    """Return a right as Kafka's client takes it."""
    return AclBinding(*_parts(given))


def given_by(acl: AclBinding) -> Given | None:
    """Return the right that an entry of the broker's gives, None for one of another kind."""
    resource = _RESOURCE_OF.get(acl.restype)
    operation = _OPERATION_OF.get(acl.operation)
    prefixed = _PREFIXED_OF.get(acl.resource_pattern_type)
    allows = acl.permission_type is AclPermissionType.ALLOW and acl.host == EVERY_HOST
    if resource is None or operation is None or prefixed is None or not allows:
        return None
    return Given(acl.principal, KafkaRight(resource, acl.name, prefixed, operation))


def _exactly(given: Given) -> AclBindingFilter:
    return AclBindingFilter(*_parts(given))


def _parts(given: Given) -> tuple[Any, ...]:
    resource, name, prefixed, operation = given.right
    return (
        RESOURCES[resource],
        name,
        ResourcePatternType.PREFIXED if prefixed else ResourcePatternType.LITERAL,
        given.principal,
        EVERY_HOST,
        OPERATIONS[operation],
        AclPermissionType.ALLOW,
    )
