"""Expressions over arrays with the text that PostgreSQL 15 gives of them, and what it refuses:
`array_cases.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

_KEPT: Final = json.loads((Path(__file__).parent / "array_cases.json").read_text())
CASES: Final[dict[str, str | None]] = _KEPT["given"]
REFUSED: Final[dict[str, str]] = _KEPT["refused"]
ONLY_HERE_REFUSED: Final[dict[str, str]] = _KEPT["refused_here_alone"]
"""What PostgreSQL does and this does not."""
