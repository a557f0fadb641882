"""Confirming findings: Spark has seen images, the master sees the rows.

A finding names a row and a constraint, and nothing it says of them is believed: an image may be
older than the row, two images may never have been there together (values 1 → 100 of one row, 100 →
1 of the next). What the master's own rows don't show at this log position is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.model.errors import RequestTooLarge
from leasehold.model.keys import Key
from leasehold.model.ports import Row, RowSource
from leasehold.model.records.events import Image
from leasehold.model.records.jobs import FOUND_MAX, Findings
from leasehold.model.records.log import FindingsDecided
from leasehold.rows.check_constraints import condition_of, explain_violation, find_sqlstate
from leasehold.rows.index_entries import entry_of, key_of, key_shown
from leasehold.schema_change.coordinator.verification import (
    INTEGRITY,
    REQUIRED,
    code_of,
    make_finding,
    tell_rows,
)
from leasehold.schema_change.job.transitions import FINDINGS_MAX
from leasehold.transaction.foreign_keys import row_referred_to, values_of

Judge: TypeAlias = Callable[[Key, Image], str]


class Reader(RowSource, Protocol):
    """The part of a store that confirming needs."""

    def holders(
        self, descriptor: Any, index_id: int, values: Key, rows_max: int
    ) -> Sequence[Key]: ...


def confirm(findings: Findings, catalog: Catalog, store: Reader) -> FindingsDecided:
    """Return what becomes of findings that were accepted (`accept_findings`), by the rows of now.
    Raises RequestTooLarge for more than any run finds."""
    if len(findings.found) > FOUND_MAX:
        raise RequestTooLarge(
            f"findings name {len(findings.found)} rows; at most {FOUND_MAX} are looked into"
        )
    job = catalog.jobs[findings.job_id]
    descriptor = catalog.newest(findings.table_id)
    judges = {e: _judge(descriptor, e, catalog, store) for e in job.current.validates}
    confirmed: list[tuple[int, int, Key, str]] = []
    code = ""
    record_slice = dict.fromkeys((e, tuple(key)) for e, key in findings.found if e in judges)
    for element_id, key in record_slice:
        row = store.row(descriptor, key)
        words = _confirmed(judges[element_id], key, row)
        if words:
            element = descriptor.element(element_id)
            condition = REQUIRED if isinstance(element, Column) else INTEGRITY
            if isinstance(element, Check) and row is not None:
                code = code or find_sqlstate(condition_of(descriptor, element), row.values)
            code = code or code_of(element, condition)
            confirmed.append(make_finding(condition, element_id, key, words))
    return FindingsDecided(
        findings.job_id,
        findings.run,
        findings.rows,
        len(record_slice) - len(confirmed),
        _verdict(job, confirmed, findings.total - len(findings.found)),
        tuple(confirmed[:FINDINGS_MAX]),
        code,
    )


def _verdict(job: Job, confirmed: Sequence[tuple[int, int, Key, str]], more: int) -> str:
    if not confirmed:
        return ""
    told = [(key, words) for _, _, key, words in confirmed]
    return tell_rows(job, len(told), told, f" and perhaps {more} more" if more else "")


# ------------------------------------------------------------------ does a row break it?


def _confirmed(judge: Judge, key: Key, row: Row | None) -> str:
    """Return why the master's own row breaks it; "": it does not, or is gone."""
    return "" if row is None else judge(key, row.values)


def _judge(descriptor: Descriptor, element_id: int, catalog: Catalog, store: Reader) -> Judge:
    """A function (key, image) → why the row breaks the constraint, "" when it does not."""
    match descriptor.element(element_id):
        case Index() as index:
            return _judge_unique(descriptor, index, store)
        case ForeignKey() as foreign:
            return _judge_reference(foreign, catalog, store)
        case Check() as check:
            holds = condition_of(descriptor, check)
            words = f"check {check.name!r}: "
            return lambda _, image: words + why if (why := explain_violation(holds, image)) else ""
        case Column(name=name):
            words = f"column {name!r} is NULL"
            return lambda _, image: words if image.get(element_id) is None else ""
    raise AssertionError(f"element {element_id} of {descriptor.name!r} is no constraint")


def _judge_unique(descriptor: Descriptor, index: Index, store: Reader) -> Judge:
    """Judge a unique index by its entries: it is looked through once they are complete."""
    names = ", ".join(descriptor.key_words(index))
    entry = entry_of(descriptor, index)

    def judge(key: Key, image: Image) -> str:
        values = key_of(index, entry(image))
        if values is None or not index.can_collide(values):
            return ""
        found = store.holders(descriptor, index.element_id, values, 2)
        other = next((tuple(o) for o in found if tuple(o) != key), None)
        if other is None:
            return ""
        shown = key_shown(descriptor, index, values)
        return f"unique index {index.name!r}: ({names}) = ({shown}) is also in row {other!r:.200}"

    return judge


def _judge_reference(foreign: ForeignKey, catalog: Catalog, store: Reader) -> Judge:
    parent = catalog.newest(foreign.parent)
    names = ", ".join(parent.by_id[e].name for e in foreign.parent_columns)

    def judge(_: Key, image: Image) -> str:
        values = values_of(image, foreign.columns)
        if foreign.is_mixed(image):
            return f"foreign key {foreign.name!r}: it is NULL in parts"
        if values is None or row_referred_to(
            parent, foreign.parent_columns, foreign.parent_index, values, store.row, store.holders
        ):
            return ""
        shown = ", ".join(repr(value)[:80] for value in values)
        return (
            f"foreign key {foreign.name!r}: ({names}) = ({shown}) is not in table {parent.name!r}"
        )

    return judge
