"""What buttons of the dashboard do: each is one statement, as a user could say it. PURE."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from leasehold.model.errors import MalformedRequest
from leasehold.schema_change.job.control import LIMITS

NUMBER_MAX: Final = (1 << 62) - 1
REQUEST_CHARACTERS_MAX: Final = 40_000
WORDS_MAX: Final = 200
_OF_JOB: Final = ("cancel", "pause", "resume", "postpone", "complete", "dismiss")


class Statement(NamedTuple):
    """A statement, and the values of its parameters."""

    text: str
    parameters: tuple[str, ...]

    @property
    def words(self) -> str:
        """Return it for people: its text, and what its parameters are."""
        return f"{self.text}, with {', '.join(self.parameters)}"[:WORDS_MAX]


def make_statement(asked: Mapping[str, Any]) -> Statement:
    """Return the statement of an action with its arguments. Raises MalformedRequest, in words, for
    what is none."""
    make = ACTIONS.get(str(asked.get("action")))
    if make is None:
        raise MalformedRequest(f"there is no action {str(asked.get('action'))[:80]!r}")
    return make(asked)


def _number(asked: Mapping[str, Any], name: str, most: int = NUMBER_MAX, least: int = 0) -> str:
    value = asked.get(name)
    if type(value) is not int or not least <= value <= most:
        raise MalformedRequest(f"{name} has to be a whole number from {least} to {most}")
    return str(value)


def _steer(action: str) -> Callable[[Mapping[str, Any]], Statement]:
    text = f"SELECT leasehold.{action}_job($1)"

    def make(asked: Mapping[str, Any]) -> Statement:
        return Statement(text, (_number(asked, "job"),))

    return make


def _set(asked: Mapping[str, Any]) -> Statement:
    name = asked.get("setting")
    if not isinstance(name, str) or name not in LIMITS:
        raise MalformedRequest(f"a job has no setting {str(name)[:80]!r}")
    least, most = LIMITS[name]
    value = _number(asked, "value", most, least)
    return Statement("SELECT leasehold.set_job($1, $2, $3)", (_number(asked, "job"), name, value))


def _end_session(asked: Mapping[str, Any]) -> Statement:
    return Statement("SELECT leasehold.end_session($1)", (_number(asked, "pid", (1 << 31) - 1),))


def _resubmit(asked: Mapping[str, Any]) -> Statement:
    letter = _number(asked, "letter")
    request = asked.get("request")
    if request is None:
        return Statement("SELECT leasehold.resubmit_letter($1)", (letter,))
    if not isinstance(request, dict):
        raise MalformedRequest("a request is an object with fields")
    text = json.dumps(request, ensure_ascii=False)
    if len(text) > REQUEST_CHARACTERS_MAX or "\0" in text:
        raise MalformedRequest(
            f"a request of at most {REQUEST_CHARACTERS_MAX} characters is taken here; send a larger"
            " one by leasehold submit"
        )
    return Statement("SELECT leasehold.submit_request($1)", (text,))


ACTIONS: Final[Mapping[str, Callable[[Mapping[str, Any]], Statement]]] = {
    **{f"{action}_job": _steer(action) for action in _OF_JOB},
    "set_job": _set,
    "end_session": _end_session,
    "resubmit": _resubmit,
}
"""By the name that pages send."""
