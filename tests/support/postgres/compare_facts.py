"""Comparisons by Spark in a process of their own.

`python -m tests.support.postgres.compare_facts FOLDER`; the folder takes what Spark writes.
Standard
input has one JSON line per comparison: [folder of Parquet files, most hashes and most values that
are handed over, most suspects, uniques, references, others]; standard output one for each, in
order: [total, [[element, record key in hexadecimal], …]].
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from infra.local_cluster import SPARK_JARS
from leasehold.pipeline.facts import ConstraintGroups
from spark_streaming.comparison import Comparison
from spark_streaming.fact_files import FACTS
from spark_streaming.session import start_session
from spark_streaming.spark_settings import SparkSettings


def main(folder: Path) -> None:
    session = start_session(SparkSettings(jars=SPARK_JARS), folder)
    for number, line in enumerate(sys.stdin):
        place, handed_over_max, most, *wanted = json.loads(line)
        # As many tasks as beside users, and as many as there are.
        facts = session.read.schema(FACTS).parquet(place).coalesce(1 + number % 2)
        with Comparison(facts, handed_over_max, handed_over_max) as comparison:
            total, first = comparison.find_suspects(ConstraintGroups(*map(tuple, wanted)), most)
        assert not session.sparkContext._jsc.getPersistentRDDs(), "something was kept"
        print(json.dumps([total, [[element, row.hex()] for element, row in first]]), flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
