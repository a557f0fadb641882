"""What a replica is to hold: everything, or some tables, of each perhaps some rows."""

from __future__ import annotations

import json
from dataclasses import dataclass

from leasehold.catalog.part import TABLES_MAX, PartWish
from leasehold.settings.setting import setting

WHERE_BYTES_MAX = 64 * 1024


def table_names(text: str) -> tuple[str, ...]:
    """Return names of tables from a text with commas, or a JSON array for names with signs."""
    expected = f"names of tables with commas between them, or a JSON array, {TABLES_MAX:,} at most"
    names: list[object] = [name.strip() for name in text.split(",")]
    if text.startswith("["):
        try:
            names = json.loads(text)
        except ValueError:
            raise ValueError(expected) from None
    elif not all(map(_is_plain, names)):
        raise ValueError(expected)
    texts = [name for name in names if isinstance(name, str) and name]
    if not texts or len(texts) < len(names) or len(texts) > TABLES_MAX:
        raise ValueError(expected)
    return tuple(texts)


def _is_plain(name: object) -> bool:
    return str(name).replace("_", "a").replace("$", "a").isalnum()


def conditions(text: str) -> tuple[tuple[str, str], ...]:
    """Return conditions by table from a JSON object."""
    expected = 'a JSON object of conditions by table, such as {"seats": "flight < 200"}'
    if len(text) > WHERE_BYTES_MAX:
        raise ValueError(f"{expected}, {WHERE_BYTES_MAX:,} bytes at most")
    try:
        found = json.loads(text)
    except ValueError:
        raise ValueError(expected) from None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise ValueError(expected)
    return tuple(sorted(found.items()))


def column_lists(text: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return names of columns by table from a JSON object."""
    expected = 'a JSON object of columns by table, such as {"seats": ["flight", "free"]}'
    if len(text) > WHERE_BYTES_MAX:
        raise ValueError(f"{expected}, {WHERE_BYTES_MAX:,} bytes at most")
    try:
        found = json.loads(text)
    except ValueError:
        raise ValueError(expected) from None
    lists = isinstance(found, dict) and all(isinstance(each, list) for each in found.values())
    if not lists or not all(isinstance(n, str) for each in found.values() for n in each):
        raise ValueError(expected)
    return tuple(sorted((table, tuple(names)) for table, names in found.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSettings:
    """The settings of what a replica holds. Without any it holds everything."""

    tables: tuple[str, ...] = setting(
        "LEASEHOLD_REPLICA_TABLES",
        "tables that this replica holds, with commas; without any it holds all",
        default=(),
        parse=table_names,
    )
    where: tuple[tuple[str, str], ...] = setting(
        "LEASEHOLD_REPLICA_WHERE",
        "which rows it holds of some of them: a JSON object of conditions by table, each a range of"
        " the first column of the primary key, a value of another column, or both",
        default=(),
        parse=conditions,
    )

    columns: tuple[tuple[str, tuple[str, ...]], ...] = setting(
        "LEASEHOLD_REPLICA_COLUMNS",
        "which columns it holds of some of them, beside those of the primary key: a JSON object of"
        " arrays of names by table",
        default=(),
        parse=column_lists,
    )

    @property
    def wish(self) -> PartWish:
        """Return what the replica is to hold."""
        return PartWish.of(self.tables, dict(self.where), dict(self.columns))
