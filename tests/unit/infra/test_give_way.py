"""What gives way: a process with the threads and processes that it has started."""

from __future__ import annotations

import os
import subprocess
import sys
from threading import Thread, get_native_id

from leasehold.adapters.give_way import NICE, thread_gives_way

ALL_BELOW = """
import os, subprocess, sys, threading
from leasehold.adapters.give_way import process_gives_way
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
held = threading.Event()
thread = threading.Thread(target=held.wait)
thread.start()
process_gives_way()
ids = (0, thread.native_id, child.pid)
print(*(os.getpriority(os.PRIO_PROCESS, each) for each in ids))
held.set()
child.communicate(b"\\n")
"""


def test_a_thread_gives_way_alone() -> None:
    found: list[int] = []

    def work() -> None:
        thread_gives_way()
        found.append(os.getpriority(os.PRIO_PROCESS, get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, 0)
    thread = Thread(target=work)
    thread.start()
    thread.join()
    assert found == [max(NICE, before)]
    assert os.getpriority(os.PRIO_PROCESS, 0) == before


def test_a_process_gives_way_with_all_that_it_has_started() -> None:
    said = subprocess.run(
        [sys.executable, "-c", ALL_BELOW], capture_output=True, text=True, timeout=60, check=True
    )
    assert {int(word) for word in said.stdout.split()} == {max(NICE, os.getpriority(0, 0))}
