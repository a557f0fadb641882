"""Random tables, rows and statements from a grammar, the same for the same seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, Final

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import EXPRESSION, Column, Index
from leasehold.model.ids import genid
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, parse_type

KINDS: Final = (
    *("integer", "bigint", "smallint", "text", "varchar(6)", "boolean", "double precision"),
    *("date", "timestamp", "numeric", "numeric(8,2)"),
)
KEY_KINDS: Final = ("integer", "bigint", "text")
TEXTS: Final = ("", "a", "b", "ab", "aB", "Abc", "z_", "é", "a%", "100")
NUMBERS: Final = (-3, -1, 0, 1, 2, 3, 7, 100)
REALS: Final = ("0.5", "-1.25", "2.0", "3.75", "100.0", "0.0")
DATES: Final = ("2024-01-31", "2024-02-29", "2023-12-31", "1999-06-01")
TIMESTAMPS: Final = ("2024-01-31 00:00:00", "2024-02-29 12:30:15.5", "1999-12-31 23:59:59")
ROWS_MAX: Final = 12


@dataclass(frozen=True)
class Made:
    """`ddl`: for PostgreSQL; `rows`: Python texts by column in the order of columns."""

    descriptor: Descriptor
    ddl: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]


def literal(random: Random, kind: Type) -> str:
    """A constant's SQL, of its type wherever it stands."""
    match kind.name:
        case "integer":
            return str(random.choice(NUMBERS))
        case "smallint" | "bigint":
            return (
                f"{random.choice(NUMBERS)}::{kind.name}".replace("-", "0 - ")
                if random.random() < 0.2
                else f"CAST({random.choice(NUMBERS)} AS {kind.name})"
            )
        case "numeric":
            return random.choice(REALS)
        case "double precision":
            return f"'{random.choice(REALS)}'::double precision"
        case "text":
            return f"'{random.choice(TEXTS)}'"
        case "boolean":
            return random.choice(("true", "false"))
        case "date":
            return f"date '{random.choice(DATES)}'"
    return f"timestamp '{random.choice(TIMESTAMPS)}'"


def value(random: Random, kind: Type) -> str:
    match kind.name:
        case "integer" | "smallint" | "bigint":
            return str(random.choice(NUMBERS))
        case "numeric":
            return random.choice(REALS if kind.scale is None else ("0.50", "-1.25", "2.00"))
        case "double precision":
            return random.choice(REALS)
        case "text" | "varchar":
            return random.choice(TEXTS)
        case "boolean":
            return random.choice(("true", "false"))
        case "date":
            return random.choice(DATES)
    return random.choice(TIMESTAMPS)


def python_value(kind: Type, text: str | None) -> Any:
    """What is stored of a row's text."""
    if text is None:
        return None
    given: Any = text
    if kind.name in ("integer", "smallint", "bigint"):
        given = int(text)
    elif kind.name == "double precision":
        given = float(text)
    elif kind.name == "boolean":
        given = text == "true"
    return to_storage(kind)(given)


def tables(random: Random) -> tuple[Made, ...]:
    return tuple(_table(random, number) for number in range(1, 4))


def _table(random: Random, number: int) -> Made:
    kinds = [parse_type(random.choice(KEY_KINDS))]
    wide = random.random() < 0.3
    if wide:
        kinds.append(parse_type(random.choice(KEY_KINDS)))
    kinds += [parse_type(random.choice(KINDS)) for _ in range(random.randint(2, 4))]
    width = 2 if wide else 1
    columns = tuple(
        Column(n, f"c{n}" if n > 1 else "id", kind, nullable=n > width and random.random() < 0.8)
        for n, kind in enumerate(kinds, 1)
    )
    indexes = tuple(_indexes(random, columns))
    name = f"t{number}"
    descriptor = Descriptor(
        number, name, 1, columns, tuple(range(1, width + 1)), indexes, 50, since_lsn=1
    )
    shown = [f"{c.name} {c.type}{'' if c.nullable else ' not null'}" for c in columns]
    key = ", ".join(c.name for c in columns[:width])
    ddl = [f"create table {name} ({', '.join(shown)}, primary key ({key}))"]
    rows: dict[tuple[Any, ...], tuple[str | None, ...]] = {}
    for _ in range(random.randint(0, ROWS_MAX)):
        row = tuple(
            None if c.nullable and random.random() < 0.25 else value(random, c.type)
            for c in columns
        )
        rows.setdefault(row[:width], row)
    return Made(descriptor, tuple(ddl), tuple(rows.values()))


