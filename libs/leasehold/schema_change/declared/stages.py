"""The stages of a plan, in an order in which no statement is in another's way: what is renamed,
what goes, what is made and changed, what rests on that.

Each stage looks at the schema as those before leave it (`Situation`), so none has to know what they
did: an index that had to go for a column's other type is simply not there, and is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from leasehold.schema_change.declared import additions, alterations, enums, removals, renames, views
from leasehold.schema_change.declared.situation import Said, Situation

Stage: TypeAlias = Callable[[Situation], Iterator[Said]]

STAGES: Final[tuple[Stage, ...]] = (
    enums.rename_enums,
    renames.rename_tables,
    renames.rename_columns,
    views.drop_views,
    removals.drop_foreign_keys,
    removals.release_sequences,
    removals.drop_tables,  # before what their foreign keys refer to
    removals.drop_elements,
    removals.drop_keys,
    removals.drop_computed,
    renames.rename_elements,
    enums.create_enums,
    enums.add_labels,
    additions.create_sequences,
    additions.create_tables,
    alterations.loosen_columns,
    alterations.change_types,
    additions.add_columns,
    alterations.change_keys,
    removals.drop_columns,
    alterations.change_nullability,
    alterations.change_defaults,
    alterations.change_sequences,
    additions.add_elements,
    renames.rename_elements,
    additions.add_foreign_keys,
    additions.validate_constraints,
    removals.drop_sequences,
    enums.drop_enums,
    views.change_views,
    views.change_views,  # those that rested on one that was made again
    alterations.change_comments,
)
"""In the order in which they are run."""
