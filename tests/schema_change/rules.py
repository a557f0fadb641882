"""Rules of the schema-change model as switches: a test turns one off and expects the harm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Rules:
    """Every rule on is the design."""

    drain: bool = True  # D2, D4: the next step waits until nobody holds an older version
    two_versions: bool = True  # D5: before a third version is out, the first is refused
    fence: bool = True  # D5: what was made below min_version is refused
    fence_before_work: bool = True  # rows are filled and checked only after the fence
    chunk_check: bool = True  # ⚠ a chunk counts only for its job's run, step and element
    write_missing: bool = True  # ⚠ write-only: any update writes what the row still lacks
    own_row: bool = True  # V3: a chunk's entry is derived from the node's row, not from its image
    # P12: a row written since its image was read is filled all the same
    backfill_newer: bool = True
    truncate_whole: bool = True  # TRUNCATE takes entries of an index on its way too
    confirm: bool = True  # a finding counts by the row of now, not by the image that it was made of
    completed: bool = True  # a reader of images puts what a backfill by key has put without one
    older_alone: bool = True  # … into those of versions before the backfill: later ones tell NULLs
    image_kept: bool = True  # … with what it has of columns that the table has no more
    given_at_once: bool = True  # the store gives each row the default of a column that comes
    new_completed: bool = True  # … and the master one that is inserted by who knows no such column
    acts_early: bool = True  # a foreign key acts from the state on in which it is enforced
    verify: bool = True  # count and content are compared before public
    slices_cover: bool = True  # a verification in slices ends when each row's place was in one


EVERY_RULE: Final = Rules()
