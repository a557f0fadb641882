"""What the JVMs of Kafka and Spark have read and checked of their classes, kept for their next
start (JEP 350, dynamic class data sharing): made by `make setup`, taken where it is there.

`python -m infra.class_archives build` makes what is missing by a rehearsal: a cluster of its own in
a temporary folder does each kind of work once, and its JVMs write down on their way out what that
took. Exit 0 also where it can't be done: nothing needs an archive.

A JVM takes an archive only with the very jars and the very Java that it was made with, and goes on
without one otherwise; it does not notice one that was cut short, so the size is looked at here.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from infra.compiled import ROOT, say
from infra.deployment import KAFKA, SPARK
from infra.java import java
from infra.kafka.settings import jvm_options
from infra.process_table import PROC, Identity, all_entries, send_signal, wait_until_ended

FOLDER: Final = ROOT / ".leasehold" / "classes"
JARS: Final = ROOT / ".leasehold" / "jars"
NAMES: Final = (KAFKA, SPARK.name)
JAVA_DEADLINE_S: Final = 60.0
WRITING_DEADLINE_S: Final = 180.0


class NotRehearsed(Exception):
    """Says why there is no archive."""


class ClassArchives:
    """The archives of one tree, each a file and beside it what it was made from."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder

    def java_options(self, name: str) -> tuple[str, ...]:
        """What a JVM is started with so that it takes the archive; nothing where there is none.

        Its own warnings that an archive is of other jars are for nobody: they would stand among
        what the program says."""
        path = self._archive(name)
        note = _read(self._note(name))
        try:
            whole = path.stat().st_size == note.get("bytes")
        except OSError:
            whole = False
        return (f"-XX:SharedArchiveFile={path}", "-Xlog:cds*=off") if whole else ()

    def missing(self, made_from: Mapping[str, str]) -> list[str]:
        """Names whose archive is not there, or was made from something else."""
        return [
            name
            for name in NAMES
            if not self.java_options(name)
            or _read(self._note(name)).get("made from") != made_from[name]
        ]

    def keep(self, name: str, written: Path, made_from: str) -> None:
        """Take over a file that a JVM has written to its end."""
        self._note(name).unlink(missing_ok=True)
        written.replace(self._archive(name))
        size = self._archive(name).stat().st_size
        unfinished = self._note(name).with_suffix(".unfinished")
        unfinished.write_text(json.dumps({"made from": made_from, "bytes": size}))
        unfinished.replace(self._note(name))

    def _archive(self, name: str) -> Path:
        return self.folder / f"{name}.jsa"

    def _note(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Let one `build` run at a time: the second finds what the first has made."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _read(note: Path) -> dict[str, Any]:
    try:
        said = json.loads(note.read_text())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def made_from() -> dict[str, str]:
    """Return a digest by archive's name of what it holds for: this Java, its options, these jars,
    what is rehearsed. Raises NotRehearsed."""
    command = [java(os.environ), "-version"]
    try:
        said = subprocess.run(command, capture_output=True, timeout=JAVA_DEADLINE_S, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotRehearsed(f"{' '.join(command)}: {error}") from None
    pyspark = find_spec("pyspark")  # found, not imported, which would take a second of each set-up
    if pyspark is None or pyspark.origin is None:
        raise NotRehearsed("pyspark is not installed")
    spark_jars = [Path(pyspark.origin).parent / "jars", JARS / "spark"]
    return {
        # An archive is of one layout of objects, which the collector decides on.
        KAFKA: _digest(said.stderr, jvm_options(), [JARS / "kafka"]),
        SPARK.name: _digest(said.stderr, (), spark_jars),
    }


def _digest(java: bytes, options: Sequence[str], folders: Sequence[Path]) -> str:
    digest = blake2b(java, digest_size=16)
    digest.update(" ".join(options).encode())
    digest.update(Path(__file__).with_name("rehearsal.py").read_bytes())
    for folder in folders:
        for jar in sorted(folder.glob("*.jar")):
            looked = jar.stat()  # what the JVM itself compares
            digest.update(f"{jar}\0{looked.st_size}\0{looked.st_mtime_ns}\0".encode())
    return digest.hexdigest()


def build(archives: ClassArchives) -> None:
    """Make what is missing. Raises NotRehearsed, OSError."""
    with archives.exclusively():
        wanted = made_from()
        names = archives.missing(wanted)
        if not names:
            say(f"the JVMs' class archives are in place ({archives.folder.relative_to(ROOT)})")
            return
        from infra.rehearsal import rehearse  # a cluster, which asks for our options

        say("rehearsing for the JVMs' class archives, so that they start in half the time (once)")
        # Beside the archives: to be renamed into their place.
        with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=archives.folder) as scratch:
            files = {name: Path(scratch) / f"{name}.jsa" for name in names}
            rehearse(Path(scratch), files)
            for name, path in files.items():
                if not path.exists():
                    raise NotRehearsed(f"the JVM of {name} has written none")
                archives.keep(name, path, wanted[name])


def writing_options(path: Path) -> tuple[str, ...]:
    """What a JVM is started with so that it writes an archive to `path` when it ends."""
    return (f"-XX:ArchiveClassesAtExit={path}", "-Xlog:cds*=off", "-Xlog:cds+dynamic=off")


def end_and_wait(path: Path, identity: Identity) -> None:
    """End the process, and wait for the JVM that writes `path`, be it that or its child.

    Raises NotRehearsed when it takes too long.
    """
    writers = [entry.identity for entry in all_entries() if _writes(path, entry.identity.pid)]
    send_signal(identity, signal.SIGTERM)
    for writer in writers:
        if not wait_until_ended(writer, WRITING_DEADLINE_S):
            raise NotRehearsed(f"{path.name} was not written within {WRITING_DEADLINE_S:g} s")


def _writes(path: Path, pid: int) -> bool:
    try:
        return f"ArchiveClassesAtExit={path}".encode() in (PROC / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def main(arguments: list[str]) -> int:
    if arguments != ["build"]:
        sys.stderr.write("usage: python -m infra.class_archives build\n")
        return 2
    try:
        build(ClassArchives())
    except (NotRehearsed, OSError) as error:
        say(f"JVMs will start without class archives, seconds slower: {error}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
