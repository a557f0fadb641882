"""What one run keeps beside Spark's checkpoint: counts, and whether it ended."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final, NamedTuple

from leasehold.pipeline.schedule import RunId
from spark_streaming.hadoop_folder import Folder

CHECKPOINT: Final = "checkpoint"
FACTS: Final = "facts"
SAMPLES: Final = "samples"
ROUND: Final = "round-"
_TOTALS: Final = "totals.json"
_ENDED: Final = "ended.json"


class Totals(NamedTuple):
    """Rows named and chunks sent by a run so far."""

    rows: int = 0
    chunks: int = 0


class RunFolder:
    """The folder of a run, `<job>-<run>/` in that of all runs: `checkpoint/` is Spark's,
    `totals.json` and `ended.json` are ours; `facts/<micro-batch>/` is what a validation has read so
    far, `samples/` what a backfill by range has.

    Nothing here decides what the store holds: a lost folder makes a run start from the beginning,
    and chunks that come twice are harmless.
    """

    def __init__(self, runs: Folder, run: RunId) -> None:
        self._folder = runs.below(run.name)

    @property
    def checkpoint(self) -> str:
        """The name of the checkpoint's folder, for Spark."""
        return self._folder.uri(CHECKPOINT)

    def has_begun(self) -> bool:
        """Return whether a query of this run has begun. Raises SparkUnavailable."""
        return self._folder.exists(CHECKPOINT)

    def planned(self, batch_id: int) -> bytes | None:
        """Return what Spark has noted of a micro-batch before it ran. Raises SparkUnavailable."""
        return self._folder.read(f"{CHECKPOINT}/offsets/{batch_id}")

    def empty_facts(self, batch_id: int) -> str:
        """Return a folder for a micro-batch's facts, without those of an earlier attempt. Raises
        SparkUnavailable."""
        path = f"{FACTS}/{batch_id}"
        self._folder.remove(path)
        self._folder.make(path)
        return self._folder.uri(path)

    def all_facts(self) -> list[str]:
        """Return the folders that have files of facts: of each micro-batch one, or one for each
        round of it. Raises SparkUnavailable."""
        found = []
        for name in self._folder.names(FACTS):
            batch = f"{FACTS}/{name}"
            rounds = [each for each in self._folder.names(batch) if each.startswith(ROUND)]
            found += [f"{batch}/{each}" for each in rounds] or [batch]
        return [self._folder.uri(path) for path in found]

    def keep_sample(self, batch_id: int, keys: Iterable[bytes]) -> None:
        """Keep keys of one micro-batch that tell where to cut, in the place of those of an earlier
        attempt. Raises SparkUnavailable."""
        self._write(f"{SAMPLES}/{batch_id}.json", [key.hex() for key in keys])

    def all_samples(self) -> Iterator[bytes]:
        """Yield the keys that were kept of all micro-batches. Raises SparkUnavailable."""
        for name in sorted(self._folder.names(SAMPLES)):
            yield from map(bytes.fromhex, self._read(f"{SAMPLES}/{name}") or ())

    def totals_before(self, batch_id: int) -> Totals:
        """Return totals of all batches before this one; a batch that Spark replays counts once."""
        kept = self._read(_TOTALS)
        if kept is None:
            return Totals()
        return Totals(*(kept["before"] if batch_id <= kept["batch"] else kept["after"]))

    def totals(self) -> Totals:
        kept = self._read(_TOTALS)
        return Totals() if kept is None else Totals(*kept["after"])

    def count(self, batch_id: int, before: Totals, after: Totals) -> None:
        assert after.rows >= before.rows, (before, after)
        self._write(_TOTALS, {"batch": batch_id, "before": list(before), "after": list(after)})

    def ended(self) -> Totals | None:
        """Return totals in the end marker, if that was acknowledged by Kafka."""
        kept = self._read(_ENDED)
        return None if kept is None else Totals(kept["rows"], kept["chunks"])

    def end(self, totals: Totals) -> None:
        self._write(_ENDED, totals._asdict())

    def _read(self, path: str) -> Any:
        content = self._folder.read(path)
        try:
            return None if content is None else json.loads(content)
        except ValueError:
            # A file cut short by a power cut is as good as none: see the class.
            return None

    def _write(self, path: str, content: Any) -> None:
        self._folder.write(path, json.dumps(content).encode())


def runs_of_job(names: Collection[str], job_id: int) -> list[str]:
    """Return those of the names that are folders of the job's runs."""
    return sorted(name for name in names if name.startswith(f"{job_id}-"))
