"""Asks for known vulnerabilities of the packages in requirements.lock: `python -m infra.audit`.

pip-audit asks PyPI, of each package by name and version. It ends well also where nobody could be
asked of a package, so what it says is read here: no answer is not "nothing known". Exit codes:
0 nothing is known; 1 something is, or what was ignored is due; 3 nobody could be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
IGNORED: Final = ROOT / "infra" / "audit.ignored"
LOCK: Final = ROOT / "requirements.lock"
DEADLINE_S: Final = 300.0
CLEAN, KNOWN, UNASKED = 0, 1, 3
NAMES_MAX: Final = 5
"""Of a list in a sentence."""
WORDS_LENGTH_MAX: Final = 200


class Ignored(NamedTuple):
    """A line of audit.ignored: what is not told until a day, and why."""

    name: str
    until: date
    reason: str


class Verdict(NamedTuple):
    code: int
    lines: tuple[str, ...]


def read_ignored(text: str) -> list[Ignored]:
    """Raises ValueError for a line without name, day and reason."""
    found = []
    for line in text.splitlines():
        if line and not line.startswith("#"):
            name, until, reason = line.split(maxsplit=2)
            found.append(Ignored(name, date.fromisoformat(until), reason))
    return found


def judge(document: str, ignored: Iterable[Ignored], today: date) -> Verdict:
    """Return what pip-audit's document means, in sentences. Raises ValueError for one that is
    none."""
    due = {each.name for each in ignored if each.until <= today}
    quiet = {each.name for each in ignored} - due
    said: dict[str, Any] = json.loads(document)
    known, unasked, used = [], [], set()
    for package in said["dependencies"]:
        if "skip_reason" in package:
            unasked.append(package["name"])
            continue
        for found in package["vulns"]:
            names = {found["id"], *found["aliases"]}
            used |= names
            if names.isdisjoint(quiet):
                fixed = ", ".join(found["fix_versions"]) or "no version yet"
                again = "; its line in audit.ignored is due" if names & due else ""
                what = f"{package['name']} {package['version']}: {found['id']}"
                known.append(f"{what}, fixed in {fixed}{again}")
    stale = [f"audit.ignored: {name} is of nothing any more" for name in sorted(quiet - used)]
    if known:
        return Verdict(KNOWN, tuple(known))
    if unasked:
        return Verdict(UNASKED, (_unanswered(unasked, len(said["dependencies"])),))
    return Verdict(CLEAN, (*stale, f"nothing is known of {len(said['dependencies'])} packages"))


def _unanswered(names: Sequence[str], total: int) -> str:
    some = ", ".join(names[:NAMES_MAX]) + (", …" if len(names) > NAMES_MAX else "")
    return (
        f"of {len(names)} of {total} packages the index tells no advisories ({some}): a mirror"
        " without them; run this where PyPI itself is reached"
    )


def audit(program: Path, ignored: Sequence[Ignored], today: date) -> Verdict:
    """Return what is known of the packages of the lock."""
    command = [str(program), "--requirement", str(LOCK), "--require-hashes", "--disable-pip"]
    command += ["--format", "json", "--progress-spinner", "off"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
    except subprocess.TimeoutExpired:
        return Verdict(UNASKED, (f"PyPI has not answered within {DEADLINE_S:g} s",))
    try:
        return judge(done.stdout, ignored, today)
    except ValueError:
        words = [line for line in done.stderr.splitlines() if line.strip()] or ["no words"]
        return Verdict(UNASKED, (f"PyPI could not be asked: {words[-1][:WORDS_LENGTH_MAX]}",))


def main(arguments: list[str]) -> int:
    (program,) = arguments
    ignored = read_ignored(IGNORED.read_text(encoding="utf-8"))
    verdict = audit(Path(program), ignored, datetime.now(UTC).date())
    for line in verdict.lines:
        print(f"audit: {line}", file=sys.stderr if verdict.code else sys.stdout)
    return verdict.code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
