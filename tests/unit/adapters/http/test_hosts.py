"""Goal: what is served on loopback is not for pages of other sites, whatever name they ask by."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from leasehold.adapters.http.hosts import is_own_host, is_own_origin
from leasehold.dashboard.own_pages import answer_own_names
from leasehold.model.errors import ConfigurationError
from leasehold.settings.dashboard import DashboardSettings
from leasehold.settings.setting import from_environment


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *(("localhost", True), ("LocalHost:80", True), ("127.0.0.1:80", True), ("[::1]:80", True)),
        *(("dash.example", True), ("Dash.Example.:80", True), ("192.168.1.5", True)),
        *(("evil.example", False), ("dash.example.evil", False), ("127.0.0.1.evil", False)),
        *(("", False), (None, False), (":80", False), ("[::1", False), ("a@dash.evil", False)),
    ],
)
def test_a_host_that_is_ours(host: str | None, own: bool) -> None:
    assert is_own_host(host, {"dash.example"}) is own


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        *((None, True), ("http://127.0.0.1:80", True), ("https://dash.example", True)),
        *(("http://127.0.0.1:81", False), ("null", False), ("http://evil.example", False)),
        ("http://[", False),
    ],
)
def test_an_origin_that_is_ours(origin: str | None, own: bool) -> None:
    assert is_own_origin(origin, "127.0.0.1:80", {"dash.example"}) is own


def dashboard_answers(headers: Mapping[str, str], path: str = "/api/state") -> int:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    guard = answer_own_names(("0.0.0.0", "r1", "dash.example"))
    request = make_mocked_request("GET", path, headers=dict(headers))
    answer: web.Response = asyncio.run(guard(request, handler))
    return answer.status


@pytest.mark.parametrize("path", ["/", "/page/page.js", "/api/state", "/metrics"])
def test_the_dashboard_answers_its_own_names_on_every_path(path: str) -> None:
    """Also where it listens on all addresses, as in a container."""
    assert dashboard_answers({"Host": "127.0.0.1:8080"}, path) == 200
    assert dashboard_answers({"Host": "dash.example:8080"}, path) == 200
    assert dashboard_answers({"Host": "rebound.evil.example"}, path) == 403
    theirs = {"Host": "127.0.0.1:8080", "Origin": "http://rebound.evil.example"}
    assert dashboard_answers(theirs, path) == 403


def test_names_of_the_dashboard_are_a_setting() -> None:
    variable = "LEASEHOLD_DASHBOARD_HOSTS"
    said = from_environment(DashboardSettings, {variable: "dash.example, d2"})
    assert said.names == ("dash.example", "d2")
    assert DashboardSettings().names == ()
    for wrong in ("http://dash.example", "a,,b", "dash:8080"):
        with pytest.raises(ConfigurationError, match=variable):
            from_environment(DashboardSettings, {variable: wrong})
