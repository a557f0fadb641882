"""Two ends that tell each other things through Redis, turned by a test as their loops turn them."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

DEADLINE_S: Final = 10.0


class Talk(ABC):
    """`told`: what became of each number that was told, once that is known."""

    def __init__(self) -> None:
        self.number = 0
        self.told: dict[int, bool] = {}

    @abstractmethod
    def turn(self) -> None:
        """Once round for both."""

    @abstractmethod
    def wait(self) -> None:
        """Until something may have come, 2 ms at most."""

    def until(self, met: Callable[[], bool], what: str) -> None:
        give_up = time.monotonic() + DEADLINE_S
        while not met():
            assert time.monotonic() < give_up, f"{what} in {DEADLINE_S:g} s: {self.told}"
            self.turn()
            self.wait()

    def outcome(self, number: int) -> bool:
        self.until(lambda: number in self.told, "an outcome")
        return self.told[number]
