"""Goal: no mutation that the harness is to see has silently become none.

Method: each text that one replaces stands in the library once.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.kinds import KINDS
from tests.faults.mutations import BROKEN, LIBS, mutated
from tests.faults.parts import LIGHT


@pytest.mark.parametrize("name", BROKEN)
def test_what_a_mutation_replaces_is_there_once(name: str) -> None:
    mutation = BROKEN[name]
    assert (LIBS / mutation.path).read_text("utf-8").count(mutation.old) == 1
    assert mutation.new not in (LIBS / mutation.path).read_text("utf-8") or len(mutation.new) < 30


def test_a_copy_is_broken_and_the_library_is_not(tmp_path: Path) -> None:
    name, mutation = next(iter(BROKEN.items()))
    with mutated(name, tmp_path) as copy:
        assert copy is not None
        assert mutation.old not in (copy / mutation.path).read_text("utf-8")
        assert mutation.old in (LIBS / mutation.path).read_text("utf-8")
    with mutated(None, tmp_path) as copy:
        assert copy is None


@pytest.mark.parametrize("name", BROKEN)
def test_what_leads_to_its_harm_may_befall(name: str) -> None:
    for event in BROKEN[name].events:
        assert event.who in KINDS[event.kind].whom(LIGHT)
