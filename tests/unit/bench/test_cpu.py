"""Processor time of a tree of processes, some of which end between two looks."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

from infra.process_table import Identity, ProcessEntry
from tests.bench.cpu import TICKS_PER_S, Tree, spent_s, tree_times

ROOT: Final = Identity(10, 100, "boot")
DAEMON: Final = Identity(20, 200, "boot")
WORKER: Final = Identity(30, 300, "boot")


def took(process: Identity, parent: int, own: int, ended: int) -> ProcessEntry:
    return ProcessEntry(process, parent, 10, "S", own, ended)


def tree(*entries: ProcessEntry) -> Tree:
    return {each.identity: each for each in entries}


BEFORE: Final = tree(took(ROOT, 1, 50, 5), took(DAEMON, 10, 20, 0), took(WORKER, 20, 70, 0))


def ticks(*after: ProcessEntry) -> float:
    return spent_s(BEFORE, tree(*after)) * TICKS_PER_S


def test_what_lives_counts_by_what_it_took_since_and_what_is_new_whole() -> None:
    old = took(ROOT, 1, 51, 5), took(DAEMON, 10, 22, 0), took(WORKER, 20, 74, 0)
    assert ticks(*old, took(Identity(31, 400, "boot"), 20, 8, 0)) == 1 + 2 + 4 + 8


def test_one_that_ended_unwaited_for_takes_nothing_from_the_others() -> None:
    assert ticks(took(ROOT, 1, 51, 5), took(DAEMON, 10, 22, 0)) == 1 + 2


def test_of_one_that_was_waited_for_what_it_took_since_counts() -> None:
    assert ticks(took(ROOT, 1, 51, 5), took(DAEMON, 10, 22, ended=73)) == 1 + 2 + 3


def test_so_it_is_where_its_parent_ended_with_it() -> None:
    assert ticks(took(ROOT, 1, 51, ended=5 + 93)) == 1 + (93 - 90)


def test_another_process_of_the_same_pid_is_another() -> None:
    same = Identity(30, 900, "boot")
    assert ticks(took(ROOT, 1, 50, 5), took(DAEMON, 10, 20, 0), took(same, 20, 6, 0)) == 6


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
