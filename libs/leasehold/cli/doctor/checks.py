"""All checks of `leasehold doctor`, in the order in which they are shown."""

from __future__ import annotations

from typing import Final

from leasehold.cli.doctor.cluster_checks import CLUSTER_CHECKS
from leasehold.cli.doctor.finding import Check
from leasehold.cli.doctor.kafka_checks import DURABILITY, KAFKA_CHECKS
from leasehold.cli.doctor.redis_checks import REDIS_CHECKS, REDIS_DURABILITY
from leasehold.cli.doctor.settings_checks import SETTINGS_CHECKS

CHECKS: Final[tuple[Check, ...]] = (
    *SETTINGS_CHECKS,
    *KAFKA_CHECKS,
    DURABILITY,
    REDIS_DURABILITY,
    *REDIS_CHECKS,
    *CLUSTER_CHECKS,
)
