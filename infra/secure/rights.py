"""Users of a broker and their rights there, given by whoever may do everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from infra.processes import ProcessFailure
from infra.secure.users import Users
from leasehold.adapters.kafka.acls import AclAdmin
from leasehold.cli.access.setup_acls import CLIENT_ID, wanted_rights
from leasehold.settings.environment import KafkaSettings

ROUNDS: Final = 4_096
TIMEOUT_S: Final = 30.0


def give_passwords(administrator: KafkaSettings, passwords: Mapping[str, str]) -> None:
    """Tell the broker users and their passwords. May be repeated. Raises ProcessFailure."""
    admin = AdminClient(administrator.librdkafka())
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ROUNDS)
    made = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion(name, info, password.encode())
            for name, password in passwords.items()
        ]
    )
    for name, future in made.items():
        try:
            future.result(timeout=TIMEOUT_S)
        except (KafkaException, TimeoutError) as error:
            raise ProcessFailure(f"Kafka takes no password for {name}: {error}.") from error


def give_rights(administrator: KafkaSettings, users: Users, database: str) -> None:
    """Give each user its rights on the database. May be repeated. Raises BusUnavailable."""
    kinds = {f"User:{name}": kinds for name, kinds in users.items()}
    acls = AclAdmin(administrator, CLIENT_ID)
    acls.create(wanted_rights(kinds, database) - acls.given())
