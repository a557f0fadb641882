"""The process from which Spark forks its Python workers, made cheap to work with.

Spark puts pyspark on its workers' path as a zip file, and each task drops Python's import caches:
every zip importer in use (16 of them) then reads its directory again, 0.1 s of processor time
per task. Where the same pyspark is installed as plain files it is taken from there, without the
zips.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import PathFinder

_plain = [entry for entry in sys.path if not entry.endswith(".zip")]
if PathFinder.find_spec("pyspark", _plain) is not None:
    sys.path[:] = _plain
    for _entry in [entry for entry in sys.path_importer_cache if ".zip" in entry]:
        del sys.path_importer_cache[_entry]

# Only now, and before any fork, so that workers have them at once.
import pandas as pd  # noqa: E402, F401
import pyarrow as pa  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

# A window of row images is a hundred thousand tuples without cycles: with Python's own thresholds
# the collector walks over them again and again (a third of a backfill's time in the worker).
gc.freeze()
gc.set_threshold(100_000, 50, 100)

if __name__ == "__main__":
    manager()  # type: ignore[no-untyped-call]
