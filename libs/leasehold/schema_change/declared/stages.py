"""The stages of a plan, in an order in which no statement is in another's way: what is renamed,
what goes, what is made and changed, what rests on that.

Each stage looks at the schema as those before leave it (`Situation`), so none has to know what they
did: an index that had to go for a column's other type is simply not there, and is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from leasehold.catalog.definitions import quoted
from leasehold.catalog.elements import ForeignKey
from leasehold.catalog.view import View
from leasehold.model.errors import LeaseholdError
from leasehold.schema_change.declared import wording
from leasehold.schema_change.declared.in_memory import run_request
from leasehold.schema_change.declared.shapes import CommentKey, SequenceShape
from leasehold.schema_change.declared.situation import Said, Situation
from leasehold.schema_change.declared.wording import alter_text, names_text, text_literal

Stage: TypeAlias = Callable[[Situation], Iterator[Said]]
OF_A_VIEW: Final = "privileges that were granted on the view"
_EQUAL: Final = "two rows with the same {} fail it"

# ------------------------------------------------------------------ other names


def rename_tables(s: Situation) -> Iterator[Said]:
    """Rename tables and sequences that a hint says have another name."""
    for (kind, _, name), old in s.wanted.renamed.items():
        there = s.now.tables if kind == "table" else s.now.sequences
        if kind in ("table", "sequence") and old in there and name not in there:
            yield Said(f"ALTER {kind.upper()} {quoted(old)} RENAME TO {quoted(name)}")


def rename_columns(s: Situation) -> Iterator[Said]:
    """Rename columns that a hint says have another name."""
    for (kind, table, name), old in s.wanted.renamed.items():
        there = s.now.tables.get(table)
        if kind != "column" or there is None or name in there.columns or old not in there.columns:
            continue
        yield Said(alter_text(table, f"RENAME COLUMN {quoted(old)} TO {quoted(name)}"))


def rename_elements(s: Situation) -> Iterator[Said]:
    """Rename indexes, constraints, keys and owned sequences that are the same but for the name."""
    for table, now, wanted in s.both():
        constraints: dict[str, str] = {}
        if now.key and wanted.key == now.key and wanted.key_name != now.key_name:
            constraints[wanted.key_name] = now.key_name
        for new, old in s.indexes(table).renamed.items():
            if now.indexes[old].constraint:
                constraints[new] = old
            else:
                yield Said(f"ALTER INDEX {quoted(old)} RENAME TO {quoted(new)}")
        constraints |= {**s.checks(table).renamed, **s.foreign_keys(table).renamed}
        for new, old in constraints.items():
            yield Said(alter_text(table, f"RENAME CONSTRAINT {quoted(old)} TO {quoted(new)}"))
    owned = {each.owner: name for name, each in s.now.sequences.items() if each.owner[0]}
    for name, sequence in s.target.sequences.items():
        there = owned.get(sequence.owner)
        if name in s.now.sequences or there is None or there in s.target.sequences:
            continue
        yield Said(f"ALTER SEQUENCE {quoted(there)} RENAME TO {quoted(name)}")


# ------------------------------------------------------------------ what goes


def drop_views(s: Situation) -> Iterator[Said]:
    """Drop views that are not wanted, and those that rest on what goes or gets another type."""
    access = s.catalog.access
    names = {table.table_id: name for name, table in s.tables.items()}
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
        again = view.name in s.target.views
        loses = OF_A_VIEW if again else f"view {view.name}"
        yield Said(f"DROP VIEW {quoted(view.name)}", loses="" if again else loses)


def drop_foreign_keys(s: Situation) -> Iterator[Said]:
    """Drop foreign keys that are not wanted as they are, or that lose what they refer to."""
    for table, _, _ in s.both():
        for name in sorted(s.foreign_keys(table).dropped):
            yield Said(alter_text(table, f"DROP CONSTRAINT {quoted(name)}"))


def drop_elements(s: Situation) -> Iterator[Said]:
    """Drop CHECK and UNIQUE constraints, indexes and locks that are not wanted as they are."""
    for table, now, wanted in s.both():
        indexes = s.indexes(table).dropped
        uniques = {name for name in indexes if now.indexes[name].constraint}
        for name in sorted(s.checks(table).dropped | uniques):
            yield Said(alter_text(table, f"DROP CONSTRAINT {quoted(name)}"))
        for name in sorted(indexes - uniques):
            yield Said(f"DROP INDEX {quoted(name)}")
        for name, columns in now.locks.items():
            if wanted.locks.get(name) != columns:
                yield Said(alter_text(table, f"DROP LOCK {quoted(name)}"))


def drop_keys(s: Situation) -> Iterator[Said]:
    """Drop primary keys over columns whose other type no key outlasts; they are made again."""
    for table, now, _ in s.both():
        if any((table, column) in s.hard for column in now.key):
            yield Said(alter_text(table, f"DROP CONSTRAINT {quoted(now.key_name)}"))


def release_sequences(s: Situation) -> Iterator[Said]:
    """Take sequences that stay away from what goes."""
    going = s.dropped_columns | s.made_again
    for name, sequence in s.now.sequences.items():
        if name not in s.target.sequences or sequence.identity or not sequence.owner[0]:
            continue
        if sequence.owner[0] in s.doomed_tables or sequence.owner in going:
            yield Said(f"ALTER SEQUENCE {quoted(name)} OWNED BY NONE")


def drop_computed(s: Situation) -> Iterator[Said]:
    """Drop columns that are to be computed otherwise, and computed ones that are not wanted, before
    what they are computed from changes."""
    columns = {(t, name): c for t, now, _ in s.both() for name, c in now.columns.items()}
    computed = {place for place in s.dropped_columns if columns[place].generated}
    for table, column in sorted(s.made_again | computed):
        yield _drop_column(s, table, column)


def _drop_column(s: Situation, table: str, column: str) -> Said:
    computed = s.now.tables[table].columns[column].generated
    loses = "" if computed else f"the values of column {column} of table {table}"
    return Said(alter_text(table, f"DROP COLUMN {quoted(column)}"), loses)


def drop_tables(s: Situation) -> Iterator[Said]:
    """Drop tables that are not wanted, all in one statement: they may refer to each other."""
    names = sorted(s.doomed_tables)
    if names:
        yield Said(f"DROP TABLE {names_text(names)}", f"the rows of {', '.join(names)}")


def drop_columns(s: Situation) -> Iterator[Said]:
    """Drop columns that are not wanted."""
    for table, column in sorted(s.dropped_columns):
        yield _drop_column(s, table, column)


def drop_sequences(s: Situation) -> Iterator[Said]:
    """Drop sequences that are not wanted."""
    for name, sequence in s.now.sequences.items():
        if name not in s.target.sequences and not sequence.identity:
            yield Said(f"DROP SEQUENCE {quoted(name)}", f"how far sequence {name} is")


# ------------------------------------------------------------------ what is made


def create_sequences(s: Situation) -> Iterator[Said]:
    """Make sequences that no column brings along."""
    brought = {
        s.wanted.catalog.newest(column.draws_from).name
        for name, table in s.wanted_tables.items()
        for column in table.by_name.values()
        if column.identity or (
            wording.is_serial(table, column, s.wanted.catalog)
            and (name not in s.now.tables or column.name not in s.now.tables[name].columns)
        )
    }
    for name, sequence in s.wanted_sequences.items():
        if name not in s.now.sequences and name not in brought:
            yield Said(wording.create_sequence_text(sequence))


def create_tables(s: Situation) -> Iterator[Said]:
    """Make tables, with the foreign keys to tables that are there by then."""
    left = [name for name in s.target.tables if name not in s.now.tables]
    there = set(s.now.tables)
    catalog = s.catalog
    while left:
        free = [n for n in left if _parents(s, n) <= there | {n}]
        name = (free or left)[0]
        left.remove(name)
        own = s.wanted_tables[name].foreign_keys
        keys = [k for k in own if _parent(s, k) in there | {name}]

        try:
            sql = _create_table(s, name, keys)
            catalog = run_request(catalog, sql, s.zone).catalog
        except LeaseholdError:  # what it refers to gets its UNIQUE later
            sql = _create_table(s, name, [])
            catalog = run_request(catalog, sql, s.zone).catalog
        yield Said(sql)
        there.add(name)


def _create_table(s: Situation, name: str, keys: list[ForeignKey]) -> str:
    table = s.wanted_tables[name]
    return wording.create_table_text(table, s.wanted.catalog, keys, s.now.sequences)


def add_columns(s: Situation) -> Iterator[Said]:
    """Add columns: those that are computed from others last."""
    for table, now, _ in s.both():
        wanted = s.wanted_tables[table]
        added = [c for c in wanted.by_name.values() if c.name not in now.columns]
        for column in sorted(added, key=lambda c: c.generated):
            words = wording.column_text(wanted, column, s.wanted.catalog, s.now.sequences)
            may_fail = ""
            if column.generated:
                may_fail = f"a row of which {column.name} can't be computed fails it"
            elif not column.nullable and not column.has_default:
                may_fail = "any row fails it: it has no value there, so give it a DEFAULT"
            yield Said(alter_text(table, f"ADD COLUMN {words}"), may_fail=may_fail)


def add_elements(s: Situation) -> Iterator[Said]:
    """Make locks, CHECK and UNIQUE constraints, and indexes."""
    for table, now, wanted in s.both():
        target = s.wanted_tables[table]
        for name, columns in wanted.locks.items():
            if name not in now.locks:
                yield Said(
                    alter_text(table, f"ADD LOCK {quoted(name)} COVERING ({names_text(columns)})")
                )
        for name in s.checks(table).added:
            check = target.check(name)
            assert check is not None, "it is wanted"
            words = wording.check_definition(check)
            fails = "a row that breaks it fails it" if wanted.checks[name].valid else ""
            yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)
        for name in s.indexes(table).added:
            index = target.index(name)
            assert index is not None, "it is wanted"
            fails = ""
            if index.unique:
                columns = ", ".join(wording.index_keys(target, index))
                fails = _EQUAL.format(columns)
            elif index.computed:
                fails = "a row on which an expression of it can't be computed fails it"
            if index.constraint:
                words = wording.unique_definition(target, index)
                yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)
            else:
                yield Said(wording.create_index_text(target, index), may_fail=fails)


def add_foreign_keys(s: Situation) -> Iterator[Said]:
    """Make foreign keys."""
    for table, _, wanted in s.both():
        for name in s.foreign_keys(table).added:
            key = s.wanted_tables[table].foreign_key(name)
            assert key is not None, "it is wanted"
            words = wording.foreign_key_definition(s.wanted_tables[table], key, s.wanted.catalog)
            valid = wanted.foreign_keys[name].valid
            fails = "a row that refers to none fails it" if valid else ""
            yield Said(alter_text(table, f"ADD {words}"), may_fail=fails)


def validate_constraints(s: Situation) -> Iterator[Said]:
    """Look whether rows hold constraints that nobody has looked at yet."""
    for table, now, wanted in s.both():
        constraints = (*now.checks.items(), *now.foreign_keys.items())
        asked = {**wanted.checks, **wanted.foreign_keys}
        for name, one in constraints:
            if not one.valid and name in asked and asked[name].valid:
                words = f"VALIDATE CONSTRAINT {quoted(name)}"
                yield Said(alter_text(table, words), may_fail="a row that breaks it fails it")


# ------------------------------------------------------------------ what changes


def loosen_columns(s: Situation) -> Iterator[Said]:
    """Take identities and expressions off columns that are plain ones."""
    for table, now, wanted in s.both():
        for name, column in now.columns.items():
            other = wanted.columns.get(name)
            if other is None:
                continue
            if column.identity and not other.identity:
                yield Said(_alter(table, name, "DROP IDENTITY"))
            if column.generated and not other.generated:
                yield Said(_alter(table, name, "DROP EXPRESSION"))


def change_types(s: Situation) -> Iterator[Said]:
    """Give columns another type."""
    for (table, column), text in s.retyped.items():
        if not s.works(text) and s.works(s.drop_default(table, column), text):
            yield Said(s.drop_default(table, column))
        yield Said(text, may_fail="a value that can't be converted fails it")


def change_keys(s: Situation) -> Iterator[Said]:
    """Give tables another primary key, or none."""
    for table, now, wanted in s.both():
        if now.key == wanted.key:
            continue
        actions = [f"DROP CONSTRAINT {quoted(now.key_name)}"] if now.key else []
        unique = s.key_kept_unique(table) if now.key else None
        fails = ""
        if wanted.key:
            actions.append(f"ADD {wording.key_text(s.wanted_tables[table])}")
            fails = f"{_EQUAL.format(', '.join(wanted.key))}, and so does a NULL"
        if unique is not None:
            index = s.wanted_tables[table].index(unique)
            assert index is not None, "it is wanted"
            actions.append(f"ADD {wording.unique_definition(s.wanted_tables[table], index)}")
        yield Said(alter_text(table, *actions), may_fail=fails)


def change_nullability(s: Situation) -> Iterator[Said]:
    """Set and drop NOT NULL."""
    for table, now, wanted in s.both():
        for name, column in now.columns.items():
            other = wanted.columns.get(name)
            if other is None or column.nullable == other.nullable:
                continue
            if other.nullable:
                yield Said(_alter(table, name, "DROP NOT NULL"))
            else:
                yield Said(_alter(table, name, "SET NOT NULL"), may_fail="a NULL fails it")


def change_defaults(s: Situation) -> Iterator[Said]:
    """Set and drop defaults, and make columns draw from sequences."""
    for table, now, wanted in s.both():
        for name, column in now.columns.items():
            other = wanted.columns.get(name)
            if other is None or other.generated or column.generated:
                continue
            if other.identity or column.identity:
                yield from _change_identity(s, table, name)
            elif (column.default, column.draws) == (other.default, other.draws):
                continue
            elif other.draws:
                yield Said(_alter(table, name, f"SET DEFAULT {wording.drawn_text(other.draws)}"))
            elif not other.default:
                yield Said(s.drop_default(table, name))
            else:
                said = wording.expression_text(s.wanted_tables[table].by_name[name])
                yield Said(_alter(table, name, f"SET DEFAULT {said}"))


def _change_identity(s: Situation, table: str, name: str) -> Iterator[Said]:
    now, wanted = s.now.tables[table].columns[name], s.target.tables[table].columns[name]
    if now.identity == wanted.identity:
        return
    if now.identity:
        kind = "ALWAYS" if wanted.identity == "a" else "BY DEFAULT"
        yield Said(_alter(table, name, f"SET GENERATED {kind}"))
        return
    if now.default or now.draws:
        yield Said(s.drop_default(table, name))
    target = s.wanted_tables[table]
    words = wording.identity_text(target, target.by_name[name], s.wanted.catalog)
    there = s.target.sequences.keys() & s.now.sequences.keys()
    drawn = s.wanted.catalog.newest(target.by_name[name].draws_from).name
    if drawn in there:
        # An identity's sequence is made with it; one of that name was another one's.
        yield Said(f"DROP SEQUENCE {quoted(drawn)}", f"how far sequence {drawn} is")
    yield Said(_alter(table, name, f"ADD {words}"))


def change_sequences(s: Situation) -> Iterator[Said]:
    """Give sequences other options and owners."""
    for name, now in s.now.sequences.items():
        wanted = s.target.sequences.get(name)
        if wanted is None:
            continue
        words = wording.option_words(wanted.options, now.options)
        if words:
            yield Said(f"ALTER SEQUENCE {quoted(name)} {' '.join(words)}")
        if wanted.owner != now.owner and not wanted.identity and not now.identity:
            yield Said(f"ALTER SEQUENCE {quoted(name)} OWNED BY {_owner(wanted)}")


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
                sql = f"DROP VIEW {quoted(dropped.name)}"
                yield Said(sql)
                made.append(sql)
            sql = wording.view_text(view)
        yield Said(sql)
        made.append(sql)


def change_comments(s: Situation) -> Iterator[Said]:
    """Set and take away comments."""
    for key, text in s.target.comments.items():
        if s.now.comments.get(key) != text:
            yield Said(f"COMMENT ON {_commented(key)} IS {text_literal(text)}")
    for key in s.now.comments.keys() - s.target.comments.keys():
        yield Said(f"COMMENT ON {_commented(key)} IS NULL")


STAGES: Final[tuple[Stage, ...]] = (
    rename_tables,
    rename_columns,
    drop_views,
    drop_foreign_keys,
    drop_elements,
    drop_keys,
    release_sequences,
    drop_computed,
    drop_tables,
    rename_elements,
    create_sequences,
    create_tables,
    loosen_columns,
    change_types,
    add_columns,
    change_keys,
    drop_columns,
    change_nullability,
    change_defaults,
    change_sequences,
    add_elements,
    rename_elements,
    add_foreign_keys,
    validate_constraints,
    drop_sequences,
    change_views,
    change_views,  # those that rested on one that was made again
    change_comments,
)
"""In the order in which they are run."""

# ------------------------------------------------------------------ words and orders


def _alter(table: str, column: str, words: str) -> str:
    return alter_text(table, f"ALTER COLUMN {quoted(column)} {words}")


def _owner(sequence: SequenceShape) -> str:
    table, column = sequence.owner
    return f"{quoted(table)}.{quoted(column)}" if table else "NONE"


def _commented(key: CommentKey) -> str:
    match key.kind:
        case "COLUMN":
            return f"COLUMN {quoted(key.table)}.{quoted(key.name)}"
        case "CONSTRAINT":
            return f"CONSTRAINT {quoted(key.name)} ON {quoted(key.table)}"
    return f"{key.kind} {quoted(key.name)}"


def _parent(s: Situation, key: ForeignKey) -> str:
    return s.wanted.catalog.newest(key.parent).name


def _parents(s: Situation, table: str) -> set[str]:
    return {_parent(s, key) for key in s.wanted_tables[table].foreign_keys}


def _users_first(views: list[View]) -> list[View]:
    """Return views in an order in which each stands before those that it rests on."""
    left = {view.table_id: view for view in views}
    found: list[View] = []
    while left:
        used = {each for view in left.values() for each in view.views.values()}
        free = [view for number, view in left.items() if number not in used]
        assert free, "no view comes to itself"
        for view in free:
            found.append(left.pop(view.table_id))
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
