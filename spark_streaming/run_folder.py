"""What one run keeps on disk beside Spark's checkpoint: counts, and whether it ended."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from leasehold.pipeline.schedule import RunId


class Totals(NamedTuple):
    """Rows named and chunks sent by a run so far."""

    rows: int = 0
    chunks: int = 0


class RunFolder:
    """The folder of a run, `<root>/<job>-<run>/`: `checkpoint/` is Spark's, `totals.json` and
    `ended.json` are ours; `facts/<micro-batch>/` is what a validation has read so far, `samples/`
    what a backfill by range has.

    Nothing here decides what the store holds: a lost folder makes a run start from the beginning,
    and chunks that come twice are harmless.
    """

    def __init__(self, root: Path, run: RunId) -> None:
        self.path = root / run.name
        self._totals = self.path / "totals.json"
        self._ended = self.path / "ended.json"

    @property
    def checkpoint(self) -> str:
        return str((self.path / "checkpoint").absolute())

    def empty_facts(self, batch_id: int) -> str:
        """Return a folder for a micro-batch's facts, without those of an earlier attempt."""
        folder = (self.path / "facts" / str(batch_id)).absolute()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        return str(folder)

    def all_facts(self) -> list[str]:
        return [str(folder.absolute()) for folder in sorted(self.path.glob("facts/*"))]

    def keep_sample(self, batch_id: int, keys: Iterable[bytes]) -> None:
        """Keep keys of one micro-batch that tell where to cut, in the place of those of an earlier
        attempt."""
        _write(self.path / "samples" / f"{batch_id}.json", [key.hex() for key in keys])

    def all_samples(self) -> Iterator[bytes]:
        for file in sorted(self.path.glob("samples/*.json")):
            yield from map(bytes.fromhex, _read(file) or ())

    def totals_before(self, batch_id: int) -> Totals:
        """Return totals of all batches before this one; a batch that Spark replays counts once."""
        kept = _read(self._totals)
        if kept is None:
            return Totals()
        return Totals(*(kept["before"] if batch_id <= kept["batch"] else kept["after"]))

    def totals(self) -> Totals:
        kept = _read(self._totals)
        return Totals() if kept is None else Totals(*kept["after"])

    def count(self, batch_id: int, before: Totals, after: Totals) -> None:
        assert after.rows >= before.rows, (before, after)
        _write(self._totals, {"batch": batch_id, "before": list(before), "after": list(after)})

    def ended(self) -> Totals | None:
        """Return totals in the end marker, if that was acknowledged by Kafka."""
        kept = _read(self._ended)
        return None if kept is None else Totals(kept["rows"], kept["chunks"])

    def end(self, totals: Totals) -> None:
        _write(self._ended, totals._asdict())


def forget_job(root: Path, job_id: int) -> None:
    """Remove the folders of an ended job's runs."""
    for folder in root.glob(f"{job_id}-*"):
        shutil.rmtree(folder, ignore_errors=True)


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        # A file cut short by a power cut is as good as none: see the class.
        return None


def _write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.{os.getpid()}")
    unfinished.write_text(json.dumps(content), encoding="utf-8")
    unfinished.replace(path)
