"""Who takes short turns, as the kernel tells (`sched_getattr`)."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import subprocess
import sys
from collections.abc import Callable
from threading import Thread
from typing import Final

import pytest

from leasehold.adapters.os.scheduling import SHORT_NS, take_short_turns

GETATTR: Final = {"x86_64": 315, "aarch64": 275}
ATTR: Final = struct.Struct("=IIQiIQQQ")


def turn_ns() -> int:
    """Of the calling thread; 0 where the kernel does not tell."""
    told = ctypes.create_string_buffer(ATTR.size)
    number = GETATTR.get(platform.machine())
    if number is None or ctypes.CDLL(None).syscall(ctypes.c_long(number), 0, told, ATTR.size, 0):
        return 0
    return int(ATTR.unpack(told.raw)[5])


def in_a_thread(work: Callable[[], int]) -> int:
    found: list[int] = []
    thread = Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    (only,) = found
    return only


def test_a_thread_takes_short_turns_and_so_do_those_it_starts() -> None:
    before = turn_ns()
    assert before == 0 or before > SHORT_NS
    short = min(before, SHORT_NS)  # 0: Linux before 6.12, where nothing is to change

    def both() -> int:
        take_short_turns()
        assert turn_ns() == short
        asked = "from tests.unit.adapters.os.test_scheduling import turn_ns; print(turn_ns())"
        told = subprocess.run(
            [sys.executable, "-c", asked], capture_output=True, text=True, check=True
        )
        assert int(told.stdout) == short
        return in_a_thread(turn_ns)

    assert in_a_thread(both) == short
    assert turn_ns() == before, "the others' are as they were"


def test_nothing_else_of_a_thread_is_changed() -> None:
    def both() -> int:
        # Of this thread alone: Linux has a niceness for each.
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 1)
        before = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0))
        take_short_turns()
        return int((os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0)) == before)

    assert in_a_thread(both)


def test_on_a_machine_that_it_does_not_know_turns_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "abacus")

    def call() -> int:
        take_short_turns()
        monkeypatch.undo()
        return turn_ns()

    assert in_a_thread(call) == turn_ns()


def test_where_it_is_forbidden_turns_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(_pid: int) -> int:
        raise PermissionError

    monkeypatch.setattr(os, "sched_getscheduler", forbidden)

    def call() -> int:
        take_short_turns()
        return turn_ns()

    assert in_a_thread(call) == turn_ns()
