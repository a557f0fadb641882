"""What clients did and were told: one line of JSON an operation. PURE.

Times are CLOCK_MONOTONIC in ns, one clock for all processes of a machine, which no fault moves. An
operation is written down before it begins (`ended_ns` 0), and again once its outcome is known: so
one whose client was killed is there, unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any, NamedTuple


class Told(StrEnum):
    """What a client may conclude."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class Op(NamedTuple):
    """An operation of one client. `number` is unique in a client; `value` is JSON."""

    client: str
    number: int
    kind: str
    begun_ns: int
    ended_ns: int
    told: Told
    code: str
    value: Mapping[str, Any]

    def line(self) -> str:
        """Return it as a line of a file."""
        return json.dumps([*self[:5], self.told.value, self.code, self.value]) + "\n"


def read_ops(texts: Iterable[str]) -> list[Op]:
    """Return the operations of those files, each once, as it was last written, by their begin. A
    last line that its writer did not end, because it was killed, is left out."""
    found: dict[tuple[str, int], Op] = {}
    for text in texts:
        for line in text.split("\n")[:-1]:
            try:
                client, number, kind, begun, ended, told, code, value = json.loads(line)
            except ValueError:
                continue  # the line that a kill cut off, and its successor's first one behind it
            made = Op(client, number, kind, begun, ended, Told(told), code, value)
            found[client, number] = made
    return sorted(found.values(), key=lambda op: op.begun_ns)
