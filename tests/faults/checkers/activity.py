"""Judges what the application that counts has told: each commit in one window, once. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def judge_activity(
    windows: Iterable[Mapping[str, Any]], table_id: int, commits: int, *, exact: bool
) -> list[str]:
    """Return what contradicts. `windows`: what was told, in order, so that of each window the last
    one holds; `commits`: how many changed the table. `exact`: no master was deposed, whose records
    stand in the log, too, and count for nobody but an application that reads heads alone."""
    newest = {
        told["from_s"]: told
        for told in windows
        if told["what"] == "writes" and told["window_s"] == 1
    }
    counted = sum(told["tables"].get(str(table_id), (0, 0))[0] for told in newest.values())
    if counted < commits or (exact and counted > commits):
        words = f"{counted} commits of table {table_id} were counted, there were {commits}"
        return [f"activity: {words}"]
    return []
