"""A Prometheus on the loopback address that scrapes the local cluster."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from infra.observe.alerts import ALERTS_FILE
from infra.ports import LOOPBACK
from infra.processes import ProcessFailure

PROMETHEUS: Final = "prometheus"
PROMTOOL: Final = "promtool"
FETCHED: Final = Path(__file__).parents[2] / ".leasehold" / "observe" / "root" / "usr" / "bin"
"""Where `make observe-tools` puts Debian's package, if it is not installed."""
SCRAPE_EVERY: Final = "5s"
KEPT: Final = "7d"
KEPT_BYTES: Final = "1GB"


def find_program(name: str, search: str | None = None, fetched: Path = FETCHED) -> str | None:
    """Return the path of a program of Prometheus's, in the folders of `search`, a PATH, or among
    what was fetched; None where there is none."""
    return shutil.which(name, path=search) or shutil.which(name, path=str(fetched))


def find_binary(search: str | None = None, fetched: Path = FETCHED) -> str:
    """Return the path of the server. Raises ProcessFailure."""
    found = find_program(PROMETHEUS, search, fetched)
    if found is None:
        raise ProcessFailure(
            "OBSERVE=1 needs Prometheus, which is not on the PATH: make observe-tools fetches it;"
            " on Debian also: apt-get install prometheus"
        )
    return found


def configuration(targets: Mapping[str, int], rules: Path = ALERTS_FILE) -> str:
    """Return the configuration, as JSON, which is YAML: what is scraped, by the port of each
    service, and the rules of the alerts."""
    jobs = [
        {
            "job_name": "leasehold",
            "static_configs": [
                {"targets": [f"{LOOPBACK}:{port}"], "labels": {"node": name}}
                for name, port in targets.items()
            ],
        }
    ]
    every = {"scrape_interval": SCRAPE_EVERY, "evaluation_interval": SCRAPE_EVERY}
    whole = {"global": every, "rule_files": [str(rules)], "scrape_configs": jobs}
    return json.dumps(whole, indent=2) + "\n"


def server_command(binary: str, folder: Path, port: int) -> list[str]:
    """Return the command line of a server whose configuration and data stand in `folder`."""
    return [
        binary,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--storage.tsdb.retention.time={KEPT}",
        f"--storage.tsdb.retention.size={KEPT_BYTES}",
        f"--web.listen-address={LOOPBACK}:{port}",
    ]


def is_ready(port: int) -> bool:
    """Return whether the server on that port answers queries."""
    try:
        with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/-/ready", timeout=1.0) as answer:
            return int(answer.status) == 200
    except OSError:
        return False
