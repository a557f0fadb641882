"""What CREATE TYPE, ALTER TYPE and DROP TYPE do, in PostgreSQL's words.

The type itself is changed at once. A new label, or another name of one, is a change of every table
that has a column of the type: so a version knows to read the label before any writer may write it
(`element_paths.widen_type`). The name of a type is nothing that a version of a table knows: texts
that are kept name it by its number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from leasehold.catalog.access import Access, check_owner
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.enum_types import (
    EnumColumn,
    columns_of_enum,
    id_of_enum_to_come,
    next_enum_id,
)
from leasehold.catalog.names import relation_names
from leasehold.catalog.namespaces import SEPARATOR
from leasehold.model.errors import (
    DependentObjects,
    DuplicateType,
    FeatureNotSupported,
    OutOfRange,
    Refused,
    UnknownObject,
)
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.other_objects import plan_other
from leasehold.schema_change.plan.rights import check_create
from leasehold.schema_change.steps import element_paths
from leasehold.sql.expressions.expression import depends_on_labels, says_constant, tells_labels
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.enum_names import EnumNames
from leasehold.sql.syntax.kept import nodes_of
from leasehold.sql.syntax.object_statements import (
    AddLabel,
    CreateEnum,
    CreateView,
    DropAbsent,
    DropEnum,
    EnumStatement,
    ObjectKind,
    ObjectName,
    RenameEnum,
    RenameLabel,
    RenameView,
)
from leasehold.sql.syntax.positions import refused_at
from leasehold.sql.syntax.reading import read_query
from leasehold.sql.syntax.statements import (
    AlterTable,
    Change,
    CreateSequence,
    CreateTable,
    DropColumn,
    RenameSequence,
    RenameTable,
    SetEnum,
)
from leasehold.sql.syntax.types import is_built_in
from leasehold.values.enums import Enumeration, add_label, make_labels, rename_label

ENUMS_MAX: Final = 1_000


class EnumChange(NamedTuple):
    """What a statement comes to: the catalog's `access` with it, and what it does to tables."""

    access: Access
    notices: tuple[str, ...] = ()
    tables: tuple[AlterTable, ...] = ()


def enum_names(catalog: Catalog) -> EnumNames:
    """Return the names of a catalog's enum types, for the statements of one request."""
    taken: list[int] = []

    def new_id(name: str) -> int:
        found = id_of_enum_to_come(catalog, name)
        if not found or found in taken:
            found = max(next_enum_id(catalog), max(taken, default=0) + 1)
        taken.append(found)
        return found

    return EnumNames(catalog.access.find_enum, new_id)


def change_enums(change: EnumStatement, catalog: Catalog, actor: int) -> EnumChange:
    """Return what a statement makes of enum types. Raises UnknownObject (42704), DuplicateType
    (42710), DependentObjects (2BP01), InsufficientPrivilege (42501), InvalidArgument (22023),
    OutOfRange, FeatureNotSupported."""
    with refused_at(change.position):
        match change:
            case CreateEnum():
                return EnumChange(_create(change, catalog, actor))
            case DropEnum():
                return _drop(change, catalog, actor)
            case AddLabel():
                return _add_label(change, catalog, actor)
            case RenameLabel():
                return _rename_label(change, catalog, actor)
            case RenameEnum():
                return EnumChange(_rename(change, catalog, actor))


def _create(change: CreateEnum, catalog: Catalog, actor: int) -> Access:
    access = catalog.access
    check_create(access, actor, change.schema)
    _check_name(change.name, catalog)
    if len(access.enums) >= ENUMS_MAX:
        raise OutOfRange(f"a database has at most {ENUMS_MAX} enum types")
    type_id = change.type_id or next_enum_id(catalog)
    made = Enumeration(type_id, change.name, make_labels(change.labels), change.schema)
    return access.without_object(type_id).with_enum(made).with_owner(type_id, actor)


def _check_name(name: str, catalog: Catalog) -> None:
    if is_built_in(name):
        raise FeatureNotSupported(
            f"type {name!r:.80} can't be made: a built-in type has that name; take another one"
        )
    if name in catalog.access.enums_by_name:
        raise DuplicateType(f'type "{name}" already exists')
    if name in relation_names(catalog):
        raise DuplicateType(
            f'type "{name}" already exists',
            hint="A relation has an associated type of the same name, so you must use a name that"
            " doesn't conflict with any existing type.",
        )


def refuse_enum_name(change: Change, access: Access) -> None:
    """Refuse to make a relation under the name of an enum type. Raises DuplicateType (42710)."""
    match change:
        case CreateTable(name=name) | CreateSequence(name=name) | CreateView(name=name):
            pass
        case RenameSequence(to=name) | RenameView(to=name):
            pass
        case AlterTable(actions=(RenameTable(to=name),)):
            pass
        case _:
            return
    if name in access.enums_by_name:
        raise DuplicateType(
            f'type "{name}" already exists',
            hint="A relation has an associated type of the same name, so you must use a name that"
            " doesn't conflict with any existing type.",
        )


def _find(name: str, catalog: Catalog, actor: int) -> Enumeration:
    found = catalog.access.find_enum(name)
    if found is None:
        raise UnknownObject(f'type "{name}" does not exist')
    check_owner(catalog.access, actor, found.type_id, name, "type")
    return found


# ------------------------------------------------------------------ labels


def _add_label(change: AddLabel, catalog: Catalog, actor: int) -> EnumChange:
    enum = _find(change.name, catalog, actor)
    if enum.has_label(change.label) and change.if_not_exists:
        # Columns may lack it, where a job of before was cancelled.
        notice = f'enum label "{change.label}" already exists, skipping'
        return EnumChange(catalog.access, (notice,), _tables_of(enum, catalog))
    made = add_label(enum, change.label, change.beside, before=change.before)
    return EnumChange(catalog.access.with_enum(made), (), _tables_of(made, catalog))


