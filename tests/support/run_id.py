"""The id of a run of pytest: the same in all of its workers, which must collect the same."""

from __future__ import annotations

import os


def run_id() -> str:
    """Return the id of this run; seeds that are new each time are drawn from it."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID") or str(os.getppid())
