"""What the harness asks of clients that are processes of their own: a file that they look at."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = "orders.json"
LOOK_AGAIN_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Orders:
    """Of round `number`: `work` until it is over, then say what is there. `history`: the folder of
    its files; `levels`: of its list-append transactions."""

    number: int = 0
    work: bool = False
    history: str = ""
    seed: int = 0
    levels: tuple[str, ...] = ()

    def write(self, data: Path) -> None:
        """Let who looks at the folder see them, in one step."""
        unfinished = data / f"{FILE}.unfinished"
        unfinished.write_text(json.dumps(asdict(self)))
        unfinished.replace(data / FILE)


def read_orders(data: Path) -> Orders:
    """Return the orders of now; none without a file."""
    try:
        body: dict[str, Any] = json.loads((data / FILE).read_text())
    except FileNotFoundError:
        return Orders()
    return Orders(**{**body, "levels": tuple(body["levels"])})


def life_of(name: str) -> str:
    """Return a name for this life of a process: one that is started anew is another client. Later
    lives have higher numbers, which ids of processes do not: those begin anew at some thousands."""
    return f"{name}-{time.monotonic_ns() // 1_000_000}"
