"""The comment in which clients say to which trace a statement belongs, in sqlcommenter's form
(https://google.github.io/sqlcommenter/spec/):

    UPDATE flights SET seats = seats - 1 WHERE id = 7 /*traceparent='00-4bf9…4736-00f0…02b7-01'*/

It is another one for each call. So it is taken off before anybody looks at the text: what is kept
by its text (syntax trees, plans) would be found again by nobody.
"""

from __future__ import annotations

from typing import Final

from leasehold.model.traces import TRACEPARENT, TRACEPARENT_CHARACTERS, read_traceparent

_BEGIN: Final = "/*"
_END: Final = "*/"
_NAMED: Final = f"{TRACEPARENT}='"


def take_trace_comment(text: str) -> tuple[str, str]:
    """Return a text without the comment at its end that has a `traceparent`, and that; the text as
    it is, and "", where there is none.

    What stands before it keeps its places. Where the comment is none (it stands in a string that
    does not end, or in another comment), the text is an error with it and without it."""
    if _END not in text[-40:]:
        return text, ""
    end = text.rstrip()
    tail = ""
    if end.endswith(";"):
        end, tail = end[:-1].rstrip(), ";"
    begin = end.rfind(_BEGIN)
    if begin < 0 or not end.endswith(_END):
        return text, ""
    comment = end[begin + len(_BEGIN) : -len(_END)]
    at = comment.find(_NAMED)
    if at < 0 or _END in comment:
        return text, ""
    at += len(_NAMED)
    traceparent = comment[at : at + TRACEPARENT_CHARACTERS]
    closes = comment[at + TRACEPARENT_CHARACTERS : at + TRACEPARENT_CHARACTERS + 1] == "'"
    if not closes or read_traceparent(traceparent) is None:
        return text, ""
    return end[:begin] + tail, traceparent
