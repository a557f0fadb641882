"""Keeps which conflicts a worker of the retry was about to compute when it ended.

A process that dies of a conflict can say nothing afterwards, and its stream begins again at the
same one, for ever. So the worker writes down which it computes next; who finds there that
`ENDED_MAX` have ended over it gives it up unread, and a dead letter says why.

⚠ Not in Spark's state: what a micro-batch writes there counts when it has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

import msgpack

ENDED_MAX: Final = 2
MARKS_BYTES_MAX: Final = 1 << 20
Mark: TypeAlias = tuple[bytes, int]
"""A request's id, and the attempt that was refused."""


class AttemptMarks:
    """The marks of one bucket, in a file of its own. Used by one worker at a time."""

    def __init__(self, folder: Path, bucket: int) -> None:
        """Read what an earlier worker has left; a file that can't be read says nothing."""
        self._path = folder / f"{bucket}.marks"
        self._times: dict[Mark, int] = dict(_read(self._path))

    def is_given_up(self, mark: Mark) -> bool:
        """Return whether as many workers as may have ended over that."""
        return self._times.get(mark, 0) >= ENDED_MAX

    def begin(self, mark: Mark) -> None:
        """Write down that this is computed now. Raises OSError."""
        times = {**self._times, mark: self._times.get(mark, 0) + 1}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".new")
        temporary.write_bytes(msgpack.packb([[*name, count] for name, count in times.items()]))
        temporary.replace(self._path)

    def end(self) -> None:
        """Forget all of them: this worker lives. Raises OSError."""
        self._path.unlink(missing_ok=True)


def _read(path: Path) -> Mapping[Mark, int]:
    try:
        if path.stat().st_size > MARKS_BYTES_MAX:
            return {}
        found = msgpack.unpackb(path.read_bytes(), use_list=False)
        return {(request_id, attempt): times for request_id, attempt, times in found}
    except (OSError, ValueError, TypeError, msgpack.UnpackException):
        return {}
