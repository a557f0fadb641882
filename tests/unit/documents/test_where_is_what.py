"""Goal: the page that tells newcomers where everything is names only what is there."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.documents.document_run import ROOT

PAGE = ROOT / "docs" / "concepts" / "where-is-what.md"
LIBRARY = ROOT / "libs" / "leasehold"
COLUMNS_MAX = 100
ROWS_LEAST = 40
LISTS = 3
FILES_MAX = 15
FENCED = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LAYER = re.compile(r"│([ :])(\w+)")
ITEM = re.compile(r"^\d+\. .*(?:\n   +\S.*)*", re.MULTILINE)
ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
TOKEN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w./-]*/[\w./-]*|[\w-]+\.(?:py|toml|md)")


def text() -> str:
    return PAGE.read_text("utf-8")


def pictures() -> list[str]:
    return FENCED.findall(text())


def lists() -> list[list[str]]:
    """The items of each list of files."""
    sections = text().split("## Three requests, followed through the code")[1].split("\n### ")[1:]
    return [ITEM.findall(section) for section in sections]


def contract(name: str) -> dict[str, list[str]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts: list[Any] = project["tool"]["importlinter"]["contracts"]
    (found,) = (each for each in contracts if each["name"] == name)
    return dict(found)


def layers_of(name: str, within: str) -> list[list[str]]:
    """From the top; packages that stand side by side together."""
    layers = contract(name)["layers"]
    return [[p.removeprefix(within) for p in layer.split(" : ")] for layer in layers]


def layers_in(picture: str) -> list[list[str]]:
    found: list[list[str]] = []
    for beside, package in LAYER.findall(picture):
        if beside == ":":
            found[-1].append(package)
        else:
            found.append([package])
    return found


def file_of(path: str) -> Path | None:
    """As the page says: at the top of the repository, else in the library."""
    return next((at / path for at in (ROOT, LIBRARY) if (at / path).exists()), None)


@cache
def defined_in(file: Path) -> frozenset[str]:
    """Names of a module, and of the methods of its classes behind their class's."""
    tree = ast.parse(file.read_text("utf-8"))
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.FunctionDef(name):
                names.add(name)
            case ast.ClassDef(name, body=body):
                names.add(name)
                names |= {f"{name}.{m.name}" for m in body if isinstance(m, ast.FunctionDef)}
            case ast.AnnAssign(ast.Name(name)) | ast.Assign([ast.Name(name)]):
                names.add(name)
    return frozenset(names)


def missing_in(part: str) -> list[str]:
    """Paths of a row or an item that are not there, and names not defined in the file before."""
    missing: list[str] = []
    file: Path | None = None
    for token in TOKEN.findall(part):
        if PATH.fullmatch(token):
            file = file_of(token)
            if file is None:
                missing.append(token)
        elif file is not None and (file.suffix != ".py" or token not in defined_in(file)):
            missing.append(f"{token} in {file.relative_to(ROOT)}")
    return missing


def test_the_packages_are_in_the_order_of_the_contracts() -> None:
    """And those that are called pure are those that a contract keeps from the world."""
    whole, within_sql = pictures()
    order = layers_of("Packages import only what stands below them", "leasehold.")
    assert layers_in(whole) == order
    assert layers_in(within_sql) == layers_of(
        "Within sql, from text to statement", "leasehold.sql."
    )
    pure = contract("Pure packages touch no clock, file, network or process")["source_modules"]
    (below,) = re.findall(r"├─ pure: .*\n((?:│.*\n)+)", whole)
    assert {f"leasehold.{package}" for _, package in LAYER.findall(below)} == set(pure)


def test_all_that_is_named_is_there() -> None:
    rows = [row for row in ROW.findall(text()) if TOKEN.search(row)]
    items = [item for items in lists() for item in items]
    assert len(rows) >= ROWS_LEAST
    assert all(PATH.fullmatch(token) for item in items for token in TOKEN.findall(item)[:1])
    missing = [each for part in (*rows, *items) for each in missing_in(part)]
    said = FENCED.sub("", text())
    missing += [t for t in TOKEN.findall(said) if PATH.fullmatch(t) and file_of(t) is None]
    assert not missing


def test_each_list_has_few_files() -> None:
    """And each of them with a name to read."""
    found = lists()
    assert len(found) == LISTS
    for items in found:
        files = {TOKEN.findall(item)[0] for item in items}
        assert 1 < len(files) <= FILES_MAX
        assert all(len(TOKEN.findall(item)) > 1 for item in items)


def test_its_lines_are_short() -> None:
    long = [n for n, line in enumerate(text().splitlines(), 1) if len(line) > COLUMNS_MAX]
    assert not long, f"lines of more than {COLUMNS_MAX} characters: {long}"
