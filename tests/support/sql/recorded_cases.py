"""Expressions with the text that PostgreSQL 15 gives of them, and what it refuses: of arrays, and
of regular expressions (`recorded_cases.json`)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

_KEPT: Final = json.loads((Path(__file__).parent / "recorded_cases.json").read_text())
CASES: Final[dict[str, str | None]] = _KEPT["given"]
REFUSED: Final[dict[str, str]] = _KEPT["refused"]
ONLY_HERE_REFUSED: Final[dict[str, str]] = _KEPT["refused_here_alone"]
"""What PostgreSQL does and this does not."""
REGULAR: Final[dict[str, str | None]] = _KEPT["regular"]
REGULAR_REFUSED: Final[dict[str, str]] = _KEPT["regular_refused"]
REGULAR_ONLY_HERE_REFUSED: Final[dict[str, str]] = _KEPT["regular_refused_here_alone"]
