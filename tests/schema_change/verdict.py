"""d ⊨ S for the rows of a world, the names of its versions, and what verification finds."""

from __future__ import annotations

from collections.abc import Callable, Collection

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Check, Column, Derived, ForeignKey, Index
from leasehold.catalog.states import READABLE, State
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.rows.filled_by_key import complete_image
from leasehold.schema_change.coordinator.verification import as_if_public
from leasehold.values.storage import from_storage, to_storage
from leasehold.values.types import Type
from tests.schema_change.rules import EVERY_RULE, Rules
from tests.schema_change.versions import Version
from tests.schema_change.world import Cell, Row
from tests.support.memory_store.consistency import KeyValueData, Violation, find_unheld, violations


def data_of(rows: tuple[Row, ...]) -> KeyValueData:
    """The rows as pairs; a row's key is its place."""
    placed = tuple(enumerate(rows))
    return KeyValueData(
        exists={(key,) for key, row in placed if row.exists},
        columns={((key,), e): value for key, row in placed for e, value in row.pairs},
        entries={(i, values, (key,)) for key, row in placed for i, values in row.entries},
    )


def parents_in(rows: tuple[Row, ...]) -> Callable[[ForeignKey], set[Key]]:
    """What the model's foreign keys may refer to: other columns of the same rows."""

    def values(key: ForeignKey) -> set[Key]:
        found = (tuple(map(row.value, key.parent_columns)) for row in rows if row.exists)
        return {each for each in found if None not in each}

    return values


def verified(
    rows: tuple[Row, ...], newest: Descriptor, elements: tuple[int, ...], dead: Collection[int]
) -> tuple[Violation, ...]:
    """What every node finds at VERIFYING: `elements` as if they were public already."""
    table = as_if_public(newest, elements)
    found = violations(data_of(rows), table, frozenset(dead), parents=parents_in(rows))
    found = tuple(v for v in found if v.element_id in elements)
    return (*found, *find_unheld(data_of(rows), newest, elements))


def deserved(found: tuple[Violation, ...], newest: Descriptor) -> bool:
    """Do the rows themselves break a constraint that writers can see, each finding one? All else
    (a pair or entry missing or too many) is the job's own doing."""
    public = newest.public_ids
    for violation in found:
        element = newest.element(violation.element_id)
        match element:
            case Index(over=columns) | Check(columns=columns) | ForeignKey(columns=columns):
                own = violation.condition != 6 or not set(columns) <= public
            case Column(derived=Derived(sources)) if "can't be computed" in violation.words:
                own = not set(sources) <= public
            case Column(narrow=Type()) if violation.condition == 6:
                own = violation.element_id not in public
            case _:
                own = violation.condition != 2 or violation.element_id not in public
        if own:
            return False
    return True


def inconsistent(rows: tuple[Row, ...], version: Version, dead: frozenset[int]) -> str:
    """Why the rows ⊭ `version`, "" when they do. `dead` elements wait for the history horizon."""
    if version.descriptor.state is State.ABSENT and dead:
        return ""  # so does the whole table
    found = violations(data_of(rows), version.descriptor, dead, parents=parents_in(rows))
    if not found:
        return _no_value_of_its_type(rows, version)
    first = found[0]
    return (
        f"version with {version.words}: condition {first.condition} ({first.anomaly} anomaly)"
        f": {first.words}"
    )


def _no_value_of_its_type(rows: tuple[Row, ...], version: Version) -> str:
    """What a reader at `version` finds in a column and its type has not, "" for nothing."""
    for column in version.public:
        for row in rows if not column.generated else ():
            value = row.value(column.element_id)
            shown = None if value is None else from_storage(column.type, value)
            try:
                kept = to_storage(column.type)(shown)
            except Refused:
                kept = None
            if kept != value:
                return f"condition 1: column {column.name!r} is {shown}, no {column.type}"
    return ""


def misread(cell: Cell, version: Version, rules: Rules = EVERY_RULE) -> str:
    """What a reader of images at `version` takes the row for, if it is not that; "" if it is."""
    if not cell.row.exists or not cell.made:
        return ""
    pairs = {e: value for e, value in (*cell.row.pairs, *cell.gone) if e not in cell.lacks}
    made = cell.made if rules.older_alone else 0
    seen = complete_image(version.descriptor, made, pairs) if rules.completed else pairs
    for column in version.public:
        true, found = cell.row.value(column.element_id), seen.get(column.element_id)
        if true != found:
            return f"column {column.name!r} is {true}, a reader of images sees {found}"
    return ""


def torn(rows: tuple[Row, ...], used: tuple[Version, ...]) -> str:
    """Which column says one thing to readers at one version and another thing at another, "" for
    none: where a name passes from one column to another, both hold the same."""
    newest = used[0].by_name
    for version in used[1:]:
        for name, element_id in version.by_name.items():
            other = newest.get(name, element_id)
            for row in rows if other != element_id else ():
                if row.value(element_id) != row.value(other):
                    old, new = row.value(element_id), row.value(other)
                    return f"column {name!r} is {old} in the older version, {new} in the newer"
    return ""


def names_harm(versions: tuple[Descriptor, ...], low: int, catalog: Catalog) -> str:
    """What is wrong with names, "" for nothing: each version in use is found by its own name, and
    what it calls a column or index is nothing else in the newest, nor unknown to it."""
    newest = versions[-1]
    for version in versions[len(versions) - 1 - low :]:
        for name in version.names:
            try:
                found = catalog.resolve(name, version.version)
            except Refused as error:
                return f"version {version.version} is not found by its name: {error.message}"
            if found.version != version.version or found.table_id != version.table_id:
                return f"{name!r} at version {version.version} is found as another table"
        if version.state not in READABLE or newest.state not in READABLE:
            continue
        if version.name not in newest.names:
            return f"the newest version does not know the table as {version.name!r}"
        harm = _elements_harm(version, newest)
        if harm:
            return harm
    return ""


def _elements_harm(version: Descriptor, newest: Descriptor) -> str:
    for column in version.columns:
        if column.state not in READABLE or column.element_id not in newest.public_ids:
            continue
        found = newest.by_name.get(column.name) or newest.by_alias.get(column.name)
        if found is None or found.element_id != column.element_id:
            return f"the newest version does not know column {column.name!r} by that name"
    for index in version.indexes:
        now = newest.element(index.element_id)
        if index.state in READABLE and now is not None and now.state in READABLE:
            found_index = newest.read_index(version.read_name(index))
            if found_index is None or found_index.element_id != index.element_id:
                return f"the newest version does not know index {index.name!r} by that name"
    return ""
