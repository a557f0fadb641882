"""Goal: one event a line, with what is known of it, as text and as JSON.

Method: a handler that writes to a text of ours; lines are read as a collector of logs reads them.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from leasehold.adapters.os.log_lines import LineHandler
from leasehold.model import metrics


@pytest.fixture
def written() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def handler(written: io.StringIO) -> LineHandler:
    made = LineHandler()
    made.setStream(written)
    made.lines.context = {"node": "m1", "epoch": 3, "lsn": 77}.copy
    return made


@pytest.fixture
def log(handler: LineHandler) -> Iterator[logging.Logger]:
    made = logging.getLogger("leasehold.lines")
    made.propagate = False
    made.addHandler(handler)
    yield made
    made.removeHandler(handler)
    made.propagate = True


def test_a_line_of_json_has_what_is_known(
    log: logging.Logger, handler: LineHandler, written: io.StringIO
) -> None:
    handler.set_format("json")
    log.warning("request %s\nis given up", "r-1", extra={"request": "r-1", "job": 4})
    (line,) = written.getvalue().splitlines()
    event = json.loads(line)
    assert event.pop("time").endswith("Z")
    assert event == {
        "level": "WARNING",
        "logger": "leasehold.lines",
        "message": "request r-1\nis given up",
        "node": "m1",
        "epoch": 3,
        "lsn": 77,
        "request": "r-1",
        "job": 4,
    }


def test_a_traceback_is_in_the_line_of_json(
    log: logging.Logger, handler: LineHandler, written: io.StringIO
) -> None:
    handler.set_format("json")
    try:
        raise ZeroDivisionError("a defect")
    except ZeroDivisionError:
        log.exception("a defect ended this connection")
    (line,) = written.getvalue().splitlines()
    assert "ZeroDivisionError: a defect" in json.loads(line)["exception"]


def test_text_names_the_node_where_somebody_has_to_look(
    log: logging.Logger, written: io.StringIO
) -> None:
    log.warning("the disk is full")
    line = written.getvalue()
    assert line.endswith("WARNING leasehold.lines: the disk is full [node=m1 epoch=3 lsn=77]\n")


def test_text_without_news_is_as_short_as_ever(
    log: logging.Logger, handler: LineHandler, written: io.StringIO
) -> None:
    log.setLevel(logging.INFO)
    log.info("ready")
    assert written.getvalue().endswith("INFO leasehold.lines: ready\n")


def test_who_sends_line_breaks_writes_no_line_of_his_own(
    log: logging.Logger, written: io.StringIO
) -> None:
    log.warning("user %s was turned away", "x\n2026-01-01 INFO leasehold: all is well")
    assert len(written.getvalue().splitlines()) == 1


def test_lines_are_counted_by_level(log: logging.Logger, handler: LineHandler) -> None:
    log.warning("one")
    log.warning("two")
    log.error("three")
    found = {sample.labels: sample.value for sample in handler.samples()}
    assert found == {("warning",): 2, ("error",): 1}
    assert {sample.metric for sample in handler.samples()} == {metrics.LOG_LINES}
