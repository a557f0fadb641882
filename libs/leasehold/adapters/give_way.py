"""Work that nobody waits for gives way to those who are waited for."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import Final

NICE: Final = 5
"""Where processors are scarce it gets a third of what others do; where they are idle, all of it.
With 10, a tenth, a backfill beside other work took three times as long, and users gained nothing.
"""


def thread_gives_way() -> None:
    """The calling thread alone; on Linux, where a thread has a niceness of its own."""
    with suppress(OSError, AttributeError):
        _give_way(get_native_id())


def process_gives_way() -> None:
    """This process and those below it, with the threads that they have; what these start later
    follows. So a start, which is waited for, can come before it."""
    below = [os.getpid()]
    for pid in below:
        with suppress(OSError):
            for thread in Path(f"/proc/{pid}/task").iterdir():
                with suppress(OSError):
                    _give_way(int(thread.name))
                    children = (thread / "children").read_text()
                    below += map(int, children.split())


def _give_way(thread: int) -> None:
    if os.getpriority(os.PRIO_PROCESS, thread) < NICE:
        os.setpriority(os.PRIO_PROCESS, thread, NICE)
