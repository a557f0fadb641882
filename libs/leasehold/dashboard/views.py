"""The dashboard's pages as files: one page for every view, its modules and its style. They hold
nothing of the database, so whoever asks may have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from leasehold.dashboard.own_pages import HEADERS

FOLDER: Final = Path(__file__).parent / "page"
VIEWS: Final = (
    *("/", "/tables", "/jobs", "/nodes", "/leases", "/dead-letters", "/conflicts", "/sql"),
)
"""Addresses of views; some have one more part, that names a table, a job or a letter."""
DETAILS: Final = ("/tables/{name}", "/jobs/{name}", "/dead-letters/{name}")
KINDS: Final[Mapping[str, str]] = {".css": "text/css", ".js": "text/javascript"}


def add_views(app: web.Application) -> frozenset[str]:
    """Add the views and their files, and return the addresses that are open to all."""
    files = {f"/page/{path.name}": path for path in FOLDER.iterdir() if path.suffix in KINDS}
    for view in (*VIEWS, *DETAILS):
        app.router.add_get(view, _show_page)
    for address, path in files.items():
        app.router.add_get(address, _giving(path))
    return frozenset({*VIEWS, *files})


def is_view(path: str) -> bool:
    """Return whether an address is that of a view, or of a detail of one."""
    return path in VIEWS or any(
        path.startswith(f"{view}/") and path.count("/") == 2 for view in VIEWS if view != "/"
    )


async def _show_page(request: web.Request) -> web.Response:
    return _answer(FOLDER / "index.html", "text/html")


def _giving(path: Path) -> Any:
    async def give(request: web.Request) -> web.Response:
        return _answer(path, KINDS[path.suffix])

    return give


def _answer(path: Path, kind: str) -> web.Response:
    text = path.read_text(encoding="utf-8")
    return web.Response(text=text, content_type=kind, charset="utf-8", headers=dict(HEADERS))
