"""Which tests stay together on one worker: pytest-xdist's `--dist loadfile`, by what they share."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Final

from xdist.scheduler import LoadFileScheduling

TESTS: Final = Path(__file__).parents[1]
PACKAGES: Final = frozenset(
    made.parent.relative_to(TESTS.parent).as_posix() for made in TESTS.rglob("__init__.py")
)
ALONE: Final = ("tests/matrix/", "tests/simulation/")
"""Folders whose tests share nothing, and take seconds each."""


def find_group(nodeid: str) -> str:
    """Return the group of a test: a package that starts what all of its modules need, a module, or
    the test alone."""
    if nodeid.startswith(ALONE):
        return nodeid
    path = PurePath(nodeid.split("::", 1)[0])
    package = path.parent.as_posix()
    return package if package in PACKAGES else path.with_suffix("").as_posix()


class GroupScheduling(LoadFileScheduling):  # type: ignore[misc]
    """The tests of a group on one worker. (xdist's `loadgroup` needs `_nodeid` of pytest's items,
    which pytest 9.2 has no more: each test would go to any worker.)"""

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid)
