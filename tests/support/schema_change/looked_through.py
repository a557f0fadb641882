"""Jobs as an earlier release has planned them: Spark looks through the rows for what breaks a
constraint, ahead of the nodes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from leasehold.catalog.job import Step
from leasehold.schema_change.plan import plan
from leasehold.schema_change.steps.steps import steps_of


def looked_through(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the steps with each constraint that is verified looked through by Spark first. What
    was filled is no constraint alone: its pairs or entries tell."""
    filled = frozenset(e for step in steps for e in step.backfills)
    return tuple(
        replace(step, validates=tuple(e for e in step.verifies if e not in filled))
        for step in steps
    )


@contextmanager
def planned_by_an_earlier_release() -> Iterator[None]:
    """Whatever is planned meanwhile is planned so."""

    def steps_and_point(*given: Any) -> Any:
        made = steps_of(*given)
        return made._replace(steps=looked_through(made.steps))

    with patch.object(plan, "steps_of", steps_and_point):
        yield
