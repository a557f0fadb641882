"""One item of the menu as its file under `items/` says it: table, statement, what is foreseen.

A job's descriptors are numbered as *contents*: 0 is the one before the job, n the one that step n
(from 1) publishes; a roll-back goes through the same contents backwards. `outcome` is what a write
meets by the content it is made under: "ok 42703" = accepted under content 0, refused from 1 on.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

ITEMS: Final = Path(__file__).with_name("items")
COMMON: Final = "common"
TABLE: Final = "m"
"""The table that the statement is about; another one may refer to it."""
_NUMBER: Final = re.compile(r"#([-+]\d+)?")
SHIFTS: Final = (0, 10)
"""Writes are made under each of two live versions, on rows of their own."""

_KEYS: Final = {
    "after",
    "anew",
    "bare",
    "cascades",
    "computed",
    "converted",
    "decided",
    "distinct",
    "ends",
    "fill",
    "like",
    "meanwhile",
    "older",
    "outcome",
    "point",
    "rekeyed",
    "renamed",
    "row",
    "rows",
    "scenarios",
    "setup",
    "spoiler",
    "statement",
    "states",
    "table",
    "together",
    "write",
}


@dataclass(frozen=True, slots=True)
class Write:
    """`#` in a value stands for the row's key, `@` is the key itself: `#` alone is a number
    (`#-16`: that of the key 16 below), in a text its digits. `stale`: made for a version below
    those in use, and judged by the newest; `crossed`: under the other one of two live versions than
    the rest; `table`, `key`, `values`, `on_conflict` as in a change request."""

    name: str
    op: str
    key: int
    table: str
    values: Mapping[str, Any]
    outcome: tuple[str, ...]
    on_conflict: str = "fail"
    stale: bool = False
    crossed: bool = False

    def foreseen(self, content: int) -> str:
        return str(_by_content(self.outcome, content))

    def at(self, shift: int) -> int:
        return self.key + shift

    def given(self, shift: int) -> dict[str, Any]:
        return {name: filled_in(value, self.at(shift), 7) for name, value in self.values.items()}

    def fields(
        self, shift: int, version: int | None, key: str = "id", other: str = ""
    ) -> dict[str, Any]:
        """The change request; `version` None: at whatever is newest. `key`: the column that rows
        are named by, "" = none: they are named all the same, only a new one is not; `other`: one
        that holds the same, to be given with a new row."""
        made: dict[str, Any] = {
            "table": self.table,
            "op": self.op,
            "key": {key or other: self.at(shift)},
            "on_conflict": self.on_conflict,
        }
        if self.op != "delete":
            made["values"] = self.given(shift)
            if other and self.op in ("insert", "upsert"):
                made["values"] = {other: self.at(shift), **made["values"]}
        if not key and self.op == "insert":
            del made["key"]
        if version is not None:
            made["schema_version"] = version
        return made


@dataclass(frozen=True, slots=True)
class Computed:
    of: str
    until: int = 1_000


class Rekeyed(NamedTuple):
    """From the content `since` on the primary key is `column`, which holds in each row what the one
    before, `former`, does. "": that table has none, hence has a key that nobody sees. `new`: the
    content from which on the column can be given, 0 = it was there."""

    column: str
    since: int
    former: str = "id"
    new: int = 0

    def columns(self, content: int) -> tuple[str, str]:
        """The key, and the column that holds the same, "" = it is not there."""
        if content >= self.since:
            return self.column, self.former
        return self.former, self.column if content >= self.new else ""


class Cascades(NamedTuple):
    """Rows whose `column` names a key go with the row of that key, while a content from `since` up
    to the one before `until` may be in use by anybody: what the writer knows does not matter."""

    column: str
    since: int = 0
    until: int = 1_000


@dataclass(frozen=True, slots=True)
class Definition:
    """`states`: what each step brings elements to; `point`: the step that can't be undone once it
    is published; `after`: the public table in words when the job has succeeded, () = it is gone.

    `backfill`: what a row shows in a column that its insert did not give, by content; `renamed`:
    new name → old; `converted`: column → int or text. `computed`: column → that which it is one
    more than, in rows written before the content `until`; `decided`: column → the content from
    which on an insert has its own commit's time there, other rows have their `backfill` or the time
    of the statement; `distinct`: columns whose values nobody foretells, no two of which are equal.
    `spoilers`: writes that make the job fail where they are accepted before the job has looked at
    the rows.
    """

    name: str
    scenarios: tuple[int, ...]
    table: str
    rows: tuple[Mapping[str, Any], ...]
    setup: tuple[str, ...]
    statement: str
    ends: str
    states: tuple[str, ...]
    point: int
    after: tuple[str, ...]
    backfill: Mapping[str, tuple[Any, ...]]
    renamed: Mapping[str, str]
    converted: Mapping[str, str]
    computed: Mapping[str, Computed]
    decided: Mapping[str, int]
    distinct: tuple[str, ...]
    writes: tuple[Write, ...]
    spoilers: tuple[Write, ...] = field(default=())
    together: tuple[Mapping[str, Any], ...] = field(default=())  # inserted with the statement
    rekeyed: Rekeyed | None = None
    cascades: Cascades | None = None
    anew: int = 0
    """The content from which on the name is that of another table, without the rows; 0 = none."""
    like: str = ""
    """The item that takes a way as this one does: faults that have nothing to do with rows are met
    there, at every place."""
    meanwhile: tuple[str, ...] = ()
    """Names of constraints that are there only while the job runs."""
    older: bool = False
    """Whether a node is there whose release knows of no change without a fill."""

    @property
    def request(self) -> dict[str, Any]:
        """The statement, and in one request with it the rows that are decided under content 0."""
        sql: dict[str, Any] = {"sql": self.statement}
        return {**sql, "transaction": inserts(self.together)} if self.together else sql

    @property
    def first_rows(self) -> list[dict[str, Any]]:
        """Operations that insert them."""
        return inserts(self.rows, keyed=self.rekeyed is None or bool(self.rekeyed.former))

    def fields(self, write: Write, shift: int, version: int | None, content: int) -> dict[str, Any]:
        """A write as a request under a content."""
        if self.rekeyed is None or write.table != TABLE:
            return write.fields(shift, version)
        return write.fields(shift, version, *self.rekeyed.columns(content))

    def filled(self, column: str, content: int) -> Any:
        values = self.backfill.get(column)
        return None if values is None else _by_content(values, content)


def _by_content(values: tuple[Any, ...], content: int) -> Any:
    return values[min(content, len(values) - 1)]


def filled_in(value: Any, key: int, extra: int = 0) -> Any:
    if value == "NULL":
        return None
    if value == "@":
        return key
    if isinstance(value, str) and (found := _NUMBER.fullmatch(value)):
        return (key + int(found[1] or 0)) * 100 + extra
    return value.replace("#", str(key)) if isinstance(value, str) else value


def names() -> list[str]:
    return sorted(path.stem for path in ITEMS.glob("*.toml") if path.stem != COMMON)


def read(name: str) -> Definition:
    """Raises KeyError or ValueError for a file that is not a definition."""
    common, item = _load(COMMON), _load(name)
    bare = item.get("bare", False)
    outcomes: Mapping[str, str] = item.get("outcome", {})
    writes = [w for w in common["write"] if not bare] + item.get("write", [])
    known = {w["name"] for w in writes}
    if not outcomes.keys() <= known:
        raise ValueError(f"{name}: no write is named {sorted(outcomes.keys() - known)}")
    if (like := item.get("like")) is not None:
        if like not in names():
            raise ValueError(f"{name}: there is no item {like!r} that it could be like")
        if "like" in _load(like):
            raise ValueError(f"{name}: {like} is like another itself, which has the faults")
    return Definition(
        name,
        tuple(item.get("scenarios", ())),
        item.get("table", common["table"]),
        (*(() if bare else _rows(common, item)), *map(_row, item.get("rows", ()))),
        tuple(item.get("setup", ())),
        item["statement"],
        item.get("ends", "succeeded"),
        tuple(item["states"]),
        item["point"],
        tuple(item["after"]),
        {c: _values(v) for c, v in item.get("fill", {}).items()},
        item.get("renamed", {}),
        item.get("converted", {}),
        {c: Computed(**said) for c, said in item.get("computed", {}).items()},
        item.get("decided", {}),
        tuple(item.get("distinct", ())),
        tuple(_write(w, outcomes) for w in writes),
        tuple(_write(w, {}) for w in item.get("spoiler", ())),
        tuple(map(_row, item.get("together", ()))),
        rekeyed=Rekeyed(**item["rekeyed"]) if "rekeyed" in item else None,
        cascades=Cascades(**item["cascades"]) if "cascades" in item else None,
        anew=item.get("anew", 0),
        like=item.get("like", ""),
        meanwhile=tuple(item.get("meanwhile", ())),
        older=item.get("older", False),
    )


def inserts(rows: Iterable[Mapping[str, Any]], *, keyed: bool = True) -> list[dict[str, Any]]:
    """Operations of a change request."""
    if not keyed:
        return [{"table": TABLE, "op": "insert", "values": dict(row)} for row in rows]
    return [
        {
            "table": TABLE,
            "op": "insert",
            "key": {"id": row["id"]},
            "values": {name: value for name, value in row.items() if name != "id"},
        }
        for row in rows
    ]


def _load(name: str) -> dict[str, Any]:
    body = tomllib.loads((ITEMS / f"{name}.toml").read_text())
    if not body.keys() <= _KEYS:
        raise ValueError(f"{name}: unknown {sorted(body.keys() - _KEYS)}")
    return body


def _rows(common: Mapping[str, Any], item: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows that the common writes are made on, each of every shift's own."""
    form = {**common["row"], **item.get("row", {})}
    keys = [each["id"] + shift for each in common["rows"] for shift in SHIFTS]
    return [{"id": k, **{c: filled_in(v, k) for c, v in form.items()}} for k in keys]


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {column: filled_in(value, row["id"]) for column, value in row.items()}


def _values(value: Any) -> tuple[Any, ...]:
    values = value if isinstance(value, list) else [value]
    return tuple(None if v == "NULL" else v for v in values)


def _write(body: Mapping[str, Any], outcomes: Mapping[str, str]) -> Write:
    return Write(
        body["name"],
        body["op"],
        body["key"],
        body.get("table", TABLE),
        body.get("values", {}),
        tuple(outcomes.get(body["name"], body.get("outcome", "ok")).split()),
        body.get("on_conflict", "fail"),
        body.get("stale", False),
        body.get("crossed", False),
    )
