"""Columns: added, dropped, renamed, changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from leasehold.catalog.definitions import literal, number_text, quoted, quoted_relation
from leasehold.catalog.descriptor import COLUMNS_MAX, Descriptor
from leasehold.catalog.elements import Check, Column, Constraint, Index, Missing
from leasehold.catalog.object_names import free_object_name
from leasehold.catalog.states import State
from leasehold.model.errors import (
    DependentObjects,
    DuplicateColumn,
    FeatureNotSupported,
    InvalidDefinition,
    NotGenerated,
    OutOfRange,
    SyntaxInvalid,
)
from leasehold.rows.computed_missing import make_computed
from leasehold.schema_change.plan.constraints import add_check, add_foreign_key, add_unique
from leasehold.schema_change.plan.definitions import (
    make_column,
    make_generated_column,
    with_drawn_default,
)
from leasehold.schema_change.plan.dependents import Doomed, cascade_notice
from leasehold.schema_change.plan.draft import TableDraft
from leasehold.schema_change.plan.remade_elements import (
    Remade,
    check_again,
    find_again,
    find_remade,
    remake,
)
from leasehold.schema_change.steps import element_paths
from leasehold.schema_change.steps.element_paths import ElementPath
from leasehold.sql.ddl.columns import check_drawing, find_drawn_sequence
from leasehold.sql.expressions.conversion import (
    Kept,
    check_default_fits,
    conversions,
    convert_default,
    kept_in,
)
from leasehold.sql.expressions.default import Default, default_of_text
from leasehold.sql.expressions.expression import (
    find_cast_of,
    means_the_same,
    rename_column_in,
)
from leasehold.sql.syntax.statements import (
    AddColumn,
    AlterType,
    ColumnDefinition,
    DropColumn,
    DropExpression,
    DropNotNull,
    GeneratedDefinition,
    NumberingDefinition,
    RenameColumn,
    SetDefault,
    SetNotNull,
)
from leasehold.values.storage import is_kept
from leasehold.values.types import Type, holds_all_of, is_narrower


def add_column(draft: TableDraft, action: AddColumn) -> None:
    definition = action.column
    table = draft.table
    named: dict[str, Any] = {
        "table": table.name,
        "column": definition.name,
        "position": definition.position,
    }
    if definition.name in draft.columns:
        if not action.if_not_exists:
            raise DuplicateColumn(
                f"column {definition.name!r} exists already in table {table.name!r}", **named
            )
        draft.notices.append(f"column {definition.name!r} exists already, nothing was done")
        return
    former = None
    if definition.name in table.by_name:
        former = _find_former(draft, definition)
    if len(table.columns) + len(draft.paths) >= COLUMNS_MAX:
        raise OutOfRange(
            f"table {table.name!r} has {COLUMNS_MAX} columns, the most allowed", **named
        )
    column = make_column(definition, draft.new_id())
    if definition.generated is not None:
        _add_generated(draft, column, definition.generated)
    else:
        if definition.numbering is not None:
            column = with_drawn_default(column, draft.resolve_drawn(definition))
        elif column.default_expression:
            column = replace(column, moment=draft.context, moment_zone=definition.zone)
        if column.nullable or column.has_default:
            path = element_paths.add_column(column, at_once=draft.in_place)
            if former is not None:
                path = element_paths.show_behind(path, former)
            draft.take(path, f"column {column.name}")
        else:
            for path in element_paths.add_required(column):
                draft.take(path, f"column {column.name}")
        draft.columns[column.name] = column
    if former is not None:
        draft.made_again.add(column.element_id)
    if definition.unique is not None:
        add_unique(draft, definition.unique)
    for check in definition.checks:
        add_check(draft, check)
    if definition.references is not None:
        add_foreign_key(draft, definition.references)


def _find_former(draft: TableDraft, definition: ColumnDefinition) -> ElementPath:
    """Return the path of the column that has the name of a new one, and that the same statement
    drops. Raises FeatureNotSupported where the new one would be shown before that has gone, since
    something over it is enforced."""
    former = draft.table.by_name[definition.name]
    numbered = definition.numbering is not None or definition.generated is not None
    required = not definition.nullable and not (
        definition.default is not None or definition.default_expression
    )
    constrained = definition.unique is not None or definition.references is not None
    if numbered or required or constrained or definition.checks:
        raise FeatureNotSupported(
            f"column {definition.name!r} is dropped by the same statement: add the new one by"
            " a statement of its own, or without constraints",
            table=draft.table.name,
            column=definition.name,
            position=definition.position,
        )
    return next(p for p in draft.paths if p.element is former and p.after_commit)


def _add_generated(draft: TableDraft, column: Column, definition: GeneratedDefinition) -> None:
    """Add a column computed from others. ⚠ NOT NULL is a constraint over a new column: it waits
    until writers see the column."""
    table = replace(draft.table, columns=tuple(draft.columns.values()))
    made = make_generated_column(column, definition, table)
    assert made.derived is not None
    new = {c.element_id for c in table.columns if draft.table.element(c.element_id) is None}
    new |= draft.widened.keys()
    over = [c for c in table.columns if c.element_id in new & {*made.derived.sources}]
    if over:
        does = "changes" if over[0].element_id in draft.widened else "adds"
        raise FeatureNotSupported(
            f"column {column.name!r} is computed from column {over[0].name!r}, which the same"
            f" statement {does}: add it by a statement of its own",
            column=column.name,
            position=definition.position,
        )
    made = replace(made, nullable=True)
    assert made.derived is not None
    said = Kept(made.derived.expression, made.derived.sources, made.derived.zone)
    missing = _computed(draft, made, said)
    draft.take(element_paths.add_generated(made, missing), f"column {made.name}")
    if not column.nullable:
        draft.take(element_paths.set_not_null(made), f"column {made.name}")
    draft.columns[made.name] = replace(made, nullable=column.nullable)


def _computed(draft: TableDraft, column: Column, said: Kept) -> Missing | None:
    """Return what rows from before a column that follows others have, None where their images have
    to tell."""
    if not draft.computed:
        return None
    return make_computed(draft.table, column, said.expression, said.sources, said.zone)


def drop_column(draft: TableDraft, action: DropColumn) -> None:
    if action.if_exists and action.name not in draft.columns:
        draft.notices.append(f"column {action.name!r} does not exist, nothing was done")
        return
    column = draft.column(action.name, action.position)
    if column.element_id in draft.table.primary_key:
        raise InvalidDefinition(
            f"column {column.name!r} belongs to the primary key and can't be dropped: change the"
            " key first (DROP CONSTRAINT …, ADD PRIMARY KEY (…))",
            column=column.name,
            position=action.position,
        )
    _refuse_included(draft.table, column, action)
    if draft.table.element(column.element_id) is None:
        raise InvalidDefinition(
            f"column {column.name!r} is added by the same statement: leave both out"
        )
    made = draft.describe_made_over(column)
    if made:
        raise DependentObjects(
            f"{', '.join(made)} of the same statement rests on column {column.name!r}",
            column=column.name,
            position=action.position,
        )
    _refuse_unbound(draft, column, action.position)
    indexes = [i for i in draft.table.indexes if column.element_id in i.over]
    table = draft.table.name
    words = f"column {column.name} of table {table}"
    doomed = Doomed(words, words, action.cascade, action.position)
    following = draft.find_computed_from(column)
    _drop_following(draft, following, doomed)
    ids = {index.element_id for index in indexes}
    referring = (
        (child, key)
        for child, key in draft.references()
        if column.element_id in key.parent_columns or key.parent_index in ids
    )
    late = draft.drop_referring(referring, doomed)
    constraints: tuple[Constraint, ...] = (
        *draft.table.checks,
        *draft.table.foreign_keys,
    )
    checks = [c for c in constraints if column.element_id in c.columns]
    for index in indexes:
        _refuse_needed(draft, index, {check.element_id for check in checks}, action)
        path = element_paths.drop_index(index, waits=late)
        draft.drop_once(path, index, f"index {index.name}")
    for check in checks:
        draft.drop_once(element_paths.drop_check(check), check, f"constraint {check.name}")
    del draft.columns[column.name]
    path = _plan_removal(draft, column, following, late)
    draft.take(path, f"column {column.name}")


def _refuse_included(table: Descriptor, column: Column, action: DropColumn) -> None:
    """Raises InvalidDefinition (42P16) for a column that the primary key includes: in PostgreSQL
    the key would go with it, hence the order in which rows lie here."""
    if column.position not in table.key_included:
        return
    key = ", ".join(map(quoted, (each.name for each in table.key_columns)))
    left = (quoted(each.name) for each in table.included_columns if each.name != column.name)
    included = ", ".join(left)
    included = f" INCLUDE ({included})" if included else ""
    raise InvalidDefinition(
        f"column {column.name!r} is included in the primary key and can't be dropped",
        hint=f"Say the key without it first, which looks at no row: ALTER TABLE"
        f" {quoted_relation(table)} DROP CONSTRAINT {quoted(table.key_constraint)}, ADD PRIMARY KEY"
        f" ({key}){included}",
        column=column.name,
        position=action.position,
    )


def _drop_following(draft: TableDraft, following: Iterable[Column], doomed: Doomed) -> None:
    """Drop generated columns that are computed from a column, and do not go by themselves.
    Raises DependentObjects unless CASCADE was said."""
    left = [
        other
        for other in following
        if other.name in draft.columns
        and other.name not in draft.going
        and other.element_id not in draft.unbound
    ]
    words = [f"column {other.name} of table {draft.table.name}" for other in left]
    if left and not doomed.cascade:
        raise doomed.refusal(words, table=draft.table.name)
    for other, what in zip(left, words, strict=True):
        draft.notices.append(cascade_notice(what))
        drop_column(draft, DropColumn(other.name, position=doomed.position, cascade=True))


def _refuse_needed(draft: TableDraft, index: Index, going: set[int], action: DropColumn) -> None:
    """Raises DependentObjects where a foreign key that stays finds its rows by an index over
    more than its columns (INCLUDE)."""
    going = going | draft.dropped
    for key in draft.table.foreign_keys:
        if key.index == index.element_id and key.element_id not in going:
            raise DependentObjects(
                f"foreign key {key.name!r} finds its rows by index {index.name!r}, which holds"
                f" column {action.name!r}: drop the foreign key first, and add it again after",
                column=action.name,
                position=action.position,
            )


def _plan_removal(
    draft: TableDraft, column: Column, following: Iterable[Column] = (), late: int = 0
) -> ElementPath:
    """Return the path of a column that goes. `following`: generated columns that are computed
    from it, which go first, or at least their expressions; `late`: what is over it goes so many
    steps later."""
    waits = int(_is_rested_on(draft, column)) + late
    for other in following:
        unbound = other.element_id in draft.unbound
        waits = max(
            waits,
            1 if unbound else element_paths.find_hiding_stage(_plan_removal(draft, other)) + 1,
        )
    return element_paths.drop_column(column, waits=waits)


def _is_rested_on(draft: TableDraft, column: Column) -> bool:
    """Say whether it is in an index or a constraint."""
    table = draft.table
    constraints: tuple[Constraint, ...] = (*table.checks, *table.foreign_keys)
    over = [index.over for index in table.indexes]
    over += [frozenset(constraint.columns) for constraint in constraints]
    return any(column.element_id in columns for columns in over)


def _refuse_unbound(draft: TableDraft, column: Column, position: int) -> None:
    if column.element_id in draft.unbound:
        raise FeatureNotSupported(
            f"the expression of column {column.name!r} is dropped by the same statement: change"
            " the column by a statement of its own",
            column=column.name,
            position=position,
        )


def rename_column(draft: TableDraft, action: RenameColumn) -> None:
    column = draft.column(action.name, action.position)
    if action.to in draft.columns or action.to in draft.table.by_alias:
        raise DuplicateColumn(
            f"column {action.to!r} exists already in table {draft.table.name!r}",
            table=draft.table.name,
            column=action.to,
            position=action.position,
        )
    draft.take(element_paths.rename(column, action.to), f"column {column.name}")
    for check in draft.table.checks:
        if column.element_id in check.columns:
            text = rename_column_in(check.expression, column.name, action.to)
            draft.paths.append(element_paths.reword_check(check, text))
    for other in draft.find_computed_from(column):
        assert other.derived is not None
        text = rename_column_in(other.derived.expression, column.name, action.to)
        draft.paths.append(element_paths.reword_generated(other, text))
    for index in draft.table.indexes:
        if column.element_id in index.mentioned:
            draft.paths.append(_reword_index(index, column.name, action.to))


def set_default(draft: TableDraft, action: SetDefault) -> None:
    column = draft.column(action.column, action.position)
    if column.generated:
        raise SyntaxInvalid(
            f"column {column.name!r} is generated and has no default: DROP EXPRESSION first",
            column=column.name,
            position=action.position,
        )
    _refuse_identity(draft, column, action.position)
    if action.lost:
        draft.drew |= {column.draws_from} - {0}
        path = element_paths.drop_numbering(column)
        draft.change_default(path, element_paths.without_sequence(column))
        return
    made = Default()
    name = None if action.value is None else find_drawn_sequence(action.value)
    if name is not None:
        _set_drawn(draft, column, name, action.position)
        return
    if action.value is not None:
        made = default_of_text(action.value, column.type, action.zone)
    if not action.keeps_text:
        made = made._replace(text="")
    if made == Default(column.default, column.default_expression, column.default_text):
        draft.notices.append(f"column {column.name!r} has that default already")
        return
    draft.drew |= {column.draws_from} - {0}
    changed = replace(
        column,
        default=made.value,
        default_expression=made.expression,
        default_text=made.text,
        moment=None,
        moment_zone="",
    )
    draft.change_default(element_paths.set_default(column, *made), changed)


def _set_drawn(draft: TableDraft, column: Column, sequence: str, position: int) -> None:
    """Let a column draw from a sequence. Old rows stay as they are. A sequence that the column
    has for its own stays so."""
    check_drawing(column.type, position)
    said = NumberingDefinition(named=sequence, position=position)
    drawn = draft.resolve_drawn(ColumnDefinition(column.name, column.type, numbering=said))
    made = replace(
        with_drawn_default(column, drawn),
        default=None,
        default_text="",
        moment=None,
        moment_zone="",
    )
    if made == replace(column, moment=None, moment_zone=""):
        draft.notices.append(f"column {column.name!r} has that default already")
        return
    draft.drew |= {column.draws_from} - {0}
    draft.change_default(element_paths.set_drawn(column, made), made)


def _refuse_identity(draft: TableDraft, column: Column, position: int) -> None:
    if column.identity:
        raise SyntaxInvalid(
            f"column {column.name!r} of relation {draft.table.name!r} is an identity column",
            column=column.name,
            position=position,
        )


def drop_expression(draft: TableDraft, action: DropExpression) -> None:
    column = draft.column(action.column, action.position)
    if not column.generated:
        if action.if_exists:
            draft.notices.append(f"column {column.name!r} is not a generated column")
            return
        raise NotGenerated(
            f"column {column.name!r} is not a generated column",
            column=column.name,
            position=action.position,
        )
    if draft.table.element(column.element_id) is None:
        raise FeatureNotSupported(
            f"column {column.name!r} is added by the same statement: leave the expression out",
            column=column.name,
            position=action.position,
        )
    draft.unbound[column.element_id] = column
    draft.change_column(element_paths.drop_expression(column), replace(column, derived=None))


def alter_type(draft: TableDraft, action: AlterType) -> None:
    old = draft.column(action.column, action.position)
    draft.retyping.discard(action.column)
    if action.using is not None and _keeps_values(action.using, old, action.type):
        action = replace(action, using=None)
    if old.type == action.type and action.using is None:
        draft.notices.append(f"column {old.name!r} is of type {old.type} already")
        check_again(draft, old)
        return
    if old.element_id in draft.widened:
        raise FeatureNotSupported(
            f"the type of column {old.name!r} is changed twice by the same statement: say the"
            " last one alone",
            column=old.name,
            position=action.position,
        )
    in_place = _can_be_widened(draft, old, action) or _can_be_narrowed(draft, old, action)
    if in_place and (not _stands(draft, old) or _is_minded_by_none(draft, old, action.type)):
        _refuse_users(draft, old, action.position, kept=action.type)
        _refuse_unbound(draft, old, action.position)
        _change_where_it_stands(draft, old, action)
        return
    remade = find_remade(draft, old) if _stands(draft, old) else []
    again = find_again(draft, old)
    if _can_stay_if_full(draft, old, action) and _find_users(draft, old, [*remade, *again]):
        _refuse_users(draft, old, action.position, kept=action.type)
        _refuse_unbound(draft, old, action.position)
        _change_if_full(draft, old, action)
        return
    _refuse_users(draft, old, action.position, but=[*remade, *again])
    _refuse_unbound(draft, old, action.position)
    if old.generated:
        raise FeatureNotSupported(
            f"the type of generated column {old.name!r} can't be changed: drop it and add it again",
            column=old.name,
            position=action.position,
        )
    forth, back = conversions(old.type, action.type, old.name, action.using)
    new = replace(
        old,
        element_id=draft.new_id(),
        type=action.type,
        nullable=True,
        alias="",
        missing=None,
        moment=None,
        moment_zone="",
        ordinal=old.position,
    )
    check_default_fits(old, new)
    if old.default is not None:
        new = replace(new, default=convert_default(old, new, draft.table, action.zone))
        new = replace(new, default_text=_text_kept(old, new, action))
    # Whether the expressions fit is seen before anything is written.
    others = (c for c in draft.table.columns if c.element_id != old.element_id)
    as_new = replace(draft.table, columns=(*others, new))
    kept_forth, kept_back = [
        kept_in(text, seen, target, action.zone)
        for text, seen, target in ((forth, draft.table, new), (back, as_new, old))
    ]
    missing = _computed(draft, new, kept_forth)
    waits = int(any(isinstance(e, Check) or e.refuses_duplicates for e in (*remade, *again)))
    for path in element_paths.change_type(old, new, kept_forth, kept_back, missing, waits=waits):
        draft.paths.append(path)
    draft.words.append(f"column {old.name}")
    draft.replaced[old.element_id] = new
    remake(draft, remade, old, new)
    draft.columns[old.name] = new
    draft.retyped.add(new.element_id)


def _stands(draft: TableDraft, column: Column) -> bool:
    """Say whether what rests on a column can be made anew over another one: every process knows two
    elements of one name apart."""
    return draft.narrows and draft.table.element(column.element_id) is not None


def _keeps_values(using: str, old: Column, new: Type) -> bool:
    """Say whether USING casts the column to a type that has all of its values (`c::bigint`), or
    fails for those that the new type lacks: then it says no more than the type does. ⚠ A cast to
    varchar(n) that is asked for cuts a text."""
    known = {kind.enum.kept_name: kind.enum for kind in (old.type, new) if kind.enum is not None}
    cast = find_cast_of(using, old.name, known.get)
    if cast is None:
        return False
    fails = cast == new and is_narrower(new, old.type) and new.length is None
    return fails or cast == old.type or holds_all_of(cast, old.type)


def _is_minded_by_none(draft: TableDraft, column: Column, kept: Type) -> bool:
    """Say whether a column can be of another type where it stands, or can't be of one at all: else
    what computes something else with it is made anew with the column."""
    if not _find_users_of_width(draft, column, kept):
        return True
    return bool(_find_users(draft, column, find_remade(draft, column)))


def _can_be_widened(draft: TableDraft, old: Column, action: AlterType) -> bool:
    """Whether the type is changed where the column stands, to one that holds the same values and
    more, unless something rests on the column that minds."""
    there = draft.table.element(old.element_id) is not None and not old.generated
    return draft.in_place and there and action.using is None and holds_all_of(action.type, old.type)


def _can_be_narrowed(draft: TableDraft, old: Column, action: AlterType) -> bool:
    """Whether the type is changed where the column stands, to one that has some of its values.
    ⚠ Not where its default is none of them: who leaves the column out writes that until the change
    is over, whether or not the same statement drops it."""
    before = draft.table.element(old.element_id)
    if not draft.narrows or not isinstance(before, Column) or old.generated:
        return False
    if action.using is not None or not is_narrower(action.type, old.type):
        return False
    return is_kept(action.type, before.default) and is_kept(action.type, old.default)


def _change_where_it_stands(draft: TableDraft, old: Column, action: AlterType) -> None:
    """Widen or narrow a column's type. What it has for a default stays as it is stored."""
    new = replace(old, type=action.type)
    check_default_fits(old, new)
    narrower = is_narrower(action.type, old.type)
    path = element_paths.narrow_type if narrower else element_paths.widen_type
    draft.change_column(path(old, action.type), new)
    draft.widened[old.element_id] = action.type
    draft.retyped.add(old.element_id)


