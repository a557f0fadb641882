"""Compiled builds: one of other sources is never found, and where none can be made a sentence
says so.

Method: `Builds` over a package of two files; builds are made by hand, as folders, since what is
looked at here is which one is taken. That a build does what the sources do is looked at in
tests/integration/infra/test_compiled.py.
"""

from __future__ import annotations

import ast
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from infra import compiled
from infra.compiled import (
    MODULES,
    ROOT,
    UNFINISHED,
    VARIABLE,
    Builds,
    Mode,
    NotCompiled,
    main,
    mode_of,
)
from infra.local_cluster import LocalCluster
from infra.ports import Ports
from infra.processes import ProcessFailure

PACKAGE = ROOT / "libs" / "leasehold"


@pytest.fixture
def builds(tmp_path: Path) -> Builds:
    package = tmp_path / "leasehold"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("ONE = 1\n")
    return Builds(package, tmp_path / "compiled")


def made(builds: Builds) -> Path:
    path = builds.path()
    path.mkdir(parents=True)
    return path


def test_a_build_of_these_sources_is_found(builds: Builds) -> None:
    assert builds.found(Mode.AUTO) is None
    path = made(builds)
    assert builds.found(Mode.AUTO) == builds.found(Mode.ALWAYS) == path
    assert builds.found(Mode.NEVER) is None


@pytest.mark.parametrize("what", ["changed", "added", "removed", "renamed", "another kind"])
def test_a_build_of_other_sources_is_not_found(builds: Builds, what: str) -> None:
    made(builds)
    one = builds.package / "one.py"
    match what:
        case "changed":  # by as many bytes, at the same time
            before = one.stat()
            one.write_text("ONE = 2\n")
            os.utime(one, ns=(before.st_atime_ns, before.st_mtime_ns))
        case "added":
            (builds.package / "two.py").write_text("")
        case "removed":
            one.unlink()
        case "renamed":
            one.rename(builds.package / "two.py")
        case _:
            (builds.package / "ledger.lua").write_text("return 1")
    assert builds.found(Mode.AUTO) is None
    with pytest.raises(NotCompiled, match="run: make setup"):
        builds.found(Mode.ALWAYS)


