"""Python's placeholders as PostgreSQL's: `%s` → `$1`, `$2` …"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import count
from typing import Final

from leasehold.dbapi.errors import ProgrammingError

_PERCENT: Final = re.compile(r"%(.?)", re.DOTALL)


@lru_cache(1_000)
def numbered(text: str, given: int) -> str:
    """Return a text with `$1` … in the place of `%s`; `%%` is a percent sign. Raises
    ProgrammingError for any other one, and where `%s` and parameters differ in number; a text
    without `%s` stays as it is but for `%%`."""
    numbers = count(1)

    def one(found: re.Match[str]) -> str:
        if found[1] == "%":
            return "%"
        if found[1] != "s":
            raise ProgrammingError(f"{found[0]!r}: only %s and %% are known where values are given")
        return f"${next(numbers)}"

    made = _PERCENT.sub(one, text)
    slots = next(numbers) - 1
    if slots and slots != given:
        raise ProgrammingError(f"the text has {slots} placeholders; {given} values were given")
    return made
