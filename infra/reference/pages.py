"""Pages of docs/reference, with their generated blocks refilled.

A page is written by hand; what the code knows stands between `<!-- generated: NAME -->` and
`<!-- end -->`. Blocks within pages, rather than pages of their own, because a table needs the
sentences around it, and nobody should have to write these in a program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from infra.reference.client_table import clients
from infra.reference.commands import commands, exit_codes
from infra.reference.errors import errors
from infra.reference.functions import aggregates, functions, operators, refused_functions, windows
from infra.reference.json_output import json_forms
from infra.reference.limits import limits
from infra.reference.metrics import metrics
from infra.reference.rights import kafka_rights, redis_rights
from infra.reference.settings import settings
from infra.reference.statements import refused_statements, statements
from infra.reference.topics import topics

FOLDER: Final = Path(__file__).parents[2] / "docs" / "reference"
BESIDE: Final = (Path("..", "how-to", "secure.md"),)
"""Pages elsewhere that have blocks, too, seen from the folder."""
BLOCKS: Final[Mapping[str, Callable[[], str]]] = {
    "aggregates": aggregates,
    "clients": clients,
    "commands": commands,
    "errors": errors,
    "exit codes": exit_codes,
    "functions": functions,
    "json forms": json_forms,
    "kafka rights": kafka_rights,
    "limits": limits,
    "metrics": metrics,
    "operators": operators,
    "redis rights": redis_rights,
    "refused functions": refused_functions,
    "refused statements": refused_statements,
    "settings": settings,
    "statements": statements,
    "topics": topics,
    "windows": windows,
}
_BLOCK: Final = re.compile(r"(<!-- generated: ([a-z ]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


def regenerated_pages(folder: Path = FOLDER) -> dict[Path, str]:
    """Return the text of each page of `folder`, and of those in BESIDE, as it has to be.

    Raises LookupError for a block that has no function here, and for one that no page shows.
    """
    shown: list[str] = []

    def filled(found: re.Match[str]) -> str:
        begin, name, end = found.groups()
        if name not in BLOCKS:
            raise LookupError(f"no block is called {name!r}; there are {', '.join(BLOCKS)}")
        shown.append(name)
        return f"{begin}\n{BLOCKS[name]().strip()}\n\n{end}"

    paths = [*sorted(folder.glob("*.md")), *(folder / path for path in BESIDE)]
    pages = {path: _BLOCK.sub(filled, path.read_text("utf-8")) for path in paths}
    missing = BLOCKS.keys() - set(shown)
    if missing:
        raise LookupError(f"no page of {folder} shows {', '.join(sorted(missing))}")
    return pages
