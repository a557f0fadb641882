"""Goal: documents stay short enough to be read, and their links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.support.documents.document_run import ROOT

README_LINES_MAX = 150
DESIGN_WORDS_MAX = 1_500
DESIGN_COLUMNS_MAX = 100
PARTS = ("libs", "services", "spark_streaming", "infra", "tests")
DESIGNS = sorted(path for part in PARTS for path in (ROOT / part).rglob("DESIGN.md"))
DOCUMENTS = [
    *(ROOT / "README.md", ROOT / "CHANGELOG.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
    *DESIGNS,
]
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|``[^\n]*?``|`[^`\n]*`", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"\bdocs/[a-z/-]+\.md\b")
NAMED_LEAST = 4
"""The pages on recovery, statements, settings and security."""
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def test_the_readme_is_for_newcomers() -> None:
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= README_LINES_MAX


@pytest.mark.parametrize("design", DESIGNS, ids=named)
def test_a_design_is_short(design: Path) -> None:
    """What was measured, and trials that led nowhere, go to docs/performance/lab-notes."""
    text = design.read_text("utf-8")
    assert len(text.split()) <= DESIGN_WORDS_MAX
    long = [n for n, line in enumerate(text.splitlines(), 1) if len(line) > DESIGN_COLUMNS_MAX]
    assert not long, f"lines of more than {DESIGN_COLUMNS_MAX} characters: {long}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=named)
def test_links_lead_somewhere(document: Path) -> None:
    dead: list[str] = []
    for link in LINK.findall(CODE.sub("", document.read_text("utf-8"))):
        if "://" in link:
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_documents_that_the_code_names_are_there() -> None:
    """Errors and helps send people to them, at the worst hour."""
    named_in: dict[str, Path] = {}
    for part in PARTS:
        for path in (ROOT / part).rglob("*.py"):
            named_in.update(dict.fromkeys(NAMED.findall(path.read_text("utf-8")), path))
    missing = {page: named(path) for page, path in named_in.items() if not (ROOT / page).is_file()}
    assert not missing
    assert len(named_in) >= NAMED_LEAST


def test_each_page_of_docs_is_in_the_index() -> None:
    """Lab notes and notes of concepts have indices of their own."""
    index = (ROOT / "docs" / "README.md").read_text("utf-8")
    told = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in LINK.findall(index)}
    for folder in ("lab-notes", "notes"):
        for page in (ROOT / "docs").rglob(f"{folder}/README.md"):
            links = LINK.findall(page.read_text("utf-8"))
            told |= {(page.parent / link.partition("#")[0]).resolve() for link in links}
    pages = {path for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"}
    assert not sorted(map(named, pages - told))


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    text = CODE.sub(lambda found: found[0].strip("`"), page.read_text("utf-8"))
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(text))
    return {heading.strip().replace(" ", "-") for heading in plain}
