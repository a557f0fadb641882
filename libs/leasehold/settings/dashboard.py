"""Settings of the dashboard alone."""

from __future__ import annotations

from dataclasses import dataclass

from leasehold.settings.setting import setting


def host_names(text: str) -> str:
    names = [name.strip() for name in text.split(",")]
    if not all(name and all(c.isalnum() or c in ".-_" for c in name) for name in names):
        raise ValueError("host names without a port, with commas between them")
    return ",".join(names)


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardSettings:
    """The settings of the dashboard: under which names browsers may ask."""

    hosts: str = setting(
        "LEASEHOLD_DASHBOARD_HOSTS",
        "host names under which browsers ask for the dashboard, with commas; addresses, localhost"
        " and LEASEHOLD_ADVERTISE need not be named",
        default="",
        parse=host_names,
    )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.hosts.split(",") if name)
