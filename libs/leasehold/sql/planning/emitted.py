"""A statement's SQLite text, with the constants, functions and relations that belong to it."""

# ruff: noqa: S608 - text is made of numbers and fixed words, values are bound

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from leasehold.sql.functions.aggregates import aggregates
from leasehold.sql.functions.function import Function
from leasehold.sql.system_catalog.relations import Relation

_NAMES: dict[Function | aggregates.Aggregate, str] = {}
_NUMBERS: Final = count(1)


@dataclass(frozen=True, slots=True)
class Beside:
    """What a mention of a table shows beside, or in the place of, rows that are committed now, by
    table id. `own`: rows that the transaction has written. `past`: it is read as of an LSN, and
    some of its rows were replaced since. `kept`: queries of WITH, by number, whose rows an earlier
    part of the statement has kept."""

    own: frozenset[int] = frozenset()
    past: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()

    @property
    def tables(self) -> frozenset[int]:
        return self.own | self.past


NOTHING: Final = Beside()


class Emitted:
    """A statement's `text`, with ?1 … ?P for the parameters and more for `constants`, in their
    order.

    `as_of_at` is the place of the LSN that is read as of, behind which stands the first genid that
    is later; `highest` is the number of the last hole, behind which values are not taken. `draws`:
    it calls what is random, or changes from call to call; `counts`: of that, what draws numbers
    from sequences. `functions` and `aggregates` are those of the catalogue, by the name they are
    called by; the latter with whether they run in windows. `systems` are system relations by the
    name of their table.
    """

    def __init__(self, parameters: int) -> None:
        self.parameters = parameters
        self.text = ""
        self.constants: list[Any] = []
        self.functions: dict[str, Function] = {}
        self.aggregates: dict[str, tuple[aggregates.Aggregate, bool]] = {}
        self.systems: dict[str, Relation] = {}
        self.now_at: int | None = None
        self.as_of_at: int | None = None
        self.highest = 0
        self.calls_change = self.calls_stable = self.draws = self.counts = False
        self._numbers: dict[tuple[type, Any], int] = {}

    @property
    def depends_on_context(self) -> bool:
        """Return whether what it gives changes from call to call."""
        return self.now_at is not None or self.calls_change

    @property
    def asks_system(self) -> bool:
        """Return whether it asks what is no table's: of the database, the session or the node."""
        return self.calls_stable or bool(self.systems)

    def constant(self, value: Any) -> str:
        name = (type(value), repr(value) if isinstance(value, float) else value)
        number = self._numbers.get(name)
        if number is None:
            self.constants.append(value)
            number = self._numbers[name] = self.parameters + len(self.constants)
        return f"?{number}"

    def now(self) -> str:
        if self.now_at is None:
            self.constants.append(None)
            self.now_at = len(self.constants) - 1
        return f"?{self.parameters + self.now_at + 1}"

    def as_of(self) -> tuple[str, str]:
        """The LSN, and the first genid after it."""
        if self.as_of_at is None:
            self.constants += [None, None]
            self.as_of_at = len(self.constants) - 2
        first = self.parameters + self.as_of_at + 1
        return f"?{first}", f"?{first + 1}"

    def with_draws(self, emit: Callable[[], str]) -> tuple[str, bool]:
        """What `emit` makes, and whether what that computes is another thing each time."""
        before, self.draws = self.draws, False
        text = emit()
        draws = self.draws
        self.draws |= before
        return text, draws


def function_name(function: Function | aggregates.Aggregate) -> str:
    """The name in SQLite of a function of the catalogue: another one for each, since two casts to
    varchar(3) may differ (one cuts, one refuses)."""
    name = _NAMES.get(function)
    if name is None:
        words = [function.name, *(str(kind) for kind in (*function.arguments, function.result))]
        said = "_".join("".join(c for c in word if c.isascii() and c.isalnum()) for word in words)
        name = _NAMES.setdefault(function, f"lh_{said:.80}_{next(_NUMBERS)}")
    return name


def materialize(text: str) -> str:
    """A query whose values are random, or drawn: SQLite would put its expressions wherever their
    columns are mentioned, and compute them there again."""
    return f"WITH f AS MATERIALIZED ({text}) SELECT * FROM f"
