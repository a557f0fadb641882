"""SQL in the name of a user of the dashboard: statements of the console, and the statements that
its buttons stand for. What he may do, the node decides, as for any client of his.

A password is not kept; the connection that it has opened is, for as long as it is used. There are
few of them, and who waits too long signs in again.
"""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model.errors import LeaseholdError, Refused
from leasehold.pgwire.messages.client_replies import Columns, Complete, Copied, Row, Told

CONNECTIONS_MAX: Final = 32
CONNECTIONS_OF_USER_MAX: Final = 4
IDLE_S: Final = 15 * 60.0
SECRET_BYTES: Final = 32
ROWS_MAX: Final = 1_000
RESULT_CHARACTERS_MAX: Final = 60_000
"""Of all values of a text's rows: what a person looks at, and a browser draws at once."""
VALUE_CHARACTERS_MAX: Final = 10_000
RESULTS_MAX: Final = 50
NOTICES_MAX: Final = 50
STATEMENT_CHARACTERS_MAX: Final = 50_000
STATEMENT_TIMEOUT_MS: Final = 60_000
READ_ONLY: Final = (
    f"SET default_transaction_read_only = on; SET statement_timeout = {STATEMENT_TIMEOUT_MS}"
)
WRITES_TOO: Final = (
    f"SET default_transaction_read_only = off; SET statement_timeout = {STATEMENT_TIMEOUT_MS}"
)
_FIELDS: Final = {
    "C": "sqlstate",
    "M": "message",
    "D": "detail",
    "H": "hint",
    "P": "position",
    "S": "severity",
}


class AlreadyRunning(Refused, sqlstate="55006"):
    """A statement of this user's runs, and his connection does one after the other."""


