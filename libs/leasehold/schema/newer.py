"""What a newer release says of tables and jobs is refused by nodes, which would keep it.

Whoever only reads (a subscriber, the command) may pass over a field that it does not know. A node
that did so would write the rest into its store, and decide by it once it is master: another schema
than that of the others, for ever, also after its upgrade.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from leasehold.model.errors import LogStopped
from leasehold.schema.types import KNOWN


class Written(Protocol):
    def to_wire(self) -> dict[str, Any]: ...


T = TypeVar("T", bound=Written)


def as_written(body: Any, read: Callable[[Any], T]) -> T:
    """`read(body)`, of which nothing is left out. Raises LogStopped."""
    try:
        made = read(body)
        unknown = _not_in(body, made.to_wire()) or _unknown_type(body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise _newer(body, f"can't be read ({type(error).__name__})") from error
    if unknown:
        raise _newer(body, f"has {unknown!r:.60}, which this release does not know")
    return made


def _not_in(said: Any, again: Any) -> str:
    """The first name in `said` that is not in `again`; "" for none. Lists that were said otherwise
    (an older release's) have nothing to compare."""
    if said == again:  # nearly all parts of nearly all bodies: no need to look into them
        return ""
    if isinstance(said, Mapping) and isinstance(again, Mapping):
        known = {str(name): value for name, value in again.items()}
        for name, value in said.items():
            if str(name) not in known:
                return str(name)
            found = _not_in(value, known[str(name)])
            if found:
                return found
    elif _is_list(said) and _is_list(again) and len(said) == len(again):
        for one, other in zip(said, again, strict=True):
            found = _not_in(one, other)
            if found:
                return found
    return ""


def _unknown_type(body: Mapping[str, Any]) -> str:
    """Of a column; "" for none."""
    types = (column["type"] for column in body.get("columns", ()))
    return next((str(name) for name in types if name not in KNOWN), "")


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _newer(body: Any, why: str) -> LogStopped:
    name = body.get("table", body.get("name", "")) if isinstance(body, Mapping) else ""
    what = "job on table" if isinstance(body, Mapping) and "sql" in body else "table"
    return LogStopped(
        f"{what} {str(name)!r:.80}: its record {why}. A newer release of Leasehold wrote it:"
        " install that release on this node. Nothing was applied from it"
    )