def _text_kept(old: Column, new: Column, action: AlterType) -> str:
    """Return how a number is shown that is the default of a column which gets another type: as it
    was before, "" where that is nothing else than its value shows."""
    if new.default is None or not action.keeps_text:
        return ""
    text = number_text(old)
    return "" if text == literal(new.type, new.default) else text


def _can_stay_if_full(draft: TableDraft, old: Column, action: AlterType) -> bool:
    """Whether a char(n) can become text, or a varchar(n) with room, where it stands, if every value
    has n characters. It is stored without the blanks that fill it up, and shown with them: of a
    value that has none the new type shows the same."""
    full = Type("varchar", old.type.length)
    there = draft.table.element(old.element_id) is not None and not old.generated
    return (
        draft.narrows
        and there
        and old.type.name == "char"
        and action.using is None
        and holds_all_of(action.type, full)
        and (old.default is None or len(old.default) == old.type.length)
    )


def _change_if_full(draft: TableDraft, old: Column, action: AlterType) -> None:
    """Change char(n) where it stands. ⚠ Rows that were published have the blanks, and nobody is
    told of rows that do not change: so while readers know both types a CHECK holds every value to n
    characters, of those that are there, too. It goes when the last reader of the old type is gone,
    from when on what is written may be shorter, or have blanks at its end."""
    name = free_object_name(draft.table.name, old.name, "length", draft.names)
    draft.names.add(name)
    expression = f"length({quoted(old.name)}) = {old.type.length}"
    check = Check(draft.new_id(), name, expression, (old.element_id,))
    enforced = element_paths.enforcing_stage({"state": State.WRITE_ONLY})
    going = (element_paths.UNCHANGED, element_paths.GONE)
    path = ElementPath(check, True, (enforced,), going, irreversible_from=1)
    draft.take(path, f"constraint {name}")
    _change_where_it_stands(draft, old, action)


