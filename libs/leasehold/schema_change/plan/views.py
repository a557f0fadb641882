"""What CREATE VIEW, DROP VIEW and changes of tables do to the views of a database, at once: a view
has no states (`catalog/view.py`). In PostgreSQL's words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from leasehold.catalog.access import Access, check_owner
from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column
from leasehold.catalog.names import relation_names
from leasehold.catalog.namespaces import SEPARATOR, bare, qualified
from leasehold.catalog.view import TEXT_BYTES_MAX, VIEWS_MAX, View, ViewTable
from leasehold.model.errors import (
    DuplicateColumn,
    DuplicateObject,
    FeatureNotSupported,
    InvalidDefinition,
    InvalidObject,
    OutOfRange,
    Refused,
    SyntaxInvalid,
    UndefinedParameter,
    UnknownColumn,
    UnknownSchema,
    UnknownTable,
    WrongObject,
)
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice
from leasehold.schema_change.plan.primary_key import read_key_change
from leasehold.schema_change.plan.rights import check_create
from leasehold.sql.binding.queries import Binder
from leasehold.sql.syntax import tree
from leasehold.sql.syntax.object_statements import (
    CreateView,
    DropView,
    RenameView,
    RenameViewColumn,
    SetViewOptions,
    ViewStatement,
)
from leasehold.sql.syntax.positions import position_of, with_position
from leasehold.sql.syntax.reading import read_statement
from leasehold.sql.syntax.statements import (
    AlterTable,
    AlterType,
    Change,
    CreateIndex,
    DropColumn,
    DropTable,
    RenameTable,
    SetSchema,
    Truncate,
)
from leasehold.values.time_zone import UTC

_RULE: Final = "rule _RETURN on view"


def change_views(
    change: ViewStatement, catalog: Catalog, actor: int
) -> tuple[Access, tuple[str, ...]]:
    """Return what CREATE, ALTER and DROP VIEW make of the catalog's access, and notices. Raises
    what `plan` raises."""
    if isinstance(change, CreateView):
        return _create(change, catalog, actor), ()
    if isinstance(change, RenameView):
        return _rename(change, catalog, actor)
    if isinstance(change, RenameViewColumn):
        return _rename_column(change, catalog, actor)
    if isinstance(change, SetViewOptions):
        return _set_options(change, catalog, actor)
    return _drop(change, catalog, actor)


# ------------------------------------------------------------------ CREATE VIEW


def _create(change: CreateView, catalog: Catalog, actor: int) -> Access:
    access = catalog.access
    before = access.views_by_name.get(change.name)
    if before is None:
        check_create(access, actor, change.schema)
        _check_name(change, catalog)
    elif change.replace:
        check_owner(access, actor, before.table_id, before.name, "view")
    else:
        raise _taken(change)
    if before is None and len(access.views) >= VIEWS_MAX:
        raise OutOfRange(f"a database has at most {VIEWS_MAX} views")
    if len(change.text.encode()) > TEXT_BYTES_MAX:
        raise OutOfRange(f"the query of a view has at most {TEXT_BYTES_MAX} bytes")
    try:
        view = _bind(change, catalog)
    except Refused as error:
        if "position" not in error.detail:
            raise
        raise with_position(error, position_of(error) + change.before) from error
    if before is None:
        view = view._replace(table_id=access.next_view_id())
        return access.without_object(view.table_id).with_view(view).with_owner(view.table_id, actor)
    _check_replaced(before, view)
    view = view._replace(table_id=before.table_id)
    if len(view.columns) > len(before.columns):
        access = _remember(access, before)
    if before.table_id in _views_below(access, view):
        raise InvalidObject(f'infinite recursion detected in rules for relation "{view.name}"')
    return access.with_view(view)


def _taken(change: CreateView) -> DuplicateObject:
    return DuplicateObject(
        f"relation {change.name!r} already exists", table=change.name, position=change.position
    )


def _check_name(change: CreateView, catalog: Catalog) -> None:
    if change.name not in relation_names(catalog):
        return
    if change.replace:
        raise WrongObject(
            f'"{change.name}" is not a view', table=change.name, position=change.position
        )
    raise _taken(change)


def _bind(change: CreateView, catalog: Catalog) -> View:
    """Return the view without its id. Places in errors count in its query."""
    statement, numbered = read_statement(change.text)
    if not isinstance(statement, tree.Query):
        raise FeatureNotSupported(
            "a view of anything but a query is not supported: its text is SELECT, VALUES,"
            " TABLE, or WITH before one of these",
            position=1,
        )
    if statement.visits is not None:
        raise FeatureNotSupported(
            "a view that locks or verifies what it reads is not supported: say so in the query that"
            " names it",
            position=statement.visits.at,
        )
    if numbered:
        raise UndefinedParameter("there is no parameter $1", position=1)
    binder = Binder(catalog.resolve, {}, UTC, catalog.access.find_named)
    query = binder.bind_query(statement, None)
    if binder.claims:
        raise FeatureNotSupported(
            "a view that claims what it reads is not supported: say SKIP LOCKED or NOWAIT in"
            " the query that names it",
            position=1,
        )
    columns = tuple(
        Column(number, name, column.kind)  # it may be NULL, whatever its query says
        for number, (name, column) in enumerate(
            zip(_names(change, [c.name for c in query.columns]), query.columns, strict=True), 1
        )
    )
    used: dict[int, set[int]] = {}
    for need in binder.needs.all():
        if not need.of_view:
            used.setdefault(need.table_id, set()).update(need.columns)
    tables = tuple(
        ViewTable(
            name,
            (name,),
            table.table_id,
            {column.element_id: called for called, column in table.by_name.items()},
            frozenset(used.get(table.table_id, ())),
        )
        for name, table in binder.views.named_tables.items()
    )
    views = {name: view.table_id for name, view in binder.views.named_views.items()}
    return View(0, change.name, change.text, columns, tables, views, change.schema, change.options)


def _names(change: CreateView, names: Sequence[str]) -> list[str]:
    if len(change.columns) > len(names):
        raise SyntaxInvalid("CREATE VIEW specifies more column names than columns", position=1)
    named = [*change.columns, *names[len(change.columns) :]]
    for number, name in enumerate(named):
        if name in named[:number]:
            raise DuplicateColumn(f'column "{name}" specified more than once', column=name)
    return named


def _check_replaced(before: View, after: View) -> None:
    """Refuse another beginning of its columns: others may rest on them."""
    if len(after.columns) < len(before.columns):
        raise InvalidDefinition("cannot drop columns from view")
    for old, new in zip(before.columns, after.columns, strict=False):
        if old.name != new.name:
            raise InvalidDefinition(
                f'cannot change name of view column "{old.name}" to "{new.name}"',
                hint="DROP VIEW and CREATE VIEW give it other columns.",
            )
        if old.type != new.type:
            raise InvalidDefinition(
                f'cannot change data type of view column "{old.name}" from {old.type} to {new.type}'
            )


def _views_below(access: Access, view: View) -> set[int]:
    """Return the ids of all views that a view's query comes to."""
    found: set[int] = set()
    left = [*view.views.values()]
    while left:
        number = left.pop()
        if number not in found:
            found.add(number)
            left += access.views[number].views.values() if number in access.views else ()
    return found


