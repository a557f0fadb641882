"""The table of ⚠ rules is complete, and each of its switches does harm somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import leasehold
from tests.models.mutations import found, harmless
from tests.models.rule_table import BACKED, CODE, PROTOCOL, SCHEMA_CHANGE, Rule
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import Switch, of_the_library

WARNINGS = {"protocol.md": 12, "schema-change.md": 7}
"""⚠ in each document; a new one there is a new line in the table."""


def places(switch: Switch) -> set[str]:
    return {mutation.where for mutation in found() if switch in mutation.off}


def test_every_warning_of_the_documents_has_its_line() -> None:
    assert len(PROTOCOL) == WARNINGS["protocol.md"]
    assert len(SCHEMA_CHANGE) == WARNINGS["schema-change.md"]


def test_every_warning_in_the_code_is_in_the_table() -> None:
    numbers = {rule.number for rule in PROTOCOL}
    for path in sorted(Path(leasehold.__path__[0]).rglob("*.py")):
        for number in re.findall(r"\b([A-Z]\d)\b \u26a0", path.read_text(encoding="utf-8")):
            assert number in numbers, f"{path.name}: {number}"


@pytest.mark.parametrize(
    "rule", [*PROTOCOL, *SCHEMA_CHANGE, *CODE], ids=lambda r: f"{r.number} {r.words}"
)
def test_a_rule_has_switches_that_do_harm_or_a_reason(rule: Rule, model_line: AddLine) -> None:
    assert bool(rule.switches) != bool(rule.unbuilt), "one of the two"
    if rule.unbuilt:
        line = ModelLine(f"⚠ {rule.number}", "none yet", 0, 0, False, f"not built: {rule.unbuilt}")
        model_line(line)
    for switch in rule.switches - BACKED.keys():
        assert places(switch), f"{switch} is never turned off, or does no harm"
    assert not rule.switches or any(map(places, rule.switches)), "nothing of it does harm"


def test_every_switch_of_the_library_does_harm_or_is_backed() -> None:
    for switch in sorted(of_the_library()):
        assert bool(places(switch)) != (switch in BACKED), switch
    shown = {switch for mutation in harmless() for switch in mutation.off}
    assert shown >= BACKED.keys()


def test_the_switches_of_the_table_exist() -> None:
    known = {switch for mutation in (*found(), *harmless()) for switch in mutation.off}
    for rule in (*PROTOCOL, *SCHEMA_CHANGE, *CODE):
        assert rule.switches <= known | of_the_library(), rule
