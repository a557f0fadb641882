"""Goal: the command says of each wrong use what is wrong, and touches nothing.

Method: the command in this process, on a folder.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leasehold.cli.main import main
from tests.support.cli.json_output import check_printed


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    try:
        code = main(["backup", *words])
    except SystemExit as ended:  # argparse
        code = int(ended.code or 0)
    told = capsys.readouterr()
    if "--json" in words:
        check_printed(["backup", *words], told.out)
    return code, told.out + told.err


def test_an_empty_place_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = str(tmp_path / "no")
    assert said(capsys, "list", place) == (0, f"there is no backup in {place}\n")
    code, words = said(capsys, "list", place, "--json")
    assert (code, json.loads(words)) == (0, {"backups": [], "unfinished": []})
    assert said(capsys, "verify", place)[0] == 2
    code, words = said(capsys, "restore", place, "--database", "d2")
    assert code == 2
    assert "there is no whole backup" in words
    assert not (tmp_path / "no").exists()


def test_wrong_words_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    short = tmp_path / "short"
    short.write_text("secret")
    place = str(tmp_path)
    cases = {
        (): "an action is wanted",
        ("create", place, "--rate", "0"): "expected megabytes a second",
        ("create", place, "--keep", "0"): "expected a whole number",
        ("create", place, "--key-file", str(tmp_path / "no")): "key file",
        ("create", place, "--key-file", str(short)): "openssl rand -hex 32",
        ("create", place, "--full", "--store", str(tmp_path / "no")): "is not there",
        ("restore", place): "one of the arguments --database --table is required",
        ("restore", place, "--database", "d", "--to-time", "soon"): "expected a time",
        (
            "restore",
            place,
            "--database",
            "d",
            "--to-lsn",
            "1",
            "--to-time",
            "2026-01-01",
        ): "not all",
        ("restore", place, "--table", "t"): "--table goes with --name",
        ("restore", str(short), "--database", "d", "--to-lsn", "3"): "is the file of one store",
        ("prune", place): "--keep",
    }
    wrong = []
    for words, wanted in cases.items():
        code, told = said(capsys, *words)
        if code != 2 or wanted not in told:
            wrong.append((words, code, told[-200:]))
        if "secret" in told:
            wrong.append((words, code, "it shows the key"))
    assert wrong == []
