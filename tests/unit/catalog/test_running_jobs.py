"""What is found of running jobs without looking at all of them is what a look at all finds."""

from __future__ import annotations

import random
from dataclasses import replace

from leasehold.catalog.edits import Edit, Kind
from leasehold.catalog.job import Job, Status, Step
from leasehold.catalog.job_names import collect_relation_names
from leasehold.catalog.running_jobs import RunningJobs

TABLES = range(1, 6)


def drawn(rng: random.Random, job_id: int) -> Job:
    edit = Edit(Kind.TABLE, 0, None, {"name": f"n{rng.randrange(9)}", "key_name": "k"})
    versions = dict.fromkeys(rng.sample(TABLES, rng.randrange(3)), 2)
    step = Step((edit,))
    table_id, needs = rng.choice(TABLES), tuple(rng.sample(TABLES, rng.randrange(3)))
    steps = (step,) * rng.randrange(1, 3)
    return Job(job_id, "", table_id, "", b"", "", "", steps, 0, versions=versions, needs=needs)


def test_each_table_and_name_has_its_jobs() -> None:
    rng = random.Random(5)
    running = RunningJobs()
    for _ in range(2_000):
        job_id = rng.randrange(8)
        known = running.by_id.get(job_id)
        way = rng.random()
        if known is not None and way < 0.2:
            running.put(replace(known, status=Status.CANCELLED))
        elif known is not None and way < 0.4:
            running.put(replace(known, versions=drawn(rng, job_id).versions))
        elif way < 0.5:
            running.keep_without({job_id})
        else:
            running.put(drawn(rng, job_id))
        for each in (running, running.copy()):
            jobs = each.by_id.values()
            for table in TABLES:
                wanted = {j.job_id for j in jobs if table in j.tables or table in j.needs}
                found = [job.job_id for job in each.at(table)]
                assert set(found) == wanted
                assert len(found) == len(wanted)
            assert each.names == {j.job_id: collect_relation_names(j) for j in jobs}
            assert all(each.by_table.values()), "nothing is kept of a table without a job"
