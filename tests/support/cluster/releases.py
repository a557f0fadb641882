"""Two releases of the whole system side by side: this tree, and the wheel of an earlier commit.

What waits here gives up when nothing has moved for long, not when a time is over: starting a
process takes a second on one machine and a minute on another that is busy.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import venv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from infra.local_cluster import ROOT, LocalCluster
from infra.process_table import stat_of
from leasehold.adapters.os.clock import boottime_ns
from tests.support.cluster.system_cluster import LOOK_AGAIN_S, logged

QUIET_S: Final = 60.0
"""Nothing has moved for so long: what is waited for does not come."""
LONGEST_S: Final = 600.0
INSTALLING_S: Final = 400.0
COMMANDS: Final = {
    "services.master.main": "master",
    "services.replicant.main": "replicant",
    "services.changefeed.main": "changefeed",
}
_TICKS_IN_STAT: Final = slice(11, 13)  # of a process in user and kernel mode, behind its name


def await_moving(
    met: Callable[[], bool], what: str, moves: Callable[[], object], quiet_s: float = QUIET_S
) -> None:
    """Wait until `met`; fail once `moves` has given the same for `quiet_s`, or after LONGEST_S."""
    pause = threading.Event()
    begun_ns = moved_ns = boottime_ns()
    last = moves()
    while not met():
        pause.wait(LOOK_AGAIN_S)
        now_ns = boottime_ns()
        if (seen := moves()) != last:
            last, moved_ns = seen, now_ns
        quiet_ns, whole_ns = now_ns - moved_ns, now_ns - begun_ns
        assert quiet_ns < quiet_s * 1e9, f"nothing moved for {quiet_s:g} s: {what}; {last}"
        assert whole_ns < LONGEST_S * 1e9, f"waited {LONGEST_S:g} s for: {what}; {last}"


@dataclass(frozen=True, slots=True)
class Release:
    """The programs of one release. `programs`: a venv's folder of them, None: this tree's own.
    `folder`: what they are started in, and whose `spark_streaming` is the release's."""

    programs: Path | None
    folder: Path

    def start(self, cluster: LocalCluster, name: str) -> None:
        """Start a service and wait until it is ready for work."""
        self.begin(cluster, name)
        pid = pid_of(cluster, name)

        def met() -> bool:
            assert cluster.is_running(name), f"{name} ended:\n{logged(cluster, name)[-3_000:]}"
            return cluster.is_ready(name)

        await_moving(met, f"{name} ready", lambda: (_ticks(pid), len(logged(cluster, name))))

    def begin(self, cluster: LocalCluster, name: str) -> None:
        """Start a service."""
        service = cluster.services[name]
        environ = cluster.env(name)
        Path(environ["LEASEHOLD_READY_FILE"]).unlink(missing_ok=True)
        (cluster.data / name).mkdir(mode=0o700, exist_ok=True)
        command = [sys.executable, *service.command[1:]]
        environ["PYTHONPATH"] = f"{self.folder / 'libs'}{os.pathsep}{self.folder}"
        if self.programs is not None and service.module in COMMANDS:
            command = [str(self.programs / "leasehold"), COMMANDS[service.module]]
            del environ["PYTHONPATH"]
        cluster.processes.start(name, command, environ, self.folder, service.niceness)

    def replace(self, cluster: LocalCluster, name: str) -> None:
        """Stop a service of another release, and start this one's in its place."""
        cluster.stop(name, deadline_s=QUIET_S)
        self.start(cluster, name)


def pid_of(cluster: LocalCluster, name: str) -> int:
    record = cluster.processes.find(name)
    assert record is not None, f"{name} does not run:\n{logged(cluster, name)[-3_000:]}"
    return record.identity.pid


def _ticks(pid: int) -> int:
    """How much processor time a process had, 0 for one that is gone."""
    try:
        return sum(map(int, stat_of(Path(f"/proc/{pid}"))[1][_TICKS_IN_STAT]))
    except OSError:
        return 0


THIS: Final = Release(None, ROOT)


def earlier_release(commit: str, folder: Path) -> Release:
    """Build the wheel of a commit and install it into a venv, whose dependencies are those of the
    running Python. Skips where git has not the commit."""
    found = _run("git", "-C", str(ROOT), "cat-file", "-e", f"{commit}^{{commit}}", check=False)
    if found.returncode:
        pytest.skip(
            f"git has no commit {commit}, which the earlier release is built from: a clone"
            " without its history (git fetch --unshallow)"
        )
    sources = folder / "sources"
    sources.mkdir()
    packed = folder / "sources.tar"
    _run("git", "-C", str(ROOT), "archive", "--output", str(packed), commit)
    _run("tar", "-x", "-f", str(packed), "-C", str(sources))
    options = ("--no-deps", "--no-build-isolation", "--quiet", "--disable-pip-version-check")
    pip = (sys.executable, "-m", "pip")
    # Of a copy of what is packaged alone: setuptools leaves its own folders beside it.
    _run(*pip, "wheel", *options, "--wheel-dir", str(folder / "wheel"), str(sources))
    (wheel,) = (folder / "wheel").glob("leasehold-*.whl")
    home = folder / "venv"
    venv.create(home, symlinks=True)
    _run(
        *pip,
        "--python",
        str(home / "bin" / "python"),
        "install",
        "--no-compile",
        *options,
        str(wheel),
    )
    (packages,) = home.glob("lib/python3*/site-packages")
    dependencies = [path for path in sys.path if path.endswith("site-packages")]
    assert dependencies, "the running Python is that of a venv with the dependencies"
    (packages / "dependencies.pth").write_text("\n".join(dependencies), "utf-8")
    return Release(home / "bin", sources)


def _run(*command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=INSTALLING_S
    )
    if check and ended.returncode:
        pytest.fail(f"{' '.join(command[:6])} …: {ended.stderr[-2_000:]}", pytrace=False)
    return ended