def set_not_null(draft: TableDraft, action: SetNotNull) -> None:
    column = draft.column(action.column, action.position)
    if column.refuses_null or column.element_id in draft.table.primary_key:
        draft.notices.append(f"column {column.name!r} is NOT NULL already")
        return
    if column.element_id in draft.widened:
        draft.change_column(element_paths.set_not_null(column), replace(column, nullable=False))
        return
    draft.refuse_retyped([column])
    draft.change_column(element_paths.set_not_null(column), replace(column, nullable=False))


def drop_not_null(draft: TableDraft, action: DropNotNull) -> None:
    column = draft.column(action.column, action.position)
    if column.element_id in draft.table.primary_key:
        raise InvalidDefinition(
            f"column {column.name!r} belongs to the primary key, which is NOT NULL: change the"
            " key first (DROP CONSTRAINT …, ADD PRIMARY KEY (…))",
            column=column.name,
            position=action.position,
        )
    _refuse_identity(draft, column, action.position)
    if column.nullable:
        draft.notices.append(f"column {column.name!r} is not NOT NULL")
        return
    draft.change_column(element_paths.drop_not_null(column), replace(column, nullable=True))


def _find_users(draft: TableDraft, column: Column, but: Sequence[Remade] = ()) -> list[str]:
    """Return in words what rests on a column and is in the way of another type; `but`: what is made
    anew."""
    own = column.element_id
    left = {each.element_id for each in but}
    made = {path.name[1] for element, path in draft.remade if element.element_id in left}
    resting = [i for i in draft.table.indexes if own in i.over and i.element_id not in left]
    users = [f"index {i.name}" for i in resting]
    checks = (c for c in draft.table.checks if own in c.columns)
    users += [f"check {c.name}" for c in checks if c.element_id not in left]
    users += [f"foreign key {k.name}" for k in draft.table.foreign_keys if own in k.columns]
    users += [
        f"foreign key {k.name} of table {table.name}"
        for table, k in draft.references()
        if own in k.parent_columns
    ]
    users += [f"generated column {c.name}" for c in draft.find_computed_from(column)]
    users += draft.describe_made_over(column, made)
    if own in draft.table.primary_key:
        users.append("the primary key")
    return users


