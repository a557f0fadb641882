"""The alerts of Prometheus."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ALERTS_FILE: Final = Path(__file__).with_name("alerts.yml")
