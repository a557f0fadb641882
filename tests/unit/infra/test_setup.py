"""`make setup` where what is missing may not be installed: one sentence with the exact command.

Method: the script itself in a scratch project, on a PATH that holds nothing but what a minimal
Debian has, and an `id` that says: not root.
"""

from __future__ import annotations

import shutil
import subprocess
from hashlib import sha256
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
MINIMAL = ("awk", "bash", "cat", "cut", "dirname", "grep", "head", "sed", "sha256sum", "tail")
COMMAND = "apt-get install -y --no-install-recommends "


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of nothing but the scripts, beside `bin`, the only folder of the PATH."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in MINIMAL:
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    program(programs / "id", "echo 1000")
    scratch = tmp_path / "project"
    shutil.copytree(ROOT / "infra", scratch / "infra", ignore=lambda *_: ["__pycache__"])
    return scratch


def program(path: Path, text: str) -> None:
    path.write_text(f"#!{shutil.which('bash')}\n{text}\n")
    path.chmod(0o755)


def run(project: Path, script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(project / "infra" / script)],
        env={"PATH": str(project.parent / "bin"), **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_whoever_is_not_root_is_told_one_command(project: Path) -> None:
    ended = run(project, "setup.sh")
    assert ended.returncode == 1
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("setup: missing: Python 3.11, JDK 17, Maven, redis-server. Run as root:")
    assert f"{COMMAND}python3.11 python3.11-venv openjdk-17-jdk-headless maven redis-server" in line


def test_sudo_is_named_where_there_is_one(project: Path) -> None:
    program(project.parent / "bin" / "sudo", "exit 1")
    (line,) = run(project, "setup.sh").stderr.splitlines()
    assert "Run: sudo apt-get update && sudo apt-get install" in line


def test_only_what_is_missing_is_named(project: Path) -> None:
    programs = project.parent / "bin"
    program(programs / "python3", "exit 0")  # 3.11, with venv and ensurepip
    program(programs / "java", "echo 'openjdk version \"21.0.4\" 2024-07-16' >&2")
    program(programs / "redis-server", "exit 0")
    (line,) = run(project, "setup.sh").stderr.splitlines()
    assert line.startswith("setup: missing: Maven.")
    assert f"{COMMAND}maven; then" in line


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_an_old_java_counts_as_missing(project: Path, version: str) -> None:
    program(project.parent / "bin" / "java", f"echo 'openjdk version \"{version}\"' >&2")
    assert "JDK 17" in run(project, "setup.sh").stderr


def test_a_venv_of_another_folder_is_not_taken_for_ours(project: Path) -> None:
    """Moved or copied with the project, it would run the other folder's code."""
    programs = project.parent / "bin"
    program(programs / "python3", "[[ $2 != *ensurepip* ]]")  # 3.11 without the venv module
    folder = project / ".venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("python", "pip"):
        program(folder / name, "exit 0")
    settings = folder.parent / "pyvenv.cfg"
    settings.write_text(f"command = python3 -m venv {project}/.venv\n")
    assert "venv module" not in run(project, "setup.sh").stderr
    settings.write_text("command = python3 -m venv /somewhere/else/.venv\n")
    assert "python3.11-venv" in run(project, "setup.sh").stderr


def test_a_python_that_is_named_is_taken_or_refused(project: Path) -> None:
    programs = project.parent / "bin"
    program(programs / "python3.11", "exit 0")
    named = project.parent / "other"
    program(named, "exit 1")  # of another version
    ended = run(project, "setup.sh", LEASEHOLD_PYTHON=str(named))
    assert ended.returncode == 1
    assert ended.stderr.startswith(f"setup: LEASEHOLD_PYTHON is {named}, which is no Python 3.11;")
    program(named, "[[ $2 != *ensurepip* ]]")
    assert "python3.11-venv" in run(project, "setup.sh", LEASEHOLD_PYTHON=str(named)).stderr
    assert "python3.11-venv" not in run(project, "setup.sh").stderr


def test_a_python_that_can_make_a_venv_comes_before_one_that_cannot(project: Path) -> None:
    programs = project.parent / "bin"
    program(programs / "python3.11", "[[ $2 != *ensurepip* ]]")
    assert "python3.11-venv" in run(project, "setup.sh").stderr
    program(programs / "python3", "exit 0")
    assert "python3.11-venv" not in run(project, "setup.sh").stderr


def test_the_lock_needs_a_set_up_project(project: Path) -> None:
    ended = run(project, "lock.sh")
    assert (ended.returncode, ended.stderr) == (1, "lock: there is no .venv yet; run: make setup\n")


# ---------------------------------------------------------------- PostgreSQL, which nobody needs


@pytest.fixture
def debian(project: Path) -> dict[str, str]:
    """A machine without PostgreSQL, on which apt-get tells a file what it is asked for."""
    programs = project.parent / "bin"
    for name in ("mkdir", "rm", "timeout"):
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    common = project.parent / "postgresql-common"
    common.mkdir()
    (common / "createcluster.conf").write_text("start_conf = 'auto'\n")
    asked = project.parent / "asked"
    program(programs / "id", "echo 0")
    program(
        programs / "apt-get",
        f"echo \"$* with $(grep -c 'cluster = false' {common}/createcluster.conf)\" >> {asked}\n"
        f'[[ "$*" != *"$(cat {project.parent}/refuses 2>/dev/null || echo nothing)"* ]]',
    )
    return {
        "POSTGRESQL_COMMON": str(common),
        "POSTGRESQL_PROGRAMS": str(project.parent / "postgresql"),
    }


def test_postgresql_is_installed_without_a_cluster(project: Path, debian: dict[str, str]) -> None:
    ended = run(project, "postgresql.sh", **debian)
    assert (ended.returncode, ended.stderr) == (0, "")
    asked = (project.parent / "asked").read_text().splitlines()
    assert [line.split()[-3:] for line in asked] == [
        ["-qq", "with", "0"],
        ["postgresql", "with", "0"],
        ["postgresql-common", "with", "0"],
        ["postgresql", "with", "1"],  # no main cluster
    ]
    config = Path(debian["POSTGRESQL_COMMON"]) / "createcluster.conf"
    assert config.read_text() == "start_conf = 'auto'\n", "as it was"


@pytest.mark.parametrize("refuses", ["update", "download-only", "postgresql-common", "recommends"])
def test_postgresql_fails_nothing_and_is_tried_once(
    project: Path, debian: dict[str, str], refuses: str
) -> None:
    (project.parent / "refuses").write_text(refuses)
    ended = run(project, "postgresql.sh", **debian)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "PostgreSQL is NOT there: apt-get" in ended.stdout
    asked = (project.parent / "asked").read_text()
    ended = run(project, "postgresql.sh", **debian)
    assert (ended.returncode, ended.stdout.count("tried before")) == (0, 1)
    assert (project.parent / "asked").read_text() == asked


def test_postgresql_needs_root_and_is_left_alone_where_it_is(
    project: Path, debian: dict[str, str]
) -> None:
    programs = project.parent / "bin"
    program(programs / "id", "echo 1000")
    ended = run(project, "postgresql.sh", **debian)
    assert (ended.returncode, "takes root" in ended.stdout) == (0, True)
    initdb = Path(debian["POSTGRESQL_PROGRAMS"]) / "15" / "bin"
    initdb.mkdir(parents=True)
    program(initdb / "initdb", "exit 0")
    program(programs / "psql", "exit 0")
    ended = run(project, "postgresql.sh", **debian)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert not (project.parent / "asked").exists()


# ---------------------------------------------------------------- jars


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        ("", ""),
        ("echo more >> $folder/b.jar", "b.jar: FAILED"),
        ("rm $folder/b.jar", "b.jar"),
        ("echo new > $folder/c.jar", "does not name: c.jar"),
    ],
)
def test_jars_that_are_not_those_that_were_tested_are_refused(
    project: Path, whole: dict[str, str], spoil: str, words: str
) -> None:
    programs = project.parent / "bin"
    for name in ("mv",):
        found = shutil.which(name)
        assert found is not None, name
        (programs / name).symlink_to(found)
    digests = "".join(
        f"{sha256(text.encode()).hexdigest()}  {name}.jar\n"
        for name, text in {"a": "one\n", "b": "two\n"}.items()
    )
    (project / "infra" / "kafka" / "jars.sha256").write_text(digests)  # so it is fetched again
    program(
        programs / "mvn",
        'folder="${@: -1}"; folder=${folder#*=}; echo one > $folder/a.jar;'
        f" echo two > $folder/b.jar; {spoil}",
    )
    for file in ("built", "path"):
        (project / file).write_text("\n")
    ended = run(project, "setup.sh", **whole)
    there = project / ".leasehold" / "jars" / "kafka" / "a.jar"
    assert (ended.returncode == 0, there.exists()) == (not words, not words), ended.stderr
    assert words in ended.stderr


