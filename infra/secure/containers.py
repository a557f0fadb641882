"""What containers need in secure mode before anybody else starts: `python -m
infra.secure.containers secrets FOLDER` makes the files, each for the user of the container that
reads it, and `… passwords FOLDER` has Kafka's broker know its users.

Exit codes: 0 done, 1 it failed, 2 the command line is wrong.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from infra.deployment import KAFKA, OPTIONAL, REDIS, SERVICES
from infra.processes import ProcessFailure
from infra.secure import rights
from infra.secure import secret_files as files
from infra.secure.secret_files import SecretFiles
from infra.secure.servers import (
    REDIS_REPLICATION,
    SENTINEL_FILE,
    SENTINEL_PROBE,
    THREE,
    replication_lines,
    sentinel_lines,
)
from infra.secure.users import (
    ADMINISTRATOR,
    OF_SERVERS,
    PROBE,
    REPLICATION,
    SENTINELS,
    USERS,
    redis_rules,
)
from leasehold.model.errors import LeaseholdError
from leasehold.settings.environment import ClusterSettings, KafkaSettings, from_environment

DASHBOARD: Final = "dashboard"
HOSTS: Final = (
    *(KAFKA, REDIS, *THREE.brokers, *THREE.redis, *THREE.sentinels),
    *(service.name for service in (*SERVICES, *OPTIONAL)),
)
SERVICES_UID: Final = 10_001
"""Of the images in infra/images."""
UIDS: Final[Mapping[str, int]] = {
    files.with_key(KAFKA): 1_000,
    files.with_key(ADMINISTRATOR): 1_000,
    files.key(REDIS): 999,
    files.REDIS_USERS: 999,
    REDIS_REPLICATION: 999,
    SENTINEL_FILE: 999,
    SENTINEL_PROBE: 999,
    files.redis_password(PROBE): 999,
}
"""By file, who reads it: users of the images of Kafka and Redis. All others are for our own."""


def make_secrets(folder: Path, database: str) -> None:
    """Make what is missing of the files, and give each to whoever reads it. Raises ProcessFailure
    and LeaseholdError."""
    made = SecretFiles(folder, HOSTS)
    rules = (*redis_rules(USERS, database), *OF_SERVERS)
    made.make(USERS, rules, (*files.SERVERS, DASHBOARD))
    password = made.secret(files.redis_password(REPLICATION))
    made.write(REDIS_REPLICATION, _lines(replication_lines(password)))
    password = made.secret(files.redis_password(SENTINELS))
    made.write(SENTINEL_FILE, _lines(sentinel_lines(THREE, password)))
    made.write(SENTINEL_PROBE, _lines([password]))
    if os.geteuid() != 0:
        return  # on the host, to be looked at
    for path in folder.rglob("*"):
        if path.is_file():
            uid = UIDS.get(path.relative_to(folder).as_posix(), SERVICES_UID)
            os.chown(path, uid, uid)


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def give_passwords(folder: Path, administrator: KafkaSettings) -> None:
    """Tell the broker the users and their passwords in the folder. Raises ProcessFailure."""
    passwords = {
        name: (folder / files.mounted(files.kafka_password(name))).read_text("ascii").strip()
        for name in USERS
    }
    rights.give_passwords(administrator, passwords)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m infra.secure.containers", description=__doc__)
    parser.add_argument("what", choices=("secrets", "passwords"))
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    try:
        if args.what == "secrets":
            make_secrets(args.folder, from_environment(ClusterSettings, os.environ).database)
            print(f"secrets: they stand in {args.folder}; what was there is kept")
        else:
            give_passwords(args.folder, from_environment(KafkaSettings, os.environ))
            print(f"passwords: the broker knows {len(USERS)} users")
    except (LeaseholdError, ProcessFailure, OSError) as error:
        print(f"{args.what}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
