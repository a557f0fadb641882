"""Short turns at a processor, for work that nobody waits for.

Since Linux 6.6 a thread keeps its processor until its turn is over (`RUN_TO_PARITY`), 3 ms or so,
whoever wakes up meanwhile; and the clock that ends turns ticks every 4 ms. A write is a chain of a
dozen threads that each want a processor for a moment: behind threads that compute for seconds each
link waits that long. With a turn of a tenth of a millisecond whoever wakes up has it at once. The
share of each stays what it was, so that nothing starves, unlike with niceness.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress
from typing import Final

SHORT_NS: Final = 100_000
"""Least that Linux takes."""

_SETATTR: Final = {"x86_64": 314, "aarch64": 274}
_ATTR: Final = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr`: size, policy, flags, nice, priority, runtime, deadline, period."""


def take_short_turns() -> None:
    """Give the calling thread, and every thread and process that it starts from now on, short turns
    (`sched_setattr`, Linux 6.12 or newer). Elsewhere, and where it is forbidden, turns are as long
    as they are."""
    number = _SETATTR.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return
    with suppress(OSError):
        policy, niceness = os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0)
        if policy not in (os.SCHED_OTHER, os.SCHED_BATCH):
            return  # whoever runs us has chosen
        attributes = _ATTR.pack(_ATTR.size, policy, 0, niceness, 0, SHORT_NS, 0, 0)
        ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, attributes, 0)