# ------------------------------------------------------------------ ALTER VIEW


def _rename(change: RenameView, catalog: Catalog, actor: int) -> tuple[Access, tuple[str, ...]]:
    """Give a view another name. Those that rest on it know it by its id."""
    access = catalog.access
    found = _find_altered(change, catalog, actor)
    if isinstance(found, str):
        return access, (found,)
    if change.to in relation_names(catalog):
        raise DuplicateObject(
            f"relation {change.to!r} already exists", table=change.to, position=change.position
        )
    return access.with_view(found._replace(name=change.to)), ()


def _rename_column(
    change: RenameViewColumn, catalog: Catalog, actor: int
) -> tuple[Access, tuple[str, ...]]:
    """Give a column of a view another name. Those that rest on it go on by the one of before."""
    access = catalog.access
    found = _find_altered(change, catalog, actor)
    if isinstance(found, str):
        return access, (found,)
    names = [column.name for column in found.columns]
    if change.column not in names:
        raise UnknownColumn(
            f'column "{change.column}" does not exist',
            table=found.name,
            column=change.column,
            position=change.position,
        )
    if change.to in names:
        raise DuplicateColumn(
            f'column "{change.to}" of relation "{found.name}" already exists',
            table=found.name,
            column=change.to,
            position=change.position,
        )
    columns = tuple(
        replace(column, name=change.to) if column.name == change.column else column
        for column in found.columns
    )
    return _remember(access, found).with_view(found._replace(columns=columns)), ()


