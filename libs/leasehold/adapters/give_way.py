"""Work that nobody waits for gives way to those who are waited for."""

from __future__ import annotations

import os
from contextlib import suppress
from threading import get_native_id
from typing import Final

NICE: Final = 5
"""Where processors are scarce it gets a third of what others do; where they are idle, all of it.
With 10, a tenth, a backfill beside other work took three times as long, and users gained nothing.
"""


def thread_gives_way() -> None:
    """The calling thread alone; on Linux, where a thread has a niceness of its own."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, get_native_id(), NICE)


def process_gives_way() -> None:
    """This process and all that it starts from now on."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
