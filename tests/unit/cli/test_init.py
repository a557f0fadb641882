"""`leasehold init`: what it writes is read alike by everybody, and nothing is written over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from leasehold.cli.init import GROUPS, make_file
from leasehold.cli.main import main
from leasehold.settings.client import ClientSettings
from leasehold.settings.environment import from_environment
from leasehold.settings.sql_address import SqlAddress


def sourced(file: Path) -> dict[str, str]:
    """The variables that a shell has which reads the file, as it tells other processes."""
    told = subprocess.run(
        ["sh", "-c", 'set -a; . "$1"; env', "sh", str(file)],
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout
    pairs = (line.partition("=") for line in told.splitlines())
    return {name: value for name, _, value in pairs if name.startswith("LEASEHOLD_")}


def test_what_is_said_is_set_and_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "my.env"
    monkeypatch.setenv("LEASEHOLD_SQL_PORT", "5433")
    monkeypatch.setenv("LEASEHOLD_KAFKA_PASSWORD", "hidden")
    monkeypatch.setenv("LEASEHOLD_REDIS_PASSWORD_FILE", str(tmp_path / "secret"))
    (tmp_path / "secret").write_text("hidden")
    words = ["init", "--file", str(file), "--database", "bookings", "--kafka", "a:9092,b:9092"]
    assert main(words) == 0
    text, told = file.read_text(), capsys.readouterr().out
    assert "hidden" not in text
    assert file.stat().st_mode & 0o077 == 0
    environ = sourced(file)
    assert environ == {
        "LEASEHOLD_DATABASE": "bookings",
        "LEASEHOLD_KAFKA": "a:9092,b:9092",
        "LEASEHOLD_SQL_PORT": "5433",
        "LEASEHOLD_REDIS_PASSWORD_FILE": str(tmp_path / "secret"),
    }
    settings = ClientSettings.read(environ)
    assert (settings.cluster.database, settings.redis.password) == ("bookings", "hidden")
    assert from_environment(SqlAddress, environ).port == 5433
    assert f". {file}" in told
    assert "leasehold status" in told


def test_every_setting_that_is_left_out_is_accepted_with_its_default() -> None:
    """A comment that somebody uncomments must be right as it stands."""
    text, said = make_file({})
    assert said == {}
    lines = [line[2:] for line in text.splitlines() if line.startswith("# LEASEHOLD_")]
    environ = dict(line.split("=", 1) for line in lines if "=" in line and "_FILE=" not in line)
    kept = {name: value for name, value in environ.items() if value}
    for _, group in GROUPS:
        assert from_environment(group, kept) == from_environment(group, {})


def test_a_file_is_never_written_over_unless_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "leasehold.env"
    file.write_text("mine")
    assert main(["init", "--file", str(file)]) == 2
    assert "--force" in capsys.readouterr().err
    assert file.read_text() == "mine"
    assert main(["init", "--file", str(file), "--force"]) == 0
    assert file.read_text().startswith("# Settings of Leasehold")


def test_what_readers_of_such_files_read_differently_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "leasehold.env"
    assert main(["init", "--file", str(file), "--user", "a b$c"]) == 2
    assert main(["init", "--file", str(file), "--kafka", "nowhere"]) == 2
    told = capsys.readouterr().err
    assert "LEASEHOLD_SQL_USER" in told
    assert "LEASEHOLD_KAFKA" in told
    assert not file.exists()
