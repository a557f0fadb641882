"""Group sessions: short transactions beside schema changes, and beside one that stays open."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from leasehold.adapters.os.clock import boottime_ns, unix_us
from leasehold.admin.report import report
from leasehold.admin.watch import ClusterWatch
from tests.bench.bench_settings import BenchSettings
from tests.bench.child import Child
from tests.bench.figure import Figure, latencies
from tests.bench.pacing import Write, due_between
from tests.bench.stand import BenchFailure, Stand, replicants, say, stand

SESSIONS: Final = 20
ROWS: Final = 2_000
WARM_UP_S: Final = 3.0
BEFORE_S: Final = 10.0
CHANGES: Final = 10
OPEN_S: Final = 10.0
JOB_TIMEOUT_S: Final = 60.0
OPEN_NODE: Final = "sleeper"


def measure(settings: BenchSettings) -> Iterator[Figure]:
    services = ["m1", *replicants(settings.replicants), "changefeed"]
    with stand(services, settings.warm_up) as where, ClusterWatch(where.settings) as watch:
        where.submit({"sql": "CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL)"})
        rows = [{"table": "t", "op": "insert", "key": [k], "values": {"n": 0}} for k in range(ROWS)]
        where.submit({"transaction": rows})
        sessions = where.child("sessions", "session_host", "t", ROWS, SESSIONS)
        sleeper = where.child(OPEN_NODE, "open_session", "t", OPEN_S)
        for child in (sessions, sleeper):
            child.wait_ready()
        time.sleep(WARM_UP_S)
        say(f"{SESSIONS} sessions for {BEFORE_S:g} s, then {CHANGES} changes beside them")
        instants = [boottime_ns()]
        time.sleep(BEFORE_S)
        instants.append(boottime_ns())
        for number in range(CHANGES):
            where.change(f"ALTER TABLE t ADD COLUMN c{number} text", JOB_TIMEOUT_S)
        instants.append(boottime_ns())
        took_ms = _beside_an_open_one(where, watch, sleeper)
        instants.append(boottime_ns())
        times = [Write(*each) for each in sessions.answer(stop=True)]
        for number, when in enumerate(("before", "during", "blocked")):
            found = due_between(times, instants[number], instants[number + 1])
            yield from latencies("session", when, found)
        yield Figure("blocked_change", took_ms / 1e3, "s")


def _beside_an_open_one(where: Stand, watch: ClusterWatch, sleeper: Child) -> float:
    """A change while one session sits in a transaction; → ms until it was done.

    Raises BenchFailure when the job did not name who holds it up.
    """
    say(f"one session opens a transaction and sits in it for {OPEN_S:g} s; a change beside it")
    sleeper.go()
    sleeper.wait_ready()  # it is inside
    begin = time.monotonic()
    number = where.submit({"sql": "ALTER TABLE t ADD COLUMN late text"}).answer["job"]

    waits: set[str] = set()
    for view in watch.views(0.2):
        if time.monotonic() - begin > JOB_TIMEOUT_S:
            raise BenchFailure(f"job {number} did not end in {JOB_TIMEOUT_S:g} s")
        for job in report(view, unix_us())["jobs"]:
            if job["job"] == number:
                waits.update(job["waits_for"])
        if number in view.jobs and view.jobs[number].job.status.ended:
            break
    took_ms = (time.monotonic() - begin) * 1e3
    sleeper.answer(stop=True)
    named = [words for words in waits if OPEN_NODE in words]
    if not named:
        raise BenchFailure(f"job {number} named {sorted(waits)}, not {OPEN_NODE}")
    say(f"job {number} waited for: {named[0]}")
    return took_ms