def _find_users_of_width(draft: TableDraft, column: Column, kept: Type) -> list[str]:
    """Return in words what rests on a column and minds a type that holds more, or less, where it
    stands. ⚠ A value stays as it is stored, so it is what it was to the keys of rows, to entries of
    indexes and to foreign keys, which compare values as they are stored, whatever their columns'
    types are. What is computed from it may be something else: a CHECK of which a version in use
    says so is broken to the readers of that version."""
    own = column.element_id
    users = [f"index {i.name}" for i in draft.table.indexes if own in i.mentioned]
    types = {**draft.widened, own: kept}
    columns = (replace(c, type=types.get(c.element_id, c.type)) for c in draft.table.columns)
    widened = replace(draft.table, columns=tuple(columns))
    users += [
        f"check {c.name} (which does not compute with {kept} what it does with {column.type})"
        for c in draft.table.checks
        if own in c.columns and not means_the_same(c.expression, draft.table, widened, c.zone)
    ]
    users += [f"generated column {c.name}" for c in draft.find_computed_from(column)]
    return users + draft.describe_made_over(column)


def _refuse_users(
    draft: TableDraft,
    column: Column,
    position: int,
    *,
    kept: Type | None = None,
    but: Sequence[Remade] = (),
) -> None:
    """Refuse a change of type under what rests on the column; to `kept` where it stands. `but`:
    what is made anew."""
    if kept is None:
        users = _find_users(draft, column, but)
    else:
        users = _find_users_of_width(draft, column, kept)
    if users:
        raise FeatureNotSupported(
            f"the type of column {column.name!r} can't be changed while"
            f" {', '.join(users)} rests on it: drop that first, add it again after",
            column=column.name,
            position=position,
        )


def _reword_index(index: Index, name: str, to: str) -> ElementPath:
    expressions = tuple(rename_column_in(text, name, to) for text in index.expressions)
    predicate = rename_column_in(index.predicate, name, to) if index.predicate else ""
    return element_paths.reword_index(index, expressions, predicate)
