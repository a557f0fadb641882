"""Goal: the table of rights names what is there, and what the code does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

import leasehold.adapters.redis.ledger
from leasehold.adapters.kafka.acls import Given, binding, given_by
from leasehold.adapters.redis import acks, log, requests
from leasehold.changefeed import publisher
from leasehold.intake import taker
from leasehold.model import process_rights
from leasehold.model.process_rights import (
    KINDS,
    LEDGER_READS,
    LEDGER_WRITES,
    SCRIPTS,
    TOPIC,
    KafkaRight,
    ProcessKind,
    is_of_database,
    is_wider,
)
from leasehold.model.topics import Topics

SCRIPT: Final = Path(leasehold.adapters.redis.ledger.__file__).with_name("ledger.lua")
NAMED: Final = {topic.name.partition(".")[2] for topic in Topics("demo").all_static()}

OF_TABLES: Final = {"rows.*", "feed.*", "held.*"}
OF_INTAKES: Final = {"intake"}
"""Of topics that are made by whoever needs them first."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_right_is_on_a_topic_that_there_is(kind: ProcessKind) -> None:
    names = {*kind.reads, *kind.writes, *(b.name for b in kind.besides if b.resource == TOPIC)}
    assert names <= NAMED | OF_TABLES | OF_INTAKES | {"*"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_right_comes_back_from_the_broker_s_entry(kind: ProcessKind) -> None:
    rights = kind.kafka_rights("demo")
    assert rights
    for right in rights:
        given = Given("User:anna", right)
        assert given_by(binding(given)) == given
        assert is_of_database(right, "demo") or right.name == process_rights.NO_GROUP
        assert not is_of_database(right, "dem")
        assert not is_wider(right, "demo")


def test_every_topic_is_read_and_written_by_somebody() -> None:
    assert {name for kind in KINDS for name in kind.writes} == NAMED | OF_TABLES | OF_INTAKES
    assert {name for kind in KINDS for name in kind.reads} == NAMED | OF_TABLES | OF_INTAKES


def test_the_ledger_s_commands_are_those_of_its_script() -> None:
    called = re.findall(r"redis\.call\('(\w+)'", SCRIPT.read_text("utf-8"))
    given = {*LEDGER_READS, *LEDGER_WRITES, *SCRIPTS} - {"eval", "evalsha"}
    assert {name.lower() for name in called} == given


def test_the_channels_are_those_of_the_adapters() -> None:
    channels = (acks.CHANNELS, log.CHANNELS, requests.REQUESTS, requests.ANSWERS)
    there = {f"&{each.pattern('demo')}" for each in channels}
    rules = [kind.redis_rules("demo") for kind in KINDS]
    words = {word for rule in rules if rule for each in rule.selectors for word in each}
    assert {word for word in words if word.startswith("&")} == there


def test_transactional_ids_are_those_of_the_processes() -> None:
    source = Path(publisher.__file__).read_text("utf-8")
    assert process_rights.CHANGEFEED_ID.format(database="{topics.database}") in source
    source = Path(taker.__file__).read_text("utf-8")
    begin = process_rights.INTAKE_ID.format(database="{topics.database}").removesuffix("*")
    assert f'{begin}{{settings.name}}"' in source


@pytest.mark.parametrize(
    ("name", "prefixed", "wider"),
    [
        ("*", False, True),
        ("", True, True),
        ("de", True, True),
        ("demo.", True, False),
        ("demo.log", False, False),
        ("demo2.log", False, False),
        ("demo2.", True, False),
    ],
)
def test_rights_on_other_databases_are_told_apart(name: str, prefixed: bool, wider: bool) -> None:
    right = KafkaRight(TOPIC, name, prefixed, "Read")
    assert is_wider(right, "demo") == wider
    assert is_of_database(right, "demo") == name.startswith("demo.")
