"""Change requests to a whole database in this process, as a `ChangeProducer` sends them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from leasehold.adapters.codec.request_decoding import decode_request
from leasehold.adapters.os.clock import new_request_id
from leasehold.client.request_form import form
from leasehold.dev.database import DevDatabase
from leasehold.model.records.requests import Outcome


class DevSent:
    def __init__(self, ask: Callable[[], Future[Outcome]]) -> None:
        self._ask = ask
        self._future = ask()

    def result(self, timeout_s: float = 30.0) -> Outcome:
        return self._future.result(timeout_s)

    def ask_again(self) -> DevSent:
        self._future = self._ask()
        return self


class DevRequests:
    """`before` and `after` are called with each request, before it is sent and while it is under
    way, and may raise in the sender's place."""

    def __init__(self, dev: DevDatabase) -> None:
        self._dev = dev
        self._pool = ThreadPoolExecutor(16)
        self.before: Callable[[Mapping[str, Any]], None] = lambda _: None
        self.after: Callable[[Mapping[str, Any]], None] = lambda _: None

    def submit(self, request: Mapping[str, Any]) -> DevSent:
        self.before(request)
        made = form(request, 0, new_request_id)
        decoded = decode_request(made.content_type, made.body)
        sent = DevSent(lambda: self._pool.submit(self._dev.submit, decoded))
        self.after(request)
        return sent

    def close(self) -> None:
        self._pool.shutdown()
