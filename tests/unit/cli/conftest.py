"""What tests of commands share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from leasehold.adapters.kafka.reader import TopicReader

GIVE_UP_S: Final = 0.3
"""People wait for a broker that may just be starting; nothing starts here."""


def _ask_briefly(ask: Callable[..., Any]) -> Callable[..., Any]:
    """Return `ask` with `GIVE_UP_S`, however long its caller would wait."""

    def asked(*where: Any, timeout_s: float | None = None) -> Any:
        return ask(*where, timeout_s=GIVE_UP_S)

    return asked


@pytest.fixture
def nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings that name a broker and a Redis that are not there, and little patience."""
    monkeypatch.setenv("LEASEHOLD_KAFKA", "127.0.0.1:1")  # reserved: nothing listens there
    monkeypatch.setenv("LEASEHOLD_REDIS", "redis://127.0.0.1:1/0")
    for name in ("end_offset", "first_offset", "partitions"):
        monkeypatch.setattr(TopicReader, name, _ask_briefly(getattr(TopicReader, name)))
