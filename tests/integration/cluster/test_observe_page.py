"""Goal: whoever is led to a command by the page on observing gets what the page promises of it.

Method: each command of docs/how-to/observe.md, those in its blocks and those in its text, on a
cluster in which an open transaction holds up schema changes, one for each command that is about a
job. What stands there as job 7 or 8 is that one.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Final, NamedTuple

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer
from leasehold.catalog.job import Status
from tests.support.cluster.secure_suite import dsn_of
from tests.support.cluster.system_cluster import Beside, command, settings_of, until
from tests.support.documents.blocks import blocks, commands, inline_commands
from tests.support.documents.document_run import ROOT

PAGE: Final = ROOT / "docs" / "how-to" / "observe.md"
JOB: Final = re.compile(r"\b[78]\b")
ENVIRON: Final = {**os.environ, "LEASEHOLD_SESSION_TTL_MS": "600000"}
"""Longer than a busy machine keeps a node from renewing, as without its session nothing is held up,
and than any command here may take: nobody waits for a session whose renewals are refused."""
WAITS: Final = "jobs watch"
"""Ends when its job does."""


def of_page() -> list[str]:
    """Return the commands of the page, without `leasehold`; each once."""
    shown = [
        each.text
        for block in blocks(PAGE)
        if block.text.startswith("$ leasehold")
        for each in commands(block)
    ]
    return list(
        dict.fromkeys(each.removeprefix("leasehold ") for each in [*shown, *inline_commands(PAGE)])
    )


OF_JOBS: Final = sorted(
    (each for each in of_page() if JOB.search(each)), key=lambda each: "--cancel-blockers" in each
)
"""The one at the end that ends whoever is in the way: of all jobs here."""
OTHERS: Final = [each for each in of_page() if each not in OF_JOBS]
MAY_FIND: Final = {
    "status": (0, 1),  # a job that was cancelled here is no trouble, one broker a warning
    "doctor": (0,),
    "setup-acls": (2,),  # named, and nobody is given rights
}
"""Exit codes, where 0 is not all that may come."""


class Held(NamedTuple):
    """A cluster, and for each command the job that it is about, which waits for `reader`."""

    cluster: LocalCluster
    jobs: dict[str, int]
    reader: Any


@pytest.fixture(scope="module")
def held(beside: Beside) -> Iterator[Held]:
    with beside.running("observe", ("m1", "r1", "changefeed"), ENVIRON) as cluster:
        dsn = dsn_of(cluster, 0)
        with closing(psycopg.connect(dsn)) as reader, psycopg.connect(dsn, autocommit=True) as sql:
            sql.execute("SET leasehold.wait_for_jobs = off")
            for number, _ in enumerate(OF_JOBS):
                sql.execute(f"CREATE TABLE t{number} (id int PRIMARY KEY)")
            for number, _ in enumerate(OF_JOBS):
                reader.execute(f"SELECT * FROM t{number}")
            until(lambda: leased(cluster) == len(OF_JOBS), "r1's leases on all that is read")
            with ChangeProducer(settings_of(cluster, "setup")) as producer:
                jobs = {}
                for number, text in enumerate(OF_JOBS):
                    made = producer.submit({"sql": f"ALTER TABLE t{number} ADD COLUMN n int"})
                    jobs[text] = int(made.result(60).answer["job"])
            world = Held(cluster, jobs, reader)
            until(lambda: all_held(world), "r1 holds up each job", seen=lambda: str(told_of(world)))
            yield world


def leased(cluster: LocalCluster) -> int:
    """Return how many tables somebody holds a lease on: who reads asks for it, and goes on."""
    tables = command(cluster, "leases", "--json").json["leases"]
    return sum(1 for table in tables if any(each["leases"] for each in table["versions"]))


def told_of(held: Held) -> dict[int, dict[str, Any]]:
    """Return what is told of each job."""
    return {each["job"]: each for each in command(held.cluster, "jobs", "--json").json}


def status_of(held: Held, job: int) -> dict[str, Any]:
    return told_of(held)[job]


def all_held(held: Held) -> bool:
    told = told_of(held)
    waiting = [told[job] for job in held.jobs.values() if job in told]
    assert all(each["status"] == Status.RUNNING.value for each in waiting), waiting
    return len(waiting) == len(held.jobs) and all(
        [who["agent"] for who in each["blockers"]] == ["r1"] for each in waiting
    )


def test_the_page_names_what_this_is_about() -> None:
    names = {shlex.split(text)[0] for text in OTHERS}
    assert {"status", "doctor", "jobs", "dead-letter", "check", "clock"} <= names
    assert {shlex.split(text)[1] for text in OF_JOBS} == {
        *("pause", "set", "cancel", "postpone", "complete", "watch"),
    }


def test_a_job_that_waits_says_for_whom(held: Held) -> None:
    job = held.jobs["jobs watch 7"]

    def words() -> str:
        return " ".join(status_of(held, job)["waits_for"])

    until(lambda: "agent r1 holds" in words(), "who holds it up", seen=words)
    (block,) = [each for each in blocks(PAGE) if each.text.startswith("$ leasehold jobs")]
    head = block.text.splitlines()[1].split()
    assert command(held.cluster, "jobs").out.split()[: len(head)] == head


@pytest.mark.parametrize("text", OTHERS)
def test_a_command_says_how_things_are(held: Held, text: str) -> None:
    words = shlex.split(text)
    said = command(held.cluster, *words)
    assert said.code in MAY_FIND.get(words[0], (0,)), (said.out, said.err)


@pytest.mark.parametrize("text", [each for each in OF_JOBS if not each.startswith(WAITS)])
def test_a_command_steers_the_job_that_it_names(held: Held, text: str) -> None:
    job = held.jobs[text]
    if text.startswith("jobs complete"):
        assert command(held.cluster, "jobs", "postpone", str(job)).code == 0
    said = command(held.cluster, *shlex.split(JOB.sub(str(job), text, count=1)))
    assert said.code == 0, (said.out, said.err)
    until(lambda: is_steered(shlex.split(text)[1], status_of(held, job)), f"{text} shows")


def is_steered(action: str, told: dict[str, Any]) -> bool:
    """Whether a job is as it was told to be."""
    return bool(
        {
            "pause": told["status"] == Status.PAUSED.value,
            "cancel": told["status"] in (Status.ROLLING_BACK.value, Status.CANCELLED.value),
            "postpone": told["settings"].get("postpone"),
            "complete": not told["settings"].get("postpone"),
            "set": told["settings"],
        }[action]
    )


def test_a_job_is_followed_until_nobody_holds_it_up(held: Held) -> None:
    (text,) = [each for each in OF_JOBS if each.startswith(WAITS)]
    held.reader.rollback()
    said = command(held.cluster, *shlex.split(JOB.sub(str(held.jobs[text]), text, count=1)))
    assert said.code == 0, (said.out, said.err)
    assert status_of(held, held.jobs[text])["status"] == Status.SUCCEEDED.value
