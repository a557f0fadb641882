"""Checks of this process's settings and of the files that they name. PURE."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Final

from leasehold.cli.doctor.facts import Facts, FileSeen
from leasehold.cli.doctor.finding import Check, Problem, fail, warn

FILE_SUFFIX: Final = "_FILE"
READ_BY_OTHERS: Final = 0o044
"""A mode's bits that let the group or everybody read."""
ENDS_SOON_DAYS: Final = 30
US_PER_DAY: Final = 24 * 3600 * 1_000_000
NEAR: Final = 0.8
"""How alike names have to be, by difflib's ratio, for one to be a slip of the other."""


def judge_names(facts: Facts) -> Iterator[Problem]:
    """Yield variables that nothing reads: a slip leaves the default in force without a word."""
    known = facts.settings.known
    for variable in sorted(facts.settings.given - known):
        if variable.endswith(FILE_SUFFIX) and variable.removesuffix(FILE_SUFFIX) in known:
            continue
        near = nearest(variable, known)
        yield warn(
            f"{variable} is set, and nothing reads it",
            f"is {near} meant? If not, unset it"
            if near
            else "unset it, or look its name up in docs/reference/settings.md",
        )


def nearest(variable: str, known: Collection[str]) -> str:
    """Return the known name that `variable` looks like, "" for none."""
    whole = variable.removesuffix(FILE_SUFFIX)
    found = get_close_matches(whole, sorted(known), n=1, cutoff=NEAR)
    return found[0] if found else ""


def judge_values(facts: Facts) -> Iterator[Problem]:
    """Yield what can't be read, and what contradicts itself."""
    for error in facts.settings.errors:
        yield fail(error.words, "set it as docs/reference/settings.md says, or unset it")


def judge_secrets(facts: Facts) -> Iterator[Problem]:
    """Yield files with secrets that others can read, or nobody."""
    for file in facts.settings.unreadable:
        yield _unreadable(file)
    for file in facts.settings.secret_files:
        if file.mode & READ_BY_OTHERS:
            yield warn(
                f"{file.path} (mode {file.mode:o}), which {file.variable} names, holds a secret and"
                " can be read by other users of this machine",
                f"chmod go= {file.path}",
            )


def judge_certificates(facts: Facts) -> Iterator[Problem]:
    """Yield certificates that have ended, and those that end soon."""
    for seen in facts.settings.certificates:
        days = (seen.ends_us - facts.now_us) / US_PER_DAY
        what = f"a certificate in {seen.path} ({seen.variable})"
        renew = "renew it; processes read most files again when they change (docs/how-to/secure.md)"
        if days < 0:
            yield fail(f"{what} has ended {-days:.0f} days ago: no connection trusts it", renew)
        elif days < ENDS_SOON_DAYS:
            yield warn(f"{what} ends in {days:.0f} days", renew)


def _unreadable(file: FileSeen) -> Problem:
    return fail(
        f"{file.variable} names {file.path}, which can't be read: {file.trouble}",
        "put the file there, or let this user read it",
    )


SETTINGS_CHECKS: Final = (
    Check(
        "settings",
        "variables of the environment whose names begin with LEASEHOLD_",
        ("settings",),
        judge_names,
    ),
    Check("values", "the value of each setting, and whether they fit", ("settings",), judge_values),
    Check("secrets", "files with secrets that settings name", ("settings",), judge_secrets),
    Check(
        "certificates",
        f"ends of certificates that settings name ({ENDS_SOON_DAYS} days ahead)",
        ("settings",),
        judge_certificates,
    ),
)
