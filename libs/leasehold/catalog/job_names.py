"""The names of relations that a job gives, or has yet to let go of."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.edits import Edit, Kind
from leasehold.catalog.job import Job


def collect_relation_names(job: Job) -> frozenset[str]:
    """Return names of relations that a job gives or lets go of."""
    return frozenset(name for edit in _edits(job) for name in _relations_in(edit))


def _edits(job: Job) -> Iterator[Edit]:
    return (edit for step in job.steps for edit in step.edits)


def _relations_in(edit: Edit) -> Iterator[str]:
    bodies = [body for body in (edit.before, edit.after) if body is not None]
    if edit.kind is Kind.INDEX:
        yield from (str(body["name"]) for body in bodies if not body.get("implied"))
        return
    if edit.kind is Kind.TABLE:
        yield from (str(body["name"]) for body in bodies)
    for body in bodies:  # of a table that the job will make
        if body.get("key_name"):
            yield str(body["key_name"])
        made = (index for index in body.get("indexes", ()) if not index.get("implied"))
        yield from (str(index["name"]) for index in made)