def _set_options(
    change: SetViewOptions, catalog: Catalog, actor: int
) -> tuple[Access, tuple[str, ...]]:
    access = catalog.access
    found = _find_altered(change, catalog, actor)
    if isinstance(found, str):
        return access, (found,)
    said = {option.partition("=")[0] for option in change.options}.union(change.reset)
    kept = (option for option in found.options if option.partition("=")[0] not in said)
    return access.with_view(found._replace(options=(*kept, *change.options))), ()


def _find_altered(
    change: RenameView | RenameViewColumn | SetViewOptions, catalog: Catalog, actor: int
) -> View | str:
    """Return the view that is altered, or with IF EXISTS the notice that there is none. Raises
    WrongObject, UnknownTable, InsufficientPrivilege."""
    access = catalog.access
    found = access.views_by_name.get(change.name)
    if found is None and change.name in relation_names(catalog):
        raise WrongObject(
            f'"{change.name}" is not a view', table=change.name, position=change.position
        )
    if found is None:
        words = f'relation "{change.name}" does not exist'
        if change.if_exists:
            return f"{words}, skipping"
        raise UnknownTable(words, table=change.name, position=change.position)
    check_owner(access, actor, found.table_id, found.name, "view")
    return found


def _remember(access: Access, view: View) -> Access:
    """Return `access` whose views over `view` know its columns as they are now."""
    for user in list(_users_of(access, view.table_id)):
        access = access.with_view(user.with_known(view))
    return access


def has_later_form(access: Access, before: Access) -> bool:
    """Return whether a view that is not in `before` is one that earlier releases would read
    otherwise: by a name of before, or with the privileges of its owner."""
    for number, view in access.views.items():
        was = before.views.get(number)
        if was is view:
            continue
        renamed = was is not None and was.name != view.name
        if view.options or view.known or (renamed and any(_users_of(access, number))):
            return True
    return False


# ------------------------------------------------------------------ DROP VIEW


def _drop(change: DropView, catalog: Catalog, actor: int) -> tuple[Access, tuple[str, ...]]:
    access = catalog.access
    found = access.views_by_name.get(change.name)
    if found is None:
        if change.name in relation_names(catalog):
            raise WrongObject(
                f'"{change.name}" is not a view',
                table=change.name,
                position=change.position,
                hint="Use DROP TABLE to remove a table.",
            )
        absent = _absent(change, access)
        if not change.if_exists:
            raise absent
        return access, (f"{absent.message}, skipping",)
    check_owner(access, actor, found.table_id, found.name, "view")
    users = [v for v in _users_of(access, found.table_id) if v.name not in change.beside]
    if users and not change.cascade:
        what = f"view {found.name}"
        doomed = Doomed(what, what, position=change.position)
        raise doomed.refusal([f"view {user.name}" for user in users], table=found.name)
    access, notices = _without(access, users)
    return access.without_view(found.table_id), notices


def _absent(change: DropView, access: Access) -> Refused:
    """Return the error for a view that is not there, in PostgreSQL's words: nor may its schema
    be."""
    schema, separator, bare = change.name.partition(SEPARATOR)
    if separator and schema not in access.namespaces_by_name:
        return UnknownSchema(f'schema "{schema}" does not exist', position=change.position)
    words = f'view "{bare or change.name}" does not exist'
    return UnknownTable(words, table=change.name, position=change.position)


def _users_of(access: Access, view_id: int) -> Iterator[View]:
    return (view for view in access.views.values() if view_id in view.views.values())


def _without(access: Access, views: Iterable[View]) -> tuple[Access, tuple[str, ...]]:
    """Return `access` without views, and those that rest on them, with the notices of all."""
    left, notices = list(views), []
    while left:
        view = left.pop(0)
        if view.table_id in access.views:
            left += _users_of(access, view.table_id)
            access = access.without_view(view.table_id)
            notices.append(cascade_notice(f"view {view.name}"))
    return access, tuple(notices)


# ------------------------------------------------------------------ tables of views


def as_of_view(change: Change, access: Access) -> Change:
    """Return a change of a table as one of the view that it names, where that takes it as well:
    ALTER TABLE v RENAME TO w."""
    match change:
        case AlterTable(table=name, actions=(RenameTable(to=to),)) if name in access.views_by_name:
            return RenameView(name, to, change.if_exists, change.position)
    return change


