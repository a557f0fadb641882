"""Settings of where a node writes down who came, was refused, or changed what others may do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from leasehold.model.errors import ConfigurationError
from leasehold.settings.setting import choice, integer, setting

MB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The settings of a node's audit log."""

    topic: str = setting(
        "LEASEHOLD_AUDIT_TOPIC",
        "on or off: events of the audit log go to the topic `audit`",
        default="on",
        parse=choice("on", "off"),
    )
    file: Path | None = setting(
        "LEASEHOLD_AUDIT_FILE",
        "file that events of the audit log go to, a line of JSON each; one for each process",
        default=None,
        parse=Path,
    )
    file_mb: int = setting(
        "LEASEHOLD_AUDIT_FILE_MB",
        "MB after which that file begins anew; nine older ones are kept beside it",
        default=64,
        parse=integer(1, 10_000),
    )
    required: str = setting(
        "LEASEHOLD_AUDIT_REQUIRED",
        "on or off: while events of the audit log can't be written, nobody logs in and sessions"
        " are not ended by others",
        default="off",
        parse=choice("off", "on"),
    )

    def __post_init__(self) -> None:
        if self.required == "on" and self.topic == "off" and self.file is None:
            raise ConfigurationError(
                "LEASEHOLD_AUDIT_REQUIRED is on, and there is no audit log: LEASEHOLD_AUDIT_TOPIC"
                " is off and LEASEHOLD_AUDIT_FILE is not set."
            )
