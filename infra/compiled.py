"""The hot path compiled by mypyc, in a folder of its own: made by `make setup`, looked for by
whoever starts a process. See DESIGN.md, *Compiled services*.

`python -m infra.compiled build` (what is missing; exit 0 also where it can't be) or `path` (to
stand in PYTHONPATH; nothing where processes are to run interpreted).

A build is a whole `leasehold` package, in a folder whose name is a digest of everything that it was
made from. So one of other sources, another Python or another mypyc has another name and is never
found: what is found is exactly the code of this tree. Nothing compiled lies beside the sources.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
VARIABLE: Final = "LEASEHOLD_COMPILED"
BUILD_DEADLINE_S: Final = 900.0
BUILDS_MAX: Final = 3
"""Kept: what a process still runs from stays until two others were made."""
UNFINISHED: Final = "unfinished-"
ERROR: Final = re.compile(
    r"^\S+?:\d+(:\d+)?: (fatal )?error: .*|^\w*(Error|Exception): .*", re.MULTILINE
)
ERROR_CHARACTERS_MAX: Final = 300
LEFT_OUT: Final = (".pyc", ".md")
"""What a process reads nothing of, so that it changes no build."""

MODULES: Final = (
    *("model/ids.py", "adapters/codec/records.py", "adapters/codec/record_shape.py"),
    *(
        "adapters/codec/request_bytes.py",
        "adapters/codec/request_checks.py",
        "adapters/codec/request_decoding.py",
    ),
    *(
        "adapters/codec/request_encoding.py",
        "adapters/sqlite/outcomes.py",
        "adapters/sqlite/plan.py",
    ),
    *("adapters/sqlite/store.py", "adapters/sqlite/write.py"),
    *("replication/master/answers.py", "replication/log/apply.py", "replication/master/batch.py"),
    *("replication/checks.py", "replication/coherency.py", "replication/effects.py"),
    *(
        "replication/master/write_behind.py",
        "replication/log/admission.py",
        "replication/master/master.py",
    ),
    *("replication/node.py", "replication/outcomes.py", "replication/master/request_queue.py"),
    *("replication/acknowledging.py", "replication/unanswered.py", "replication/upkeep.py"),
    *("catalog/catalog.py", "catalog/overlay.py", "rows/index_entries.py"),
    *("catalog/references.py", "adapters/sqlite/read_catalog.py"),
    *("rows/key_values.py", "values/types.py", "values/storage.py"),
    *("adapters/os/clock.py", "node/kafka_node.py", "adapters/kafka/reader.py"),
    *("node/kafka_driver.py", "node/log_intake.py", "node/node_topics.py", "node/runner.py"),
    *("adapters/kafka/request_transport.py", "adapters/kafka/writer.py"),
    *(
        "adapters/postgres/connection.py",
        "adapters/postgres/loop_turns.py",
        "adapters/postgres/outlet.py",
    ),
    *("adapters/sqlite/short_statements.py", "adapters/sqlite/snapshot.py"),
    *("client/change_producer.py", "client/pending.py", "replica/reads.py"),
    *("client/request_form.py", "client/request_group.py", "replica/serving_node.py"),
    *("sql_session/prepared.py", "sql_session/commit.py", "sql_session/portals.py"),
    *("sql_session/row_statements.py", "sql_session/running.py", "sql_session/session.py"),
    *("sql_session/session_state.py", "sql_session/settings_commands.py"),
    *("sql_session/short_statements.py", "sql_session/commit_time_update.py"),
    *("sql_session/transaction_maker.py", "sql_session/transaction_runner.py"),
    *("sql_session/block_commands.py", "sql_session/statement_runner.py"),
    *("sql_session/privilege_check.py", "sql_session/session_role.py"),
    *("pgwire/batch.py", "pgwire/conversation.py", "pgwire/copy_in.py", "pgwire/replies.py"),
    *("pgwire/extended_query.py", "pgwire/simple_query.py", "pgwire/messages/framing.py"),
    "pgwire/messages/frontend.py",
    *("pgwire/named_objects.py", "pgwire/messages/backend.py", "pgwire/values/decoding.py"),
    *("pgwire/values/encoding.py", "pgwire/values/formats.py"),
    *("replica/sequences/session_values.py", "sql_session/cursors.py"),
    *("sql/planning/commit_time_update.py", "sql/session_settings.py", "values/text_io.py"),
    *("node/log_announcer.py", "adapters/redis/acks.py", "adapters/redis/log.py"),
    *("adapters/redis/pubsub.py", "adapters/sqlite/catalog.py", "adapters/sqlite/counts.py"),
    *("adapters/sqlite/row_history.py", "lease/agent/session.py", "lease/agent/held_leases.py"),
    *("lease/agent/holder.py", "lease/agent/waiters.py"),
    *("lease/master/ledger_watch.py", "lease/agent/old_version_report.py"),
    *("replication/election.py", "replication/fast_path/acks.py", "replication/fast_path/log.py"),
    *(
        "replication/fast_path/requests.py",
        "client/request_transport.py",
        "adapters/redis/requests.py",
    ),
    *("adapters/redis/master_subscriber.py", "replication/fast_path/state_machine.py"),
    *("replication/master/backfill_pacing.py", "replication/master/batch_limits.py"),
    *("replication/master/intake.py", "replication/master/record_draft.py"),
    *("replication/master/record_in_flight.py", "replication/master/refusals.py"),
    *("replication/master/release.py", "replication/master/request_decider.py"),
    *(
        "replication/log/retention.py",
        "replication/node_agent.py",
        "replication/master/schema_changes.py",
    ),
    *(
        "replication/log/truncation.py",
        "schema_change/coordinator/coordinator.py",
        "schema_change/coordinator/ledger.py",
    ),
    *(
        "transaction/referential_actions.py",
        "transaction/commit_time_updates.py",
        "transaction/binding.py",
    ),
    *("transaction/decide.py", "transaction/locks.py", "transaction/sequence_operations.py"),
    *("transaction/overlay.py", "transaction/foreign_keys.py", "transaction/verify.py"),
    "transaction/alike_inserts.py",
    *("events/debezium/avro_wire.py", "events/debezium/protobuf_wire.py"),
    *("events/debezium/varints.py", "events/debezium/binary_events.py"),
    *("replication/table_feeds.py", "replication/feed_state.py"),
    *("replication/changefeed.py", "adapters/codec/published.py"),
    *("changefeed/feed_messages.py", "changefeed/feed_schemas.py"),
    *("changefeed/pending_messages.py", "adapters/sqlite/fed_rows.py"),
)
"""What is compiled, of `leasehold`. Not the records: their shapes on the wire are read from their
annotations, of which mypyc keeps half. Not the descriptor: it remembers properties in its own
dictionary, which a compiled class has not. Not `model/keys.py`: of a compiled class that inherits
from Sequence every tuple is an instance. Not `adapters/codec/packing.py`: it is a
threading.local."""


class Mode(StrEnum):
    AUTO = "auto"
    NEVER = "never"
    ALWAYS = "always"


class NotCompiled(Exception):
    """Says why not, and what to do."""


class CompilingFailed(NotCompiled):
    """Raised where everything needed is there, and something in these sources or in the compilers
    is wrong."""


def mode_of(environ: Mapping[str, str]) -> Mode:
    """Raises NotCompiled for a word that is none."""
    word = environ.get(VARIABLE, "") or Mode.AUTO
    try:
        return Mode(word)
    except ValueError:
        raise NotCompiled(f"{VARIABLE} is {word!r}; it must be auto, never or always") from None


class Builds:
    """The builds of one tree: sources in `package`, builds in `folder`."""

    def __init__(
        self,
        package: Path = ROOT / "libs" / "leasehold",
        folder: Path = ROOT / ".leasehold" / "compiled",
    ) -> None:
        self.package = package
        self.folder = folder

    def path(self) -> Path:
        """Return the folder in which the build of this very tree is, or would be. Takes some
        milliseconds."""
        digest = blake2b(digest_size=16)
        for part in (sys.version, sysconfig.get_platform(), _mypyc_version()):
            digest.update(f"{part}\0".encode())
        here = Path(__file__)
        for name, path in [*_sources(self.package), ("", here), ("", here.with_name("compile.py"))]:
            content = path.read_bytes()
            digest.update(f"{name}\0{len(content)}\0".encode() + content)
        return self.folder / digest.hexdigest()

    def found(self, mode: Mode) -> Path | None:
        """The folder to stand first among those that Python imports from, None = interpreted.
        Raises NotCompiled if it has to be there and is not."""
        if mode is Mode.NEVER:
            return None
        path = self.path()
        if path.is_dir():
            return path
        if mode is Mode.ALWAYS:
            raise NotCompiled(
                f"{VARIABLE} is always, and there is no compiled build of this very code in"
                f" {self.folder}; run: make setup"
            )
        return None

    def environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        """What a process gets beside `environ`, so that it runs compiled if it is to. Raises
        NotCompiled."""
        path = self.found(mode_of(environ))
        if path is None:
            return {}
        inherited = environ.get("PYTHONPATH")
        return {"PYTHONPATH": os.pathsep.join([str(path), *([inherited] if inherited else [])])}

    def build(self) -> Path:
        """Make what is missing. A build that was interrupted leaves nothing that is found. Raises
        NotCompiled."""
        with self._exclusively():
            path = self.path()
            if path.is_dir():
                return path
            compiler = _compiler()
            with tempfile.TemporaryDirectory(prefix=UNFINISHED, dir=self.folder) as unfinished:
                self._make(Path(unfinished) / "build", compiler)
                if path != self.path():
                    raise NotCompiled("the sources changed meanwhile; run this again")
                _to_disk(Path(unfinished) / "build")
                (Path(unfinished) / "build").rename(path)
            self._forget_old()
            return path

    def _make(self, folder: Path, compiler: str) -> None:
        """What mypy remembers of an earlier build may have it fail at sources that are right (it
        looks at modules that import each other in another order then): without it once more."""
        remembered = self.folder / "cache"
        if remembered.is_dir():
            with suppress(CompilingFailed):
                self._make_once(folder, compiler)
                return
            shutil.rmtree(folder)
            shutil.rmtree(remembered)
        self._make_once(folder, compiler)

    def _make_once(self, folder: Path, compiler: str) -> None:
        ignored = shutil.ignore_patterns("__pycache__", *(f"*{suffix}" for suffix in LEFT_OUT))
        shutil.copytree(self.package, folder / self.package.name, ignore=ignored)
        log = self.folder / "build.log"
        with log.open("wb") as output:
            try:
                ended = subprocess.run(
                    [sys.executable, "-m", "infra.compile", str(folder), *MODULES],
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "CC": compiler, "PYTHONPATH": str(ROOT)},
                    cwd=ROOT,
                    timeout=BUILD_DEADLINE_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise CompilingFailed(
                    f"it took more than {BUILD_DEADLINE_S:g} s; see {log}"
                ) from None
        if ended.returncode != 0:
            raise CompilingFailed(f"{_first_error(log)}; see {log}")

    def _forget_old(self) -> None:
        builds = [path for path in self.folder.iterdir() if len(path.name) == 32 and path.is_dir()]
        builds.sort(key=lambda path: path.stat().st_mtime_ns)
        # Whoever was killed while it built left its part; nobody else builds now.
        for path in [*builds[:-BUILDS_MAX], *self.folder.glob(f"{UNFINISHED}*")]:
            # A compiler whose starter was killed may still write there; the next build sees to it.
            shutil.rmtree(path, ignore_errors=True)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _first_error(log: Path) -> str:
    """What mypyc or the C compiler complained of first, in a line."""
    said = log.read_text(errors="replace")
    found = ERROR.search(said)
    words = found[0] if found else said.rstrip().rpartition("\n")[2]
    return words.strip()[:ERROR_CHARACTERS_MAX] or "mypyc or the C compiler ended without a word"


def _sources(package: Path) -> list[tuple[str, Path]]:
    """Return every file that the build is a copy of, with its name, in the order of names."""
    found = (p for p in package.rglob("*") if p.suffix not in LEFT_OUT and p.is_file())
    return sorted((path.relative_to(package).as_posix(), path) for path in found)


def _to_disk(folder: Path) -> None:
    """Sync a folder before it has the name by which it is found: after a power cut a file that is
    there and empty would keep every service from starting, where a build that is missing keeps
    none."""
    for path in [*folder.rglob("*"), folder]:
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def _mypyc_version() -> str:
    try:
        from mypy.version import __version__
    except ImportError:  # an image of services has no development tools
        return ""
    return __version__


def _compiler() -> str:
    """A C compiler that finds Python's headers. Raises NotCompiled."""
    if not _mypyc_version():
        raise NotCompiled("mypy is not installed here; it is one of the development tools (.[dev])")
    wanted = os.environ.get("CC")
    for name in [wanted] if wanted else ["cc", "gcc", "clang"]:
        program = shutil.which(name)
        if program is None:
            continue
        looked = subprocess.run(
            [program, "-I", sysconfig.get_path("include"), "-fsyntax-only", "-x", "c", "-"],
            input=b"#include <Python.h>\n",
            capture_output=True,
            timeout=BUILD_DEADLINE_S,
            check=False,
        )
        if looked.returncode == 0:
            return program
    raise NotCompiled(
        "there is no C compiler that finds Python's headers (on Debian: apt-get install -y"
        " --no-install-recommends gcc libc6-dev python3.11-dev; then: make setup)"
    )


