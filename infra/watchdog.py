"""Ends a cluster whose owner has died: `python -m infra.watchdog <data folder>`.

Its standard input is a pipe from the owner. The pipe's end means that the owner is gone, however it
went; what still runs under the data folder is then ended.
"""

from __future__ import annotations

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
    if (data / "run").exists():
        Processes(data / "run", data / "log").stop_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
