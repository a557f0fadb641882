"""Renames of a plan: those that hints tell, and those of what is the same otherwise."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.definitions import quoted
from leasehold.schema_change.declared.situation import Said, Situation
from leasehold.schema_change.declared.wording import alter_text


def rename_tables(s: Situation) -> Iterator[Said]:
    """Rename tables and sequences that a hint says have another name."""
    for (kind, _, name), old in s.wanted.renamed.items():
        there = s.now.tables if kind == "table" else s.now.sequences
        if kind in ("table", "sequence") and old in there and name not in there:
            yield Said(f"ALTER {kind.upper()} {quoted(old)} RENAME TO {quoted(name)}")


def rename_columns(s: Situation) -> Iterator[Said]:
    """Rename columns that a hint says have another name."""
    for (kind, table, name), old in s.wanted.renamed.items():
        there = s.now.tables.get(table)
        if kind != "column" or there is None or name in there.columns or old not in there.columns:
            continue
        yield Said(alter_text(table, f"RENAME COLUMN {quoted(old)} TO {quoted(name)}"))


def rename_elements(s: Situation) -> Iterator[Said]:
    """Rename indexes, constraints, keys and owned sequences that are the same but for the name."""
    for table, now, wanted in s.both():
        constraints: dict[str, str] = {}
        if now.key and wanted.key == now.key and wanted.key_name != now.key_name:
            constraints[wanted.key_name] = now.key_name
        for new, old in s.indexes(table).renamed.items():
            if now.indexes[old].constraint:
                constraints[new] = old
            else:
                yield Said(f"ALTER INDEX {quoted(old)} RENAME TO {quoted(new)}")
        constraints |= {**s.checks(table).renamed, **s.foreign_keys(table).renamed}
        for new, old in constraints.items():
            yield Said(alter_text(table, f"RENAME CONSTRAINT {quoted(old)} TO {quoted(new)}"))
    owned = {each.owner: name for name, each in s.now.sequences.items() if each.owner[0]}
    for name, sequence in s.target.sequences.items():
        there = owned.get(sequence.owner)
        if name in s.now.sequences or there is None or there in s.target.sequences:
            continue
        yield Said(f"ALTER SEQUENCE {quoted(there)} RENAME TO {quoted(name)}")
