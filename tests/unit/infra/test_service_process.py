"""Goal: every service prints its settings, obeys signals and ends with the same exit codes.

Method: `run_service` in this process with bodies of a few lines; and each real service as a process
with a setting that is wrong, which it reads before it starts anything.
"""

from __future__ import annotations

import errno
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event as Flag

import pytest

from infra.deployment import SERVICES
from leasehold.adapters.service_process import NO_MEMORY, Environment, run_service
from leasehold.model.errors import BusUnavailable, LeaseholdError
from leasehold.settings.environment import ClusterSettings, KafkaSettings, from_environment

DEADLINE_S = 60.0


@dataclass(frozen=True)
class Settings:
    cluster: ClusterSettings
    kafka: KafkaSettings

    @classmethod
    def read(cls, environ: Environment) -> Settings:
        return cls(
            from_environment(ClusterSettings, environ), from_environment(KafkaSettings, environ)
        )

    @property
    def groups(self) -> Sequence[object]:
        return self.cluster, self.kafka


@pytest.fixture(autouse=True)
def own_handlers(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[None]:
    """pytest's process keeps its signal handlers, its environment and its log level."""
    for name in [name for name in os.environ if name.startswith("LEASEHOLD_")]:
        monkeypatch.delenv(name)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    with caplog.at_level(logging.INFO):
        yield
    for number, handler in before.items():
        signal.signal(number, handler)


def goes_on_until(number: signal.Signals) -> Callable[[Settings, Flag], None]:
    def body(_: Settings, stop: Flag) -> None:
        assert not stop.is_set()
        signal.raise_signal(number)
        assert stop.is_set()

    return body


def ends_with(error: Exception) -> Callable[[Settings, Flag], None]:
    def body(_: Settings, stop: Flag) -> None:
        raise error

    return body


@pytest.mark.parametrize(
    ("body", "code", "last"),
    [
        (lambda *_: None, 0, "stopped"),
        (goes_on_until(signal.SIGTERM), 0, "stopped"),
        (goes_on_until(signal.SIGINT), 0, "stopped"),
        (ends_with(LeaseholdError("it can't go on")), 1, "it can't go on (XX000)"),
        (ends_with(BusUnavailable("Kafka is gone")), 1, "Kafka is gone (58030)"),
        (ends_with(MemoryError()), 1, NO_MEMORY),
        (ends_with(OSError(errno.ENOMEM, "Cannot allocate memory")), 1, NO_MEMORY),
    ],
)
def test_the_exit_code_says_how_the_body_ended(
    body: Callable[[Settings, Flag], None],
    code: int,
    last: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert run_service("leasehold.test", Settings.read, body) == code
    assert caplog.messages[-1] == last


THREAD = """
import logging, sys, threading
from leasehold.adapters.service_process import end_without_memory
def fail():
    raise {error}
logging.basicConfig(stream=sys.stdout, format="%(message)s")
end_without_memory(logging.getLogger())
thread = threading.Thread(target=fail)
thread.start()
thread.join()
print("it goes on")
"""


@pytest.mark.parametrize(
    ("error", "code", "last"),
    [("MemoryError", 1, NO_MEMORY), ("ZeroDivisionError", 0, "it goes on")],
)
def test_a_thread_that_ends_without_memory_ends_the_process(
    error: str, code: int, last: str
) -> None:
    """From outside it would look well, and what the thread was for nobody did."""
    command = [sys.executable, "-c", THREAD.format(error=error)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (ended.returncode, ended.stdout.strip()) == (code, last)
    assert f"{error}" in ended.stderr, "its traceback is told as before"


FIRST_STEP = """
import logging, sys, threading
from leasehold.adapters.service_process import end_without_memory
def fail(thread):
    raise {error}
logging.basicConfig(stream=sys.stdout, format="%(message)s")
end_without_memory(logging.getLogger())
class Failing(threading.Thread):
    _bootstrap = fail
starter = threading.Thread(target=lambda: Failing().start(), daemon=True)
starter.start()
starter.join(1.0)
print("it waits" if starter.is_alive() else "it goes on")
"""


@pytest.mark.parametrize(
    ("error", "code", "last"), [("MemoryError", 1, NO_MEMORY), ("ZeroDivisionError", 0, "it waits")]
)
def test_a_thread_without_memory_for_its_first_step_ends_the_process(
    error: str, code: int, last: str
) -> None:
    """Whoever started it would wait for ever, with all its locks: a listener, or a node's loop."""
    command = [sys.executable, "-c", FIRST_STEP.format(error=error)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (ended.returncode, ended.stdout.strip()) == (code, last)
    assert f"{error}" in ended.stderr, "it is told as before"


NO_ROOM = """
import logging, resource, sys, threading
from leasehold.adapters.service_process import run_service
from tests.unit.infra.test_service_process import Settings
def starts_a_thread(*_):
    resource.setrlimit(resource.RLIMIT_AS, (1 << 20, resource.RLIM_INFINITY))
    threading.Thread(target=print).start()
sys.exit(run_service("leasehold.test", Settings.read, starts_a_thread))
"""


def test_a_machine_without_room_for_a_thread_ends_the_process_with_words() -> None:
    command = [sys.executable, "-c", NO_ROOM]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    assert (ended.returncode, ended.stderr.count("Traceback")) == (1, 0), ended.stderr
    assert NO_MEMORY in ended.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "defect", [ZeroDivisionError(), RuntimeError("anything"), OSError(errno.EBADF, "closed")]
)
def test_a_defect_is_not_caught(defect: Exception) -> None:
    with pytest.raises(type(defect)):
        run_service("leasehold.test", Settings.read, ends_with(defect))


def test_settings_are_printed_without_secrets(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEASEHOLD_KAFKA_PASSWORD", "xyzzy")
    monkeypatch.setenv("LEASEHOLD_NODE", "r7")
    run_service("leasehold.test", Settings.read, lambda *_: None)
    assert {"LEASEHOLD_NODE=r7", "LEASEHOLD_KAFKA_PASSWORD=********"} <= set(caplog.messages)
    assert "xyzzy" not in caplog.text
    assert caplog.messages[0].startswith("leasehold ")


def test_the_level_of_the_log_is_a_setting(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("LEASEHOLD_LOG_LEVEL", "error")
    run_service("leasehold.test", Settings.read, ends_with(LeaseholdError("it can't go on")))
    assert caplog.messages == ["it can't go on (XX000)"]


def test_a_wrong_setting_ends_every_service_with_2() -> None:
    environ = {name: v for name, v in os.environ.items() if not name.startswith("LEASEHOLD_")}
    started = {
        module: subprocess.Popen(
            [sys.executable, "-m", module],
            env={**environ, "LEASEHOLD_LOG_LEVEL": "loud"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for module in sorted({service.module for service in SERVICES})
    }
    assert len(started) >= 5
    try:
        for module, process in started.items():
            _, said = process.communicate(timeout=DEADLINE_S)
            assert process.returncode == 2, f"{module}: {said}"
            assert "ERROR" in said.splitlines()[-1], f"{module}: {said}"
            assert "LEASEHOLD_LOG_LEVEL is 'loud'" in said.splitlines()[-1], f"{module}: {said}"
            assert "Traceback" not in said, f"{module}: {said}"
    finally:
        for process in started.values():
            process.kill()
            process.communicate()
