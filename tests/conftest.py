"""Shared by all tests: the summary of model runs at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.models.summary import AddLine, ModelLine, table

PROPERTY = "model_line"


@pytest.fixture
def model_line(record_property: Callable[[str, object], None]) -> AddLine:
    """Adds a line to the section "models"; it travels with the test's report, so also from
    another worker process."""

    def add(line: ModelLine) -> None:
        record_property(PROPERTY, list(line))

    return add


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        ModelLine(*value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if getattr(report, "when", "") == "call"
        for name, value in report.user_properties
        if name == PROPERTY
    ]
    if lines:
        terminalreporter.write_sep("=", "models")
        for text in table(lines):
            terminalreporter.write_line(text)
