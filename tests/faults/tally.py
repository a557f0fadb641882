"""What came of many rounds, added up over runs: rounds and faults by kind, operations, schema
changes, what failed, what was late, and the table of waits. PURE."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from tests.faults.recovery import Recovery, lateness
from tests.faults.round import Report
from tests.faults.workload.history import Told
from tests.matrix.definition import names

FORMAT: Final = 1


class Tally:
    """The figures so far. `changes`: how often the menu's items were carried out, by what was told;
    `items`: those that were acknowledged once; `effects`: calls and pages that faults of disks have
    befallen; `failed`, `late`: a sentence a round."""

    def __init__(self) -> None:
        self.rounds = 0
        self.faults = 0
        self.operations = 0
        self.kinds: Counter[str] = Counter()
        self.effects: Counter[str] = Counter()
        self.changes: Counter[str] = Counter()
        self.items: set[str] = set()
        self.failed: list[str] = []
        self.late: list[str] = []
        self.recovery = Recovery()

    def add(self, report: Report, effects: Mapping[str, int]) -> None:
        """Count a round. Who was wrong has no waits."""
        schedule = report.schedule
        kinds = [event.kind for event in schedule.events]
        self.rounds += 1
        self.faults += len(kinds)
        self.operations += report.operations
        self.kinds.update(kinds)
        self.effects.update(effects)
        for (item, told), count in report.changes.items():
            self.changes[told] += count
            if told == Told.YES:
                self.items.add(item)
        name = f"{schedule.parts} seed {schedule.seed}"
        if report.wrong:
            self.failed.append(f"{name}: {report.wrong[0][:200]}")
        elif report.waits is not None:
            self.recovery.add(kinds, report.waits)
            words = lateness(kinds, report.waits)
            self.late += [f"{name}: {kinds[0]}: {words}"] if words else []

    def lines(self) -> list[str]:
        """Return what there is to say, the table of waits last."""
        head = f"{self.faults:,} faults in {self.rounds:,} rounds, {self.operations:,} operations"
        kinds = f"acknowledged of {len(names())} kinds: {len(self.items)}"
        return [
            f"{head}: {_counted(self.kinds)}",
            f"calls and pages that faults of disks befell: {_counted(self.effects)}",
            f"schema changes of the menu: {_counted(self.changes)}; {kinds}",
            f"{len(self.failed)} rounds failed, {len(self.late)} took longer than promised",
            *(f"failed: {words}" for words in self.failed),
            *(f"late: {words}" for words in self.late),
            *self.recovery.lines(),
        ]

    def to_json(self) -> str:
        """Return it as it is written to a file."""
        return json.dumps(
            {
                "format": FORMAT,
                "rounds": self.rounds,
                "faults": self.faults,
                "operations": self.operations,
                "kinds": self.kinds,
                "effects": self.effects,
                "changes": self.changes,
                "items": sorted(self.items),
                "failed": self.failed,
                "late": self.late,
                "waits": self.recovery.as_json(),
            }
        )

    def take(self, text: str) -> None:
        """Add the figures of earlier runs, as `to_json` wrote them. Raises ValueError."""
        body: dict[str, Any] = json.loads(text)
        if body.get("format") != FORMAT:
            raise ValueError(f"a tally of format {body.get('format')!r}, this reads {FORMAT}")
        self.rounds += body["rounds"]
        self.faults += body["faults"]
        self.operations += body["operations"]
        self.kinds.update(body["kinds"])
        self.effects.update(body["effects"])
        self.changes.update(body["changes"])
        self.items.update(body["items"])
        self.failed = [*body["failed"], *self.failed]
        self.late = [*body["late"], *self.late]
        self.recovery.take(body["waits"])


def _counted(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "none"
