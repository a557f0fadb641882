"""Views of a plan: dropped before what they rest on changes, made again behind all that."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.definitions import quoted
from leasehold.catalog.view import View
from leasehold.schema_change.declared import wording
from leasehold.schema_change.declared.situation import Said, Situation


def drop_views(s: Situation) -> Iterator[Said]:
    """Drop views that are not wanted, and those that rest on what goes or gets another type."""
    access = s.catalog.access
    # One with another primary key is another table, and views know it by the id of the first.
    names = {table.former: name for name, table in s.tables.items()}
    names |= {table.table_id: name for name, table in s.tables.items()}
    doomed: dict[str, View] = {}

    def rests_on_doomed(view: View) -> bool:
        for used in view.tables:
            table = names.get(used.table_id)
            if table is None or table in s.doomed_tables:
                return True
            columns = s.tables[table].by_id
            called = {(table, columns[each].name) for each in used.used if each in columns}
            if not called.isdisjoint(s.rebuilt | s.retyped.keys()):
                return True
        return any(access.views[each].name in doomed for each in view.views.values())

    def add(view: View) -> None:
        if view.name not in doomed:
            doomed[view.name] = view

    grew = True
    while grew:
        before = len(doomed)
        for view in access.views.values():
            if view.name not in s.target.views or rests_on_doomed(view):
                add(view)
        grew = len(doomed) > before
    for view in _users_first(list(doomed.values())):
        yield _drop_view(s, view)


def _drop_view(s: Situation, view: View) -> Said:
    sql = f"DROP VIEW {quoted(view.name)}"
    if view.name not in s.target.views:
        return Said(sql, loses=f"view {view.name}")
    note = f"view {view.name} is dropped and made again: grant anew what was granted on it"
    return Said(sql, note=note)


def change_views(s: Situation) -> Iterator[Said]:
    """Make views, and give them another query; what a view rests on comes first."""
    wanted = s.wanted.catalog.access
    made: list[str] = []
    for view in reversed(_users_first(list(wanted.views.values()))):
        if s.now.views.get(view.name) == s.target.views[view.name]:
            continue
        sql = wording.view_text(view, replaces=view.name in s.now.views)
        if view.name in s.now.views and not s.works(*made, sql):
            for dropped in _with_users(view, s):
                yield _drop_view(s, dropped)
                made.append(f"DROP VIEW {quoted(dropped.name)}")
            sql = wording.view_text(view)
        yield Said(sql)
        made.append(sql)


def _users_first(views: list[View]) -> list[View]:
    """Return views in an order in which each stands before those that it rests on."""
    left = {view.table_id: view for view in views}
    found: list[View] = []
    while left:
        used = {each for view in left.values() for each in view.views.values()}
        free = [view for number, view in left.items() if number not in used]
        assert free, "no view comes to itself"
        found += (left.pop(view.table_id) for view in free)
    return found


def _with_users(view: View, s: Situation) -> list[View]:
    """Return a view that is there with those that rest on it, these first."""
    access = s.catalog.access
    found = {access.views_by_name[view.name].table_id}
    grew = True
    while grew:
        users = {
            number
            for number, each in access.views.items()
            if not found.isdisjoint(each.views.values())
        }
        grew = not users <= found
        found |= users
    return _users_first([access.views[number] for number in found])
