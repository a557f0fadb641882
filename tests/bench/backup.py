"""Group backup: a full backup of so many rows, what verifies it, and the restore of it into a new
database, each by the command, from its process's start to its end."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.bench import bulk_loader
from tests.bench.bench_settings import BenchSettings
from tests.bench.bootstrap import load
from tests.bench.commands import command_ms
from tests.bench.figure import Figure
from tests.bench.stand import say, stand

METRICS: Final = ("backup_create", "backup_stored", "backup_verify", "backup_restore")
TIMEOUT_S: Final = 3_600.0
MB: Final = 1e6


def measure(settings: BenchSettings) -> Iterator[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="leasehold-bench-") as folder,
        stand(["m1", "r1", "changefeed"], settings.warm_up) as where,
    ):
        place, store = Path(folder) / "backups", Path(folder) / "m1" / "store.db"
        where.submit({"sql": bulk_loader.CREATE})
        load(where, 0, settings.rows)
        say("a full backup of a replicant's store")
        took_ms = command_ms(where, "backup", "create", str(place), timeout_s=TIMEOUT_S)
        yield Figure("backup_create", took_ms / 1e3, "s")
        stored = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
        yield Figure("backup_stored", stored / MB, "MB")
        took_ms = command_ms(where, "backup", "verify", str(place), timeout_s=TIMEOUT_S)
        yield Figure("backup_verify", took_ms / 1e3, "s")
        say("a restore: topics, rows for who follows them, a store")
        name = f"{where.cluster.cluster_settings.database}restored"
        words = ("restore", str(place), "--database", name, "--store", str(store))
        took_ms = command_ms(where, "backup", *words, timeout_s=TIMEOUT_S)
        yield Figure("backup_restore", took_ms / 1e3, "s")
        shutil.rmtree(place)
