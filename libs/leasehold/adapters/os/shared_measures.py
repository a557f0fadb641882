"""What many count, each on a thread of its own, as one: of those who count still, and of those who
have ended."""

from __future__ import annotations

import threading

from leasehold.model.measures import Measures, Sample


class SharedMeasures:
    """All methods may be called from any thread; counting itself takes no lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[Measures, None] = {}
        self._ended = Measures()

    def open(self) -> Measures:
        """Return where one more counts, until `close`."""
        made = Measures()
        with self._lock:
            self._open[made] = None
        return made

    def close(self, measures: Measures) -> None:
        """Keep what was counted by one who ends."""
        with self._lock:
            if measures in self._open:
                del self._open[measures]
                self._ended.join(measures)

    def samples(self) -> list[Sample]:
        """Return what all have counted together."""
        together = Measures()
        with self._lock:
            together.join(self._ended)
            for each in self._open:
                together.join(each)
        return together.samples()
