"""Processor time of a tree of processes, some of which end between two looks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from tests.bench.cpu import TICKS_PER_S, ProcessId, ProcessTime, Tree, spent_s, tree_times

ROOT: Final = ProcessId(10, 100)
DAEMON: Final = ProcessId(20, 200)
WORKER: Final = ProcessId(30, 300)
BEFORE: Final[Tree] = {
    ROOT: ProcessTime(parent=1, own=50, ended=5),
    DAEMON: ProcessTime(parent=10, own=20, ended=0),
    WORKER: ProcessTime(parent=20, own=70, ended=0),
}


def _ticks(after: Tree) -> float:
    return spent_s(BEFORE, after) * TICKS_PER_S


def test_what_lives_counts_by_what_it_took_since_and_what_is_new_whole() -> None:
    after = {
        ROOT: ProcessTime(1, 51, 5),
        DAEMON: ProcessTime(10, 22, 0),
        WORKER: ProcessTime(20, 74, 0),
        ProcessId(31, 400): ProcessTime(20, 8, 0),
    }
    assert _ticks(after) == 1 + 2 + 4 + 8


def test_one_that_ended_unwaited_for_takes_nothing_from_the_others() -> None:
    after = {ROOT: ProcessTime(1, 51, 5), DAEMON: ProcessTime(10, 22, 0)}
    assert _ticks(after) == 1 + 2


def test_of_one_that_was_waited_for_what_it_took_since_counts() -> None:
    after = {ROOT: ProcessTime(1, 51, 5), DAEMON: ProcessTime(10, 22, ended=73)}
    assert _ticks(after) == 1 + 2 + 3


def test_so_it_is_where_its_parent_ended_with_it() -> None:
    after = {ROOT: ProcessTime(1, 51, ended=5 + 93)}
    assert _ticks(after) == 1 + (93 - 90)


def test_another_process_of_the_same_pid_is_another() -> None:
    after = {
        ROOT: ProcessTime(1, 50, 5),
        DAEMON: ProcessTime(10, 20, 0),
        ProcessId(30, 900): ProcessTime(20, 6, 0),
    }
    assert _ticks(after) == 6


def test_what_a_child_took_is_found_while_it_lives_and_once_more_at_no_time() -> None:
    me = os.getpid()
    before = tree_times([me])[me]
    compute = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", compute], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout
        child.stdout.readline()
        meanwhile = tree_times([me])[me]
        child.communicate(b"\n")
    after = tree_times([me])[me]
    assert spent_s(before, meanwhile) >= 0.25
    assert spent_s(before, after) >= 0.25
    assert spent_s(meanwhile, after) < 0.25


def test_a_process_that_is_not_there_has_no_tree() -> None:
    assert tree_times([2**22 + 1]) == {}
