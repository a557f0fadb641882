"""The draft of one statement on a table, while its actions are read one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import (
    Check,
    Column,
    CommitContext,
    Constraint,
    ForeignKey,
    Index,
    Lock,
)
from leasehold.catalog.names import constraint_names, find_references
from leasehold.catalog.sequence import Options
from leasehold.catalog.sequence_ownership import refuse_sequence
from leasehold.catalog.states import State
from leasehold.model.errors import FeatureNotSupported, UnknownColumn
from leasehold.schema_change.plan.column_sequences import Drawn, resolve_drawn
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice, describe_constraint
from leasehold.schema_change.plan.foreign_keys import Referring, find_implied_index
from leasehold.schema_change.steps import element_paths, table_paths
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.syntax.statements import (
    ColumnDefinition,
)
from leasehold.values.types import Type


class TableDraft:
    """What one statement on a table comes to. `paths` of elements, `notices` for what needed
    nothing done, `needs`: tables that must stay as they are until it is done.

    `taken` are names of relations, `names` those of the table's constraints; `columns` by name, as
    the actions so far leave them; `going` names the columns that some action drops, `retyping`
    those of which one that is still to come says the type, `unbound` are generated columns that
    lose their expression, as they were; `widened` are columns that get a type which holds more or
    less, where they stand, with that type. `context`, `in_place`, `computed`, `narrows`: see
    `plan`.
    `gone`: what else the same request takes away, (table id, element id); `along`: foreign keys of
    other tables that CASCADE takes; `sequences`: those that columns bring; `unnumbered`: columns
    that are no identity any more, and what they drew from; `drew`: what columns drew from that have
    another default now, or none; `replaced`: columns by the id of those whose places they take;
    `remade`: elements that rest on such, each with the path of the one that is made anew.
    """

    def __init__(
        self,
        table: Descriptor,
        taken: set[str],
        catalog: Catalog,
        context: CommitContext | None,
    ) -> None:
        self.table = table
        self.taken = set(taken)
        self.context = context
        self.in_place = True
        self.computed = True
        self.narrows = True
        self._catalog = catalog
        self.names = constraint_names(table)
        self.columns = {
            c.name: c for c in table.columns if c.state is State.PUBLIC and not c.hidden
        }
        self.next_id = table.next_element_id
        self.words: list[str] = []
        self.dropped: set[int] = set()
        self.retyped: set[int] = set()
        self.made_again: set[int] = set()
        self.widened: dict[int, Type] = {}
        self.going: set[str] = set()
        self.retyping: set[str] = set()
        self.unbound: dict[int, Column] = {}
        self.paths: list[ElementPath] = []
        self.notices: list[str] = []
        self.needs: set[int] = set()
        self.drew: set[int] = set()
        self.gone: frozenset[tuple[int, int]] = frozenset()
        self.along: list[Referring] = []
        self.sequences: list[Descriptor] = []
        self.unnumbered: dict[int, int] = {}
        self.replaced: dict[int, Column] = {}
        self.remade: list[tuple[Index | Check, ElementPath]] = []
        self.altered: list[tuple[Column, Options]] = []
        self.new_locks: list[Lock] = []
        self.moved: set[int] = set()
        self.moves: list[tuple[int, int]] = []
        self.moves_path: ElementPath | None = None

    @property
    def subject(self) -> str:
        """What is changed, in words for people: `column a` or `column a, constraint b`."""
        return ", ".join(dict.fromkeys(self.words)) or f"table {self.table.name}"

    def take(self, path: ElementPath, words: str) -> None:
        self.paths.append(path)
        self.words.append(words)

    def change_column(self, path: ElementPath, made: Column) -> None:
        """Take the path of a column that later actions see as `made`."""
        self.take(path, f"column {made.name}")
        self.columns[made.name] = made

    def change_default(self, path: ElementPath, made: Column) -> None:
        """Take the path of a column's default; behind another type that the same statement gives
        it."""
        if made.element_id in self.widened:
            path = element_paths.delay_default(path)
        self.change_column(path, made)

    def new_id(self) -> int:
        self.next_id += 1
        return self.next_id - 1

    def resolve_drawn(self, definition: ColumnDefinition) -> Drawn:
        """Return the sequence that a new column draws from. Raises what
        `column_sequences.resolve_drawn` raises."""
        before = len(self.sequences)
        drawn = resolve_drawn(self.table.name, definition, self._catalog, self.taken, before)
        if drawn.made is None:
            self.needs.add(drawn.numbering.sequence)
        else:
            made = replace(drawn.made, schema=self.table.schema)
            drawn = drawn._replace(made=made)
            self.sequences.append(made)
            self.taken.add(made.name)
            self.paths.append(table_paths.add_sequence(made))
        return drawn

    def parent(self, name: str) -> Descriptor:
        """Return the table that a foreign key refers to. Raises UnknownTable, WrongObject."""
        return refuse_sequence(self._catalog.resolve(name))

    def references(self) -> tuple[Referring, ...]:
        """Return the foreign keys, its own too, that refer to the table."""
        return find_references(self._catalog, self.table.table_id)

    def column(self, name: str, position: int = 1) -> Column:
        found = self.columns.get(name) or self.table.by_alias.get(name)
        if found is None:
            raise UnknownColumn(
                f"column {name!r} does not exist in table {self.table.name!r}",
                table=self.table.name,
                column=name,
                position=position,
            )
        return found

    def drop_once(self, path: ElementPath, element: Index | Constraint, words: str) -> None:
        """Drop an element, unless that was done: two dropped columns may share an index."""
        if element.element_id not in self.dropped:
            self.dropped.add(element.element_id)
            self.take(path, words)

    def drop_referring(self, found: Iterable[Referring], doomed: Doomed) -> int:
        """Drop foreign keys that refer to what is doomed; return the number of steps by which it
        has to wait for them. Raises DependentObjects unless it takes them along."""
        found = list(found)
        left = [each for each in found if not self._goes(each)]
        if left and not doomed.cascade:
            raise doomed.refusal(map(describe_constraint, left), table=self.table.name)
        for child, key in left:
            self.notices.append(cascade_notice(describe_constraint((child, key))))
            if child.table_id == self.table.table_id:
                self.drop_foreign_key(key)
            else:
                self.along.append((child, key))
        return int(bool(found))

    def _goes(self, reference: Referring) -> bool:
        child, key = reference
        if child.table_id == self.table.table_id:
            return key.element_id in self.dropped
        element_key = child.table_id, key.element_id
        return element_key in self.gone or element_key in {
            (c.table_id, k.element_id) for c, k in self.along
        }

    def drop_foreign_key(self, key: ForeignKey) -> None:
        """Drop a foreign key with the index that it alone needs, side by side: who misses an entry
        in it is at a version that relies on the key no more."""
        self.drop_once(element_paths.drop_check(key), key, f"constraint {key.name}")
        index = find_implied_index(self.table, key, self.dropped)
        made = (path.element for path in self.paths if path.new)
        needed = {each.index for each in made if isinstance(each, ForeignKey)}
        if index is not None and index.element_id not in needed:
            self.drop_once(element_paths.drop_index(index), index, f"index {index.name}")

    def describe_made_over(self, column: Column, but: Collection[int] = ()) -> list[str]:
        """Return what this very statement makes that rests on a column, in words, `but` for these
        elements."""
        paths = (path for path in self.paths if path.new and path.name[1] not in but)
        made = [path.element for path in paths]
        over = [
            f"constraint {element.name}"
            for element in made
            if isinstance(element, Index | Check | ForeignKey)
            and column.element_id
            in (element.over if isinstance(element, Index) else element.columns)
        ]
        following = (e for e in made if isinstance(e, Column) and e.derived is not None)
        return over + [
            f"generated column {c.name}"
            for c in following
            if c.derived and c.generated and column.element_id in c.derived.sources
        ]

    def find_computed_from(self, column: Column) -> list[Column]:
        """Return the generated columns of the table that follow a column, as it stands."""
        return [
            c
            for c in self.table.columns
            if c.derived and c.generated and column.element_id in c.derived.sources
        ]

    def refuse_retyped(self, columns: Iterable[Column]) -> None:
        """Refuse a constraint over a column that gets another type. ⚠ It would show the new column
        early (`steps`), beside the old one here."""
        for column in columns:
            if column.element_id in self.made_again:
                raise FeatureNotSupported(
                    f"column {column.name!r} takes the name of one that the same statement drops:"
                    " add the constraint by a statement of its own",
                    column=column.name,
                )
            if column.element_id in self.retyped:
                raise FeatureNotSupported(
                    f"column {column.name!r} changes its type in the same statement: add the"
                    " constraint by a statement of its own",
                    column=column.name,
                )
