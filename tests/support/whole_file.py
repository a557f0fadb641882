"""Files that are there as a whole, whenever somebody is killed who writes them."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole_file(path: Path, text: str) -> None:
    """Put the text in the place of the file, which is as it was until all of it is written."""
    unfinished = path.with_suffix(f".{os.getpid()}")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)
