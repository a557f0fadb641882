"""Folders by the JVM of a session, in a process of their own.

`python -m tests.support.cluster.folder_talk DISK`; DISK takes what Spark writes, and `behind` in it
is what viewfs://shared/leasehold names. Standard input has one JSON line per call: [URI of the
folder, method, arguments …]; standard output one for each, in order: what came of it, bytes as
text.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from infra.local_cluster import SPARK_JARS
from leasehold.model.errors import SparkUnavailable
from spark_streaming.hadoop_folder import HadoopFolder
from spark_streaming.session import start_session
from spark_streaming.spark_settings import SparkSettings


def main(disk: Path) -> None:
    folder = "viewfs://shared/leasehold"
    mounted = f"spark.hadoop.fs.viewfs.mounttable.shared.link./leasehold file:{disk}/behind"
    session = start_session(SparkSettings(jars=SPARK_JARS, folder=folder, conf=mounted), disk)
    for line in sys.stdin:
        uri, method, *arguments = json.loads(line)
        if method == "write":
            arguments[1] = arguments[1].encode()
        try:
            result = getattr(HadoopFolder(session, uri), method)(*arguments)
        except SparkUnavailable as error:
            result = f"SparkUnavailable: {error}"
        print(json.dumps(result.decode() if isinstance(result, bytes) else result), flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
