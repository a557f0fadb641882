"""What a newer release says of tables, jobs and roles is refused by nodes, which would keep it.

Whoever only reads (a subscriber, the command) may pass over a field that it does not know. A node
that did so would write the rest into its store, and decide by it once it is master: another schema
than that of the others, for ever, also after its upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeVar

from leasehold.model.errors import LogStopped
from leasehold.values.types import is_column_type


class Written(Protocol):
    def to_wire(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Written)

PLAIN: Final = frozenset({str, int, bool, float, bytes, type(None)})
"""Of these has no part a name."""


def as_written(body: Any, read: Callable[[Any], T], what: str = "") -> T:
    """Return `read(body)`, of which nothing is left out. `what` it describes: a table or a job
    unless told. Raises LogStopped."""
    try:
        made = read(body)
        unknown = _not_in(body, made.to_wire()) or _unknown_type(body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _newer(body, what, f"can't be read ({type(error).__name__})") from error
    if unknown:
        raise _newer(body, what, f"has {unknown!r:.60}, which this release does not know")
    return made


def _not_in(said: Any, again: Any) -> str:
    """Return the first name in `said` that is not in `again`; "" for none. Lists that were said
    otherwise (an older release's) have nothing to compare."""
    if said.__class__ in PLAIN or said == again:  # nearly all parts of nearly all bodies
        return ""
    if isinstance(said, Mapping) and isinstance(again, Mapping):
        return _not_in_mapping(said, again)
    # What comes from the wire and goes there has no other lists.
    both = isinstance(said, list | tuple) and isinstance(again, list | tuple)
    if both and len(said) == len(again):
        return next(filter(None, map(_not_in, said, again)), "")
    return ""


def _not_in_mapping(said: Mapping[Any, Any], again: Mapping[Any, Any]) -> str:
    """Return the first such name of a mapping, by the names' text: numbers that name something are
    text in JSON."""
    known = {str(name): value for name, value in again.items()}
    for name, value in said.items():
        word = str(name)
        if word not in known:
            return word
        if found := _not_in(value, known[word]):
            return found
    return ""


def _unknown_type(body: Mapping[str, Any]) -> str:
    """Return the type of a column that this release does not know; "" for none."""
    types = (column["type"] for column in body.get("columns", ()))
    return next((str(name) for name in types if not is_column_type(str(name))), "")


def _newer(body: Any, what: str, why: str) -> LogStopped:
    name = body.get("table", body.get("name", "")) if isinstance(body, Mapping) else ""
    if not what:
        what = "job on table" if isinstance(body, Mapping) and "sql" in body else "table"
    return LogStopped(
        f"{what} {str(name)!r:.80}: its record {why}. A newer release of Leasehold wrote it:"
        " install that release on this node. Nothing was applied from it"
    )
