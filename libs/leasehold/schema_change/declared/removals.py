"""What a plan drops, in an order in which nothing rests on it any more."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leasehold.catalog.definitions import quoted
from leasehold.schema_change.declared import wording
from leasehold.schema_change.declared.situation import Said, Situation
from leasehold.schema_change.declared.wording import alter_text, names_text


def drop_foreign_keys(s: Situation) -> Iterator[Said]:
    """Drop foreign keys that are not wanted as they are, or that lose what they refer to."""
    for table, _, _ in s.both():
        for name in sorted(s.foreign_keys(table).dropped):
            yield Said(alter_text(table, f"DROP CONSTRAINT {quoted(name)}"))


def drop_elements(s: Situation) -> Iterator[Said]:
    """Drop CHECK and UNIQUE constraints, indexes and locks that are not wanted as they are."""
    for table, now, wanted in s.both():
        indexes = s.indexes(table).dropped
        uniques = {name for name in indexes if now.indexes[name].constraint}
        for name in sorted(s.checks(table).dropped | uniques):
            yield Said(alter_text(table, f"DROP CONSTRAINT {quoted(name)}"))
        for name in sorted(indexes - uniques):
            yield Said(f"DROP INDEX {quoted(name)}")
        for name, columns in now.locks.items():
            if wanted.locks.get(name) != columns:
                yield Said(alter_text(table, f"DROP LOCK {quoted(name)}"))


def drop_keys(s: Situation) -> Iterator[Said]:
    """Drop primary keys over columns whose other type no key outlasts; they are made again. So are
    those that include a column which is made again, without it."""
    for table, now, _ in s.both():
        drop = f"DROP CONSTRAINT {quoted(now.key_name)}"
        if any((table, column) in s.hard for column in now.key):
            yield Said(alter_text(table, drop))
        elif any((table, column) in s.made_again for column in now.key_included):
            alone = wording.key_text(replace(s.tables[table], key_included=()))
            yield Said(alter_text(table, drop, f"ADD {alone}"))


def release_sequences(s: Situation) -> Iterator[Said]:
    """Take sequences that stay away from what goes."""
    going = s.dropped_columns | s.made_again
    for name, sequence in s.now.sequences.items():
        if name not in s.target.sequences or sequence.identity or not sequence.owner[0]:
            continue
        if sequence.owner[0] in s.doomed_tables or sequence.owner in going:
            yield Said(f"ALTER SEQUENCE {quoted(name)} OWNED BY NONE")


def drop_computed(s: Situation) -> Iterator[Said]:
    """Drop columns that are to be computed otherwise, and computed ones that are not wanted, before
    what they are computed from changes."""
    columns = {(t, name): c for t, now, _ in s.both() for name, c in now.columns.items()}
    computed = {place for place in s.dropped_columns if columns[place].generated}
    for table, column in sorted(s.made_again | computed):
        yield _drop_column(s, table, column)


def _drop_column(s: Situation, table: str, column: str) -> Said:
    computed = s.now.tables[table].columns[column].generated
    loses = "" if computed else f"the values of column {column} of table {table}"
    return Said(alter_text(table, f"DROP COLUMN {quoted(column)}"), loses)


def drop_tables(s: Situation) -> Iterator[Said]:
    """Drop tables that are not wanted, all in one statement: they may refer to each other."""
    names = sorted(s.doomed_tables)
    if names:
        yield Said(f"DROP TABLE {names_text(names)}", f"the rows of {', '.join(names)}")


def drop_columns(s: Situation) -> Iterator[Said]:
    """Drop columns that are not wanted."""
    for table, column in sorted(s.dropped_columns):
        yield _drop_column(s, table, column)


def drop_sequences(s: Situation) -> Iterator[Said]:
    """Drop sequences that are not wanted."""
    for name, sequence in s.now.sequences.items():
        if name not in s.target.sequences and not sequence.identity:
            yield Said(f"DROP SEQUENCE {quoted(name)}", f"how far sequence {name} is")
