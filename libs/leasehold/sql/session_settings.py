"""Settings of a session: what each takes, what it is at first, and whom it is told to.

What clients set as a matter of course is known; a value that would change what comes out, and that
nothing here follows, is refused (0A000) instead of kept without effect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from leasehold.catalog.search_path import DEFAULT_PATH, read_search_path
from leasehold.model.errors import (
    CannotChange,
    FeatureNotSupported,
    InvalidArgument,
    Refused,
    SyntaxInvalid,
    UnknownObject,
)
from leasehold.sql.syntax.as_of import as_of_text
from leasehold.values.time_zone import zone_of_setting

SERVER_VERSION: Final = "15.0"
NO_ROLE: Final = "none"
"""The setting `role` of who acts as himself."""
WAIT_FOR_LSN: Final = "leasehold.wait_for_lsn"
"""SET of it waits until the node has that commit, so that what is read from then on shows it."""
AT_COMMIT: Final = "at_commit"
REFUSE: Final = "refuse"
"""What a transaction block does with a change of a table that was there."""
AT_STATEMENT: Final = "at_statement"
"""Or AT_COMMIT: when foreign keys are looked at that were not made to be deferred."""
NOT_RESET: Final = ("session_authorization", "role", "is_superuser")
"""What RESET ALL leaves as it is."""
_UNITS_MS: Final = {
    "us": 0.001,
    "ms": 1,
    "s": 1_000,
    "min": 60_000,
    "h": 3_600_000,
    "d": 86_400_000,
}
_DURATION: Final = re.compile(r"([0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)\s*+([a-z]*+)")
_DURATION_CHARACTERS_MAX: Final = 100
"""Longer ones are no durations, whatever they begin with."""
_OPTION: Final = re.compile(r"(?:\\.|[^\s\\])+", re.DOTALL)
MS_MAX: Final = 2**31 - 1
_MS_SHOWN_MAX: Final = 1e18  # of a text that says more, no more is shown

Check = Callable[[str, str], str]
"""Name and text as given → text as kept. Raises InvalidArgument, FeatureNotSupported."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. `told`: clients hear of it at the start and at every change."""

    name: str
    first: str
    check: Check
    told: bool = False


def _invalid(name: str, text: str, hint: str) -> Refused:
    return InvalidArgument(f'invalid value for parameter "{name}": "{text:.80}"', hint=hint)


def _fixed(name: str, text: str) -> str:
    raise CannotChange(f'parameter "{name}" cannot be changed')


def _any(name: str, text: str) -> str:
    return text


def truth(name: str, text: str) -> bool:
    """Return whether a text says on, as PostgreSQL reads on, off, yes, no, 1, 0 …. Raises
    InvalidArgument."""
    given = text.strip().lower()
    if given in ("on", "true", "yes", "1", "t", "y", "tr", "tru", "ye"):
        return True
    if given in ("off", "false", "no", "0", "f", "n", "of", "fa", "fal", "fals"):
        return False
    raise InvalidArgument(f'parameter "{name}" requires a Boolean value')


def _switch(name: str, text: str) -> str:
    return "on" if truth(name, text) else "off"


@lru_cache(100)
def milliseconds(name: str, text: str) -> int:
    """Return a duration (`250`, `1.5s`, `2min`) in ms, 0 for none. Raises InvalidArgument."""
    said = text.strip().lower()
    found = _DURATION.fullmatch(said) if len(said) <= _DURATION_CHARACTERS_MAX else None
    unit = "" if found is None else found[2] or "ms"
    if found is None or unit not in _UNITS_MS:
        raise _invalid(name, text, 'Valid units are "us", "ms", "s", "min", "h", and "d".')
    value = round(min(float(found[1]) * _UNITS_MS[unit], _MS_SHOWN_MAX))
    if value > MS_MAX:
        raise InvalidArgument(
            f'{value} ms is outside the valid range for parameter "{name}" (0 ms .. {MS_MAX} ms)'
        )
    return value


def _duration(name: str, text: str) -> str:
    value = milliseconds(name, text)
    for unit in ("d", "h", "min", "s"):
        if value and value % _UNITS_MS[unit] == 0:
            return f"{value // int(_UNITS_MS[unit])}{unit}"
    return f"{value}ms" if value else "0"


def _one_of(*known: str, why: str = "") -> Check:
    """Return the check of a setting that takes only these; what PostgreSQL takes besides is said
    with `why` to have no effect here."""
    names = {k.lower().replace("-", "").replace(" ", ""): k for k in known}

    def check(name: str, text: str) -> str:
        found = names.get(text.strip().strip("\"'").lower().replace("-", "").replace(" ", ""))
        if found is None:
            if why:
                raise FeatureNotSupported(f'"{name}" can\'t be {text!r:.60}: {why}')
            raise _invalid(name, text, f"Available values: {', '.join(known)}.")
        return found

    return check


