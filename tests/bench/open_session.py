"""One session that sits in its transaction: `python -m tests.bench.open_session table seconds`.

It says "ready", waits for a line, says "ready" again from inside the transaction, and leaves it
after so many seconds.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from leasehold.replica.replica import open_replica
from leasehold.settings.client import ClientSettings


def main(table: str, seconds: float) -> None:
    with open_replica(ClientSettings.read()) as replica:
        print("ready", flush=True)
        sys.stdin.readline()

        def sits(tx: Any) -> None:
            tx.get(table, 1)
            print("ready", flush=True)
            time.sleep(seconds)

        replica.transact(sits)
    print("{}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