# ---------------------------------------------------------------- Python packages


@pytest.mark.parametrize(
    ("uv", "asked", "words"),
    [
        ("exit 0", ["pip", "uv", "uv", "uv"], ""),
        ("echo no way >&2; exit 2", ["pip", "uv", "pip", "pip", "pip"], "so pip does: no way"),
    ],
)
def test_pip_does_what_uv_could_not(
    project: Path, whole: dict[str, str], uv: str, asked: list[str], words: str
) -> None:
    (project / ".leasehold" / "setup" / "python").unlink()
    program(
        project / ".venv" / "bin" / "python",
        f'case "$*" in *"run_uv.py"*) echo uv >> asked; {uv};; *"pip install"*) echo pip >> asked;;'
        " *compiled*path) echo /compiled;; esac",
    )
    ended = run(project, "setup.sh", **whole)
    assert ended.returncode == 0, ended.stderr
    assert (project / "asked").read_text().split() == asked
    assert words in ended.stdout
    assert ("pip does" in ended.stdout) == bool(words)


# ---------------------------------------------------------------- a C compiler, which nobody needs


@pytest.mark.parametrize(
    ("headers", "packages"),
    [
        ("/usr/include/python3.11", ["gcc", "libc6-dev", "python3.11-dev"]),
        ("/opt/python/include", ["gcc", "libc6-dev"]),  # such a Python brings its own headers
    ],
)
def test_a_compiler_is_asked_for_once_by_root(
    project: Path, debian: dict[str, str], headers: str, packages: list[str]
) -> None:
    programs = project.parent / "bin"
    folder = project / ".venv" / "bin"
    folder.mkdir(parents=True)
    program(folder / "python", f"echo {headers}")
    program(programs / "id", "echo 1000")
    asked = project.parent / "asked"
    ended = run(project, "compiler.sh", **debian)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert not asked.exists()
    program(programs / "id", "echo 0")
    ended = run(project, "compiler.sh", **debian)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = [line.split()[:-2] for line in asked.read_text().splitlines()]
    assert lines[0] == ["update", "-qq"]
    assert [line[-len(packages) :] for line in lines[1:]] == [packages, packages]
    assert ["--download-only" in line for line in lines[1:]] == [True, False]
    assert run(project, "compiler.sh", **debian).stdout == "", "it was tried"
    assert len(asked.read_text().splitlines()) == len(lines)


