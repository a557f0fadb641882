"""The place in a text that a refusal names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from leasehold.model.errors import Refused


def position_of(error: Refused) -> int:
    """The position that a refusal names, 1 without one."""
    return int(str(error.detail.get("position", 1)))


def with_position(error: Refused, position: int, prefix: str = "", **detail: object) -> Refused:
    """The same refusal, said at `position` of the text that was sent."""
    said = {**error.detail, **detail, "position": position}
    return type(error)(prefix + error.message, **said)


@contextmanager
def refused_at(position: int) -> Iterator[None]:
    """Say each refusal that is raised inside at `position` of the text."""
    try:
        yield
    except Refused as error:
        raise with_position(error, position) from error
