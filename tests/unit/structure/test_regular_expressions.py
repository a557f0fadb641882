"""No pattern of Python's `re` in the tree goes back and forth over a text: `re` gives up the
interpreter's lock for nobody, so one match over a foreign text would hold up a whole node."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Iterator
from functools import cached_property
from math import inf
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.support.backtracking import STEPS_MAX, pumped_texts, steps_of

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("libs", "services", "spark_streaming")
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "sub", "subn", "split")
_FLAGS_PLACES = {
    **dict.fromkeys(METHODS, 2),
    "compile": 1,
    "split": 3,
    "sub": 4,
    "subn": 4,
}
FEW, MANY = 20, 80
GROWTH_MAX = 6.5
"""Of the steps, where the text is four times as long: 4 is linear, 16 goes with the square."""
HOLE = "x"
"""What stands in a test for the part of a pattern that is known only when it runs."""


class Pattern(NamedTuple):
    where: str
    text: str
    flags: int
    searches: bool


def _flags(node: ast.expr | None) -> int:
    """`re.VERBOSE | re.DOTALL`."""
    if node is None:
        return 0
    if isinstance(node, ast.BinOp):
        return _flags(node.left) | _flags(node.right)
    assert isinstance(node, ast.Attribute), ast.dump(node)
    return int(getattr(re, node.attr))


class _Module:
    """The calls of `re` in one file, and the texts of its patterns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.tree = ast.parse(path.read_text())
        self.constants: dict[str, ast.expr] = {}
        self.loops: dict[str, ast.expr] = {}
        self.names: dict[ast.Call, str] = {}
        for node in ast.walk(self.tree):
            targets: list[ast.expr] = []
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets = [node.target]
            elif isinstance(node, ast.Assign):
                targets = node.targets
            for target in targets:
                value = node.value  # type: ignore[attr-defined]
                if isinstance(target, ast.Name):
                    self.constants[target.id] = value
                    for call in ast.walk(value):
                        if isinstance(call, ast.Call):
                            self.names[call] = target.id
            if isinstance(node, ast.comprehension) and isinstance(node.target, ast.Name):
                self.loops[node.target.id] = node.iter

    def calls(self) -> Iterator[tuple[ast.Call, str]]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                of = node.func.value
                if isinstance(of, ast.Name) and of.id == "re":
                    yield node, node.func.attr

    def texts(self, node: ast.expr) -> list[str]:
        """The texts that an expression may be; a part that is not constant is HOLE."""
        if isinstance(node, ast.Constant):
            value = node.value
            return [value.decode("latin-1") if isinstance(value, bytes) else str(value)]
        if isinstance(node, ast.JoinedStr):
            return _joined([self.texts(part) for part in node.values])
        if isinstance(node, ast.FormattedValue):
            return self.texts(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return _joined([self.texts(node.left), self.texts(node.right)])
        if isinstance(node, ast.Name) and node.id in self.loops:
            looped = self.loops[node.id]
            if isinstance(looped, ast.Tuple):
                return [text for one in looped.elts for text in self.texts(one)]
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.texts(self.constants[node.id])
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            given = [each.value for each in node.args if isinstance(each, ast.Constant)]
            return [text.format(*given) for text in self.texts(node.func.value)]
        return [HOLE]

    @cached_property
    def methods(self) -> dict[str, set[str]]:
        """What is asked of a compiled pattern in this file, by its name."""
        made: dict[str, set[str]] = {}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and node.attr in METHODS:
                name = getattr(node.value, "id", "") or getattr(node.value, "attr", "")
                made.setdefault(name, set()).add(node.attr)
        return made


def _joined(parts: list[list[str]]) -> list[str]:
    made = [""]
    for part in parts:
        made = [a + b for a in made for b in part]
    return made


@pytest.fixture(scope="module")
def patterns() -> list[Pattern]:
    """All of the tree. No parameters of a test: each worker would parse the tree to collect it."""
    modules = [
        _Module(path) for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    found = []
    for module in modules:
        for call, function in module.calls():
            if function not in (*METHODS, "compile"):
                continue
            flags = [k.value for k in call.keywords if k.arg == "flags"]
            place = _FLAGS_PLACES[function]
            flags += call.args[place : place + 1]
            if function == "compile":
                name = module.names.get(call, "")
                methods = {m for each in modules if name for m in each.methods.get(name, ())}
                methods |= {"fullmatch"} if name else {"search"}
            else:
                methods = {function}
            searches = bool(methods - {"match", "fullmatch"})
            where = f"{module.path.relative_to(ROOT)}:{call.lineno}"
            said = _flags(flags[0] if flags else None)
            found += [Pattern(where, text, said, searches) for text in module.texts(call.args[0])]
    return found


def _in_deep_thread(work: object) -> None:
    """A match that goes back and forth calls itself for each character."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:  # noqa: BLE001 - raised again below
            failed.append(error)

    before, stack = sys.getrecursionlimit(), threading.stack_size(256 << 20)
    sys.setrecursionlimit(100_000)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        sys.setrecursionlimit(before)
        threading.stack_size(stack)
    if failed:
        raise failed[0]


def growth_of(text: str, flags: int, *, searches: bool) -> tuple[float, str]:
    """The worst growth of the steps where a text is four times as long, and that text."""
    worst = (0.0, "")
    short = pumped_texts(text, flags, FEW)
    for few, many in zip(short, pumped_texts(text, flags, MANY), strict=True):
        steps = steps_of(text, flags, many, searches=searches)
        if steps > STEPS_MAX:
            return inf, many
        if steps > 5 * MANY:
            less = steps_of(text, flags, few, searches=searches)
            worst = max(worst, (steps / less, many))
    return worst


def test_takes_steps_in_proportion_to_the_text(patterns: list[Pattern]) -> None:
    """Goal: a text four times as long takes about four times as many steps, whatever it holds."""
    slow: list[str] = []

    def work() -> None:
        for each in patterns:
            growth, text = growth_of(each.text, each.flags, searches=each.searches)
            if growth >= GROWTH_MAX:
                slow.append(f"{each.where}: {each.text!r} over {text!r}")

    _in_deep_thread(work)
    assert not slow, "\n".join(slow)


@pytest.mark.parametrize(
    ("text", "searches"),
    [
        ("(a+)+b", False),
        (r"\s*([a-z ]+?)\s*x", False),
        ("a*a*b", False),
        ("a+b", True),
        ("(?:a|aa)*b", False),
    ],
)
def test_finds_patterns_that_go_back_and_forth(text: str, searches: bool) -> None:
    """Goal: the counting above knows a bad pattern when it sees one."""
    _in_deep_thread(lambda: _assert_grows(text, searches))


def _assert_grows(text: str, searches: bool) -> None:
    assert growth_of(text, 0, searches=searches)[0] >= GROWTH_MAX


@pytest.mark.parametrize("text", ["a*+b", "(?:[^'\\\\]|\\\\.)*+'", "[a-z]+[0-9]+"])
def test_lets_patterns_without_going_back_pass(text: str) -> None:
    """Goal: the counting above is not met by the length of the text alone."""
    _in_deep_thread(lambda: _assert_linear(text))


def _assert_linear(text: str) -> None:
    assert growth_of(text, 0, searches=False)[0] < GROWTH_MAX


def test_finds_all_the_patterns_of_the_tree(patterns: list[Pattern]) -> None:
    """Goal: a module that says `re.` has its patterns tried above."""
    met = {pattern.where.partition(":")[0] for pattern in patterns}
    saying = {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in (ROOT / folder).rglob("*.py")
        if re.search(r"^import re$|^from re import", path.read_text(), re.MULTILINE)
    }
    assert saying == met
