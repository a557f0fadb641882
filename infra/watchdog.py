"""Ends a cluster whose owner has died: `python -m infra.watchdog <data folder> [<users>]`.

Its standard input is a pipe from the owner. The pipe's end means that the owner is gone, however it
went; what still runs under the data folder is then ended. Where several processes use the cluster,
each has a watchdog of its own and holds a shared lock on the file `users`: the cluster is ended
once nobody holds one any more.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
from pathlib import Path

from infra.processes import Processes


def main() -> int:
    # A Ctrl-C in the owner's terminal is the owner's to handle, not ours.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    data = Path(sys.argv[1])
    while os.read(sys.stdin.fileno(), 4096):
        pass
    if len(sys.argv) == 2:
        _end(data)
    else:
        with Path(sys.argv[2]).open("ab") as users:
            fcntl.flock(users, fcntl.LOCK_EX)
            _end(data)
    return 0


def _end(data: Path) -> None:
    if (data / "run").exists():
        Processes(data / "run", data / "log").stop_all()


if __name__ == "__main__":
    sys.exit(main())
