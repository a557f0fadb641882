"""Goal: every page of the dashboard shows what happens, and does what its buttons say, in a real
browser: wide, narrow and dark, without a word on the console and without a fault that axe-core
finds.

Method: a cluster with a schema change under way (its backfill waits for Spark), one that an open
transaction blocks, a node that was killed, a dead letter and a row that refuses requests.
Screenshots lie in the folder that LEASEHOLD_SCREENSHOTS names.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from infra.ports import LOOPBACK
from leasehold import ChangeProducer
from tests.support.browser import NARROW, WIDE, Browser, browsing, missing
from tests.support.cluster.secure_suite import IS_SECURE
from tests.support.cluster.system_cluster import Beside, settings_of, until

SERVICES: Final = ("m1", "r1", "r2", "changefeed", "dashboard")
ROWS: Final = 200
PAGES: Final = {
    "overview": (
        "/",
        (
            "document.querySelector('[data-key=writes] rect')"
            " && document.body.innerText.includes('Node r2 (replicant) is silent')"
        ),
    ),
    "tables": ("/tables", "document.body.innerText.includes('bookings')"),
    "table": ("/tables/flights", "document.body.textContent.includes('both living versions')"),
    "jobs": ("/jobs", "document.querySelectorAll('.job').length > 1"),
    "job": ("/jobs/{blocked}", "document.body.innerText.includes('select * from flights')"),
    "nodes": ("/nodes", "document.body.innerText.includes('silent')"),
    "leases": ("/leases", "document.body.innerText.includes('an older version')"),
    "dead-letters": ("/dead-letters", "document.body.innerText.includes('42P01')"),
    "dead-letter": ("/dead-letters/{letter}", "document.getElementById('request-text')"),
    "conflicts": ("/conflicts", "document.querySelector('table.hot')"),
    "sql": ("/sql", "document.body.innerText.includes('SQL')"),
}
"""Address of each page, and what it shows of the situation."""

pytestmark = [
    pytest.mark.long("a cluster of its own, and a real browser"),
    pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is there"),
    pytest.mark.skipif(IS_SECURE, reason="its situation is made by SQL without a password"),
]


class Situation(NamedTuple):
    cluster: LocalCluster
    url: str
    blocked: int
    filling: int
    blocker: Any


@pytest.fixture(scope="module")
def situation(beside: Beside) -> Iterator[Situation]:
    with beside.running("pages", SERVICES) as cluster, closing(connect(cluster)) as sql:
        url = f"http://{LOOPBACK}:{cluster.ports.dashboard}"
        until(lambda: counts(url), "the dashboard counts")
        sql.execute("create table flights (id int primary key, origin text)")
        sql.execute("create table bookings (id int primary key, seat text)")
        for table in ("flights", "bookings"):
            with sql.cursor() as cursor:
                cursor.executemany(
                    f"insert into {table} values (%s, %s)",
                    [(number, "JFK") for number in range(ROWS)],
                )
        conflict = {"table": "flights", "op": "update", "key": {"id": 7}, "values": {"origin": "X"}}
        with ChangeProducer(settings_of(cluster, "setup")) as producer:
            for _ in range(5):
                producer.submit({**conflict, "expect": 1, "on_conflict": "replay"})
            lost = producer.submit({"table": "later", "op": "insert", "values": {"id": 1}})
            assert lost.result(60).dead_lettered
        sql.execute("set leasehold.wait_for_jobs = off")
        sql.execute("create index bookings_seat on bookings (seat)")
        with closing(connect(cluster, autocommit=False)) as blocker:
            blocker.execute("select * from flights")
            sql.execute("alter table flights add column gate text")
            jobs = dict(sql.execute("select table_name, job from leasehold.jobs").fetchall())
            cluster.kill("r2")
            yield Situation(cluster, url, jobs["flights"], jobs["bookings"], blocker)


def counts(url: str) -> bool:
    with urllib.request.urlopen(f"{url}/api/activity?window=1", timeout=30) as answer:
        return bool(json.loads(answer.read())["windows"])


def connect(cluster: LocalCluster, *, autocommit: bool = True) -> Any:
    return psycopg.connect(
        host=LOOPBACK,
        port=cluster.ports.sql[0],
        user="ann",
        dbname=cluster.cluster_settings.database,
        autocommit=autocommit,
    )


@pytest.fixture(params=["light", "dark"])
def browser(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Browser]:
    with browsing(tmp_path, dark=request.param == "dark") as made:
        yield made


def kept(tmp_path: Path, name: str) -> Path:
    folder = Path(os.environ.get("LEASEHOLD_SCREENSHOTS", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{name}.png"


def test_each_page_shows_the_situation_and_has_no_fault(
    situation: Situation, browser: Browser, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    theme = request.node.callspec.params["browser"]
    browser.go(situation.url)
    letter = browser.run(
        "return fetch('/api/dead-letters').then((a) => a.json()).then((a) => a.letters[0].offset)"
    )
    found = {}
    for name, (address, shown) in PAGES.items():
        browser.go(situation.url + address.format(blocked=situation.blocked, letter=letter))
        for size, (width, height) in (("wide", WIDE), ("narrow", NARROW)):
            browser.resize(width, height)
            browser.wait(f"!document.querySelector('.error') && Boolean({shown})", name)
            browser.screenshot(kept(tmp_path, f"{name}-{size}-{theme}"))
            over = browser.run(
                "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
            )
            faults = [*browser.faults(), *([f"{over} px too wide"] if over > 0 else [])]
            if faults:
                found[f"{name} {size}"] = faults
    assert found == {}
    said = browser.messages()
    assert said == [], said


def test_users_act_from_the_pages(situation: Situation, tmp_path: Path) -> None:
    """The one who blocks a change is found and ended; what was lost is submitted again."""
    with browsing(tmp_path) as browser:
        browser.go(f"{situation.url}/jobs/{situation.filling}")
        browser.wait("document.querySelector('[data-do=pause_job]')")
        browser.click("[data-do=pause_job]")
        browser.wait("document.getElementById('sign-in').open", "it asks who acts")
        browser.click("#sign-in-form button[type=submit]")
        browser.wait("document.body.innerText.includes('SQL as leasehold')")
        browser.click("[data-do=pause_job]")
        browser.wait("document.querySelector('[data-do=resume_job]')", "it is paused")
        browser.click("[data-do=resume_job]")
        browser.wait("document.querySelector('[data-do=pause_job]')", "it goes on")
        browser.press("#pace-slider", "\ue014\ue014")
        browser.wait("document.getElementById('pace-now').innerText.includes('300 rows')")

        browser.go(f"{situation.url}/sql")
        browser.wait("document.getElementById('sql-text')")
        browser.press("#sql-text", "create table later (id int primary key)")
        browser.click("[data-do=run]")
        browser.wait("document.body.innerText.includes('25006')", "it is read-only by default")
        browser.click("#sql-writes")
        browser.click("[data-do=run]")
        browser.wait("document.body.innerText.includes('CREATE TABLE')")
        browser.run("document.getElementById('sql-text').value = 'select id, origin from flights'")
        browser.press("#sql-text", "\ue009\ue007")
        browser.wait(f"document.querySelectorAll('table.result tbody tr').length === {ROWS}")
        browser.screenshot(kept(tmp_path, "sql-result"))

        browser.go(f"{situation.url}/dead-letters")
        browser.wait("document.querySelector('table.letters a')")
        browser.click("table.letters a")
        browser.wait("document.querySelector('[data-do=submit]')")
        browser.click("[data-do=submit]")
        browser.wait("document.getElementById('confirm').open")
        browser.click("#confirm-yes")
        browser.wait("document.getElementById('said').innerText.startsWith('Done')")

        browser.go(f"{situation.url}/jobs/{situation.blocked}")
        browser.wait("document.querySelector('[data-do=end_session]')", "whose session it is")
        browser.click("[data-do=end_session]")
        browser.wait("document.getElementById('confirm').open")
        browser.click("#confirm-yes")
        browser.wait("document.body.innerText.includes('succeeded')", "nobody blocks it any more")
        browser.screenshot(kept(tmp_path, "job-ended"))
        assert browser.faults() == []
        said = browser.messages()
        assert said == [], said
    with closing(connect(situation.cluster)) as sql:
        assert sql.execute("select id from later").fetchall() == [(1,)]


def test_keys_and_history_lead_from_page_to_page(situation: Situation, tmp_path: Path) -> None:
    with browsing(tmp_path) as browser:
        browser.go(situation.url)
        browser.wait("document.querySelector('h1')")
        browser.press("body", "2")
        browser.wait(
            "location.pathname === '/tables' && document.querySelector('input[type=search]')"
        )
        browser.press("body", "/")
        browser.press("input[type=search]", "book3")
        browser.wait("document.body.innerText.includes('No table has that')")
        assert browser.run("return location.pathname") == "/tables", "digits are text in a field"
        browser.run("history.back()")
        browser.wait("location.pathname === '/' && document.querySelector('.tiles')")
        browser.press("body", "?")
        browser.wait("document.getElementById('keys').open")
        assert browser.faults() == []
        browser.press("body", "\ue00c")
        browser.wait("!document.getElementById('keys').open")
        browser.go(f"{situation.url}/tables/nowhere")
        browser.wait("document.body.innerText.includes('there is no table')")
        assert browser.faults() == []


def test_what_is_old_is_said_to_be_old_and_not_a_fault(
    situation: Situation, tmp_path: Path
) -> None:
    """The last test of the situation: the dashboard's server ends, and a page stays open."""
    with browsing(tmp_path) as browser:
        browser.go(situation.url)
        browser.wait("document.querySelector('.tiles')")
        situation.cluster.kill("dashboard")
        browser.wait("document.body.classList.contains('stale')")
        text = browser.text()
        assert "Shown is what was known" in text
        assert "as of" in browser.run("return document.getElementById('health').innerText")
        assert browser.run("return document.getElementById('health').dataset.tone") == "wait"
        assert "bookings" in text, "what was known stays readable"
        browser.screenshot(kept(tmp_path, "stale"))
        assert browser.faults() == []
