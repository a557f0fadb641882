"""How a process tells whoever started it that it is ready for work."""

from __future__ import annotations

import os
from pathlib import Path


def announce_ready(ready_file: Path | None, text: str = "ready") -> None:
    """Write `ready_file` (LEASEHOLD_READY_FILE) in one step; None means that nobody asked.

    Call it once the process can do its work: consumers assigned, listeners bound. Whoever waits
    sees the whole text or no file. Raises OSError if the folder can't be written.
    """
    if ready_file is None:
        return
    ready_file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = ready_file.with_name(f"{ready_file.name}.{os.getpid()}")
    unfinished.write_text(f"{text}\n", encoding="utf-8")
    unfinished.replace(ready_file)
