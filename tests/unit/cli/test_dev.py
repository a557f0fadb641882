"""`leasehold dev`: lines in, what became of them out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from leasehold.cli.main import main
from leasehold.dev.database import CheckSummary, DevDatabase

LINES = """\
# a comment, and a blank line

CREATE TABLE t (id bigint PRIMARY KEY, n bigint NOT NULL);
{"table": "t", "op": "insert", "key": {"id": 1}, "values": {"n": 5}}
{"table": "t", "op": "insert", "key": {"id": 1}, "values": {"n": 6}}
CREATE INDEX by_n ON t (n)
.get t 1
.get t [2]
.get nope 1
.nope
{"table"
.tables
.status
.check
.quit
{"table": "t", "op": "delete", "key": {"id": 1}}
"""


@pytest.fixture
def lines(tmp_path: Path) -> str:
    path = tmp_path / "lines"
    path.write_text(LINES, encoding="utf-8")
    return str(path)


def test_lines_for_people(lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", lines]) == 1  # one is refused, and some are no lines
    out, err = capsys.readouterr()
    told = out.splitlines()
    assert told[0].endswith("table 1")
    assert told[1].endswith("1 row")
    assert told[2].startswith("refused 23505: duplicate key")
    assert told[3].endswith("job 1")
    assert told[4] == '{"id": 1, "n": 5}'
    assert told[5] == "no such row"
    assert told[6] == "t version 4"
    assert "  by_n on (n) (public)" in told
    assert "job 1 succeeded, 1 rows" in err
    assert "table 'nope' does not exist" in err
    assert ".nope is not known" in err
    assert "this line is no JSON" in err
    assert "3 nodes hold the same 1 rows of 1 tables" in err


def test_lines_for_programs(lines: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "--json", lines]) == 1
    values = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert values[0]["answer"] == {"table": 1}
    assert values[1]["rows"] == 1
    assert values[2]["code"] == "23505"
    assert {"id": 1, "n": 5} in values


WELL = "CREATE TABLE t (id bigint PRIMARY KEY)"


@pytest.mark.parametrize(
    ("last", "code"),
    [
        ("", 0),
        (".get t 1", 0),
        ("CREATE TABLE t (id bigint PRIMARY KEY)", 1),
        ("{", 1),
        (".nope", 1),
        (".get nope 1", 1),
    ],
)
def test_what_goes_wrong_is_an_exit_code(tmp_path: Path, last: str, code: int) -> None:
    path = tmp_path / "lines"
    path.write_text(f"{WELL}\n{last}\n", encoding="utf-8")
    assert main(["dev", str(path)]) == code


def test_bytes_that_are_no_text_are_told_and_the_next_line_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b'\xff\xfe\n{"\xff": 1}\n' + WELL.encode())
    assert main(["dev", str(path)]) == 1
    out, err = capsys.readouterr()
    assert err.count("this line is no UTF-8 text") == 2
    assert out.rstrip().endswith("table 1")


def test_findings_are_an_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = CheckSummary(3, 1, 1, ("r1: t: for this test",))
    monkeypatch.setattr(DevDatabase, "check", lambda _: found)
    path = tmp_path / "lines"
    path.write_text(WELL, encoding="utf-8")
    assert main(["dev", str(path)]) == 1
    assert "r1: t: for this test" in capsys.readouterr().err


def test_a_file_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dev", "/nowhere/lines"]) == 2
    assert "can't be read" in capsys.readouterr().err
