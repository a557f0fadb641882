"""`make audit` tells what is known of the locked packages, and takes silence for no answer."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from infra.audit import CLEAN, IGNORED, KNOWN, UNASKED, Ignored, audit, judge, main, read_ignored

TODAY = date(2026, 12, 1)
LATER = Ignored("CVE-1", date(2027, 1, 1), "not called")
DUE = Ignored("CVE-1", TODAY, "not called")
OF_NOTHING = Ignored("CVE-9", date(2027, 1, 1), "not called")


def package(name: str, *found: str, **more: object) -> dict[str, Any]:
    vulns = [{"id": each, "aliases": ["CVE-1"], "fix_versions": ["2.0"]} for each in found]
    return {"name": name, "version": "1.0", "vulns": vulns} | more


UNKNOWN = {"name": "b", "skip_reason": "not found on PyPI"}


@pytest.mark.parametrize(
    ("packages", "ignored", "code", "words"),
    [
        ([package("a")], [], CLEAN, "nothing is known of 1 packages"),
        ([package("a", "PYSEC-1")], [], KNOWN, "a 1.0: PYSEC-1, fixed in 2.0"),
        ([package("a", "PYSEC-1")], [LATER], CLEAN, "nothing is known"),
        ([package("a", "PYSEC-1")], [DUE], KNOWN, "fixed in 2.0; its line in audit.ignored is due"),
        ([package("a")], [OF_NOTHING], CLEAN, "audit.ignored: CVE-9 is of nothing any more"),
        ([package("a"), UNKNOWN], [], UNASKED, "of 1 of 2 packages the index tells no advisories"),
        ([package("a", "PYSEC-1"), UNKNOWN], [], KNOWN, "a 1.0: PYSEC-1"),
    ],
)
def test_what_pip_audit_says(
    packages: list[dict[str, Any]], ignored: list[Ignored], code: int, words: str
) -> None:
    verdict = judge(json.dumps({"dependencies": packages}), ignored, TODAY)
    assert verdict.code == code
    assert words in "\n".join(verdict.lines)


def program(folder: Path, text: str) -> Path:
    made = folder / "pip-audit"
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(0o755)
    return made


def test_who_is_offline_is_told_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """pip-audit ends with a traceback and 1 then, as with something known."""
    offline = program(tmp_path, "echo 'Traceback …\nConnectionError: no route' >&2; exit 1")
    assert main([str(offline)]) == UNASKED
    assert capsys.readouterr().err == (
        "audit: PyPI could not be asked: ConnectionError: no route\n"
    )


def test_the_lock_is_what_is_asked_about(tmp_path: Path) -> None:
    says = program(tmp_path, 'echo "$@" >&2; exit 1')
    (line,) = audit(says, [], TODAY).lines
    assert "/requirements.lock --require-hashes --disable-pip --format json" in line


def test_what_is_ignored_has_a_day_and_a_reason() -> None:
    for each in read_ignored(IGNORED.read_text(encoding="utf-8")):
        assert len(each.reason.split()) > 3, each
    with pytest.raises(ValueError, match="not enough values"):
        read_ignored("CVE-1 2027-01-01\n")
    with pytest.raises(ValueError, match="isoformat"):
        read_ignored("CVE-1 soon because\n")
