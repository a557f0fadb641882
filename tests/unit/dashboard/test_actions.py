"""Goal: a button's statement is what a user could say, and nothing that comes from a page gets into
its text."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.dashboard.actions import make_statement
from leasehold.model.errors import MalformedRequest


@pytest.mark.parametrize(
    ("asked", "statement"),
    [
        ({"action": "pause_job", "job": 7}, ("SELECT leasehold.pause_job($1)", ("7",))),
        ({"action": "cancel_job", "job": 7}, ("SELECT leasehold.cancel_job($1)", ("7",))),
        (
            {"action": "set_job", "job": 7, "setting": "rows_per_second", "value": 100},
            ("SELECT leasehold.set_job($1, $2, $3)", ("7", "rows_per_second", "100")),
        ),
        ({"action": "end_session", "pid": 12}, ("SELECT leasehold.end_session($1)", ("12",))),
        ({"action": "resubmit", "letter": 3}, ("SELECT leasehold.resubmit_letter($1)", ("3",))),
        (
            {"action": "resubmit", "letter": 3, "request": {"sql": "select 'x'"}},
            ("SELECT leasehold.submit_request($1)", ('{"sql": "select \'x\'"}',)),
        ),
    ],
)
def test_an_action_is_a_statement(asked: dict[str, Any], statement: object) -> None:
    assert make_statement(asked) == statement


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"action": "drop"},
        {"action": ["pause_job"]},
        {"action": "pause_job"},
        {"action": "pause_job", "job": "7); DROP TABLE t; --"},
        {"action": "pause_job", "job": -1},
        {"action": "pause_job", "job": True},
        {"action": "pause_job", "job": 7.5},
        {"action": "pause_job", "job": 1 << 70},
        {"action": "set_job", "job": 7, "setting": "x', 1); --", "value": 1},
        {"action": "set_job", "job": 7, "setting": ["gentle"], "value": 1},
        {"action": "set_job", "job": 7, "setting": "gentle", "value": 2},
        {"action": "resubmit", "letter": 3, "request": "text"},
        {"action": "resubmit", "letter": 3, "request": {"sql": "x" * 50_000}},
        {"action": "resubmit", "letter": 3, "request": {"sql": "\\"}, "action2": 1}
        | {"letter": None},
    ],
)
def test_what_is_no_action_is_refused(asked: dict[str, Any]) -> None:
    with pytest.raises(MalformedRequest):
        make_statement(asked)