class UserConnection:
    """A user's connection. Methods may be called from any thread; one statement runs at a time."""

    def __init__(self, user: str, connection: SqlConnection) -> None:
        self.user = user
        self.node = _ask_node(connection)
        """The name of the node at its other end: whose sessions it can end."""
        self.token = secrets.token_urlsafe(SECRET_BYTES)
        """What each request of his pages has to bring along: a form of another page can't."""
        self.used_s = 0.0
        self.broken = False
        self._connection = connection
        self._running = threading.Lock()

    def run(
        self, text: str, *, writes: bool = False, parameters: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Run a text of one or several statements, or one statement with `parameters`, and return
        what came of it: `results`, each with columns, rows and tag, `notices`, and `error` (None =
        none). What is more than the limits is left out, and `cut` then; a transaction block that is
        left open is rolled back. Raises AlreadyRunning, OutcomeUnknown once the connection has
        broken."""
        if not self._running.acquire(blocking=False):
            raise AlreadyRunning("another statement of yours runs; cancel it, or wait for its end")
        try:
            for _ in self._connection.ask(WRITES_TOO if writes else READ_ONLY):
                pass
            told = _gather(self._connection.ask(text, None, parameters), self._connection.cancel)
            if self._connection.status != "I":
                for _ in self._connection.ask("ROLLBACK"):
                    pass
                told["rolled_back"] = True
            return told
        except LeaseholdError:
            self.broken = True
            raise
        finally:
            self._running.release()

    @property
    def is_running(self) -> bool:
        return self._running.locked()

    def cancel(self) -> bool:
        """Cancel what runs now; return whether anything did."""
        if not self.is_running:
            return False
        self._connection.cancel()
        return True

    def close(self) -> None:
        if self.is_running:
            self._connection.cancel()
        self._connection.close()


def _ask_node(connection: SqlConnection) -> str:
    found = ""
    for said in connection.ask("SELECT node FROM leasehold.transactions LIMIT 1"):
        if isinstance(said, Row):
            found = said.values[0] or ""
    return found


def _gather(said: Iterator[Any], cancel: Callable[[], None]) -> dict[str, Any]:
    """Return what a node has answered, within the limits; what is too much is read and dropped,
    once it was asked to end."""
    results: list[dict[str, Any]] = []
    notices: list[dict[str, str]] = []
    error = None
    characters, cancelled = 0, False
    current: dict[str, Any] = _new_result([])
    for one in said:
        match one:
            case Columns():
                current = _new_result([field.name for field in one.fields])
            case Row():
                characters += sum(len(value) for value in one.values if value is not None)
                if len(current["rows"]) < ROWS_MAX and characters <= RESULT_CHARACTERS_MAX:
                    current["rows"].append([_shortened(value) for value in one.values])
                else:
                    current["cut"] = True
                    if not cancelled:
                        cancelled = True
                        cancel()
            case Copied():
                current["cut"] = True
            case Complete():
                current["tag"] = one.tag
                if len(results) < RESULTS_MAX:
                    results.append(current)
                current = _new_result([])
            case Told():
                told = {name: one.fields[key] for key, name in _FIELDS.items() if key in one.fields}
                if one.failed:
                    error = told
                elif len(notices) < NOTICES_MAX:
                    notices.append(told)
    if current["columns"] and len(results) < RESULTS_MAX:
        results.append(current)
    if cancelled and error is not None and error.get("sqlstate") == "57014":
        error = None  # by us, once there was enough to show
    return {"results": results, "notices": notices, "error": error, "rolled_back": False}


def _new_result(columns: list[str]) -> dict[str, Any]:
    return {"columns": columns, "rows": [], "tag": "", "cut": False}


def _shortened(value: str | None) -> str | None:
    if value is None or len(value) <= VALUE_CHARACTERS_MAX:
        return value
    return value[: VALUE_CHARACTERS_MAX - 1] + "…"


class UserConnections:
    """The connections that are open, by a secret that a browser keeps; the one used longest ago
    first, which gives way when there are too many."""

    def __init__(
        self, connect: Callable[[str, str], SqlConnection], now_s: Callable[[], float]
    ) -> None:
        """Begin with none. `connect` opens one with a user and a password; it may take seconds."""
        self._connect = connect
        self._now_s = now_s
        self._lock = threading.Lock()
        self._open: OrderedDict[str, UserConnection] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, user: str, password: str) -> tuple[str, UserConnection]:
        """Return a new connection and its secret. Raises what `connect` does."""
        made = UserConnection(user, self._connect(user, password))
        made.used_s = self._now_s()
        secret = secrets.token_urlsafe(SECRET_BYTES)
        with self._lock:
            ended = self._take_idle()
            theirs = [key for key, one in self._open.items() if one.user == user]
            if len(theirs) >= CONNECTIONS_OF_USER_MAX:
                ended.append(self._open.pop(theirs[0]))
            elif len(self._open) >= CONNECTIONS_MAX:
                ended.append(self._open.popitem(last=False)[1])
            self._open[secret] = made
        _close_all(ended)
        return secret, made

    def find(self, secret: str | None) -> UserConnection | None:
        """Return the connection of a secret; None where it has ended, or there never was one."""
        if secret is None:
            return None
        with self._lock:
            ended = self._take_idle()
            found = self._open.get(secret)
            if found is not None:
                found.used_s = self._now_s()
                self._open.move_to_end(secret)
        _close_all(ended)
        return found

    def end(self, secret: str) -> None:
        with self._lock:
            found = self._open.pop(secret, None)
        _close_all([] if found is None else [found])

    def end_idle(self) -> None:
        """Close those that nobody has used for long."""
        with self._lock:
            ended = self._take_idle()
        _close_all(ended)

    def close(self) -> None:
        with self._lock:
            ended = list(self._open.values())
            self._open.clear()
        _close_all(ended)

    def _take_idle(self) -> list[UserConnection]:
        now_s = self._now_s()
        found = [
            key
            for key, one in self._open.items()
            if one.broken or (now_s - one.used_s >= IDLE_S and not one.is_running)
        ]
        return [self._open.pop(key) for key in found]


def _close_all(ended: list[UserConnection]) -> None:
    for one in ended:
        one.close()
