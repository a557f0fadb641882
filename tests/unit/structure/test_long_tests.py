"""What `make test` leaves to `make test-all`: each module says why, and no rule is left alone.

Goal: a rule of the protocol whose only tests are long would be held by nobody from day to day.
Method: marks and names of all tests, read as text; names carry the numbers of rules (L1, C2, …).
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[2]
RULES = re.compile(r"(?<=_)[lctdr]\d+(?=_)")
TEST_NAME = re.compile(r"^ *def (test_\w+)", re.MULTILINE)


def names_the_mark(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr == "long"
        and ast.unparse(node) == "pytest.mark.long"
    )


def long_marks(tree: ast.Module) -> list[ast.Call]:
    """Calls of `pytest.mark.long`, wherever they stand."""
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and names_the_mark(node.func)
    ]


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in TESTS.rglob("test_*.py")}


@cache
def modules() -> dict[Path, ast.Module]:
    """Those that name the mark: to parse all others shows nothing."""
    return {path: ast.parse(text) for path, text in texts().items() if "mark.long" in text}


def without_reason(tree: ast.Module) -> list[int]:
    """Lines that name the mark and do not call it."""
    called = {id(mark.func) for mark in long_marks(tree)}
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and names_the_mark(node) and id(node) not in called
    ]


def test_each_says_why() -> None:
    marks = [mark for tree in modules().values() for mark in long_marks(tree)]
    assert marks
    bare = {str(path): lines for path, tree in modules().items() if (lines := without_reason(tree))}
    assert not bare, bare
    for mark in marks:
        (reason,) = mark.args
        assert isinstance(reason, ast.Constant)
        assert len(str(reason.value)) > 20


def test_no_rule_is_held_by_long_tests_alone() -> None:
    long: set[str] = set()
    others: set[str] = set()
    for path, text in texts().items():
        rules = {rule for name in TEST_NAME.findall(text) for rule in RULES.findall(name)}
        (long if path in modules() and long_marks(modules()[path]) else others).update(rules)
    assert long
    assert not long - others, sorted(long - others)
