"""What a plan makes."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.definitions import index_keys, quoted
from leasehold.catalog.elements import ForeignKey
from leasehold.model.errors import LeaseholdError
from leasehold.schema_change.declared import wording
from leasehold.schema_change.declared.in_memory import run_request
from leasehold.schema_change.declared.situation import EQUAL, Said, Situation
from leasehold.schema_change.declared.wording import alter_text, names_text


def create_sequences(s: Situation) -> Iterator[Said]:
    """Make sequences that no column brings along."""
    brought = {
        s.wanted.catalog.newest(column.draws_from).name
        for name, table in s.wanted_tables.items()
        for column in table.by_name.values()
        if column.identity
        or (
            wording.is_serial(table, column, s.wanted.catalog)
            and (name not in s.now.tables or column.name not in s.now.tables[name].columns)
        )
    }
    for name, sequence in s.wanted_sequences.items():
        if name not in s.now.sequences and name not in brought:
            yield Said(wording.create_sequence_text(sequence))


def create_tables(s: Situation) -> Iterator[Said]:
    """Make tables, with the foreign keys to tables that are there by then."""
    left = [name for name in s.target.tables if name not in s.now.tables]
    there = set(s.now.tables)
    catalog = s.catalog
    while left:
        free = [n for n in left if _parents(s, n) <= there | {n}]
        name = (free or left)[0]
        left.remove(name)
        own = s.wanted_tables[name].foreign_keys
        keys = [k for k in own if _parent(s, k) in there | {name}]

        try:
            sql = _create_table(s, name, keys)
            catalog = run_request(catalog, sql, s.zone).catalog
        except LeaseholdError:  # what it refers to gets its UNIQUE later
            sql = _create_table(s, name, [])
            catalog = run_request(catalog, sql, s.zone).catalog
        yield Said(sql)
        there.add(name)


def _create_table(s: Situation, name: str, keys: list[ForeignKey]) -> str:
    table = s.wanted_tables[name]
    return wording.create_table_text(table, s.wanted.catalog, keys, s.now.sequences)


def add_columns(s: Situation) -> Iterator[Said]:
    """Add columns: those that are computed from others last."""
    for table, now, _ in s.both():
        wanted = s.wanted_tables[table]
        added = [c for c in wanted.by_name.values() if c.name not in now.columns]
        for column in sorted(added, key=lambda c: c.generated):
            words = wording.column_text(wanted, column, s.wanted.catalog, s.now.sequences)
            may_fail = ""
            if column.generated:
                may_fail = f"a row of which {column.name} can't be computed fails it"
            elif not column.nullable and not column.has_default:
                may_fail = "any row fails it: it has no value there, so give it a DEFAULT"
            yield Said(alter_text(table, f"ADD COLUMN {words}"), may_fail=may_fail)


def add_elements(s: Situation) -> Iterator[Said]:
    """Make locks, CHECK and UNIQUE constraints, and indexes."""
    for table, now, wanted in s.both():
        target = s.wanted_tables[table]
        for name, columns in wanted.locks.items():
            if name not in now.locks:
                yield Said(
                    alter_text(table, f"ADD LOCK {quoted(name)} COVERING ({names_text(columns)})")
                )
        for name in s.checks(table).added:
            check = target.check(name)
            assert check is not None, "it is wanted"
            words = wording.check_definition(check)
            fails = "a row that breaks it fails it" if wanted.checks[name].valid else ""
            yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)
        for name in s.indexes(table).added:
            index = target.index(name)
            assert index is not None, "it is wanted"
            fails = ""
            if index.unique:
                fails = EQUAL.format(", ".join(index_keys(target, index)))
            elif index.computed:
                fails = "a row on which an expression of it can't be computed fails it"
            if index.constraint:
                words = wording.unique_definition(target, index)
                yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)
            else:
                yield Said(wording.create_index_text(target, index), may_fail=fails)


def add_foreign_keys(s: Situation) -> Iterator[Said]:
    """Make foreign keys."""
    for table, _, wanted in s.both():
        for name in s.foreign_keys(table).added:
            key = s.wanted_tables[table].foreign_key(name)
            assert key is not None, "it is wanted"
            words = wording.foreign_key_definition(s.wanted_tables[table], key, s.wanted.catalog)
            valid = wanted.foreign_keys[name].valid
            fails = "a row that refers to none fails it" if valid else ""
            yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)


def validate_constraints(s: Situation) -> Iterator[Said]:
    """Look whether rows hold constraints that nobody has looked at yet."""
    for table, now, wanted in s.both():
        asked = {name for name, check in wanted.checks.items() if check.valid}
        asked |= {name for name, key in wanted.foreign_keys.items() if key.valid}
        broken = [name for name, check in now.checks.items() if not check.valid]
        broken += [name for name, key in now.foreign_keys.items() if not key.valid]
        for name in broken:
            if name in asked:
                words = f"VALIDATE CONSTRAINT {quoted(name)}"
                yield Said(alter_text(table, words), may_fail="a row that breaks it fails it")


def _parent(s: Situation, key: ForeignKey) -> str:
    return s.wanted.catalog.newest(key.parent).name


def _parents(s: Situation, table: str) -> set[str]:
    return {_parent(s, key) for key in s.wanted_tables[table].foreign_keys}
