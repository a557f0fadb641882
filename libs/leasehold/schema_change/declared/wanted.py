"""A file of SQL that says what a schema is to be, read as a catalog by the code that reads schema
changes: so names, defaults and expressions are those that the statements would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import (
    FeatureNotSupported,
    LeaseholdError,
    Refused,
    UnknownColumn,
    UnknownObject,
    UnknownTable,
)
from leasehold.schema_change.declared.hints import Hint, find_hints
from leasehold.schema_change.plan.enums import enum_names
from leasehold.schema_change.plan.statement_batch import StatementBatch
from leasehold.sql.ddl.schema_statements import schema_statements
from leasehold.sql.syntax.object_statements import (
    DropAbsent,
    DropEnum,
    DropView,
    RenameEnum,
    RenameLabel,
    RenameView,
    RenameViewColumn,
)
from leasehold.sql.syntax.parsing import Parsed, parse
from leasehold.sql.syntax.positions import position_of, with_position
from leasehold.sql.syntax.roles.grant_statements import RoleStatement
from leasehold.sql.syntax.source import TEXT_BYTES_MAX
from leasehold.sql.syntax.statement import Reading, Words
from leasehold.sql.syntax.statements import (
    DropIndex,
    DropSequence,
    DropTable,
    Explain,
    RenameIndex,
    RenameSequence,
    RestartSequence,
    Truncate,
)

_STEPS: Final = (
    DropAbsent,
    DropEnum,
    DropIndex,
    DropSequence,
    DropTable,
    DropView,
    Explain,
    RenameEnum,
    RenameIndex,
    RenameLabel,
    RenameSequence,
    RenameView,
    RenameViewColumn,
    RestartSequence,
    Truncate,
)
_CONTEXT: Final = CommitContext(0, b"")


class Wanted(NamedTuple):
    """A schema that is wanted. `renamed`: the old name by kind, table and name; `using`: an
    expression by table and column."""

    catalog: Catalog
    renamed: Mapping[tuple[str, str, str], str]
    using: Mapping[tuple[str, str], str]


def read_wanted(text: str, zone: str = "") -> Wanted:
    """Return the schema that a text of CREATE statements (with ALTER TABLE, COMMENT and the like)
    makes where nothing is. `zone`: the time zone of constants in it, "" = UTC. Raises what planning
    them raises, with the place in the text; OutOfRange for a text of more than 1 MiB."""
    parsed = parse(text, TEXT_BYTES_MAX)
    batch = StatementBatch.on(Catalog())
    if not parsed:
        return Wanted(batch.catalog, {}, {})
    words = Words(parsed[0].source)
    left = list(parsed)
    while left:
        left = _take_all(left, words, zone, batch)
    hints = find_hints(parsed[0].source, parsed)
    return Wanted(batch.catalog, _renamed(hints), _using(hints))


def line_of(text: str, error: LeaseholdError) -> int:
    """Return the line of a text, from 1, that an error of `read_wanted` is about."""
    return text.count("\n", 0, position_of(error) - 1 if isinstance(error, Refused) else 0) + 1


def _take_all(
    statements: Sequence[Parsed], words: Words, zone: str, batch: StatementBatch
) -> list[Parsed]:
    """Take statements, and return those that name what comes later: their order says nothing.
    Raises the error of the first one where none can be taken."""
    left: list[Parsed] = []
    first: Refused | None = None
    for one in statements:
        try:
            _take(one, words, zone, batch)
        except (UnknownTable, UnknownObject, UnknownColumn) as error:
            first = first or error
            left.append(one)
    if first is not None and len(left) == len(statements):
        raise first
    return left


def _take(one: Parsed, words: Words, zone: str, batch: StatementBatch) -> None:
    reading = Reading(one, words, zone)
    reading.enums = enum_names(batch.catalog)  # so that a name that is no type's is told
    begin = one.source.position(one.begin)
    try:
        changes = schema_statements(reading)
    except FeatureNotSupported as error:
        raise error if "position" in error.detail else with_position(error, begin) from error
    for change in changes:
        if isinstance(change, RoleStatement):
            raise FeatureNotSupported(
                "owners, roles and privileges are no part of a declared schema: give them by"
                " statements of their own, and take this one out of the file",
                position=begin,
            )
        if isinstance(change, _STEPS):
            raise FeatureNotSupported(
                "a declared schema says what is to be there, and this says a step: leave out what"
                " is not to be there, and say `-- leasehold: renamed from OLD` of what has another"
                " name",
                position=begin,
            )
        try:
            batch.take(change, reading.text, b"", _CONTEXT, lambda _: 0)
        except Refused as error:
            if "position" in error.detail and position_of(error) > 1:
                raise
            raise with_position(error, begin) from error


def _renamed(hints: list[Hint]) -> dict[tuple[str, str, str], str]:
    found: dict[tuple[str, str, str], str] = {}
    for hint in hints:
        if hint.renamed_from:
            table = hint.place.table if hint.place.kind in ("column", "constraint") else ""
            found[hint.place.kind, table, hint.place.name] = hint.renamed_from
    return found


def _using(hints: list[Hint]) -> dict[tuple[str, str], str]:
    return {(hint.place.table, hint.place.name): hint.using for hint in hints if hint.using}