def _rename_label(change: RenameLabel, catalog: Catalog, actor: int) -> EnumChange:
    enum = _find(change.name, catalog, actor)
    made = rename_label(enum, change.label, change.to)
    for view in catalog.access.views.values():
        if says_constant(read_query(view.text), change.label):
            raise FeatureNotSupported(
                f"view {view.name!r} names label {change.label!r}: drop it first, and make it again"
            )
    return EnumChange(catalog.access.with_enum(made), (), _tables_of(made, catalog))


def _tables_of(enum: Enumeration, catalog: Catalog) -> tuple[AlterTable, ...]:
    """Return what brings the columns of a type to a version of it."""
    found: dict[str, list[SetEnum]] = {}
    for table, column in columns_of_enum(catalog, enum.type_id):
        known = column.type.enum
        if known is not None and known.labels != enum.labels:
            found.setdefault(table.name, []).append(SetEnum(column.name, enum))
    return tuple(AlterTable(name, tuple(actions)) for name, actions in found.items())


def set_enum(draft: TableDraft, action: SetEnum) -> None:
    """Bring a column to another version of its enum type. Raises FeatureNotSupported where an
    expression over the column would be another one by it."""
    old = draft.column(action.column)
    kind = replace(old.type, enum=action.enum)
    known = old.type.enum
    assert known is not None, old
    grows = action.enum.holds_all_of(replace(known, name=action.enum.name))
    _refuse_texts(draft, old.element_id, known, action.enum, grows=grows)
    new = replace(old, type=kind)
    if grows:
        draft.change_column(element_paths.widen_type(old, kind), new)
        draft.widened[old.element_id] = kind
        draft.retyped.add(old.element_id)
    else:
        draft.change_column(element_paths.rename_labels(old, kind), new)


def _refuse_texts(
    draft: TableDraft, element_id: int, old: Enumeration, new: Enumeration, *, grows: bool
) -> None:
    """Refuse texts over a column that would compute something else. ⚠ One that asks for all labels
    is another one with one more, and a label stands in a text by its name."""
    gone = {label.text for label in old.labels if not new.has_label(label.text)}
    for words, text in _texts_over(draft, element_id):
        if grows and tells_labels(text):
            raise FeatureNotSupported(
                f"{words} of table {draft.table.name!r} asks for the labels of the type: drop it"
                " first, and add it again after",
                table=draft.table.name,
            )
        named = any(says_constant(text, label) for label in gone)
        if not grows and (named or depends_on_labels(text, draft.table)):
            raise FeatureNotSupported(
                f"{words} of table {draft.table.name!r} names labels of the type: drop it first,"
                " and add it again after",
                table=draft.table.name,
            )


def _texts_over(draft: TableDraft, element_id: int) -> Iterator[tuple[str, str]]:
    """Yield the expressions over a column, with what each is of."""
    table = draft.table
    for check in table.checks:
        if element_id in check.columns:
            yield f"check {check.name!r}", check.expression
    for index in table.indexes:
        if element_id in index.mentioned:
            for text in (*index.expressions, index.predicate):
                if text:
                    yield f"index {index.name!r}", text
    for column in table.columns:
        if column.derived is not None and element_id in column.derived.sources:
            yield f"column {column.name!r}", column.derived.expression


# ------------------------------------------------------------------ names and ends


def _rename(change: RenameEnum, catalog: Catalog, actor: int) -> Access:
    enum = _find(change.name, catalog, actor)
    _check_name(change.to, catalog)
    view = next(_views_naming(enum, catalog.access), None)
    if view is not None:
        raise FeatureNotSupported(
            f"view {view!r} names type {change.name!r}: drop it first, and make it again"
        )
    if change.schema != enum.schema:
        check_create(catalog.access, actor, change.schema)
    return catalog.access.with_enum(replace(enum, name=change.to, schema=change.schema))


def _views_naming(enum: Enumeration, access: Access) -> Iterator[str]:
    """Yield the names of views whose texts name a type."""
    for view in access.views.values():
        nodes = nodes_of(read_query(view.text))
        if any(isinstance(node, tree.TypeName) and node.name == enum.name for node in nodes):
            yield view.name


def _drop(change: DropEnum, catalog: Catalog, actor: int) -> EnumChange:
    access = catalog.access
    if change.name not in access.enums_by_name:
        schema, dot, _ = change.name.partition(SEPARATOR)
        named = ObjectName(change.name, schema=schema if dot else "")
        absent = DropAbsent(ObjectKind.TYPE, named, change.if_exists, change.position, DropEnum.tag)
        return EnumChange(access, (plan_other(absent, catalog).notice,))
    enum = _find(change.name, catalog, actor)
    what = f"type {enum.name}"
    doomed = Doomed(what, what, change.cascade, change.position)
    users = list(columns_of_enum(catalog, enum.type_id))
    views = [f"view {name}" for name in _views_naming(enum, access)]
    words = [f"column {column.name} of table {table.name}" for table, column in users]
    if views or (users and not change.cascade):
        raise _refusal(doomed, [*words, *views])
    notices = tuple(map(cascade_notice, words))
    return EnumChange(access.without_enum(enum.type_id), notices, tuple(_without(users)))


def _refusal(doomed: Doomed, words: Iterable[str]) -> Refused:
    found: DependentObjects = doomed.refusal(words)
    return found


def _without(users: Iterable[EnumColumn]) -> Iterator[AlterTable]:
    found: dict[str, list[DropColumn]] = {}
    for table, column in users:
        found.setdefault(table.name, []).append(DropColumn(column.name, cascade=True))
    for name, actions in found.items():
        yield AlterTable(name, tuple(actions))
