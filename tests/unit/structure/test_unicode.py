"""What computes values asks no text for its letters: the answer would be this Python's, and
nodes of one database may run several (values/letters.py)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
LIBRARY: Final = ROOT / "libs" / "leasehold"
COMPUTING: Final = ("values", "sql/functions", "rows")
ASKED: Final = frozenset(
    {
        *("lower", "upper", "title", "capitalize", "swapcase", "casefold", "isidentifier"),
        *("isalpha", "isalnum", "isdecimal", "isdigit", "isnumeric", "isspace", "isprintable"),
        *("isupper", "islower", "istitle", "unicodedata"),
    }
)
BLANK: Final = frozenset({"strip", "lstrip", "rstrip"})
CLASSES: Final = re.compile(r"\\[wWdDsSbB]")
ALLOWED: Final = {
    "values/letters.py": {"lower", "upper", "isdecimal"},  # of ASCII alone
    "sql/functions/texts/text.py": {"capitalize"},  # of ASCII alone
    # Whether an array's text may be taken apart at its commas; the other way gives the same.
    "values/array_text.py": {r"[\w.+-]++(?:,[\w.+-]++)*+"},
}


def dependent(tree: ast.AST) -> Iterator[str]:
    """Methods of texts and patterns whose outcome is of Python's own tables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and any(n.name == "unicodedata" for n in node.names):
            yield "unicodedata"
        if isinstance(node, ast.Attribute) and node.attr in ASKED:
            yield node.attr
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr in BLANK and not node.args:
                yield node.func.attr
            yield from _of_pattern(node)


def _of_pattern(call: ast.Call) -> Iterator[str]:
    """Of `re.…(pattern, …)`: a class of characters or no case, and not by ASCII."""
    assert isinstance(call.func, ast.Attribute)
    if getattr(call.func.value, "id", "") != "re" or not call.args:
        return
    said = "".join(
        part.value
        for part in ast.walk(call.args[0])
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    )
    flags = {part.attr for each in (*call.args[1:], *call.keywords) for part in _flags(each)}
    if "ASCII" not in flags and ("IGNORECASE" in flags or CLASSES.search(said)):
        yield said


def _flags(node: ast.AST) -> Iterator[ast.Attribute]:
    return (part for part in ast.walk(node) if isinstance(part, ast.Attribute))


@pytest.mark.parametrize("folder", COMPUTING)
def test_no_value_depends_on_pythons_own_tables(folder: str) -> None:
    for path in sorted((LIBRARY / folder).rglob("*.py")):
        name = path.relative_to(LIBRARY).as_posix()
        found = set(dependent(ast.parse(path.read_text()))) - ALLOWED.get(name, set())
        assert not found, f"{name}: take these of values/letters.py, or say re.ASCII: {found}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("text.lower()", ["lower"]),
        ("map(str.upper, texts)", ["upper"]),
        ("text.strip().split(',')", ["strip"]),
        ("text.strip(BLANKS)", []),
        (r"re.compile(r'\w+')", [r"\w+"]),
        (r"re.compile(r'\w+', re.DOTALL | re.ASCII)", []),
        ("re.fullmatch('a', text, flags=re.IGNORECASE)", ["a"]),
        ("re.compile('[a-z]')", []),
        ("import unicodedata", ["unicodedata"]),
    ],
)
def test_what_counts_as_dependent(code: str, found: list[str]) -> None:
    assert list(dependent(ast.parse(code))) == found
