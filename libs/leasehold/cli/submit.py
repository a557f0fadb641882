"""The command `leasehold submit FILE`: change requests from a file, with what became of each."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, deque
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO, Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from leasehold.adapters.os.clock import boottime_ns
from leasehold.admin.durations import span
from leasehold.cli.command import Subparsers, add, add_timeout
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output, refusal_words
from leasehold.cli.request_file import FileRequest, looks_like_json, read_requests
from leasehold.client.change_producer import ChangeProducer, Statistics
from leasehold.client.pending import Pending, RequestStatus
from leasehold.model.errors import ConfigurationError, Refused
from leasehold.model.ids import format_request_id
from leasehold.settings.client import ClientSettings

TROUBLES_SHOWN_MAX: Final = 10
TIDY_EVERY: Final = 1_000
WAIT_STEP_S: Final = 0.2


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "submit",
        run,
        "FILE holds one JSON object per line, or MessagePack objects one after another:\n\n"
        '  {"table": "flights", "op": "update", "key": {"id": 7}, "values": {"gate": "B4"}}\n'
        '  {"transaction": [ … ], "on_conflict": "fail"}\n'
        '  {"sql": "CREATE TABLE …; CREATE INDEX …", "transaction": [ … ]}\n\n'
        "Statements and rows of one object are one commit, or refused whole; either may be left\n"
        "out.\n"
        "An object without an id gets a fresh one. Exit code 0 only if every request was\n"
        "committed; 4 if the outcome of any is not known (it may have been applied).",
    )
    parser.add_argument("file", metavar="FILE", help="path of the file, - = standard input")
    parser.add_argument(
        "--format", choices=("auto", "json", "msgpack"), default="auto", help="of FILE"
    )
    add_timeout(parser, 60.0, "the outcomes after the last request")


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with ExitStack() as stack:
        source, size = _open(args.file, stack)
        head = source.peek(1) if hasattr(source, "peek") else b""
        as_json = args.format == "json" or (args.format == "auto" and looks_like_json(head))
        changes = stack.enter_context(ChangeProducer(settings))
        submission = Submission(changes, output, size)
        began_ns = boottime_ns()
        submission.send_all(read_requests(source, as_json=as_json), args.timeout)
        return submission.tell((boottime_ns() - began_ns) / 1e9)


def _open(path: str, stack: ExitStack) -> tuple[BinaryIO, int | None]:
    if path == "-":
        return sys.stdin.buffer, None
    try:
        return stack.enter_context(Path(path).open("rb")), Path(path).stat().st_size
    except OSError as error:
        raise ConfigurationError(f"{path!r} can't be read: {error.strerror}") from None


class Submission:
    """The requests of one file on their way, and what went wrong with them."""

    def __init__(self, changes: ChangeProducer, output: Output, size: int | None) -> None:
        self._changes = changes
        self._output = output
        self._size = size
        self._sent: deque[tuple[str, Pending]] = deque()
        self._troubles: list[dict[str, Any]] = []
        self._by_code: Counter[str] = Counter()
        self._malformed = 0

    def send_all(self, requests: Any, timeout_s: float) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[words]}"),
            TimeElapsedColumn(),
        )
        began_ns = boottime_ns()
        with self._output.progress(*columns) as progress:
            task = progress.add_task("sending", total=self._size, words="")
            for number, request in enumerate(requests):
                self._send(request)
                if number % TIDY_EVERY == 0:
                    self._forget_settled()
                    self._draw(progress, task, request.bytes_read, began_ns)
            progress.update(task, description="waiting", completed=self._size or 0)
            give_up_ns = boottime_ns() + int(timeout_s * 1e9)
            while not self._changes.wait(WAIT_STEP_S) and boottime_ns() < give_up_ns:
                self._draw(progress, task, None, began_ns)
            self._draw(progress, task, None, began_ns)
        self._forget_settled(everything=True)

    def _send(self, request: FileRequest) -> None:
        if request.fields is None:
            self._malformed += 1
            self._add_trouble(request.where, "", "08P01", f"{request.where} {request.error}")
            return
        try:
            self._sent.append((request.where, self._changes.submit(request.fields)))
        except Refused as error:
            self._malformed += 1
            self._add_trouble(request.where, "", error.sqlstate, refusal_words(error))

    def _forget_settled(self, *, everything: bool = False) -> None:
        """Let go of those whose outcome is known, oldest first; keep words of what went wrong."""
        while self._sent and (everything or self._sent[0][1].status is not RequestStatus.WAITING):
            where, pending = self._sent.popleft()
            if pending.status is RequestStatus.COMMITTED:
                continue
            outcome = pending.outcome
            code = outcome.code if outcome else "08007"
            words = refusal_words(outcome) if outcome else pending.trouble or "no answer in time"
            self._add_trouble(where, format_request_id(pending.request_id), code, words)

    def _add_trouble(self, where: str, request_id: str, code: str, words: str) -> None:
        self._by_code[code] += 1
        if len(self._troubles) < TROUBLES_SHOWN_MAX:
            self._troubles.append(
                {"place": where, "id": request_id, "code": code, "message": words}
            )

    def _draw(self, progress: Progress, task: TaskID, read: int | None, began_ns: int) -> None:
        told = self._changes.statistics
        seconds = max((boottime_ns() - began_ns) / 1e9, 1e-3)
        words = (
            f"{told.submitted:,} sent · {told.committed:,} committed "
            f"({told.committed / seconds:,.0f}/s)"
        )
        for name, count in (
            ("refused", told.refused),
            ("dead-lettered", told.dead_lettered),
            ("unknown", told.unknown),
        ):
            words += f" · {count:,} {name}" if count else ""
        progress.update(task, words=words, completed=read)

    def tell(self, seconds: float) -> int:
        """Show the summary, and return the exit code."""
        told = self._changes.statistics
        unknown = told.unknown + told.in_flight
        if self._output.as_json:
            self._output.json(
                {
                    "submitted": told.submitted,
                    "committed": told.committed,
                    "refused": told.refused,
                    "dead_lettered": told.dead_lettered,
                    "unknown": unknown,
                    "malformed": self._malformed,
                    "seconds": round(seconds, 3),
                    "troubles": self._troubles,
                    "troubles_by_code": dict(self._by_code),
                }
            )
        else:
            self._show(told, unknown, seconds)
        return exit_code(told, unknown, self._malformed)

    def _show(self, told: Statistics, unknown: int, seconds: float) -> None:
        self._output.line(
            f"{told.submitted:,} submitted in {span(seconds * 1_000)}: "
            f"{told.committed:,} committed, {told.refused:,} refused, "
            f"{told.dead_lettered:,} dead-lettered, {unknown:,} unknown"
            + (f"; {self._malformed:,} not sent (malformed)" if self._malformed else "")
        )
        for trouble in self._troubles:
            self._output.line(
                f"  {trouble['place']} {trouble['id']} {trouble['code']}: {trouble['message']}",
                "yellow",
            )
        more = self._by_code.total() - len(self._troubles)
        if more > 0:
            codes = ", ".join(f"{count:,} × {code}" for code, count in self._by_code.most_common())
            self._output.line(f"  … and {more:,} more (in all {codes})", "yellow")


def exit_code(told: Statistics, unknown: int, malformed: int) -> ExitCode:
    if unknown:
        return ExitCode.UNKNOWN
    if told.refused or told.dead_lettered or malformed:
        return ExitCode.NOT_RIGHT
    return ExitCode.OK