def main(arguments: list[str]) -> int:
    if arguments not in (["build"], ["path"]):
        sys.stderr.write("usage: python -m infra.compiled build | path\n")
        return 2
    try:
        mode = mode_of(os.environ)
        if arguments == ["path"]:
            sys.stdout.write(f"{Builds().found(mode) or ''}\n")
            return 0
        return _build(Builds(), mode)
    except NotCompiled as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _build(builds: Builds, mode: Mode) -> int:
    """Make the build if it is wanted and not there. Only in mode `always` a failure is an error."""
    if mode is Mode.NEVER:
        say(f"services will run interpreted: {VARIABLE} is never")
        return 0
    if builds.path().is_dir():
        say(f"the compiled build is in place ({builds.folder.relative_to(ROOT)})")
        return 0
    say("compiling the hot path with mypyc (a minute or two, once for each change of the sources)")
    try:
        builds.build()
    except CompilingFailed as error:
        # Nothing fails by it, so nobody would find out but by how slow everything is.
        sys.stderr.write(
            f"setup: WARNING: compiling the hot path FAILED, so all of its {len(MODULES)} modules"
            f" stay uncompiled and every service runs interpreted, much slower: {error}\n"
        )
        return 1 if mode is Mode.ALWAYS else 0
    except (NotCompiled, OSError, subprocess.SubprocessError) as error:
        say(f"services will run interpreted: {error}")
        return 1 if mode is Mode.ALWAYS else 0
    return 0


def say(words: str) -> None:
    sys.stdout.write(f"setup: {words}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