def _indexes(random: Random, columns: tuple[Column, ...]) -> list[Index]:
    made = []
    for number in range(random.randint(0, 3)):
        over = random.sample(columns, random.randint(1, min(2, len(columns))))
        ids = tuple(c.element_id for c in over)
        predicate = ""
        mentioned: set[int] = set()
        expressions: tuple[str, ...] = ()
        if random.random() < 0.25:
            c = random.choice(columns)
            predicate, mentioned = f"{c.name} is not null", {c.element_id}
        texts = [c for c in columns if c.type.name == "text"]
        if texts and random.random() < 0.25:
            c = random.choice(texts)
            ids, expressions = (EXPRESSION, *ids[1:]), (f"lower({c.name})",)
            mentioned.add(c.element_id)
        included = tuple(
            c.element_id for c in columns if c.element_id not in ids and random.random() < 0.3
        )
        made.append(
            Index(
                20 + number,
                f"i{number}",
                ids,
                expressions=expressions,
                predicate=predicate,
                included=included,
                mentioned=tuple(sorted(mentioned)),
            )
        )
    return made


def backfill(store: Any, made: tuple[Made, ...]) -> None:
    """The tables and their rows in a store."""
    store.begin()
    lsn = 0
    for table in made:
        descriptor = table.descriptor
        store.prepare(descriptor)
        store.put_descriptor(descriptor.table_id, 1, descriptor.to_wire())
        for row in table.rows:
            lsn += 1
            values = {
                c.element_id: python_value(c.type, text)
                for c, text in zip(descriptor.columns, row, strict=True)
            }
            image = {e: v for e, v in values.items() if v is not None}
            key = tuple(values[e] for e in descriptor.primary_key)
            change = RowChange(ChangeKind.INSERT, descriptor.table_id, 1, key, image, {}, (0,))
            store.change(descriptor, change, lsn, 0, None)
    store.commit(LogPosition(3, lsn=lsn + 1))
    assert genid(1, 0) is not None


# -------------------------------------------------------------- statements

COMPARABLE: Final = ("=", "<>", "<", "<=", ">", ">=")
SPLIT: Final = {"smallint": "integer", "bigint": "integer", "varchar": "text"}


