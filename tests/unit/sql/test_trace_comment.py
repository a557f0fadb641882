"""Goal: the comment that names a trace comes off a text, and nothing else does."""

from __future__ import annotations

from typing import Final

import pytest

from leasehold.sql.session.trace_comment import take_trace_comment

SAID: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
COMMENT: Final = f"/*traceparent='{SAID}'*/"


@pytest.mark.parametrize(
    ("text", "left"),
    [
        (f"select 1 {COMMENT}", "select 1 "),
        (f"select 1 {COMMENT};", "select 1 ;"),
        (f"select 1 {COMMENT} ;\n", "select 1 ;"),
        (
            f"select 1 /*db_driver='psycopg',traceparent='{SAID}',tracestate='a%3D1'*/",
            "select 1 ",
        ),
        (f"select 1 /* mine */ {COMMENT}", "select 1 /* mine */ "),
        (f"begin; commit {COMMENT}", "begin; commit "),
        (COMMENT, ""),
    ],
)
def test_the_comment_comes_off(text: str, left: str) -> None:
    assert take_trace_comment(text) == (left, SAID)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "select 1",
        "select 1 /* mine */",
        f"{COMMENT} select 1",
        f"select '{COMMENT}'",
        f"select 1 /*traceparent='{SAID}*/",
        f"select 1 /*traceparent={SAID}*/",
        f"select 1 /*traceparent='{SAID[:-1]}'*/",
        f"select 1 /*traceparent='{SAID}0'*/",
        f"select 1 /* traceparent='{SAID}' */ */",
        f"*/traceparent='{SAID}'*/",
    ],
)
def test_anything_else_stays(text: str) -> None:
    assert take_trace_comment(text) == (text, "")
