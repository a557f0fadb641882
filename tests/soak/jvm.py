"""What a Java process holds: its heap after a collection, which is what is in use, and what it has
outside the heap. Its resident memory alone says nothing: it grows towards the heap's limit, since
nothing is collected before there is need."""

from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

ASK_S: Final = 30.0
KB: Final = 1 << 10
AREA: Final = re.compile(
    r"total \d+K, used (\d+)K \[0x([0-9a-f]+), (?:0x[0-9a-f]+, )?0x([0-9a-f]+)\)"
)
"""Each part of the heap in the answer to GC.heap_info, with where it begins and ends: G1 has one,
the serial collector two."""
MAPPING: Final = re.compile(r"([0-9a-f]+)-[0-9a-f]+ ")
"""A line of smaps that begins another mapping."""


class Heap(NamedTuple):
    """`used`: bytes after a collection of everything. `places`: from where to where it may be."""

    used: int
    places: tuple[range, ...]


def can_ask() -> bool:
    """Return whether this machine has what a JVM is asked with (a JDK, no JRE)."""
    return shutil.which("jcmd") is not None


def is_java(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() == "java"
    return False


def collected_heap(pid: int) -> Heap | None:
    """Have everything collected, for which the process stands still a fifth of a second, and return
    its heap; None where it has ended meanwhile."""
    if _asked(pid, "GC.run") is None:
        return None
    return read_heap(_asked(pid, "GC.heap_info") or "")


def read_heap(words: str) -> Heap | None:
    """Return what GC.heap_info has said, None = nothing of a heap."""
    areas = AREA.findall(words)
    if not areas:
        return None
    places = tuple(range(int(begin, 16), int(end, 16)) for _, begin, end in areas)
    return Heap(sum(int(used) for used, _, _ in areas) * KB, places)


def bytes_beside(pid: int, heap: Heap) -> int:
    """Return what a process has in memory outside its heap, without pages of files; 0 where it has
    ended."""
    with suppress(OSError):
        return read_beside(Path(f"/proc/{pid}/smaps").read_text(), heap)
    return 0


def read_beside(mappings: str, heap: Heap) -> int:
    """Return how many bytes the mappings have that are neither of a file nor of the heap."""
    total, counts = 0, False
    for line in mappings.splitlines():
        begun = MAPPING.match(line)
        if begun is not None:
            counts = not any(int(begun[1], 16) in place for place in heap.places)
        elif counts and line.startswith("Anonymous:"):
            total += int(line.split()[1]) * KB
    return total


def _asked(pid: int, question: str) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            ["jcmd", str(pid), question],
            capture_output=True,
            text=True,
            timeout=ASK_S,
            check=True,
        ).stdout
    return None
