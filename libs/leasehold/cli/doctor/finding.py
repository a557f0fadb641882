"""What a check of `leasehold doctor` finds, and what the command's exit code makes of it. PURE."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from leasehold.cli.exit_code import ExitCode


class Verdict(StrEnum):
    """The worst stands last."""

    OK = "ok"
    UNSEEN = "could not look"
    WARN = "warn"
    FAIL = "fail"


class Problem(NamedTuple):
    """Something that is not as it should be: what it is, and what to do."""

    verdict: Verdict
    words: str
    to_do: str


def warn(words: str, to_do: str) -> Problem:
    return Problem(Verdict.WARN, words, to_do)


def fail(words: str, to_do: str) -> Problem:
    return Problem(Verdict.FAIL, words, to_do)


def unseen(words: str, to_do: str) -> Problem:
    """Return that a part of what is to be looked at could not be."""
    return Problem(Verdict.UNSEEN, words, to_do)


class Finding(NamedTuple):
    """A line of the answer. `words` and `to_do` are "" where all is well."""

    check: str
    looks_at: str
    verdict: Verdict
    words: str
    to_do: str

    def to_json(self) -> dict[str, Any]:
        return {
            "check": self.check,
            "looks_at": self.looks_at,
            "verdict": self.verdict.value,
            "words": self.words,
            "to_do": self.to_do,
        }


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part that could not be looked at: `why`, and what to do about that."""

    why: str
    to_do: str


@dataclass(frozen=True, slots=True)
class Check:
    """A check: `judge` yields what is wrong of the facts that it `needs`, nothing where all is
    well. It is called only when all of those could be had."""

    name: str
    looks_at: str
    needs: Collection[str]
    judge: Callable[[Any], Iterable[Problem]]

    def findings(self, facts: Any) -> list[Finding]:
        """Return one finding that all is well, or one for each problem, the worst first."""
        away = [part for name in self.needs if isinstance(part := getattr(facts, name), Unseen)]
        if away:
            problems = [unseen(part.why, part.to_do) for part in away[:1]]
        else:
            problems = sorted(self.judge(facts), key=_rank)
        if not problems:
            return [Finding(self.name, self.looks_at, Verdict.OK, "", "")]
        return [Finding(self.name, self.looks_at, *problem) for problem in problems]


_RANKS = {verdict: -number for number, verdict in enumerate(Verdict)}


def _rank(problem: Problem) -> int:
    return _RANKS[problem.verdict]


def examine(facts: Any, checks: Iterable[Check]) -> list[Finding]:
    """Return the findings of all checks, in their order."""
    return [finding for check in checks for finding in check.findings(facts)]


def exit_code_of(findings: Sequence[Finding], *, strict: bool = False) -> ExitCode:
    """Return 1 where something fails (`strict`: or is warned of), 3 where nothing does and
    something could not be looked at, else 0."""
    found = {finding.verdict for finding in findings}
    if Verdict.FAIL in found or (strict and Verdict.WARN in found):
        return ExitCode.NOT_RIGHT
    return ExitCode.UNREACHABLE if Verdict.UNSEEN in found else ExitCode.OK


def count(findings: Iterable[Finding]) -> Mapping[str, int]:
    """Return how many findings have which verdict, each verdict named."""
    counts = Counter(finding.verdict for finding in findings)
    return {verdict.value: counts[verdict] for verdict in Verdict}