def _integer(low: int, high: int) -> Check:
    def check(name: str, text: str) -> str:
        try:
            value = int(text.strip())
        except ValueError:
            raise _invalid(name, text, f"It is an integer from {low} to {high}.") from None
        if not low <= value <= high:
            raise InvalidArgument(
                f'{value} is outside the valid range for parameter "{name}" ({low} .. {high})'
            )
        return str(value)

    return check


def _zone(name: str, text: str) -> str:
    try:
        return zone_of_setting(text).key
    except Refused as error:
        hint = "A name of IANA's (Europe/Berlin), hours east of UTC (-8), or a rule of POSIX."
        raise _invalid(name, text, hint) from error


def _search_path(name: str, text: str) -> str:
    read_search_path(text)
    return text


def _encoding(name: str, text: str) -> str:
    if text.strip().strip("'\"").upper().replace("-", "").replace("_", "") not in (
        "UTF8",
        "UNICODE",
    ):
        raise FeatureNotSupported(f"client_encoding {text!r:.40} is not supported: text is UTF8")
    return "UTF8"


def _date_style(name: str, text: str) -> str:
    parts = {part.strip().lower() for part in text.split(",")}
    if not parts <= {"iso", "mdy", "us", "noneuropean", "noneuro"}:
        raise FeatureNotSupported(f"DateStyle {text!r:.40} is not supported: it is ISO, MDY")
    return "ISO, MDY"


def _as_of(name: str, text: str) -> str:
    """Empty: the present."""
    if text.strip():
        as_of_text(text)
    return text.strip()


_ISOLATION: Final = _one_of("read uncommitted", "read committed", "repeatable read", "serializable")
_OWN_ISOLATION: Final = _one_of(
    "default", "read committed", "snapshot", "serializable", "linearizable"
)

_TABLE: Final = (
    Setting("server_version", SERVER_VERSION, _fixed, told=True),
    Setting("server_version_num", "150000", _fixed),
    Setting("server_encoding", "UTF8", _fixed, told=True),
    Setting("integer_datetimes", "on", _fixed, told=True),
    Setting("is_superuser", "off", _fixed, told=True),
    Setting("in_hot_standby", "off", _fixed, told=True),
    Setting("session_authorization", "", _any, told=True),
    Setting("role", NO_ROLE, _any),
    Setting("max_identifier_length", "63", _fixed),
    Setting("max_index_keys", "32", _fixed),
    Setting("max_function_args", "100", _fixed),
    Setting("block_size", "8192", _fixed),
    Setting("client_encoding", "UTF8", _encoding, told=True),
    Setting("DateStyle", "ISO, MDY", _date_style, told=True),
    Setting("IntervalStyle", "postgres", _one_of("postgres", why="only postgres is"), told=True),
    Setting("TimeZone", "UTC", _zone, told=True),
    Setting(
        "standard_conforming_strings",
        "on",
        lambda name, text: _one_of("on", why="strings are SQL's")(name, _switch(name, text)),
        told=True,
    ),
    Setting("application_name", "", _any, told=True),
    Setting("default_transaction_read_only", "off", _switch, told=True),
    Setting("default_transaction_isolation", "read committed", _ISOLATION),
    Setting("default_transaction_deferrable", "off", _switch),
    Setting("transaction_isolation", "read committed", _ISOLATION),
    Setting("transaction_read_only", "off", _switch),
    Setting("transaction_deferrable", "off", _switch),
    Setting("search_path", DEFAULT_PATH, _search_path),
    Setting("statement_timeout", "0", _duration),
    Setting("lock_timeout", "0", _duration),  # of advisory locks
    Setting("idle_in_transaction_session_timeout", "5min", _duration),
    Setting("idle_session_timeout", "0", _duration),
    Setting("extra_float_digits", "1", _integer(1, 3)),
    Setting("bytea_output", "hex", _one_of("hex", why="it is hex")),
    Setting("client_min_messages", "notice", _one_of("notice", "warning", "error")),
    Setting("jit", "off", _switch),  # planners of their own have nothing to switch
    Setting("default_table_access_method", "heap", _one_of("heap", why="all tables are alike")),
    Setting("default_tablespace", "", _one_of("", why="there are no tablespaces")),
    Setting("check_function_bodies", "on", _switch),  # nobody has written a function
    Setting("synchronize_seqscans", "on", _switch),  # readers don't wait for each other's place
    Setting("row_security", "on", _switch),  # no table has policies
    Setting("xmloption", "content", _one_of("content", "document")),  # there is no xml
    Setting("synchronous_commit", "on", _one_of("on", why="an answered commit is on every node")),
    Setting("leasehold.isolation", "read committed", _OWN_ISOLATION),
    Setting("leasehold.as_of", "", _as_of),
    Setting("leasehold.verifyretry", "on", _switch),
    Setting("leasehold.replays_max", "100", _integer(0, 10_000)),
    Setting("leasehold.coherent_timeout", "5s", _duration),
    Setting("leasehold.wait_for_jobs", "on", _switch),
    Setting("leasehold.ddl_in_block", AT_COMMIT, _one_of(AT_COMMIT, REFUSE)),
    Setting("leasehold.foreign_keys", AT_STATEMENT, _one_of(AT_STATEMENT, AT_COMMIT)),
    Setting("leasehold.temp_tables_mb", "16", _integer(1, 256)),
    Setting(WAIT_FOR_LSN, "0", _integer(0, 2**63 - 2)),
)
SETTINGS: Final[Mapping[str, Setting]] = {setting.name.lower(): setting for setting in _TABLE}


