"""Goal: what a page shows of the command `leasehold` is understood by it: names, options, values.

Method: each is read by the command's own parser, in blocks, also in those that no test runs, and in
the text. That they do what is shown is for the tests that run pages.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from leasehold.cli.command import SUMMARIES
from leasehold.cli.main import parser
from tests.support.documents.blocks import blocks, inline_commands

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = [
    page
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if "lab-notes" not in page.parts
]
PLACES: Final = dict.fromkeys(("JOB", "NUMBER", "LSN", "ID", "ROWS"), "7")
"""Words that stand for something, of which a number is asked."""
_PUNCTUATION: Final = frozenset("();<>|&")
_BEFORE: Final = frozenset({"until", "while", "if", "do", "then", "!", "--", "operator", "{"})
"""What a command may stand behind; `operator` is a service of Docker's and a pod."""
_ASSIGNMENT: Final = re.compile(r"\w+=.*", re.DOTALL)
_LEFT_OUT: Final = ("the following arguments are required", "expected one argument")


def shown_in_blocks(page: Path) -> list[tuple[str, ...]]:
    """Return the words of the commands of all blocks, whatever language they are said to be in. One
    that leaves something out shows a form, and no command."""
    found = []
    for block in blocks(page):
        if block.language in ("python", "sql"):
            continue
        for line in block.text.replace("\\\n", " ").splitlines():
            prompt = line.strip().startswith("$ ")
            if prompt or line.strip().startswith("leasehold "):
                found += commands_of(line.strip().removeprefix("$ "))
    return [each for each in found if not any("…" in word or word[:1] == "[" for word in each)]


def commands_of(line: str) -> list[tuple[str, ...]]:
    """Return the words behind each `leasehold` of a line that a shell would run."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []  # the beginning of what goes on in the next line
    found, at = [], 0
    while at < len(words):
        before = words[at - 1] if at else "do"
        starts = before in _BEFORE or is_punctuation(before) or _ASSIGNMENT.fullmatch(before)
        if words[at] == "leasehold" and starts:
            end = at + 1
            while end < len(words) and not is_punctuation(words[end]):
                end += 1
            told = words[at + 1 : end]
            if end < len(words) and words[end].startswith(">") and told[-1:] == ["2"]:
                told.pop()  # 2> …
            found.append(tuple(told))
            at = end
        at += 1
    return found


def is_punctuation(word: str) -> bool:
    return bool(word) and _PUNCTUATION.issuperset(word)


def refusal(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return why the command does not understand it, "" = it does."""
    chosen = next((word for word in words if not word.startswith("-")), "")
    if chosen and chosen not in SUMMARIES:
        return f"there is no command {chosen}"
    try:
        parser(chosen).parse_args([PLACES.get(word, word) for word in words])
    except SystemExit as ended:
        if ended.code:
            return capsys.readouterr().err
    return ""


SHOWN: Final = [(page, words) for page in PAGES for words in shown_in_blocks(page)]
NAMED: Final = [(page, text) for page in PAGES for text in inline_commands(page)]


def test_there_are_many() -> None:
    assert len(SHOWN) > 60
    assert len(NAMED) > 100
    pages = {page.name for page, _ in SHOWN}
    assert {"secure.md", "observe.md", "scale.md", "back-up.md", "upgrade.md"} <= pages


@pytest.mark.parametrize(("page", "words"), SHOWN)
def test_a_command_of_a_block_is_understood(
    page: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refusal(words, capsys) == "", page


@pytest.mark.parametrize(("page", "text"), NAMED)
def test_a_command_that_is_named_is_one(
    page: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be named without its arguments."""
    why = refusal(shlex.split(text)[1:], capsys)
    assert not why or any(words in why for words in _LEFT_OUT), page


def test_what_a_shell_would_run_is_found() -> None:
    line = "A=1 leasehold sql -c 'a; b (c)' 2> x.log & until leasehold status | grep -E 'x|y'; do"
    assert commands_of(line) == [("sql", "-c", "a; b (c)"), ("status",)]
    assert commands_of("helm install leasehold infra/helm -f x.yaml") == []
    assert commands_of("kubectl exec deploy/x -- leasehold doctor") == [("doctor",)]


@pytest.mark.parametrize("text", ["stats", "jobs pauze 7", "jobs set 7 --genty"])
def test_a_misspelt_one_would_be_seen(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    why = refusal(text.split(), capsys)
    assert why
    assert not any(words in why for words in _LEFT_OUT)
