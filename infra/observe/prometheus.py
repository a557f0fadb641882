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
SCRAPE_EVERY: Final = "5s"
KEPT: Final = "7d"
KEPT_BYTES: Final = "1GB"


def find_binary(search: str | None = None) -> str:
    """Return the path of the program, in the folders of `search`, a PATH. Raises
    ProcessFailure."""
    found = shutil.which(PROMETHEUS, path=search)
    if found is None:
        raise ProcessFailure(
            "OBSERVE=1 needs Prometheus, which is not on the PATH; on Debian: apt-get install"
            " prometheus"
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
