"""What a foreign key rests on in the table that it refers to, and which changes of that table leave
it as it is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.edits import Kind
from leasehold.catalog.element_forms import FOREIGN_KEY_FORM
from leasehold.catalog.elements import Column, ForeignKey, Index
from leasehold.catalog.job import Job
from leasehold.schema_change.plan.repeated_changes import fields_of
from leasehold.schema_change.plan.results import JobPlan
from leasehold.schema_change.steps.element_paths import ElementPath

_NAMES: Final = frozenset(("name", "alias", "key_name", "key_included"))
_HARMLESS: Final = _NAMES | {
    *("nullable", "not_null_enforced", "demanded"),
    *("default", "default_text", "default_expression", "moment", "moment_zone"),
}
"""Fields of a column, or an index, on which no foreign key rests: it knows both by their ids."""


def new_foreign_keys(job: Job) -> Iterator[ForeignKey]:
    """Yield the foreign keys that a job makes."""
    for step in job.steps:
        for edit in step.edits:
            if edit.kind is Kind.FOREIGN_KEY and edit.before is None and edit.after is not None:
                yield FOREIGN_KEY_FORM.from_wire(edit.after)


def leaves_referred(parent: Descriptor, planned: JobPlan, keys: Iterable[ForeignKey]) -> bool:
    """Say whether a job leaves as it is what these foreign keys rest on in its table."""
    own = [key for key in keys if key.parent == parent.table_id]
    columns = {*parent.primary_key}.union(*(key.parent_columns for key in own))
    indexes = {key.parent_index for key in own}
    return all(_leaves(path, columns, indexes) for path in planned.paths)


def _leaves(path: ElementPath, columns: set[int], indexes: set[int]) -> bool:
    match path.element:
        case Descriptor():
            return not path.new and fields_of(path) <= _NAMES
        case Column(element_id=element_id):
            return path.new or element_id not in columns or fields_of(path) <= _HARMLESS
        case Index(element_id=element_id):
            return path.new or element_id not in indexes or fields_of(path) <= _HARMLESS
    return True
