"""Refuses what none of the dashboard's own pages asks: requests under another name than ours, by a
page of another place, and what is sent by any page but our own."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from aiohttp import web

from leasehold.adapters.http.hosts import is_own_host, is_own_origin

HEADERS: Final[Mapping[str, str]] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none';"
    " form-action 'self'; require-trusted-types-for 'script'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # With "no-referrer" a browser names "null" as the origin of our own forms.
    "Referrer-Policy": "same-origin",
}


def answer_own_names(hosts: Collection[str]) -> Any:
    """Return a middleware that refuses whatever is asked under another name than ours, or by a page
    of another place: on every address, since a container's is published on the host's loopback.
    What changes anything is taken from our own pages alone: browsers say with each such request
    whose it is, and what says nothing is none of ours either."""
    names = frozenset(name.lower() for name in hosts)

    @web.middleware
    async def answer(request: web.Request, handler: Any) -> Any:
        host = request.headers.get("Host", "")
        origin = request.headers.get("Origin")
        if not (is_own_host(host, names) and is_own_origin(origin, host, names)):
            words = "this dashboard answers its own host names only (LEASEHOLD_DASHBOARD_HOSTS)"
            return web.Response(text=words, status=403, headers=dict(HEADERS))
        if request.method not in ("GET", "HEAD") and not _is_of_own_page(request):
            words = "this is taken from the dashboard's own pages only"
            return web.Response(text=words, status=403, headers=dict(HEADERS))
        return await handler(request)

    return answer


def _is_of_own_page(request: web.Request) -> bool:
    """Return whether a page of ours asks, by what browsers add; its origin was looked at before."""
    site = request.headers.get("Sec-Fetch-Site")
    if site is None:
        return request.headers.get("Origin") is not None
    return site == "same-origin"