def test_a_compiler_that_is_there_is_left_alone(project: Path, debian: dict[str, str]) -> None:
    folder = project / ".venv" / "bin"
    folder.mkdir(parents=True)
    program(folder / "python", "echo /usr/include/python3.11")
    program(project.parent / "bin" / "cc", "[[ $2 == /usr/include/python3.11 ]]")
    ended = run(project, "compiler.sh", **debian)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    assert not (project.parent / "asked").exists()


# ---------------------------------------------------------------- the end


@pytest.fixture
def whole(project: Path, debian: dict[str, str]) -> dict[str, str]:
    """Everything is in place; what `infra.compiled` says and finds are two files."""
    programs, venv, state = project.parent / "bin", project / ".venv", project / ".leasehold"
    for name in ("mvn", "redis-server", "psql", "python3.11"):
        program(programs / name, "exit 0")
    program(programs / "java", "echo 'openjdk version \"17.0.1\"' >&2")
    (initdb := Path(debian["POSTGRESQL_PROGRAMS"]) / "15" / "bin").mkdir(parents=True)
    program(initdb / "initdb", "exit 0")
    (venv / "bin").mkdir(parents=True)
    program(venv / "bin" / "pip", "exit 0")
    python = (
        'case "$2 $3" in "infra.compiled build") cat built >&2;; "infra.compiled path") cat path;;'
        ' "infra.class_archives build") ;; *) echo /usr/include;; esac'
    )
    program(venv / "bin" / "python", python)
    program(programs / "cc", "exit 0")
    (venv / "pyvenv.cfg").write_text(f"command = python -m venv {project}/.venv\n")
    (state / "setup").mkdir(parents=True)
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(ROOT / name, project / name)
    made_from = {
        "python": ("pyproject.toml", "requirements.lock"),
        "jars-kafka": ("infra/kafka/pom.xml", "infra/kafka/jars.sha256"),
        "jars-spark": ("infra/spark/pom.xml", "infra/spark/jars.sha256"),
    }
    for part, files in made_from.items():
        content = b"".join((project / name).read_bytes() for name in files)
        (state / "setup" / part).write_text(sha256(content).hexdigest() + "\n")
        (state / "jars" / part.removeprefix("jars-")).mkdir(parents=True)
    return debian


@pytest.mark.parametrize(
    ("wanted", "path", "last"),
    [
        ("", "/compiled/1", "setup: ready"),
        ("", "", "setup: ready, but services run interpreted; see above"),
        ("never", "", "setup: ready"),  # as was asked for
    ],
)
def test_the_last_line_tells_that_services_run_interpreted(
    project: Path, whole: dict[str, str], wanted: str, path: str, last: str
) -> None:
    (project / "built").write_text("setup: WARNING: compiling FAILED\n")
    (project / "path").write_text(f"{path}\n")
    ended = run(project, "setup.sh", LEASEHOLD_COMPILED=wanted, **whole)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == "setup: WARNING: compiling FAILED\n"
    assert ended.stdout.splitlines()[-1] == last
