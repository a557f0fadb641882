"""What a request's schema statements are answered with, and what can be read from that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


def join_answers(answers: tuple[Mapping[str, Any], ...]) -> Mapping[str, Any]:
    """Return a request's answer: of one statement its own answer, of several each one's."""
    return answers[0] if len(answers) == 1 else {"statements": answers}


def read_answers(answer: Any) -> tuple[Mapping[str, Any], ...]:
    """Return the statements' answers in a request's; none for one that had no DDL."""
    if not isinstance(answer, Mapping):
        return ()
    return tuple(answer["statements"]) if "statements" in answer else (answer,)


def read_notices(answer: Any) -> tuple[str, ...]:
    """Return what was said of a request's DDL beside its answers."""
    found: list[str] = []
    for each in read_answers(answer):
        one = [each["notice"]] if "notice" in each else []
        found += map(str, each.get("notices", one))
    return tuple(found)


class Told(NamedTuple):
    """A notice or a warning, as clients are told it."""

    severity: str
    code: str
    words: str


def read_all_told(answer: Any) -> list[Told]:
    """Return the notices of a request's DDL, and what was remarked upon roles and privileges."""
    told = [Told("NOTICE", "00000", words) for words in read_notices(answer)]
    for each in read_answers(answer):
        told += (Told(*map(str, remark)) for remark in each.get("remarks", ()))
    return told


def read_jobs(answer: Any) -> tuple[int, ...]:
    """Return the jobs that a request's DDL has begun; what is said of a type may begin several."""
    found: dict[int, None] = {}
    for each in read_answers(answer):
        found |= dict.fromkeys([each["job"]] if "job" in each else each.get("jobs", ()))
    return tuple(found)


def answers_for(answer: Mapping[str, Any], count: int) -> Iterator[Mapping[str, Any]]:
    """Yield an answer for each of the statements that were joined: notices come once."""
    yield answer
    for _ in range(count - 1):
        yield {name: value for name, value in answer.items() if name == "job"}


def answer_of_several(
    answers: Sequence[Mapping[str, Any]], notices: Sequence[str]
) -> dict[str, Any]:
    """Return the answer of a statement that is several changes."""
    answer: dict[str, Any] = {"access": True} if answers else {}
    jobs = list(dict.fromkeys(each["job"] for each in answers if "job" in each))
    if len(jobs) == 1:
        answer["job"] = jobs[0]
    elif jobs:
        answer["jobs"] = tuple(jobs)
    if notices:
        answer["notice"] = "; ".join(notices)
    if len(notices) > 1:
        answer["notices"] = tuple(notices)
    return answer