def refuse_view(change: Change, access: Access) -> None:
    """Refuse a change of a table whose name is a view's. Raises WrongObject (42809)."""
    match change:
        case DropTable(name=name, position=position):
            words, hint = "is not a table", "Use DROP VIEW to remove a view."
        case AlterTable(table=name, position=position):
            words = "is a view, which has no elements to be changed"
            hint = "CREATE OR REPLACE VIEW changes its query."
        case CreateIndex(table=name):
            words, hint, position = "is not a table", "", 1
        case Truncate(tables=tables):
            named = next((t for t in tables if t.name in access.views_by_name), None)
            if named is None:
                return
            name, position, words, hint = named.name, named.position, "is not a table", ""
        case _:
            return
    if name in access.views_by_name:
        more = {"hint": hint} if hint else {}
        raise WrongObject(f'"{name}" {words}', table=name, position=position, **more)


def follow_tables(
    change: Change, catalog: Catalog, *, trusted: bool
) -> tuple[Access, tuple[str, ...]]:
    """Return what a change of a table makes of the views over it, and notices: CASCADE takes them
    along, and a new name of a table is one more. `trusted`: that none is in its way was looked at
    before, by who may drop one later.

    Raises DependentObjects (2BP01), FeatureNotSupported."""
    access = catalog.access
    if not access.views or not isinstance(change, DropTable | AlterTable | SetSchema):
        return access, ()
    name = change.table if isinstance(change, AlterTable) else change.name
    try:
        table = catalog.resolve(name)
    except UnknownTable:
        return access, ()
    notices: tuple[str, ...] = ()
    if isinstance(change, DropTable):
        what = f"table {table.name}"
        doomed = Doomed(what, what, change.cascade, change.position)
        return _take_along(access, _resting(access, table), doomed, trusted=trusted)
    if isinstance(change, SetSchema):
        return _named(access, table, qualified(change.to, bare(table.schema, table.name))), ()
    if table.former and read_key_change(table, change.actions) is not None:
        access = _with_present_id(access, table)
    for action in change.actions:
        match action:
            case DropColumn(name=column, cascade=cascade, position=position):
                found = _resting(access, table, column)
                what = f"column {column} of table {table.name}"
                doomed = Doomed(what, what, cascade, position)
                access, more = _take_along(access, found, doomed, trusted=trusted)
                notices += more
            case AlterType(column=column, position=position):
                _refuse_retyped(_resting(access, table, column), column, position)
            case RenameTable(to=to):
                access = _named(access, table, to)
    return access, notices


def _with_present_id(access: Access, table: Descriptor) -> Access:
    """Return `access` whose views know a table by the id that it has now. ⚠ A table tells of one
    that it had before: of the one before that nobody would know."""
    for view in _resting(access, table):
        tables = (
            used._replace(table_id=table.table_id) if used.table_id == table.former else used
            for used in view.tables
        )
        access = access.with_view(view._replace(tables=tuple(tables)))
    return access


def _named(access: Access, table: Descriptor, name: str) -> Access:
    """Return `access` whose views know one more name of a table."""
    for view in _resting(access, table):
        for table_id in _ids_of(table):
            view = view.with_name(table_id, name)
        access = access.with_view(view)
    return access


def _resting(access: Access, table: Descriptor, column: str = "") -> list[View]:
    element_id = 0
    if column:
        known = table.by_name.get(column)
        if known is None:
            return []
        element_id = known.element_id
    ids = _ids_of(table)
    return [v for v in access.views.values() if any(v.rests_on(t, element_id) for t in ids)]


def _ids_of(table: Descriptor) -> set[int]:
    """Return the ids by which views know a table: under another primary key it got its second."""
    return {table.table_id, table.former} - {0}


def _take_along(
    access: Access, found: Sequence[View], doomed: Doomed, *, trusted: bool
) -> tuple[Access, tuple[str, ...]]:
    if not found or (trusted and not doomed.cascade):
        return access, ()
    if not doomed.cascade:
        raise doomed.refusal([f"view {view.name}" for view in found])
    return _without(access, found)


def _refuse_retyped(found: Sequence[View], column: str, position: int) -> None:
    if found:
        lines = (f'{_RULE} {view.name} depends on column "{column}"' for view in found)
        raise FeatureNotSupported(
            "cannot alter type of a column used by a view or rule",
            detail="\n".join(lines),
            hint="DROP VIEW before, and make it again.",
            position=position,
        )
