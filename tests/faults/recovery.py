"""How long writers and readers were without an answer in a round, and how long until everything was
coherent again; and the table over many rounds. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Final

from tests.faults.kinds import KINDS
from tests.faults.workload.history import Op, Told

MS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Waits:
    """Of one round, in ms: the longest time without a write, without a read at any replica, and
    from the end of the last fault until everything was coherent."""

    writer_ms: int
    reader_ms: int
    coherent_ms: int


def longest_gap_ms(ops: Iterable[Op], begun_ns: int, ended_ns: int) -> int:
    """Return the longest time in between that had no answer of `ops`, which are those of one kind
    of client."""
    last_ns, longest_ns = begun_ns, 0
    answers = sorted(op.ended_ns for op in ops if op.told is Told.YES)
    for at_ns in answers:
        if begun_ns < at_ns <= ended_ns:
            longest_ns = max(longest_ns, at_ns - last_ns)
            last_ns = at_ns
    return max(longest_ns, ended_ns - last_ns) // MS


def waits_of(ops: Sequence[Op], begun_ns: int, mended_ns: int, coherent_ns: int) -> Waits:
    """Return the waits of a round whose first fault befell at `begun_ns`."""
    end_ns = coherent_ns
    return Waits(
        longest_gap_ms((op for op in ops if op.kind == "count"), begun_ns, end_ns),
        longest_gap_ms((op for op in ops if op.kind == "look"), begun_ns, end_ns),
        (coherent_ns - mended_ns) // MS,
    )


def lateness(kinds: Sequence[str], waits: Waits) -> str:
    """Return what a round with one fault took longer for than is promised; "" when nothing. Two at
    once have no promise."""
    if len(kinds) != 1:
        return ""
    kind = KINDS[kinds[0]]
    late = []
    if kind.writer_ms is not None and waits.writer_ms > kind.writer_ms:
        late.append(f"a writer waited {waits.writer_ms} ms, {kind.writer_ms} are promised")
    if kind.reader_ms is not None and waits.reader_ms > kind.reader_ms:
        late.append(f"a reader waited {waits.reader_ms} ms, {kind.reader_ms} are promised")
    if waits.coherent_ms > kind.coherent_ms:
        late.append(f"coherent after {waits.coherent_ms} ms, {kind.coherent_ms} are promised")
    return "; ".join(late)


class Recovery:
    """The table: rounds with one fault alone by its kind, all others together."""

    def __init__(self) -> None:
        self._waits: dict[str, list[Waits]] = {}

    def add(self, kinds: Sequence[str], waits: Waits) -> None:
        """Count a round."""
        name = kinds[0] if len(kinds) == 1 else "two or more"
        self._waits.setdefault(name, []).append(waits)

    def lines(self) -> list[str]:
        """Return the table as lines of Markdown: p50 and worst of each, and what is promised, of
        the waits of a writer, of a reader, and until all is coherent, in ms."""
        lines = [
            "| fault | rounds | a writer (promised) | a reader (promised) | coherent (promised) |",
            "|---|---|---|---|---|",
        ]
        for name in (*KINDS, "two or more"):
            found = self._waits.get(name)
            if found:
                writer, reader, coherent = _promised(name)
                lines.append(
                    f"| {name} | {len(found)}"
                    f" | {_p50_worst([w.writer_ms for w in found])} ({writer})"
                    f" | {_p50_worst([w.reader_ms for w in found])} ({reader})"
                    f" | {_p50_worst([w.coherent_ms for w in found])} ({coherent}) |"
                )
        return lines

    def as_json(self) -> Mapping[str, list[list[int]]]:
        """Return the figures, to be added to those of other runs."""
        return {
            name: [[w.writer_ms, w.reader_ms, w.coherent_ms] for w in found]
            for name, found in self._waits.items()
        }

    def take(self, figures: Mapping[str, list[list[int]]]) -> None:
        """Add the figures of another run."""
        for name, found in figures.items():
            self._waits.setdefault(name, []).extend(Waits(*each) for each in found)


def _p50_worst(figures: Sequence[int]) -> str:
    return f"{median_low(figures)} / {max(figures)}"


def _promised(name: str) -> tuple[str, str, str]:
    kind = KINDS.get(name)
    if kind is None:
        return "–", "–", "–"
    figures = (kind.writer_ms, kind.reader_ms)
    writer, reader = ("as long as it lasts" if ms is None else str(ms) for ms in figures)
    return writer, reader, str(kind.coherent_ms)
