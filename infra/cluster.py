"""Start, end and show the local cluster: `python -m infra.cluster up|down|status`.

Exit codes: 0 done (status: everything is ready), 1 it failed, 2 the command line is wrong, 3
status: not everything is ready.
"""

from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import urlsplit

from infra.local_cluster import LocalCluster
from infra.observe.prometheus import find_binary
from infra.ports import LOOPBACK, SENTINELS, SQL_PORTS, Ports
from infra.processes import ProcessFailure
from infra.redis.servers import MODES
from leasehold.model.errors import ConfigurationError, LeaseholdError
from leasehold.settings.environment import (
    ClusterSettings,
    KafkaSettings,
    RedisSettings,
    from_environment,
)
from leasehold.settings.private_files import make_private_folder
from leasehold.settings.setting import PORT
from leasehold.settings.sql_port import PgwireSettings

CONTROLLER_VARIABLE = "LEASEHOLD_KAFKA_CONTROLLER_PORT"
FIRST_SENTINEL = 2
"""Its port, counted from that of Redis; between both is the replica's."""


def cluster_from(
    environ: dict[str, str],
    *,
    secure: bool = False,
    observe: bool = False,
    brokers: int = 0,
    redis: str = "",
) -> LocalCluster:
    """The local cluster that the environment describes.

    Raises ConfigurationError, also for a LEASEHOLD_KAFKA or LEASEHOLD_REDIS elsewhere: this command
    starts servers on this machine only. Raises ProcessFailure for a folder of another cluster.
    """
    settings = from_environment(ClusterSettings, environ)
    # In a shell that has read the operator's file there are all brokers, and Sentinels.
    bootstrap = from_environment(KafkaSettings, environ).bootstrap
    kafka_port = _first_loopback_port("LEASEHOLD_KAFKA", bootstrap)
    ledger = from_environment(RedisSettings, environ)
    places = urlsplit(ledger.url).netloc.rpartition("@")[2]
    redis_port = _first_loopback_port("LEASEHOLD_REDIS", places)
    if ledger.sentinels:
        redis_port -= FIRST_SENTINEL
    try:
        controller = PORT(environ.get(CONTROLLER_VARIABLE) or str(kafka_port + 1))
    except ValueError as error:
        raise ConfigurationError(
            f"{CONTROLLER_VARIABLE} is {environ[CONTROLLER_VARIABLE]!r}; expected {error}."
        ) from None
    sql_port = from_environment(PgwireSettings, environ).port or SQL_PORTS[0]
    trusted, sentinel = controller + 1, redis_port + FIRST_SENTINEL
    ports = Ports(
        *(kafka_port, controller, redis_port, settings.dashboard_port),
        sql=tuple(range(sql_port, sql_port + len(SQL_PORTS))),
        kafka_trusted=trusted,
        more_brokers=tuple(range(trusted + 1, trusted + 7)),
        redis_replica=redis_port + 1,
        sentinels=tuple(range(sentinel, sentinel + SENTINELS)),
    )
    return LocalCluster(
        settings.data,
        ports,
        environ,
        lasting=True,
        secure=secure,
        observe=observe,
        brokers=brokers,
        redis=redis,
    )


def _first_loopback_port(variable: str, addresses: str) -> int:
    ports = [_loopback_port(variable, each) for each in addresses.split(",")]
    return ports[0]


def _loopback_port(variable: str, address: str) -> int:
    host, _, port = address.rpartition(":")
    if host not in (LOOPBACK, "localhost") or not port.isdigit():
        raise ConfigurationError(
            f"{variable} is {address!r}, but the local cluster's servers stand on {LOOPBACK}: "
            f"set it to {LOOPBACK}:<port>, or leave it out."
        )
    return int(port)


def _say(text: str) -> None:
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Whoever read us (head, less) has seen enough; what was asked for is done all the same.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def up(cluster: LocalCluster) -> int:
    if cluster.observes:
        find_binary(os.environ.get("PATH"))  # else everything would be up before that is said
    make_private_folder(cluster.data)
    with cluster.processes.exclusively():
        started = cluster.start_all(_say)
        if cluster.observes:
            cluster.start_prometheus()
    if not started:
        _say("The local cluster is up already; nothing to do.")
    _say(
        f"Kafka {cluster.bootstrap}, Redis {cluster.redis_settings.where}, dashboard"
        f" http://{LOOPBACK}:{cluster.ports.dashboard}/, data {cluster.data}; make down ends it."
    )
    database = cluster.cluster_settings.database
    for port in cluster.ports.sql:
        if cluster.secure is not None:
            _say(f"SQL: {cluster.secure.psql(port)}")
        else:
            _say(f"SQL: psql -h {LOOPBACK} -p {port} -U leasehold {database}")
    if cluster.observes:
        _say(f"Prometheus: http://{LOOPBACK}:{cluster.ports.prometheus}/ (docs/how-to/observe.md)")
    _say_how_to_ask(cluster)
    return 0


def _say_how_to_ask(cluster: LocalCluster) -> None:
    """Say what a shell needs before `leasehold status` and other commands."""
    if cluster.secure is not None:
        file = cluster.secure.operator_file
        _say(f"Secure mode: before leasehold status and other commands by hand: . {file}")
    elif cluster.has_more:
        _say(f"Before leasehold status and other commands by hand: . {cluster.operator_file}")


def down(cluster: LocalCluster) -> int:
    with cluster.processes.exclusively():
        ended = cluster.stop_all()
    _say(f"Ended: {', '.join(ended)}." if ended else "Nothing was running.")
    return 0


def status(cluster: LocalCluster) -> int:
    rows = cluster.status()
    for row in rows:
        state = "ready" if row.ready else "starting" if row.pid else "not running"
        _say(f"{row.name:<12} {state:<12} {row.pid or '-':<8} {row.log}")
    _say_how_to_ask(cluster)
    return 0 if all(row.ready for row in rows) else 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.cluster", description=__doc__)
    parser.add_argument("command", choices=("up", "down", "status"))
    parser.add_argument(
        "--secure",
        action="store_true",
        help="up: passwords, TLS and the least rights for everybody; it stays so in this folder",
    )
    parser.add_argument(
        "--brokers",
        type=int,
        choices=(0, 1, 3),
        default=0,
        help="up: how many Kafka brokers there are; it stays so in this folder (default: 1)",
    )
    parser.add_argument(
        "--redis",
        choices=MODES,
        default="",
        help="up: one Redis, or a master with a replica and three Sentinels; it stays so",
    )
    parser.add_argument(
        "--observe",
        action="store_true",
        help="up: services serve metrics, and a Prometheus of this machine reads them",
    )
    args = parser.parse_args()
    command = {"up": up, "down": down, "status": status}[args.command]
    try:
        cluster = cluster_from(
            dict(os.environ),
            secure=args.secure,
            observe=args.observe,
            brokers=args.brokers,
            redis=args.redis,
        )
        return command(cluster)
    except (LeaseholdError, ProcessFailure) as error:
        print(f"cluster: {error}", file=sys.stderr)
        if command is up:
            print("cluster: what was started still runs; make down ends it.", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("cluster: interrupted; make down ends what was started.", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
