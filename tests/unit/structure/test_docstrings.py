"""Goal: the first line of a docstring says what is done, returned or described.

Method: the first word of every docstring of the library, the services and the infrastructure. One
that begins with a preposition, a pronoun, a question or a name in backquotes leaves the sentence's
subject to the reader.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[3]
FOLDERS: Final = ("libs", "services", "infra", "spark_streaming")
_WORDS: Final = """
    of as with for by in from until it its is does has have had may are do? was were can must
    should when where those that this these one none false true without after before at on to no
    each both behind under while not only between since or and but so once outside inside nothing
    half else whoever whatever whichever otherwise than then there here if unless because though
    even just again against beside besides beyond about above below they them their he his she who
    whom whose which why other others another any some more most least many few either neither too
    such like
"""
NO_BEGINNING: Final = frozenset(_WORDS.split())
_NO_WORDS: Final = ("`", "(", "→", "⚠")


def faults(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and first line of each docstring that begins with none of the right words."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
            continue
        docstring = ast.get_docstring(node)
        if not docstring:
            continue
        first = docstring.split()[0]
        word = first.rstrip(":,;")
        label = word[:1].isalpha() and word[1:2].isdigit()  # as D3: or T0:
        if word.lower() in NO_BEGINNING or first.startswith(_NO_WORDS) or label:
            name, line = getattr(node, "name", "module"), getattr(node, "lineno", 1)
            yield line, name, docstring.partition("\n")[0]


@pytest.mark.parametrize("folder", FOLDERS)
def test_each_docstring_begins_with_what_is_done_or_returned(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}: {words}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, name, words in faults(path.read_text("utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("docstring", "right"),
    [
        ("Return the rows in key order.", True),
        ("A node of the cluster.", True),
        ("None: it has ended.", False),
        ("Of one transaction.", False),
        ("`name`: of the table.", False),
        ("D3: whether one may still decode under it.", False),
        ("The lease is over.", True),
    ],
)
def test_what_a_docstring_may_begin_with(docstring: str, right: bool) -> None:
    made = f'def made() -> None:\n    """{docstring}"""\n'
    assert (not list(faults(made))) == right