def setting_named(name: str) -> Setting:
    """Raises UnknownObject (42704)."""
    found = SETTINGS.get(name.lower())
    if found is None:
        raise UnknownObject(f'unrecognized configuration parameter "{name:.80}"')
    return found


def settings_of_options(text: str) -> dict[str, str]:
    """What a client's `options` set: `-c name=value`, `-cname=value`, `--name=value`; a backslash
    keeps the character behind it. Raises SyntaxInvalid for any other switch."""
    made: dict[str, str] = {}
    words = iter(_unescaped(word) for word in _OPTION.findall(text))
    for word in words:
        said = ""
        if word.startswith("-c"):
            said = word[2:] or next(words, "")
        elif word.startswith("--"):
            said = word[2:]
        name, is_set, value = said.partition("=")
        if not name or not is_set:
            raise SyntaxInvalid(f"invalid command-line argument for server process: {word:.80}")
        made[name.replace("-", "_")] = value
    return made


def _unescaped(word: str) -> str:
    return re.sub(r"\\(.)", r"\1", word, flags=re.DOTALL)


class SessionSettings:
    """Values by canonical name. What a transaction has set goes back when it fails, and SET LOCAL
    when it ends; `resets`: what RESET goes back to."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Set what the client has `given` when it came. Raises what `check` raises."""
        self._values = {setting.name: setting.first for setting in _TABLE}
        for name, text in given.items():
            setting = setting_named(name)
            self._values[setting.name] = (
                text if setting.check is _fixed else setting.check(setting.name, text)
            )
        self._resets = dict(self._values)
        self.in_transaction = False
        self._before: dict[str, str] | None = None  # once something was changed
        self._local: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def ms(self, name: str) -> int:
        return milliseconds(name, self._values[name])

    def on(self, name: str) -> bool:
        return self._values[name] == "on"

    def show(self, name: str) -> tuple[str, str]:
        """Canonical name and value. Raises UnknownObject."""
        setting = setting_named(name)
        return setting.name, self._values[setting.name]

    def all(self) -> Iterator[tuple[str, str]]:
        return iter(sorted(self._values.items(), key=lambda item: item[0].lower()))

    @property
    def told(self) -> dict[str, str]:
        return {s.name: self._values[s.name] for s in _TABLE if s.told}

    def set(self, name: str, text: str | None, *, local: bool = False) -> str:
        """Set a value, None for what it was at first, and return the canonical name. Raises
        UnknownObject, CannotChange, what `check` raises."""
        setting = setting_named(name)
        if setting.check is _fixed:
            raise CannotChange(f'parameter "{setting.name}" cannot be changed')
        value = self._resets[setting.name] if text is None else setting.check(setting.name, text)
        self._changes()
        if local:
            self._local.setdefault(setting.name, self._values[setting.name])
        else:
            self._local.pop(setting.name, None)
        self._values[setting.name] = value
        return setting.name

    def follow_at_first(self, name: str, value: str) -> None:
        """What another setting that was given at the start says of this one."""
        self._values[name] = self._resets[name] = value

    def state(self, name: str, value: str) -> bool:
        """Set what no client sets, and return whether it was something else."""
        if self._values[name] == value:
            return False
        self._changes()
        self._values[name] = value
        return True

    def reset_all(self) -> None:
        self._changes()
        kept = {name: self._values[name] for name in NOT_RESET}
        self._values = {**self._resets, **kept}
        self._local = {n: value for n, value in self._local.items() if n in NOT_RESET}

    # ------------------------------------------------------------ transactions

    def begin(self) -> None:
        self.in_transaction = True

    def _changes(self) -> None:
        if self.in_transaction and self._before is None:
            self._before = dict(self._values)

    def end(self, *, committed: bool) -> dict[str, str]:
        """End the transaction, and return the told settings that are something else now than while
        it ran."""
        self.in_transaction = False
        if self._before is None and not self._local:
            return {}
        ran = dict(self._values)
        if not committed and self._before is not None:
            self._values = self._before
        else:
            self._values |= self._local
        self._before = None
        self._local.clear()
        return {n: v for n, v in self.told.items() if ran[n] != v}
