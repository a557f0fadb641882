"""Requests that sessions of `leasehold dev` have sent and that are answered when a test says so."""

from __future__ import annotations

import threading

import pytest

from leasehold.client.pending import Pending, status_of
from leasehold.dev.database import DevDatabase
from leasehold.dev.node import DevNode
from leasehold.model.records.requests import ChangeRequest, Outcome

WAIT_S = 60


class HeldAnswers:
    def __init__(self, database: DevDatabase, patch: pytest.MonkeyPatch) -> None:
        self._database = database
        self._lock = threading.Lock()
        self.waiting: list[tuple[ChangeRequest, Pending]] = []
        self.sent = threading.Event()
        patch.setattr(DevNode, "send", lambda node, request: self._send(request))

    def _send(self, request: ChangeRequest) -> Pending:
        pending = Pending(
            request.id, "", b"", request.on_conflict, request.attempt, self._lock, lambda _: None
        )
        self.waiting.append((request, pending))
        self.sent.set()
        return pending

    def give(self) -> Outcome:
        request, pending = self.waiting.pop(0)
        outcome = self._database.submit(request, WAIT_S)
        with self._lock:
            pending.settle(status_of(outcome), outcome)
        return outcome