def test_a_build_by_another_python_or_mypyc_is_not_found(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(builds)
    with monkeypatch.context() as patched:
        patched.setattr(compiled.sys, "version", "3.11.99")  # type: ignore[attr-defined]
        assert builds.found(Mode.AUTO) is None
    monkeypatch.setattr(compiled, "_mypyc_version", lambda: "2.99")
    assert builds.found(Mode.AUTO) is None


def test_what_no_process_reads_is_no_source(builds: Builds) -> None:
    path = made(builds)
    cache = builds.package / "__pycache__"
    cache.mkdir()
    (cache / "one.cpython-311.pyc").write_bytes(b"\x00")
    (builds.package / "DESIGN.md").write_text("why")
    assert builds.found(Mode.AUTO) == path


def test_the_build_stands_before_what_was_in_the_path(builds: Builds) -> None:
    assert builds.environment({"PYTHONPATH": "/mine"}) == {}
    path = made(builds)
    assert builds.environment({}) == {"PYTHONPATH": str(path)}
    assert builds.environment({"PYTHONPATH": "/mine"}) == {"PYTHONPATH": f"{path}:/mine"}
    assert builds.environment({VARIABLE: "never"}) == {}


@pytest.mark.parametrize(("word", "mode"), [("", "auto"), ("auto", "auto"), ("never", "never")])
def test_auto_is_what_is_meant_without_a_word(word: str, mode: str) -> None:
    assert mode_of({VARIABLE: word}) == mode
    assert mode_of({}) == Mode.AUTO
    with pytest.raises(NotCompiled, match=r"'Always'; it must be auto, never or always"):
        mode_of({VARIABLE: "Always"})


def test_no_compiler_is_a_sentence_and_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(compiled, "Builds", lambda: Builds(PACKAGE, ROOT / ".leasehold" / "none"))
    monkeypatch.setattr(Builds, "_exclusively", lambda _: memoryview(b""))  # makes no folder
    monkeypatch.setenv("CC", str(tmp_path / "cc"))
    monkeypatch.setenv(VARIABLE, "auto")
    assert main(["build"]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said.startswith("setup: services will run interpreted: there is no C compiler")
    assert "apt-get install -y --no-install-recommends gcc libc6-dev python3.11-dev" in said
    assert main(["path"]) == 0
    assert capsys.readouterr().out == "\n"
    monkeypatch.setenv(VARIABLE, "always")
    assert main(["build"]) == 1
    capsys.readouterr()
    assert main(["path"]) == 1
    assert "run: make setup" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "cc -Werror -c a.c\nleasehold/one.py:218: error: Nested class\ntwo.py:1: error: x",
            "leasehold/one.py:218: error: Nested class",
        ),
        (
            "one.c:1:2: warning: w\none.c:3:4: error: expected ;\nerror: command failed",
            "one.c:3:4:",
        ),
        ("Traceback (most recent call last):\n  File\nModuleNotFoundError: No module", "Module"),
        ("Killed\n", "Killed"),
        ("", "ended without a word"),
        ("x.py:1: error: " + "y" * 10_000, "x.py:1: error: yyy"),
    ],
)
def test_compiling_that_fails_is_loud(
    builds: Builds,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    said: str,
    words: str,
) -> None:
    """With a compiler there nothing else tells that everything is slow: the service starts."""
    program = builds.package.parent / "python"
    program.write_text(
        f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nexit 1\n" if said else "#!/bin/sh\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr("infra.compiled.sys.executable", str(program))
    monkeypatch.setattr(compiled, "ROOT", builds.folder.parent)
    assert compiled._build(builds, Mode.AUTO) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("setup: WARNING: compiling the hot path FAILED")
    assert f"all of its {len(MODULES)} modules stay uncompiled" in line
    assert "every service runs interpreted" in line
    assert words in line
    assert line.endswith(f"see {builds.folder / 'build.log'}")
    assert len(line) < 700
    assert builds.found(Mode.AUTO) is None
    assert compiled._build(builds, Mode.ALWAYS) == 1


def test_what_mypy_remembers_wrongly_is_forgotten_and_compiled_anew(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It fails for as long as there is a memory: as with modules that import each other."""
    program = builds.package.parent / "python"
    program.write_text(
        "#!/bin/sh\n"
        f"if [ -d {builds.folder}/cache ]; then touch $3/half; echo 'x:1: error: y'; exit 1; fi\n"
        f"mkdir {builds.folder}/cache\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr("infra.compiled.sys.executable", str(program))
    remembered = builds.folder / "cache" / "of an earlier build"
    remembered.mkdir(parents=True)
    made = builds.build()
    assert not remembered.is_dir()
    assert (builds.folder / "cache").is_dir()
    assert not (made / "half").exists()


def test_never_makes_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Builds, "build", lambda _: pytest.fail("it was to make none"))
    monkeypatch.setenv(VARIABLE, "never")
    assert main(["build"]) == 0
    assert capsys.readouterr().out == (
        "setup: services will run interpreted: LEASEHOLD_COMPILED is never\n"
    )
    monkeypatch.setenv(VARIABLE, "sometimes")
    assert main(["build"]) == 1


def test_a_failed_build_leaves_nothing_that_is_found(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(_: Builds, folder: Path, compiler: str) -> None:
        assert compiler == "cc"
        folder.mkdir(parents=True)
        raise NotCompiled("the compiler ended")

    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr(Builds, "_make", half)
    with pytest.raises(NotCompiled, match="the compiler ended"):
        builds.build()
    assert [path.name for path in builds.folder.iterdir()] == ["lock"]

    def changed(self: Builds, folder: Path, _: str) -> None:
        folder.mkdir(parents=True)
        (self.package / "one.py").write_text("ONE = 3\n")

    monkeypatch.setattr(Builds, "_make", changed)
    with pytest.raises(NotCompiled, match="sources changed meanwhile"):
        builds.build()
    assert [path.name for path in builds.folder.iterdir()] == ["lock"]


def test_a_few_builds_are_kept(builds: Builds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr(Builds, "_make", lambda _, folder, __: folder.mkdir(parents=True))
    (builds.folder / f"{compiled.UNFINISHED}killed" / "build").mkdir(parents=True)
    paths = []
    for number in range(compiled.BUILDS_MAX + 2):
        (builds.package / "one.py").write_text(f"ONE = {number}\n")
        paths.append(builds.build())
        os.utime(paths[-1], (number, number))
    there = {path for path in builds.folder.iterdir() if path.is_dir()}
    assert there == set(paths[-compiled.BUILDS_MAX :])


def test_two_who_build_at_once_make_one_build(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Path] = []

    def make(_: Builds, folder: Path, __: str) -> None:
        made.append(folder)
        folder.mkdir(parents=True)

    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr(Builds, "_make", make)
    both = [Builds(builds.package, builds.folder) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        paths = list(pool.map(Builds.build, both))
    assert paths == [builds.path()] * 2
    assert len(made) == 1


def test_a_build_is_on_the_disk_before_it_can_be_found(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a power cut leaves a build that is found, and whose files are empty."""
    synced: set[tuple[int, int]] = set()

    def make(_: Builds, folder: Path, __: str) -> None:
        (folder / "leasehold").mkdir(parents=True)
        (folder / "leasehold" / "one.so").write_bytes(b"code")

    def fsync(opened: int) -> None:
        assert not builds.path().exists()
        synced.add((os.fstat(opened).st_dev, os.fstat(opened).st_ino))

    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr(Builds, "_make", make)
    monkeypatch.setattr(compiled.os, "fsync", fsync)  # type: ignore[attr-defined]
    path = builds.build()
    for each in [path, *path.rglob("*")]:
        assert (each.stat().st_dev, each.stat().st_ino) in synced, each


def test_what_a_killed_build_still_writes_is_in_nobodys_way(
    builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its compiler outlives it, and adds files to what is being removed."""
    left = builds.folder / f"{UNFINISHED}left"
    left.mkdir(parents=True)
    monkeypatch.setattr(compiled, "_compiler", lambda: "cc")
    monkeypatch.setattr(Builds, "_make", lambda _, folder, __: folder.mkdir(parents=True))

    rmdir = os.rmdir

    def busy(path: str, *, dir_fd: int | None = None) -> None:
        if Path(path).name == left.name:
            raise OSError(39, "Directory not empty", path)
        rmdir(path, dir_fd=dir_fd)

    monkeypatch.setattr(compiled.os, "rmdir", busy)  # type: ignore[attr-defined]
    assert builds.build().is_dir()


def test_a_cluster_that_must_be_compiled_says_what_to_do(
    builds: Builds, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("infra.local_cluster.Builds", lambda: builds)
    ports = Ports.free()
    cluster = LocalCluster(tmp_path / "data", ports, {VARIABLE: "always"})
    with pytest.raises(ProcessFailure, match=r"no compiled build of .*make setup"):
        cluster.env("m1")
    assert "PYTHONPATH" not in cluster.env("spark")
    path = made(builds)
    assert cluster.env("r1")["PYTHONPATH"] == str(path)
    assert "PYTHONPATH" not in LocalCluster(tmp_path, ports, {VARIABLE: "never"}).env("r1")


# ---------------------------------------------------------------- what may be compiled


def test_nothing_interpreted_inherits_from_what_is_compiled() -> None:
    """Python refuses that when the module is imported, and only in a compiled process."""
    classes = {
        node.name: module
        for module in MODULES
        for node in ast.parse((PACKAGE / module).read_text()).body
        if isinstance(node, ast.ClassDef) and not {"NamedTuple", "Protocol"} & _bases(node)
    }
    assert {"Node", "Master", "SqliteStore", "Catalog"} <= classes.keys()
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and module not in MODULES:
                assert not _bases(node) & classes.keys(), f"{module}: {node.name}"


def _bases(node: ast.ClassDef) -> set[str]:
    return {ast.unparse(base).partition("[")[0].rpartition(".")[2] for base in node.bases}


def test_no_compiled_class_is_of_a_kind_that_mypyc_gets_wrong() -> None:
    """Of a compiled class that inherits from `Sequence` every tuple is an instance, since it has no
    register of its own; one that inherits from a class of C, a `threading.local`, writes over its
    memory. Of interpreted ones mypyc knows the layout as little; `Exception` it knows,
    `Generic` it erases. What has the type of a `Protocol` it takes for any object, whoever's that
    is."""
    allowed = {"NamedTuple", "Enum", "StrEnum", "Exception", "Protocol", "Generic"}
    classes = [
        (module, node)
        for module in MODULES
        for node in ast.walk(ast.parse((PACKAGE / module).read_text()))
        if isinstance(node, ast.ClassDef)
    ]
    allowed |= {node.name for _, node in classes} - {"Sequence"}
    for module, node in classes:
        assert _bases(node) <= allowed, f"{module}: {node.name}"


def test_no_compiled_module_relies_on_what_mypyc_does_otherwise() -> None:
    """Properties that are remembered need an instance's dictionary. A generator expression is made
    whole at once, so that one over an endless `count()` never ends: such are functions."""
    for module in MODULES:
        tree = ast.parse((PACKAGE / module).read_text())
        for node in ast.walk(tree):
            assert getattr(node, "id", "") != "cached_property", module
            if isinstance(node, ast.GeneratorExp):
                endless = {ast.unparse(each.iter) for each in node.generators}
                assert not any(text.startswith(("count(", "itertools.")) for text in endless), (
                    f"{module}:{node.lineno}"
                )


def test_nothing_is_read_from_the_cause_of_an_error() -> None:
    """mypyc drops what stands behind `from`: an error that a compiled module raises has no cause,
    whoever catches it. What it is about says its class, or a field of its own."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr != "__cause__", f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_nothing_compiled_looks_in_what_is_unpacked() -> None:
    """`x in (a, *b)` ends mypyc with an internal error, and nothing is compiled any more."""
    for name in MODULES:
        tree = ast.parse((PACKAGE / name).read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Compare) and any(
                isinstance(o, ast.In | ast.NotIn) for o in node.ops
            ):
                inside = [getattr(c, "elts", ()) for c in node.comparators]
                starred = any(isinstance(item, ast.Starred) for items in inside for item in items)
                assert not starred, f"{name}:{node.lineno}"
