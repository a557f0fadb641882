"""What a plan changes of what stays."""

from __future__ import annotations

from collections.abc import Iterator

from leasehold.catalog.definitions import quoted
from leasehold.schema_change.declared import wording
from leasehold.schema_change.declared.shapes import CommentKey, SequenceShape
from leasehold.schema_change.declared.situation import EQUAL, Said, Situation
from leasehold.schema_change.declared.wording import alter_text, text_literal


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
        same = now.key == wanted.key
        if same and now.key_included == wanted.key_included:
            continue
        actions = [f"DROP CONSTRAINT {quoted(now.key_name)}"] if now.key else []
        unique = s.key_kept_unique(table) if now.key and not same else None
        fails = ""
        if wanted.key:
            actions.append(f"ADD {wording.key_text(s.wanted_tables[table])}")
        if wanted.key and not same:
            fails = f"{EQUAL.format(', '.join(wanted.key))}, and so does a NULL"
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


def change_comments(s: Situation) -> Iterator[Said]:
    """Set and take away comments."""
    for key, text in s.target.comments.items():
        if s.now.comments.get(key) != text:
            yield Said(f"COMMENT ON {_commented(key)} IS {text_literal(text)}")
    for key in s.now.comments.keys() - s.target.comments.keys():
        yield Said(f"COMMENT ON {_commented(key)} IS NULL")


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
