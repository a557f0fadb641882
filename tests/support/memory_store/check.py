"""`CHECK TABLE` on a store in memory, by the definition itself (`consistency.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from leasehold.adapters.sqlite.checking.repair import WrongEntry
from leasehold.adapters.sqlite.dead_elements import element_ids_of
from leasehold.catalog.access import Access
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import ALL_ROWS, ForeignKey
from leasehold.catalog.job import job_from_wire
from leasehold.catalog.states import DELETED, READABLE
from leasehold.model.keys import Key, order_of
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.rows.index_entries import entry_of
from leasehold.schema_change.coordinator.verification import as_if_public, make_finding
from leasehold.transaction.mirror_table import genids_of, key_in
from tests.support.memory_store.consistency import KeyValueData, Violation, find_unheld, violations
from tests.support.memory_store.contents import Contents


def check_contents(
    held: Contents, subject: bytes, table_id: int, elements: Sequence[int]
) -> CheckReport:
    """One table's report; with `elements` only those, as if they were public already."""
    if table_id == ROLES_CHECKED:
        writes = sorted(map(repr, held.access.writes_since(Access())))
        roles = blake2b(repr(writes).encode(), digest_size=16).digest()
        position = held.position
        return CheckReport(
            subject, "", b"", position.offset, position.lsn, 0, 0, len(writes), {}, roles, 0, (), 0
        )
    versions = held.versions(table_id)
    data = data_of(held, table_id)
    found: tuple[Violation, ...] = ()
    error = "" if versions else f"there is no table {table_id}"
    if versions:
        newest = versions[-1]
        # Elements of older versions alone are left over on purpose.
        collected = held.collected.get(table_id, frozenset())
        kept = collected.union(*map(element_ids_of, versions)) - element_ids_of(newest)
        public = as_if_public(newest, elements)
        found = violations(data, public, kept, lambda key: _parents(held, key))
        if elements:
            found = tuple(v for v in found if v.element_id in elements)
            found += find_unheld(data, newest, elements)
            unknown = [e for e in elements if e != ALL_ROWS and newest.element(e) is None]
            if unknown:
                error = f"version {newest.version} of {newest.name!r} has no element {unknown[0]}"
    if ALL_ROWS in elements:
        found = (*found, *_unlike_mirror(held, newest), *_of_mirror(held, newest.mirror))
    entries: dict[int, int] = {}
    # Of those how many are there is each store's own until the job goes on.
    waits = unmerged(held)
    merged = data._replace(entries={e for e in data.entries if e[0] not in waits})
    if versions and not elements:
        apart = versions[-1].filled_apart
        pairs = {of: value for of, value in merged.columns.items() if of[1] not in apart}
        data, merged = data._replace(columns=pairs), merged._replace(columns=pairs)
    for index_id, _, _ in merged.entries:
        entries[index_id] = entries.get(index_id, 0) + 1
    return CheckReport(
        subject=subject,
        node="",
        incarnation=b"",
        offset=held.position.offset,
        lsn=held.position.lsn,
        table_id=table_id,
        version=versions[-1].version if versions else 0,
        rows=len(data.exists),
        entries={i: n for i, n in sorted(entries.items()) if not elements or i in elements},
        checksum=_checksum(held, merged, table_id),
        findings_total=len(found),
        findings=tuple(make_finding(v.condition, v.element_id, v.key, v.words) for v in found),
        took_ms=0,
        error=error,
        rows_checksum=b"" if elements else _checksum(held, data._replace(entries=set()), table_id),
    )


def unmerged(held: Contents) -> frozenset[int]:
    ranged = (job_from_wire(body) for body in held.jobs.values() if body.get("by_range"))
    return frozenset(job.element_id for job in ranged)


def _unlike_mirror(held: Contents, table: Descriptor) -> list[Violation]:
    """Each row is there under the other key, too, with all that it holds, genids included."""
    mirror = held.versions(table.mirror)[-1]
    found: list[Violation] = []
    matched = set()
    for key in sorted((key for t, key in held.exists if t == table.table_id), key=order_of):
        row = held.row(table.table_id, key)
        assert row is not None, "it exists"
        other_key = key_in(mirror, row.values)
        other = None if other_key is None else held.row(mirror.table_id, other_key)
        if other is None:
            words = "the row is not there under the other key"
            found.append(Violation(4, ALL_ROWS, key, words))
            continue
        matched.add(other_key)
        if other.values != row.values or genids_of(mirror, other) != genids_of(mirror, row):
            found.append(Violation(5, ALL_ROWS, key, "the row under the other key differs"))
    beyond = {key for t, key in held.exists if t == mirror.table_id} - matched
    if beyond:
        words = f"{len(beyond)} rows under the other key belong to no row"
        found.append(Violation(7, ALL_ROWS, (), words))
    return found


def _of_mirror(held: Contents, table_id: int) -> tuple[Violation, ...]:
    newest = held.versions(table_id)[-1]
    return violations(data_of(held, table_id), newest, frozenset(), lambda key: _parents(held, key))


def wrong_entries(held: Contents, table_id: int) -> list[WrongEntry]:
    """Entries that are not what an insert of their row would put, and those that rows lack."""
    newest = held.versions(table_id)[-1]
    kept = {index.element_id: index.state for index in newest.indexes if index.state in DELETED}
    there = {(i, values, key) for t, i, values, key in held.entries if t == table_id and i in kept}
    made = {index.element_id: entry_of(newest, index) for index in newest.indexes}
    implied = set()
    for key in (key for table, key in held.exists if table == table_id):
        row = held.row(table_id, key)
        assert row is not None, "it exists"
        for index_id, entry_from in made.items():
            entry = entry_from(row.values)
            if entry is not None:
                implied.add((index_id, entry, key))
    lacking = {entry for entry in implied - there if kept.get(entry[0]) in READABLE}
    found = [WrongEntry(i, key, (*values, *key)) for i, values, key in there - implied]
    found += [WrongEntry(i, key, None) for i, _, key in lacking]
    return sorted(found, key=repr)


def _parents(held: Contents, key: ForeignKey) -> set[Key]:
    """The values that the rows of a foreign key's parent have in the columns it refers to."""
    found = set()
    for table, primary in held.exists:
        if table == key.parent:
            row = held.row(table, primary)
            assert row is not None, "it exists"
            found.add(tuple(row.values.get(column) for column in key.parent_columns))
    return found


def data_of(held: Contents, table_id: int) -> KeyValueData:
    """One table's pairs in the form that the definition is written for."""
    keys = _primary_key(held, table_id)
    return KeyValueData(
        exists={key for table, key in held.exists if table == table_id},
        columns={
            (key, element): value
            for (table, key), pairs in held.pairs.items()
            if table == table_id
            for element, value in pairs.items()
            if element not in keys
        },
        entries={(i, values, key) for t, i, values, key in held.entries if t == table_id},
    )


def _primary_key(held: Contents, table_id: int) -> tuple[int, ...]:
    for (table, _), descriptor in held.descriptors.items():
        if table == table_id:
            return descriptor.primary_key
    return ()


def _checksum(held: Contents, data: KeyValueData, table_id: int) -> bytes:
    dead = held.dead_elements(table_id)
    content = (
        sorted((repr(k), *map(repr, held.exists[table_id, k])) for k in data.exists),
        sorted((repr(k), e, repr(v)) for (k, e), v in data.columns.items() if e not in dead),
        sorted((i, repr(values), repr(k)) for i, values, k in data.entries if i not in dead),
    )
    return blake2b(repr(content).encode(), digest_size=16).digest()
