"""A service as a process: its log, settings, signals and exit codes, the same for all of them."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from queue import SimpleQueue
from threading import Event as Flag
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from leasehold.adapters.os.compiled import version_line
from leasehold.adapters.os.log_lines import LineHandler, line_handler
from leasehold.model.errors import LeaseholdError
from leasehold.settings.environment import ClusterSettings, describe

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

EXIT_STOPPED: Final = 1
EXIT_SETTINGS: Final = 2
NO_MEMORY: Final = (
    "there is no memory left for this process, or no room for another thread: give it, or its"
    " machine, more, and start it again; it goes on from where it is"
)
NO_THREAD: Final = "can't start new thread"
"""How CPython says that the system has no room for another thread: a RuntimeError."""

Environment: TypeAlias = Mapping[str, str]


class ProcessSettings(Protocol):
    """All that a service reads from its environment."""

    @property
    def cluster(self) -> ClusterSettings: ...

    @property
    def groups(self) -> Sequence[object]:
        """Dataclasses of settings, in the order in which they are printed."""
        ...


Settings = TypeVar("Settings", bound=ProcessSettings)


def run_service(
    name: str, read: Callable[[Environment], Settings], body: Callable[[Settings, Flag], None]
) -> int:
    """Run `body` until it returns, which it does soon after SIGTERM or SIGINT has set its flag; the
    exit code. `name`: its logger's. `read` reads the settings and checks what they name.

    0: it has returned. 1: it can't go on, and has raised a LeaseholdError, or there is no memory.
    2: `read` has: a setting is missing or wrong. The last line of the log says why. Any other
    exception is a defect, and ends the process with its traceback.
    """
    log = logging.getLogger(name)
    logging.basicConfig(level=logging.INFO, handlers=[LineHandler()])
    stop = Flag()
    stop_on_signals(stop)
    end_without_memory(log)
    try:
        settings = read(os.environ)
    except LeaseholdError as error:
        log.error("%s", error.message)
        return EXIT_SETTINGS
    handler = line_handler()
    if handler is not None:
        handler.set_format(settings.cluster.log_format)
        handler.lines.context = {
            "node": settings.cluster.node,
            "database": settings.cluster.database,
        }.copy
    logging.getLogger().setLevel(settings.cluster.log_level)
    log.info("%s", version_line())
    for group in settings.groups:
        for variable, value in describe(group).items():
            log.info("%s=%s", variable, value)
    try:
        body(settings, stop)
    except LeaseholdError as error:
        log.error("%s (%s)", error.message, error.sqlstate)
        return EXIT_STOPPED
    except Exception as error:
        if not lacks_memory(error):
            raise
        log.error(NO_MEMORY)
        return EXIT_STOPPED
    log.info("stopped")
    return 0


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether an error says that the process gets no more memory, or no more threads."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    if isinstance(error, RuntimeError):
        return error.args == (NO_THREAD,)
    return isinstance(error, MemoryError)


def end_without_memory(log: logging.Logger) -> None:
    """Let the process end where one of its threads does for lack of memory: whatever that was for
    nobody would do any longer, and from outside the process would look well. So it would where a
    thread finds no memory for its first step, or for telling of it: whoever starts one waits then
    for ever."""
    tell = threading.excepthook

    def end(ended: threading.ExceptHookArgs) -> None:
        try:
            tell(ended)
            if is_for_memory(ended):
                log.error(NO_MEMORY)
        finally:
            if is_for_memory(ended):
                os._exit(EXIT_STOPPED)

    threading.excepthook = end
    ignored: SimpleQueue[UnraisableHookArgs] = SimpleQueue()
    args = ignored, log
    threading.Thread(target=_heed_ignored, args=args, name="ignored-errors", daemon=True).start()
    # ⚠ Nothing that is written in Python: that would need memory in the thread that has none.
    sys.unraisablehook = ignored.put
    atexit.register(setattr, sys, "unraisablehook", sys.__unraisablehook__)


def is_for_memory(ended: threading.ExceptHookArgs | UnraisableHookArgs) -> bool:
    """Return whether what a thread has ended with, or what was ignored, is a lack of memory. Of an
    error that could not be made for lack of it there is only the class."""
    return issubclass(ended.exc_type, MemoryError) or lacks_memory(ended.exc_value)


def _heed_ignored(ignored: SimpleQueue[UnraisableHookArgs], log: logging.Logger) -> None:
    """Tell of errors that the interpreter can raise nowhere, and end the process where one was for
    lack of memory."""
    while True:
        told = ignored.get()
        lacks = is_for_memory(told)
        try:
            sys.__unraisablehook__(told)
            if lacks:
                log.error(NO_MEMORY)
        finally:
            if lacks:
                os._exit(EXIT_STOPPED)
        del told  # what it names may be kept alive by nothing else


def stop_on_signals(stop: Flag) -> None:
    """Let SIGTERM and SIGINT set the flag, and do nothing else."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