class Grammar:
    """One random statement: `text`, and whether its rows come in an order that is known."""

    def __init__(self, random: Random, made: tuple[Made, ...]) -> None:
        self.random = random
        self.made = made
        self._aliases = 0

    def statement(self) -> tuple[str, bool]:
        pick = self.random.random()
        if pick < 0.12:
            return self._set_operation(), False
        if pick < 0.2:
            return self._with(), False
        return self._ordered()

    def writing(self) -> str:
        """One that changes rows and gives them back."""
        random = self.random
        made = random.choice(self.made).descriptor
        mine = [(f"{made.name}.{c.name}", c.type) for c in made.columns]
        other = random.choice(self.made).descriptor
        self._aliases += 1
        alias = f"a{self._aliases}"
        theirs = [(f"{alias}.{c.name}", c.type) for c in other.columns]
        pick = random.random()
        if pick < 0.3:
            names = [c.name for c in made.columns]
            values = ", ".join(
                "default" if c.nullable and random.random() < 0.1 else self._assigned(c.type, [], 0)
                for c in made.columns
            )
            conflict = " on conflict do nothing"
            if random.random() < 0.5:
                key = ", ".join(c.name for c in made.key_columns)
                column = made.columns[-1]
                value = random.choice((f"excluded.{column.name}", f"{made.name}.{column.name}"))
                conflict = f" on conflict ({key}) do update set {column.name} = {value}"
            return (
                f"insert into {made.name} ({', '.join(names)}) values ({values}){conflict}"
                " returning *"
            )
        where = f" where {self.condition(mine, 1)}" if random.random() < 0.9 else ""
        if pick < 0.5:
            return f"delete from {made.name}{where} returning *"
        if pick < 0.6:
            same = self._equality(theirs, mine)
            using = f"using {other.name} {alias} where {same}"
            return f"delete from {made.name} {using} returning {mine[0][0]}"
        column = random.choice(made.columns[len(made.primary_key) :])
        value = self._assigned(column.type, mine, 2)
        return f"update {made.name} set {column.name} = {value}{where} returning *"

    def _assigned(self, kind: Type, columns: list[tuple[str, Type]], depth: int) -> str:
        return self.expression(Type(SPLIT.get(kind.name, kind.name)), columns, depth)

    def _ordered(self) -> tuple[str, bool]:
        text, kinds = self.select(depth=2)
        if self.random.random() < 0.5:
            keys = [
                f"{n}{self.random.choice(('', ' desc', ' nulls first', ' desc nulls last'))}"
                for n in self.random.sample(range(1, len(kinds) + 1), len(kinds))
            ]
            text += f" order by {', '.join(keys)}"
            if self.random.random() < 0.5:
                text += f" limit {self.random.randint(0, 5)}"
                if self.random.random() < 0.3:
                    text += f" offset {self.random.randint(0, 3)}"
            return text, True
        return text, False

    def _set_operation(self) -> str:
        kinds = [self.random.choice(("integer", "text", "boolean")) for _ in range(2)]
        parts = [self._select_of(kinds) for _ in range(self.random.randint(2, 3))]
        words = ("union", "union all", "intersect", "except", "intersect all", "except all")
        text = parts[0]
        for part in parts[1:]:
            text += f" {self.random.choice(words)} {part}"
        return text

    def _with(self) -> str:
        text, kinds = self.select(depth=1)
        names = [f"x{n}" for n in range(len(kinds))]
        text = f"with w({', '.join(names)}) as ({text}) select "
        if self.random.random() < 0.5:
            count = "" if kinds[0].name == "boolean" else f", min({names[0]})"
            return f"{text}count(*){count} from w"
        return f"{text}* from w a where exists (select 1 from w b where b.x0 = a.x0)"

    def _select_of(self, kinds: list[str]) -> str:
        source, columns = self.source(1)
        outputs = [self.expression(Type(kind), columns, 1) for kind in kinds]
        return f"select {', '.join(outputs)} from {source}{self._where(columns)}"

    def select(self, depth: int) -> tuple[str, list[Type]]:
        source, columns = self.source(depth)
        where = self._where(columns)
        if self.random.random() < 0.3:
            return self._grouped(source, columns, where)
        kinds = [self._kind(columns) for _ in range(self.random.randint(1, 3))]
        outputs = [self.expression(kind, columns, depth) for kind in kinds]
        if self.random.random() < 0.12:
            column, kind = self.random.choice(columns)
            order = ", ".join(c for c, _ in columns)
            function = self.random.choice(("row_number()", "rank()", "count(*)", f"lag({column})"))
            outputs.append(f"{function} over (order by {order})")
            kinds.append(kind if "lag" in function else Type("bigint"))
        word = "select distinct" if self.random.random() < 0.15 else "select"
        shown = ", ".join(f"{o} as e{n}" for n, o in enumerate(outputs))
        return f"{word} {shown} from {source}{where}", kinds

    def _grouped(
        self, source: str, columns: list[tuple[str, Type]], where: str
    ) -> tuple[str, list[Type]]:
        name, kind = self.random.choice(columns)
        outputs, kinds = [name], [kind]
        for _ in range(self.random.randint(1, 2)):
            output, made = self._aggregate(columns)
            outputs.append(output)
            kinds.append(made)
        having = (
            f" having count(*) {self.random.choice(('>', '<'))} 2"
            if self.random.random() < 0.3
            else ""
        )
        if self.random.random() < 0.25:
            return f"select {', '.join(outputs[1:])} from {source}{where}{having}", kinds[1:]
        group = self.random.choice((name, "1"))
        return f"select {', '.join(outputs)} from {source}{where} group by {group}{having}", kinds

    def _aggregate(self, columns: list[tuple[str, Type]]) -> tuple[str, Type]:
        name, kind = self.random.choice(columns)
        filtered = (
            f" filter (where {self.condition(columns, 1)})" if self.random.random() < 0.2 else ""
        )
        numbers = ("integer", "smallint", "bigint", "numeric")
        pick = self.random.randint(0, 4)
        if pick == 0 and kind.name in numbers:
            return f"sum({name}){filtered}", Type("numeric")
        if pick == 1 and kind.name in numbers:
            return f"avg({name}){filtered}", Type("numeric")
        if pick == 2 and kind.name != "boolean":
            return f"{self.random.choice(('min', 'max'))}({name}){filtered}", kind
        if pick == 3:
            return f"count(distinct {name}){filtered}", Type("bigint")
        return f"count({self.random.choice(('*', name))}){filtered}", Type("bigint")

    def source(self, depth: int) -> tuple[str, list[tuple[str, Type]]]:
        text, columns = self._leaf(depth)
        for _ in range(self.random.choice((0, 0, 0, 1, 1, 2))):
            right, more = self._leaf(0)
            kind = self.random.choice(
                ("join", "left join", "right join", "full join", "cross join")
            )
            if kind == "cross join":
                text = f"{text} cross join {right}"
            else:
                # PostgreSQL's FULL JOIN needs an equality that can be merged or hashed.
                text = f"{text} {kind} {right} on {self._equality(columns, more)}"
            columns = columns + more
        return text, columns

    def _equality(self, left: list[tuple[str, Type]], right: list[tuple[str, Type]]) -> str:
        pairs = [
            (a, b)
            for a, one in left
            for b, other in right
            if SPLIT.get(one.name, one.name) == SPLIT.get(other.name, other.name)
        ]
        if not pairs:
            return "true"
        a, b = self.random.choice(pairs)
        return f"{a} = {b}"

    def _leaf(self, depth: int) -> tuple[str, list[tuple[str, Type]]]:
        self._aliases += 1
        alias = f"a{self._aliases}"
        if depth > 0 and self.random.random() < 0.12:
            text, kinds = self.select(depth - 1)
            names = [f"y{n}" for n in range(len(kinds))]
            return (
                f"({text}) as {alias}({', '.join(names)})",
                [(f"{alias}.{n}", k) for n, k in zip(names, kinds, strict=True)],
            )
        made = self.random.choice(self.made).descriptor
        return f"{made.name} {alias}", [(f"{alias}.{c.name}", c.type) for c in made.columns]

    def _where(self, columns: list[tuple[str, Type]]) -> str:
        if self.random.random() < 0.3:
            return ""
        parts = [self.condition(columns, 2) for _ in range(self.random.randint(1, 2))]
        return f" where {self.random.choice((' and ', ' and ', ' or ')).join(parts)}"

    def _kind(self, columns: list[tuple[str, Type]]) -> Type:
        kind = self.random.choice(columns)[1]
        return Type(SPLIT.get(kind.name, kind.name))

    def condition(self, columns: list[tuple[str, Type]], depth: int) -> str:
        random = self.random
        pick = random.random()
        if depth > 0 and pick < 0.12:
            return f"not ({self.condition(columns, depth - 1)})"
        if depth > 0 and pick < 0.2:
            word = random.choice((" and ", " or "))
            return (
                f"({self.condition(columns, depth - 1)}{word}{self.condition(columns, depth - 1)})"
            )
        name, kind = random.choice(columns)
        if pick < 0.28:
            return f"{name} is {random.choice(('', 'not '))}null"
        if depth > 0 and pick < 0.36:
            made = random.choice(self.made).descriptor
            self._aliases += 1
            alias = f"a{self._aliases}"
            inner = [(f"{alias}.{c.name}", c.type) for c in made.columns]
            if random.random() < 0.5:
                same = self._equality(columns, inner)
                word = random.choice(("exists", "not exists"))
                return f"{word} (select 1 from {made.name} {alias} where {same})"
            fitting = [
                c for c, k in inner if SPLIT.get(k.name, k.name) == SPLIT.get(kind.name, kind.name)
            ]
            if fitting and kind.name != "boolean":
                word = random.choice(("in", "not in", "= any", "<> all", "> all", "<= any"))
                return f"{name} {word} (select {random.choice(fitting)} from {made.name} {alias})"
        plain = Type(SPLIT.get(kind.name, kind.name))
        if pick < 0.45:
            items = ", ".join(literal(random, plain) for _ in range(random.randint(1, 3)))
            return f"{name} {random.choice(('', 'not '))}in ({items})"
        if pick < 0.52 and kind.name != "boolean":
            low, high = literal(random, plain), literal(random, plain)
            return f"{name} {random.choice(('', 'not '))}between {low} and {high}"
        if pick < 0.58 and plain.name == "text":
            pattern = random.choice(("a%", "%b%", "_", "A_c", ""))
            return f"{name} {random.choice(('', 'not '))}like '{pattern}'"
        if pick < 0.64:
            other = self.expression(plain, columns, depth - 1)
            return f"{name} is {random.choice(('', 'not '))}distinct from {other}"
        left = name if random.random() < 0.7 else self.expression(plain, columns, depth - 1)
        right = (
            literal(random, plain)
            if random.random() < 0.6
            else self.expression(plain, columns, depth - 1)
        )
        return f"{left} {random.choice(COMPARABLE)} {right}"

    def expression(self, kind: Type, columns: list[tuple[str, Type]], depth: int) -> str:
        random = self.random
        fitting = [c for c, k in columns if SPLIT.get(k.name, k.name) == kind.name]
        pick = random.random()
        if depth <= 0 or pick < 0.45:
            return (
                random.choice(fitting)
                if fitting and random.random() < 0.8
                else literal(random, kind)
            )

        def inner(k: Type = kind) -> str:
            return self.expression(k, columns, depth - 1)

        if pick < 0.52:
            return f"case when {self.condition(columns, 0)} then {inner()} else {inner()} end"
        if pick < 0.58:
            return f"coalesce({inner()}, {inner()})"
        if pick < 0.62:
            return f"nullif({inner()}, {inner()})"
        if pick < 0.66 and kind.name != "boolean":
            return f"{random.choice(('greatest', 'least'))}({inner()}, {inner()})"
        if kind.name == "boolean":
            return f"({self.condition(columns, depth - 1)})"
        if kind.name in ("integer", "numeric", "double precision"):
            sign = random.choice(
                ("+", "-", "*", "/", "%" if kind.name != "double precision" else "+")
            )
            if pick < 0.85:
                return f"({inner()} {sign} {inner()})"
            if pick < 0.9 and kind.name == "integer":
                return f"length({inner(Type('text'))})"
            return random.choice((f"- {inner()}", f"abs({inner()})"))
        if kind.name == "text":
            if pick < 0.8:
                return f"({inner()} || {inner()})"
            return f"{random.choice(('upper', 'lower'))}({inner()})"
        return inner()
