"""Reads the settings of this process, and looks at the files that they name, for the checks."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final

from leasehold.adapters.os.certificates import read_ends_us
from leasehold.cli.doctor.facts import CertificateSeen, FileSeen, SettingsError, SettingsSeen
from leasehold.model.errors import ConfigurationError
from leasehold.settings.environment import ClusterSettings, from_environment
from leasehold.settings.groups import GROUPS, known_names
from leasehold.settings.snapshot import SnapshotSettings
from leasehold.settings.sql_address import SqlAddress
from leasehold.settings.sql_port import PgwireSettings

PREFIX: Final = "LEASEHOLD_"
CERTIFICATES: Final = ("_CA", "_CERT", "_CERTIFICATE")
PRIVATE_KEY: Final = "_KEY"
USERS_FILE: Final = "LEASEHOLD_SQL_USERS_FILE"
"""Its lines hold what passwords are verified by."""
EITHER: Final = ((PgwireSettings, SqlAddress),)
"""Dataclasses that read the same variables, for a server and for its client: an environment is for
one of them."""


def read_settings(environ: Mapping[str, str]) -> SettingsSeen:
    """Return what the environment says; nothing that is wrong with it raises."""
    secret, unreadable, certificates = _files(environ)
    return SettingsSeen(
        given=frozenset(name for name in environ if name.startswith(PREFIX) and environ[name]),
        known=known_names(),
        errors=tuple(_errors(environ)),
        secret_files=tuple(secret),
        certificates=tuple(certificates),
        unreadable=tuple(unreadable),
    )


def _errors(environ: Mapping[str, str]) -> Iterator[SettingsError]:
    failed: dict[type, ConfigurationError] = {}
    for _, group in GROUPS:
        try:
            from_environment(group, environ)
        except ConfigurationError as error:
            failed[group] = error
    for either in EITHER:
        if any(group not in failed for group in either):
            for group in either:
                failed.pop(group, None)
    said: set[str] = set()
    for each in (*failed.values(), *_contradictions(environ)):
        if each.message not in said:
            said.add(each.message)
            yield SettingsError(str(each.detail.get("variable", "")), each.message)


def _contradictions(environ: Mapping[str, str]) -> Iterator[ConfigurationError]:
    """Yield what only several groups together show."""
    try:
        cluster = from_environment(ClusterSettings, environ)
        snapshot = from_environment(SnapshotSettings, environ)
    except ConfigurationError:
        return  # said of the group
    try:
        snapshot.check_served_on(cluster.listen)
    except ConfigurationError as error:
        yield error


def _files(
    environ: Mapping[str, str],
) -> tuple[list[FileSeen], list[FileSeen], list[CertificateSeen]]:
    """Return files with secrets, files that can't be read, and certificates."""
    secret: list[FileSeen] = []
    unreadable: list[FileSeen] = []
    certificates: list[CertificateSeen] = []
    every = {each.metadata["env"]: each for _, group in GROUPS for each in fields(group)}
    for variable, item in sorted(every.items()):
        for name, path in _secrets_of(variable, item, environ):
            seen = _look(name, path)
            (unreadable if seen.trouble else secret).append(seen)
        path = environ.get(variable, "")
        if path and item.metadata["parse"] is Path and variable.endswith(CERTIFICATES):
            try:
                ends = read_ends_us(Path(path))
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                unreadable.append(FileSeen(variable, path, trouble=why))
            else:
                certificates += [CertificateSeen(variable, path, end_us) for end_us in ends]
    return secret, unreadable, certificates


def _secrets_of(
    variable: str, item: Field[Any], environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield variable and path of each file with a secret that belongs to a setting."""
    by_file = environ.get(f"{variable}_FILE", "")
    # What is kept out of repr() may hold a secret, such as a URL with a password.
    if by_file and (item.metadata["secret"] or not item.repr):
        yield f"{variable}_FILE", by_file
    own = environ.get(variable, "")
    is_file = item.metadata["parse"] is Path
    if own and is_file and (variable.endswith(PRIVATE_KEY) or variable == USERS_FILE):
        yield variable, own


def _look(variable: str, path: str) -> FileSeen:
    try:
        with Path(path).open("rb"):  # who is somebody else, root above all, may do more than a mode
            return FileSeen(variable, path, stat.S_IMODE(Path(path).stat().st_mode))
    except OSError as error:
        return FileSeen(variable, path, trouble=error.strerror or str(error))
