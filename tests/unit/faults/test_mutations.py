"""Goal: no mutation that the harness is to see has silently become none.

Method: each text that one replaces stands in the library once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kinds import KINDS
from tests.faults.mutations import BROKEN, LIBS, mutated
from tests.faults.parts import SETS
from tests.faults.schedule import draw


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_mutation_replaces_is_there_once(name: str) -> None:
    for edit in BROKEN[name].edits:
        text = (LIBS / edit.path).read_text("utf-8")
        assert text.count(edit.old) == 1
        assert edit.new not in text or len(edit.new) < 30


def test_a_copy_is_broken_and_the_library_is_not(tmp_path: Path) -> None:
    name, mutation = next(iter(BROKEN.items()))
    with mutated(name, tmp_path) as copy:
        assert copy is not None
        edit = mutation.edit
        assert edit.old not in (copy / edit.path).read_text("utf-8")
        assert edit.old in (LIBS / edit.path).read_text("utf-8")
    with mutated(None, tmp_path) as copy:
        assert copy is None


@pytest.mark.parametrize("name", BROKEN)
def test_what_leads_to_its_harm_may_befall(name: str) -> None:
    for event in BROKEN[name].events:
        assert event.who in KINDS[event.kind].whom(SETS[BROKEN[name].parts])


@pytest.mark.parametrize("name", [name for name, each in BROKEN.items() if each.kinds])
def test_faults_are_drawn_of_its_kinds_alone(name: str) -> None:
    kinds, parts = BROKEN[name].kinds, SETS[BROKEN[name].parts]
    drawn = [event for seed in range(50) for event in draw(seed, parts, only=kinds).events]
    assert {event.kind for event in drawn} == set(kinds)
