"""The lines of a process's log, on standard error: one event a line, as text or as JSON.

Each line of JSON, and as text each warning and error, names the process and how far it is, where
that is known; an event of a request or a job names it by the `extra` of its call.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from leasehold.model import metrics
from leasehold.model.measures import Measures, Sample

Context: TypeAlias = Callable[[], Mapping[str, object]]
"""What is known of the process when a line is written; it must neither wait nor raise."""

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
OF_EVENT: Final = ("request", "job", "table")
"""What a call of the log may name in its `extra`."""
JSON: Final = "json"


def no_context() -> Mapping[str, object]:
    """Return nothing: of a process of which nothing is known yet."""
    return {}


class LineFormatter(logging.Formatter):
    """Writes lines of text. A message with line breaks stays one line; a traceback, which only a
    defect has, follows on lines of its own."""

    def __init__(self) -> None:
        """Begin without a context."""
        super().__init__(TEXT_FORMAT)
        self.context: Context = no_context

    def known(self, record: logging.LogRecord) -> dict[str, object]:
        """Return what is known of the process and of the event."""
        found = dict(self.context())
        for name in OF_EVENT:
            value = record.__dict__.get(name)
            if value is not None:
                found[name] = value
        return found

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = one_line(record.message)
        line = super().formatMessage(record)
        if record.levelno < logging.WARNING:
            return line
        known = " ".join(f"{name}={value}" for name, value in self.known(record).items())
        return f"{line} [{known}]" if known else line


class JsonFormatter(LineFormatter):
    """Writes each event as an object of JSON on a line, tracebacks in it."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        seconds, milliseconds = int(record.created), int(record.msecs)
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        event: dict[str, object] = {
            "time": f"{at}.{milliseconds:03d}Z",
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self.known(record),
        }
        if record.exc_info:
            event["exception"] = self.formatException(record.exc_info)
        return json.dumps(event, ensure_ascii=False, default=str)


class LineHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error, and counts lines by level, under the lock that it has anyway."""

    def __init__(self) -> None:
        """Begin with lines of text."""
        super().__init__()
        self.lines = LineFormatter()
        self.setFormatter(self.lines)
        self._measures = Measures()

    def set_format(self, form: str) -> None:
        """Write lines of this form from now on: json or text."""
        context = self.lines.context
        self.lines = JsonFormatter() if form == JSON else LineFormatter()
        self.lines.context = context
        self.setFormatter(self.lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        self._measures.add(metrics.LOG_LINES, 1, (record.levelname.lower(),))
        super().emit(record)

    def samples(self) -> list[Sample]:
        """Return how many lines there were."""
        return self._measures.samples()


def one_line(words: str) -> str:
    """Return the words without line breaks, which would look like another event."""
    return words.replace("\r", "\\r").replace("\n", "\\n")


def line_handler() -> LineHandler | None:
    """Return the handler of this process's log, None where its log is not ours."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, LineHandler):
            return handler
    return None


def set_context(context: Context) -> None:
    """Let lines of this process's log name what `context` tells, if its log is ours."""
    handler = line_handler()
    if handler is not None:
        handler.lines.context = context
