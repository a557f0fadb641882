"""Shared by all tests: what they tell, and the summary of model runs, at the end."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import settings
from xdist.remote import Producer

from leasehold.adapters.os.garbage import collect_seldom
from tests.models.summary import AddLine, ModelLine, Tell, table
from tests.support.memory_folder import ROOT_NAME, choose_root
from tests.support.worker_groups import GroupScheduling

# How long an example takes says what else the machine does.
settings.register_profile("leasehold", deadline=None)
settings.load_profile("leasehold")

PROPERTY = "model_line"
TOLD = "told"


def pytest_configure(config: pytest.Config) -> None:
    """Let folders of tests lie in memory where there is room; workers inherit it."""
    root = choose_root(os.environ)
    if root is not None and config.getoption("basetemp") is None:
        os.environ[ROOT_NAME] = str(root)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays until the end: nothing looks for garbage in it, neither
    while it grows nor later; what tests make is looked through as seldom as in a node's process."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        collect_seldom()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> GroupScheduling | None:
    return GroupScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


@pytest.fixture
def model_line(record_property: Callable[[str, object], None]) -> AddLine:
    """Adds a line to the section "models"; it travels with the test's report, so also from
    another worker process."""

    def add(line: ModelLine) -> None:
        record_property(PROPERTY, list(line))

    return add


@pytest.fixture
def tell(record_property: Callable[[str, object], None]) -> Tell:
    """Puts lines into the section "told": tables, numbers of cases, seeds. What is printed in a
    worker process nobody sees."""

    def add(lines: str) -> None:
        record_property(TOLD, lines)

    return add


def _recorded(reporter: pytest.TerminalReporter, wanted: str) -> Iterator[Any]:
    """By all tests, in whatever process they ran."""
    for reports in reporter.stats.values():
        for report in reports:
            if getattr(report, "when", "") == "call":
                yield from (value for name, value in report.user_properties if name == wanted)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    told = list(_recorded(terminalreporter, TOLD))
    if told:
        terminalreporter.write_sep("=", "told")
        for text in told:
            terminalreporter.write_line(text)
    lines = [ModelLine(*value) for value in _recorded(terminalreporter, PROPERTY)]
    if lines:
        terminalreporter.write_sep("=", "models")
        for text in table(lines):
            terminalreporter.write_line(text)
