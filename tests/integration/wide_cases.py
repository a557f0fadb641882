# ruff: noqa: E501 - a statement stands in one line
"""Random statements over everything that the language says it has, for the same seed the same: each
family makes statements of one kind. What comes out is told by the text alone; where the order of
rows is not said, the test sorts them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final, NamedTuple

KINDS: Final = {
    "c_small": "smallint",
    "c_int": "integer",
    "c_big": "bigint",
    "c_num": "numeric",
    "c_fix": "numeric(8,2)",
    "c_real": "double precision",
    "c_text": "text",
    "c_var": "varchar(8)",
    "c_bool": "boolean",
    "c_bytes": "bytea",
    "c_date": "date",
    "c_ts": "timestamp",
    "c_tz": "timestamptz",
    "c_uuid": "uuid",
    "c_json": "jsonb",
}
VALUES: Final[dict[str, tuple[str, ...]]] = {
    "smallint": ("0", "1", "-1", "7", "32767", "-32768"),
    "integer": ("0", "1", "-1", "2", "3", "10", "2147483647", "-2147483648"),
    "bigint": ("0", "1", "-1", "5", "9223372036854775807", "-9223372036854775808", "4294967296"),
    "numeric": (
        *("0", "1.5", "1.50", "-2.25", "1e10", "0.001", "123456789.987654321", "-0.5", "2.5"),
        *("NaN", "3"),
    ),
    "numeric(8,2)": ("0", "1.5", "-2.25", "999999.99", "-0.01", "2.5", "3.00"),
    "double precision": ("0", "1.5", "-2.25", "1e100", "-1e-5", "0.1", "3", "2.5"),
    "text": (
        *(
            "",
            "a",
            "b",
            "abc",
            "Abc",
            "aBC",
            "a%b",
            "a_b",
            "a\\b",
            "éa",
            "日本語",
            "ß",
            "  x ",
            "10",
        ),
        *("-3", "2024-02-29", "true", "zzz", "ab ab", "😀a"),
    ),
    "varchar(8)": ("", "a", "B", "abc", "aab", "éé", "x  ", "100"),
    "boolean": ("true", "false"),
    "bytea": ("\\x", "\\x00", "\\x616263", "\\xff00ff", "\\x61"),
    "date": ("2024-02-29", "2023-12-31", "1999-01-01", "2024-01-31", "0001-01-01", "2000-02-29"),
    "timestamp": (
        *("2024-02-29 12:30:45.123456", "1999-12-31 23:59:59", "2024-01-31 00:00:00"),
        *("2024-03-31 02:30:00", "0044-03-15 10:00:00"),
    ),
    "timestamptz": (
        *("2024-02-29 12:30:45.5+00", "1999-12-31 23:59:59+00", "2024-03-31 01:30:00+00"),
        *("2024-10-27 01:30:00+02",),
    ),
    "uuid": (
        *("00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ),
    "jsonb": (
        *('{"a": 1, "b": [1, 2, {"c": null}]}', "[]", "{}", '"text"', "1.50", "null", "true"),
        *('[1, "a", null, 2]', '{"a": {"b": "x"}}', '{"b": 2, "a": 1.0}', '["a", "b"]'),
    ),
    "interval": (
        "1 day",
        "1 mon",
        "-1 mon",
        "1 year 2 mons 3 days 04:05:06.789",
        "36:00",
        "-2 hours",
    ),
}
NUMBERS: Final = ("smallint", "integer", "bigint", "numeric", "double precision")
BARE: Final = {"numeric(8,2)": "numeric", "varchar(8)": "text"}


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Statement(NamedTuple):
    """`ordered`: the order of its rows is whole. `writes`: it is taken back afterwards."""

    text: str
    ordered: bool = False
    writes: bool = False


class Schema(NamedTuple):
    ddl: tuple[str, ...]
    rows: tuple[str, ...]


def schema(random: Random) -> Schema:
    """Tables t (all types), u (a few) and n (integers, all NOT NULL)."""
    columns = ", ".join(f"{name} {kind}" for name, kind in KINDS.items())
    ddl = [
        f"create table t (id integer primary key, {columns})",
        "create table u (k integer primary key, g integer, v integer, w text, d date, q numeric)",
        "create table n (a integer not null, b integer not null, s text not null, primary key (a, b))",
        "create table w (id integer primary key, a integer unique, b text, c numeric(6,2), d date)",
    ]
    for number, name in enumerate(random.sample([*KINDS][:-1], 4)):
        if name != "c_bytes":
            ddl.append(f"create index t{number} on t ({name})")
    if random.random() < 0.5:
        ddl.append("create index ug on u (g, v)")
    rows = []
    for number in range(random.randint(6, 14)):
        made = [
            "NULL" if random.random() < 0.2 else quoted(random.choice(VALUES[kind]))
            for kind in KINDS.values()
        ]
        rows.append(f"insert into t values ({number}, {', '.join(made)})")
    for number in range(random.randint(5, 16)):
        made = [
            str(number),
            str(random.randint(0, 3)) if random.random() < 0.9 else "NULL",
            str(random.randint(-3, 5)) if random.random() < 0.85 else "NULL",
            quoted(random.choice(("a", "b", "B", "é", "ab", ""))),
            quoted(random.choice(VALUES["date"])) if random.random() < 0.8 else "NULL",
            random.choice(("1.5", "1.50", "0", "-2", "NULL", "3.25")),
        ]
        rows.append(f"insert into u values ({', '.join(made)})")
    for a in range(4):
        made = [f"{a}, {b}, {quoted(random.choice('xyz'))}" for b in random.sample(range(4), 2)]
        rows += [f"insert into n values ({row})" for row in made]
    for number in range(random.randint(3, 7)):
        c, d = random.choice(("1.25", "NULL", "0")), quoted(random.choice(VALUES["date"]))
        b = quoted(random.choice("xyz"))
        rows.append(f"insert into w values ({number}, {number * 10}, {b}, {c}, {d})")
    return Schema(tuple(ddl), tuple(rows))


class Wide:
    """`families`: by name, each makes one statement."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.families: dict[str, Callable[[], Statement]] = {
            "window": self.window,
            "aggregate": self.aggregate,
            "recursive": self.recursive,
            "sets": self.sets,
            "upsert": self.upsert,
            "update_from": self.update_from,
            "delete_using": self.delete_using,
            "moments": self.moments,
            "rounding": self.rounding,
            "json": self.json,
            "cast": self.cast,
            "assign": self.assign,
            "like": self.like,
            "nulls": self.nulls,
            "texts": self.texts,
            "series": self.series,
            "overflow": self.overflow,
            "joins": self.joins,
            "subqueries": self.subqueries,
            "literals": self.literals,
            "grouping": self.grouping,
        }

    def statement(self, family: str) -> Statement:
        return self.families[family]()

    # ------------------------------------------------------------ pieces

    def _one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def _column(self, *kinds: str) -> str:
        fitting = [n for n, k in KINDS.items() if not kinds or k in kinds or BARE.get(k) in kinds]
        return self.random.choice(fitting)

    def _literal(self, kind: str, bare: float = 0.0) -> str:
        text = quoted(self.random.choice(VALUES[kind]))
        if self.random.random() < 0.06:
            text = "NULL"
        return text if self.random.random() < bare else f"{text}::{kind}"

    def _value(self, kind: str) -> str:
        """Of a column of t, or a constant."""
        names = [n for n, k in KINDS.items() if k == kind or BARE.get(k) == kind]
        if names and self.random.random() < 0.6:
            return self.random.choice(names)
        return self._literal(kind)

    def _number(self, depth: int = 1) -> str:
        if depth <= 0 or self.random.random() < 0.5:
            return self._value(self._one(*NUMBERS))
        sign = self._one("+", "-", "*", "/", "%")
        return f"({self._number(depth - 1)} {sign} {self._number(depth - 1)})"

    # ------------------------------------------------------------ families

    def window(self) -> Statement:
        one = self._one
        frame = ""
        order = one(
            "order by v, k", "order by k", "order by v desc nulls last, k", "order by w, k", ""
        )
        unit = one("rows", "rows", "groups", "range")
        if order and self.random.random() < 0.75:
            start = one("unbounded preceding", "1 preceding", "2 preceding", "current row")
            end = one("current row", "1 following", "unbounded following", "2 following")
            if unit == "range":
                if self.random.random() < 0.5:
                    order = one("order by v", "order by v desc", "order by q", "order by k")
                else:
                    start, end = one("unbounded preceding", "current row"), "unbounded following"
            if self.random.random() < 0.2:
                start, end = one("1 following", "2 preceding"), one("2 following", "1 preceding")
            exclude = one("", "", "", " exclude current row", " exclude ties", " exclude group")
            frame = f" {unit} between {start} and {end}{exclude}"
        part = one("", "partition by g ", "partition by w ", "partition by g, w ")
        anywhere = (
            *("sum(v)", "count(*)", "avg(v)", "min(w)", "max(d)", "count(v)", "sum(q)", "avg(q)"),
            *("bool_and(v > 0)", "sum(v) filter (where v > 0)", "stddev(v)", "bit_or(v)"),
            *("ntile(0)", "nth_value(w, 0)", "count(distinct v)", "rank()", "dense_rank()"),
            *("percent_rank()", "cume_dist()"),
        )
        call = (
            one(*anywhere)
            if "k" not in order
            else one(
                *(
                    "sum(v)",
                    "count(*)",
                    "avg(v)",
                    "min(w)",
                    "max(d)",
                    "count(v)",
                    "sum(q)",
                    "avg(q)",
                ),
                *("first_value(k)", "last_value(v)", "nth_value(k, 2)", "string_agg(w, ',')"),
                *("bool_and(v > 0)", "max(q)", "count(distinct v)", "array_agg(v)", "min(q)"),
                *("sum(v) filter (where v > 0)", "count(*) filter (where w = 'a')"),
                *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()"),
                *(
                    "lag(v)",
                    "lead(v, 2)",
                    "lag(w, 1, 'none')",
                    "ntile(3)",
                    "lag(v, -1)",
                    "lead(q, 1, 0)",
                ),
                *(
                    "stddev(v)",
                    "bit_or(v)",
                    "jsonb_agg(v)",
                    "nth_value(w, 0)",
                    "ntile(0)",
                    "first_value(q)",
                ),
            )
        )
        if self.random.random() < 0.2:
            text = f"select k, {call} over x from u window x as ({part}{order}{frame})"
        elif self.random.random() < 0.2:
            text = f"select k, {call} over (x {order}{frame}) from u window x as ({part.strip()})"
        elif self.random.random() < 0.1:
            inner = f"sum({one('v', 'count(*)', 'sum(v)')}) over (order by g)"
            return Statement(
                f"select g, {inner} from u group by g{one('', ', v')} order by 1, 2", True
            )
        else:
            text = f"select k, {call} over ({part}{order}{frame}) from u"
        if self.random.random() < 0.2:
            return Statement(f"{text}{one('', ' where v > 0')} order by 2, 1", True)
        return Statement(f"{text} order by k", True)

    def aggregate(self) -> Statement:
        one = self._one
        column = self._column()
        kind = KINDS[column]
        call = one(
            *(f"count({column})", f"count(distinct {column})", f"min({column})", f"max({column})"),
            *(f"array_agg({column} order by id)", f"jsonb_agg({column} order by id)"),
            f"string_agg({column}::text, ',' order by {column}{one('', ' desc')}, id)",
            f"string_agg(distinct {column}::text, '-')",
            *(
                f"sum({self._number()})",
                f"avg({self._number()})",
                f"sum(distinct {self._column(*NUMBERS)})",
            ),
            *(f"stddev({self._column(*NUMBERS)})", f"var_pop({self._column(*NUMBERS)})"),
            *("bool_or(c_bool)", "every(c_int > 0)", "bit_and(c_int)", "bit_xor(c_big)"),
            "jsonb_object_agg(id, c_text)",
            *(f"sum({column})", f"avg({column})"),
        )
        if self.random.random() < 0.4:
            call += f" filter (where {self.condition()})"
        group = one("", "c_bool", "c_int > 0", "id % 3", column if kind != "jsonb" else "c_bool")
        if not group:
            return Statement(f"select {call} from t{one('', ' where ' + self.condition())}")
        having = one(
            "", "", " having count(*) > 1", " having min(id) < 4", " having bool_or(c_bool)"
        )
        return Statement(f"select {group}, {call} from t group by {one('1', group)}{having}")

    def grouping(self) -> Statement:
        one = self._one
        text = one(
            "select g, w, count(*) from u group by {} having count(*) > 0",
            "select g, sum(v) from u group by {} order by 1 nulls first, 2",
            "select distinct {} from u",
            "select count(*) from (select distinct {} from u) s",
            "select distinct on ({}) k from u order by {}, k",
            "select {}, count(*) from u group by {} order by count(*) desc, {} limit 2",
        )
        part = one(
            "g", "g, w", "w", "q", "v % 2", "d", "g + 1", "upper(w)", "w, g", "extract(year from d)"
        )
        return Statement(text.replace("{}", part))

    def condition(self) -> str:
        one = self._one
        column = self._column()
        kind = KINDS[column]
        bare = BARE.get(kind, kind)
        sign = one("=", "<>", "<", "<=", ">", ">=")
        return one(
            f"{column} is null",
            f"{column} is not null",
            f"{column} {sign} {self._literal(kind, 0.7)}",
            f"{column} in ({self._literal(kind, 0.7)}, {self._literal(kind, 0.7)})",
            f"{column} not in ({self._literal(kind, 0.7)}, {self._literal(kind, 0.7)})",
            f"{column} between {self._literal(kind, 0.7)} and {self._literal(kind, 0.7)}",
            f"{column} is distinct from {self._literal(kind, 0.7)}",
            f"{column} {sign} {self._value(bare)}",
            f"not (c_bool and {column} is null)",
            f"c_int {sign} {self._number()}",
            f"{column} = any(array[{self._literal(kind)}, {self._literal(kind)}])",
        )

    def recursive(self) -> Statement:
        one = self._one
        limit = one("5", "8", "12")
        text = one(
            f"with recursive r(n, s) as (select 1, 'a'::text union all select n + 1, s || n from r where n < {limit}) select * from r order by n",
            f"with recursive r(n) as (values (1) union select n * 2 % 7 from r) select * from r order by n{one('', ' desc')}",
            "with recursive r as (select a, b, 0 as depth from n where a = 0 union select n.a, n.b, depth + 1 from n join r on n.a = r.b where depth < 4) select * from r order by 1, 2, 3",
            f"with recursive r(k, total) as (select k, v::bigint from u where k = 0 union all select u.k, r.total + coalesce(u.v, 0) from u join r on u.k = r.k + 1) select * from r order by k {one('limit 3', '', 'offset 2')}",
            "with recursive fib(a, b) as (select 0, 1 union all select b, a + b from fib where b < 100) select a from fib order by a",
            "with recursive fib(a, b) as (select 0, 1 union all select b, a + b from fib) select a from fib limit 60",
            f"with recursive d(day) as (select date '2024-01-30' union all select day + {one('1', '31')} from d where day < '2024-03-05') select day, to_char(day, 'Dy') from d order by 1",
            f"with recursive r(n) as (select 1.0 union all select n / {one('3', '2.00', '7')} from r where n > 0.01) select n from r order by n",
            "with recursive r(n, p) as (select 1, array[1] union all select n + 1, p || (n + 1) from r where n < 4) select * from r order by 1",
            "with recursive r(n) as (select c_small from t where id < 3 union all select n + 1 from r where n < 3) select n from r order by n",
            "with w as (select * from u where v > 0), x as (select g, count(*) c from w group by g) select w.k, x.c from w join x using (g) order by 1, 2",
            f"with r as {one('', 'materialized ', 'not materialized ')}(select k, random() as x from u) select count(*) from r a join r b on a.k = b.k and a.x = b.x",
        )
        return Statement(text, " order by " in text)

    def sets(self) -> Statement:
        one, kinds = self._one, [self._one(*VALUES) for _ in range(self.random.randint(1, 2))]
        kinds = [k if k != "interval" else "text" for k in kinds]

        def part() -> str:
            if self.random.random() < 0.2:
                rows = [", ".join(self._literal(k, 0.3) for k in kinds) for _ in range(2)]
                return f"values ({rows[0]}), ({rows[1]})"
            shown = ", ".join(
                self._value(BARE.get(k, k)) if self.random.random() < 0.85 else "NULL"
                for k in kinds
            )
            where = f" where {self.condition()}" if self.random.random() < 0.5 else ""
            return f"select {shown} from t{where}"

        def operand(depth: int) -> str:
            if depth and self.random.random() < 0.3:
                inner = combined(depth - 1)
                tail = one("", " order by 1", " order by 1 limit 2", " limit 0")
                return f"({inner}{tail if 'limit 2' not in tail else ' order by ' + every + ' limit 2'})"
            return part()

        def combined(depth: int) -> str:
            words = ("union", "union all", "intersect", "except", "intersect all", "except all")
            return f"{operand(depth)} {one(*words)} {operand(depth)}"

        every = ", ".join(str(n + 1) for n in range(len(kinds)))
        text = combined(2)
        if self.random.random() < 0.5:
            text += f" {one(*('union', 'except', 'intersect'))} {part()}"
        if self.random.random() < 0.6:
            directed = ", ".join(
                f"{n + 1}{one('', ' desc', ' nulls first', ' desc nulls last')}"
                for n in range(len(kinds))
            )
            text += f" order by {directed}{one('', ' limit 3', ' limit 2 offset 1', ' offset 1')}"
            return Statement(text, True)
        return Statement(text)

    def upsert(self) -> Statement:
        one = self._one
        rows = ", ".join(
            f"({self.random.randint(0, 9)}, {self.random.choice((0, 10, 20, 'NULL', 77))},"
            f" {quoted(one('x', 'y', 'q'))}, {one('1.005', '2.345', 'NULL', '99999.99')})"
            for _ in range(self.random.randint(1, 3))
        )
        target = one("(id)", "(id)", "(a)", "", "on constraint w_pkey", "(b)")
        where = one(
            *("", "", " where w.c is null", " where excluded.c > w.c", " where w.b <> excluded.b"),
            " where w.id % 2 = 0",
        )
        action = one(
            "do nothing",
            f"do update set c = excluded.c{where}",
            f"do update set b = w.b || excluded.b, c = coalesce(w.c, 0) + 1{where}",
            f"do update set (b, c) = (excluded.b, excluded.c){where}",
            f"do update set a = excluded.a + 1{where}",
            f"do update set b = default, d = current_date - current_date + date '2020-01-01'{where}",
            f"do update set c = (select max(q) from u) {where}",
        )
        conflict = f" on conflict {target} {action}" if target or action == "do nothing" else ""
        source = f"values {rows}"
        if self.random.random() < 0.25:
            source = f"select k, {one('v * 10', 'k', 'NULL::int')}, w, q from u where k < 4"
        back = one(
            "", " returning *", " returning id, c, b || '!'", " returning w.*, id + 1 as more"
        )
        return Statement(f"insert into w (id, a, b, c) {source}{conflict}{back}", writes=True)

    def update_from(self) -> Statement:
        one = self._one
        value = one(
            "b = u.w",
            "c = u.q",
            "c = u.v / 2",
            "b = w.b || u.w, c = 1.005",
            "d = u.d + 1",
            "c = c + 1",
        )
        text = one(
            # One match for each row.
            f"update w set {value} from u where u.k = w.id{one('', ' and u.v > 0')}",
            f"update w set {value} from u join n on n.a = u.k and n.b = 0 where w.id = u.k",
            "update w set c = s.total from (select g, sum(v) as total from u group by g) s where s.g = w.id",
            "update w set b = 'many' from u where u.g = w.id",
            "update w set c = 7 from u, n where u.k = n.a and n.b = w.id",
            "update w set (b, c) = (select u.w, u.q from u where u.k = w.id)",
            "update w as x set b = x.b || y.b from w as y where y.id = x.id + 1",
            "update w set a = a + 1",
            "update w set a = a + 10 where id > 0",
            "update w set id = id + 100, a = default",
            f"update w set c = {one('100000', '9999.995', '9999.994', '-0.005')} where id = 1",
            "update w set b = null, c = null where c is null or b = 'x'",
            "with s as (select max(v) as m from u) update w set c = m from s where w.id < 2",
            "update w set c = (select v from u where u.g = w.id)",
        )
        back = one("", " returning *", " returning w.id, w.b", " returning c")
        if " as x" in text:
            back = one("", " returning x.*", " returning x.id, y.b")
        return Statement(text + back, writes=True)

    def delete_using(self) -> Statement:
        one = self._one
        text = one(
            "delete from w using u where u.k = w.id",
            "delete from w using u where u.g = w.id returning w.id",
            "delete from w using u join n on u.k = n.a where w.id = n.b and u.v > 0",
            "delete from w using w as o where o.id < w.id and o.b = w.b",
            "delete from w where exists (select 1 from u where u.k = w.id and u.v < 0)",
            "delete from w where id in (select g from u)",
            "delete from w where id not in (select g from u)",
            "delete from w where (id, b) in (select k, w from u)",
            "with s as (select 1 as one) delete from w using s where w.id = one",
            "delete from w where c = (select min(c) from w)",
        )
        back = one("", " returning *", " returning w.id", " returning id + 1, b")
        if " using w as o" in text:
            back = one("", " returning w.*")
        if "returning" in text:  # of several that match it is nobody's promise which is taken
            back = ""
        return Statement(text + back, writes=True)

    def moments(self) -> Statement:
        one = self._one
        day, ts, tz = self._value("date"), self._value("timestamp"), self._value("timestamptz")
        length = one(self._literal("interval"), self._literal("interval"), "id * interval '1 day'")
        either = one(day, ts, tz)
        part = one(
            *("year", "month", "day", "hour", "minute", "second", "dow", "isodow", "doy", "week"),
            *(
                "quarter",
                "epoch",
                "decade",
                "century",
                "milliseconds",
                "isoyear",
                "julian",
                "timezone",
            ),
        )
        trunc = one(
            "day", "month", "week", "hour", "year", "quarter", "decade", "century", "second"
        )
        form = one(
            *(
                "YYYY-MM-DD HH24:MI:SS.US",
                "Day, DD Month YYYY",
                "FMDay FMDD FMMonth",
                "Dy DD Mon YY",
            ),
            *("IYYY-IW-ID", "HH12:MI AM", "DDD Q WW J CC", "DDth FMDDth", "TZ OF", '"on" YYYY'),
            *("SSSS MS", "MON mon RM rm", "HH:MI:SS pm", "FMHH24 a.m.", "Y,YYY"),
        )
        text = one(
            *(
                f"{day} + {one('1', '-400', 'id', 'c_small')}",
                f"{day} - {day}",
                f"{ts} - {ts}",
                f"{tz} - {tz}",
            ),
            *(
                f"{either} + {length}",
                f"{either} - {length}",
                f"{length} + {either}",
                f"{day} - {ts}",
            ),
            *(
                f"extract({part} from {either})",
                f"date_part('{part}', {either})",
                f"extract({part} from {length})",
            ),
            *(
                f"date_trunc('{trunc}', {either})",
                f"date_trunc('{trunc}', {length})",
                f"to_char({either}, '{form}')",
            ),
            *(
                f"age({ts}, {ts})",
                f"age({tz}, {tz})",
                f"justify_days({length})",
                f"justify_interval({length})",
            ),
            *(
                f"{length} * {one('2', '0.5', '-1.5')}",
                f"{length} / {one('2', '3', '0')}",
                f"- {length}",
            ),
            *(
                f"{either} < {either}",
                f"{length} < {length}",
                f"{length} = {length}",
                f"({either})::date",
            ),
            *(
                f"({either})::timestamp",
                f"({either})::timestamptz",
                f"({either})::text",
                f"({length})::text",
            ),
            *(f"{ts} at time zone '{one('UTC', 'Europe/Berlin', 'America/New_York', 'EST')}'",),
            *(f"{tz} at time zone '{one('UTC', 'Europe/Berlin', 'Asia/Kolkata', '+03')}'",),
            *(
                f"make_date({one('2024', 'id', '0', '-5')}, {one('2', '13', 'id')}, {one('29', '31', '1')})",
            ),
            *(
                f"to_date('{one('2024-02-30', '2024-2-9', '20240229', '29 Feb 2024')}', '{one('YYYY-MM-DD', 'YYYYMMDD', 'DD Mon YYYY')}')",
            ),
            *(f"({day}, {length}) overlaps ({day}, {day})", f"isfinite({either})"),
            *(f"to_timestamp({one('0', '1700000000.5', '-1', 'c_int')})", f"{day} + time '10:00'"),
            *(f"date_bin('15 minutes', {ts}, timestamp '2001-01-01')",),
        )
        return Statement(f"select id, {text} from t order by id", True)

    def rounding(self) -> Statement:
        one = self._one
        a, b = self._number(), self._number()
        n = one("0", "1", "2", "-1", "-2", "5", "20")
        text = one(
            *(
                f"round({self._value('numeric')}, {n})",
                f"trunc({self._value('numeric')}, {n})",
                f"round({a})",
            ),
            *(
                f"{a} + {b}",
                f"{a} * {b}",
                f"{a} / {b}",
                f"{a} % {b}",
                f"{a} - {b}",
                f"- {a}",
                f"@ {a}",
            ),
            *(
                f"({a})::numeric({one('5,2', '3,0', '10,4', '4,-2')})",
                f"({a})::integer",
                f"({a})::smallint",
            ),
            *(f"({a})::bigint", f"({a})::numeric", f"({a})::double precision", f"({a})::text"),
            *(
                f"ceil({a})",
                f"floor({a})",
                f"sign({a})",
                f"abs({a})",
                f"mod({a}, {b})",
                f"div({a}, {b})",
            ),
            *(
                f"sqrt({a})",
                f"power({a}, {one('2', '0.5', '-1', '0')})",
                f"{a} ^ 2",
                f"exp({self._value('numeric')})",
            ),
            *(
                f"ln({a})",
                f"log({a})",
                f"log(2.0, {self._value('numeric')})",
                f"greatest({a}, {b})",
            ),
            *(
                f"scale({self._value('numeric')})",
                f"trim_scale({self._value('numeric')})",
                f"width_bucket({a}, 0, 10, 5)",
            ),
            *(
                f"{a} = {b}",
                f"{a} < {b}",
                f"{a} is distinct from {b}",
                f"least({a}, {b})",
                f"coalesce({a}, {b})",
            ),
            *(
                f"case when c_bool then {a} else {b} end",
                f"nullif({a}, {b})",
                f"round({a}::double precision)",
            ),
            *(
                f"c_fix {one('+', '*', '/', '-')} {b}",
                "(c_fix / 3)::numeric(8,2)",
                f"c_int / {one('3', '3.0', 'c_small')}",
            ),
            *(
                f"c_int & {one('7', 'c_small', 'c_big')}",
                f"c_int << {one('1', '31', '33', '-1')}",
                "~ c_int",
                "c_big >> 2",
                "c_small # 5",
            ),
            *(
                "gcd(c_int, 12)",
                "lcm(c_int, 6)",
                f"factorial({one('0', '5', '20', '-1', '21')})",
                "to_hex(c_int)",
            ),
        )
        return Statement(f"select id, {text} from t order by id", True)

    def json(self) -> Statement:
        one = self._one
        doc = one("c_json", "c_json", "c_json", self._literal("jsonb"))
        key = one("'a'", "'b'", "0", "1", "-1", "'x'", "c_text", "id")
        path = one("'{a}'", "'{a,b}'", "'{b,0}'", "'{b,2,c}'", "'{0}'", "'{}'", "'{-1}'")
        other = self._literal("jsonb")
        text = one(
            *(f"{doc} -> {key}", f"{doc} ->> {key}", f"{doc} #> {path}", f"{doc} #>> {path}"),
            *(
                f"{doc} @> {other}",
                f"{doc} <@ {other}",
                f"{doc} ? {one(chr(39) + 'a' + chr(39), chr(39) + 'b' + chr(39))}",
            ),
            *(
                f"{doc} || {other}",
                f"{doc} - {one(chr(39) + 'a' + chr(39), '0', '-1')}",
                f"{doc} #- {path}",
            ),
            *(
                f"{doc} = {other}",
                f"{doc} <> {other}",
                f"jsonb_typeof({doc})",
                f"jsonb_array_length({doc})",
            ),
            *(f"jsonb_set({doc}, {path}, {other})", f"jsonb_set({doc}, {path}, {other}, false)"),
            *(
                f"jsonb_insert({doc}, {path}, {other})",
                f"jsonb_strip_nulls({doc})",
                f"jsonb_pretty({doc})",
            ),
            *(
                f"({doc} -> {key})::{one('integer', 'text', 'numeric', 'boolean', 'bigint', 'double precision')}",
            ),
            *(f"to_jsonb({self._column()})", f"jsonb_build_object('k', {self._column()}, 'i', id)"),
            *(
                f"jsonb_build_array({self._column()}, {self._column()}, null)",
                f"{doc}::text",
                "c_text::jsonb",
            ),
            *(f"jsonb_extract_path({doc}, 'a', 'b')", f"jsonb_extract_path_text({doc}, 'b', '0')"),
            *(
                f"{doc} ?| array['a', 'x']",
                f"{doc} ?& array['a', 'b']",
                f"{doc} is null",
                f"({doc} ->> 'a')::int + 1",
            ),
            *(
                f"coalesce({doc} ->> 'b', 'none')",
                f"length({doc}::text)",
                "jsonb_object_keys(c_json)",
            ),
        )
        if "object_keys" in text:
            return Statement(f"select id, {text} from t where jsonb_typeof(c_json) = 'object'")
        if self.random.random() < 0.2:
            return Statement(
                f"select id from t where {doc} {one('@>', '<@', '=')} {other} order by id", True
            )
        return Statement(f"select id, {text} from t order by id", True)

    def cast(self) -> Statement:
        kinds = [*VALUES, "varchar(3)", "numeric(5,2)", "char(4)", "text", "numeric(3,0)"]
        target = self._one(*kinds)
        if self.random.random() < 0.45:
            return Statement(f"select id, {self._column()}::{target} from t order by id", True)
        kind = self._one(*VALUES)
        if self.random.random() < 0.4:
            junk = self._one(
                *(
                    " 12 ",
                    "1e3",
                    "0x10",
                    "1_000",
                    "+5",
                    "- 5",
                    "tru",
                    "T",
                    "yes",
                    "of",
                    "NaN",
                    "inf",
                    "1.",
                    ".5",
                ),
                *(
                    "2024-13-01",
                    "2024-02-30",
                    "tomorrow",
                    "now",
                    "epoch",
                    "infinity",
                    "2024-1-5",
                    "12:30",
                ),
                *(
                    "99999999999999999999",
                    "32768",
                    "1e400",
                    "\\x1",
                    "\\xzz",
                    "abc",
                    "{",
                    '{"a"}',
                    "[1,]",
                    "",
                ),
                *(
                    "2024-02-29T12:30:00Z",
                    "2024-02-29 24:00:00",
                    "2024-02-29 12:30 PM",
                    "Feb 29 2024",
                    "20240229",
                ),
                *(
                    "1 day 2 hours",
                    "P1Y2M",
                    "1-2",
                    "-1 year",
                    "a0eebc999c0b4ef8bb6d6bb9bd380a11",
                    "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
                ),
            )
            return Statement(f"select {quoted(junk)}::{target}", True)
        return Statement(f"select {self._literal(kind)}::{target}", True)

    def assign(self) -> Statement:
        """What a column takes of another type: assignments, no explicit casts."""
        name = self._column()
        value = self._one(
            *(self._column(), self._column(), self._literal(self._one(*VALUES)), self._number()),
            *(
                "'12'",
                "'abc'",
                "12.5",
                "-1",
                "true",
                "'2024-02-29'",
                "1e3",
                "'{}'",
                "null",
                "'  '",
                "2147483648",
            ),
            *("99999", "'abcdefghijk'", "'abc         '", "0.005", "1.005"),
        )
        if self.random.random() < 0.7:
            return Statement(f"update t set {name} = {value} returning id, {name}", writes=True)
        value = value if value[0] != "c" else f"(select {value} from t where id = 1)"
        return Statement(
            f"insert into t (id, {name}) values (100, {value}) returning {name}", writes=True
        )

    def like(self) -> Statement:
        one = self._one
        subject = one("c_text", "c_var", self._literal("text"), "upper(c_text)", "c_text || c_var")
        pattern = quoted(
            one(
                *(
                    "a%",
                    "%b",
                    "_b_",
                    "a\\%b",
                    "a\\_b",
                    "%",
                    "",
                    "é%",
                    "A%",
                    "%\\\\%",
                    "__",
                    "日%",
                    "!%",
                    "a!_b",
                    "#%",
                    "%a#%b",
                )
            )
        )
        escape = one(
            "", "", "", " escape '!'", " escape '#'", " escape ''", " escape '\\'", " escape 'ab'"
        )
        word = one("like", "not like", "ilike", "not ilike")
        test = one(
            *(f"{subject} {word} {pattern}{escape}", f"{subject} {word} {pattern}{escape}"),
            *(
                f"{subject} {word} c_var",
                f"{subject} similar to {pattern}",
                f"{subject} ~ {quoted(one('^a', 'b$', '[a-c]+', 'é', '(a|b)c'))}",
            ),
            *(
                f"{subject} ~* '^A'",
                f"starts_with({subject}, 'a')",
                f"{subject} ^@ 'a'",
                f"{subject} {word} any (array['a%', '%c'])",
            ),
        )
        if self.random.random() < 0.4:
            return Statement(f"select id from t where {test} order by id", True)
        return Statement(f"select id, {test} from t order by id", True)

    def nulls(self) -> Statement:
        one = self._one
        column = self._column()
        key = one(
            column,
            column,
            f"{column} is null",
            f"coalesce({column}::text, '')",
            f"nullif({column}, {column})",
        )
        if KINDS[column] == "jsonb":
            key = f"{column}::text"
        way = one(
            "",
            " desc",
            " asc",
            " nulls first",
            " nulls last",
            " desc nulls first",
            " desc nulls last",
            " using <",
        )
        limit = one(
            "",
            "",
            " limit 3",
            " limit 2 offset 2",
            " offset 3",
            " fetch first 2 rows only",
            " limit null",
            " limit all",
        )
        where = f" where {self.condition()}" if self.random.random() < 0.3 else ""
        shown = one("id", f"id, {column}", f"id, {key} as shown")
        return Statement(f"select {shown} from t{where} order by {key}{way}, id{limit}", True)

    def texts(self) -> Statement:
        one = self._one
        s = one("c_text", "c_var", self._literal("text"))
        n = one("0", "1", "2", "-1", "3", "100", "-3", "id")
        text = one(
            *(
                f"length({s})",
                f"char_length({s})",
                f"octet_length({s})",
                f"upper({s})",
                f"lower({s})",
                f"reverse({s})",
            ),
            *(
                f"substring({s} from {n})",
                f"substring({s} from {n} for {n})",
                f"substr({s}, {n})",
                f"left({s}, {n})",
            ),
            *(
                f"right({s}, {n})",
                f"position('b' in {s})",
                f"strpos({s}, c_var)",
                f"replace({s}, 'a', 'éé')",
            ),
            *(
                f"translate({s}, 'abc', 'x')",
                f"lpad({s}, {n}, 'é')",
                f"rpad({s}, {n})",
                f"repeat({s}, {n})",
            ),
            *(
                f"split_part({s}, 'a', {n})",
                f"trim({s})",
                f"ltrim({s}, 'a ')",
                f"trim(both 'x' from {s})",
                f"btrim({s}, 'ab')",
            ),
            *(
                f"initcap({s})",
                f"ascii({s})",
                f"chr({one('65', '233', '26085', '0', '-1', '1114112')})",
                f"md5({s})",
            ),
            *(
                f"overlay({s} placing 'XX' from {n})",
                f"overlay({s} placing 'XX' from 2 for 1)",
                f"concat({s}, id, c_bool, null)",
            ),
            *(
                f"concat_ws('-', {s}, null, id)",
                f"format('%s|%5s|%-5s|%I', {s}, {s}, {s}, {s})",
                f"quote_literal({s})",
            ),
            *(
                f"quote_ident({s})",
                f"quote_nullable({s})",
                f"{s} || id",
                f"id || {s}",
                f"{s} || c_bool",
                f"c_date || {s}",
            ),
            *(
                f"string_to_array({s}, 'a')",
                f"regexp_replace({s}, '[aeiou]', '#', 'g')",
                f"regexp_match({s}, '(a)(b)')",
            ),
            *(
                f"encode(c_bytes, '{one('hex', 'base64', 'escape')}')",
                f"encode(convert_to({s}, 'UTF8'), 'hex')",
                "c_bytes || c_bytes",
            ),
            *(
                f"substring(c_bytes from {n})",
                "get_byte(c_bytes, 0)",
                f"decode('{one('616', '61ff', 'zz')}', 'hex')",
                "length(c_bytes)",
            ),
            *(
                f"{s} collate \"C\" < 'b'",
                f"{s} < {s}",
                f"greatest({s}, c_text)",
                "unistr('\\00e9')",
                "to_hex(id)",
            ),
            *(
                f"{s}::char(3)",
                f"{s}::varchar(2)",
                f"{s}::char(5) || '|'",
                f"length({s}::char(5))",
                f"normalize({s})",
            ),
        )
        return Statement(f"select id, {text} from t order by id", True)

    def series(self) -> Statement:
        one = self._one
        unit = one("1 day", "7 days", "1 month", "-1 day", "12 hours", "0 days", "1 month -1 day")
        text = one(
            f"select * from generate_series(date '2024-01-30', date '{one('2024-02-03', '2024-05-31', '2024-01-01')}', interval '{unit}')",
            f"select d::date, row_number() over (order by d) from generate_series(timestamp '2024-01-31', '2024-06-30', '{unit}') d",
            f"select * from generate_series('2024-03-30 00:00+00'::timestamptz, '2024-04-01', '{unit}')",
            f"select * from generate_series({one('1', '5', '-2')}, {one('5', '1', '0')}{one('', ', 2', ', -1', ', 0')})",
            f"select * from generate_series(1.0, {one('2', '1.5')}, {one('0.25', '0.3', '-0.1', '0')})",
            "select x, u.k from generate_series(0, 5) x left join u on u.k = x",
            f"select g, array_agg(x) from generate_series(1, 5) x, lateral (select x % {one('2', '3')} as g) s group by g",
            "select * from generate_series(1, 3) with ordinality as s(v, n)",
            f"select generate_series(1, {one('3', '0', 'id')}) from t where id < 3",
            f"select * from generate_series({one('9223372036854775806', '2147483646')}, {one('9223372036854775807', '2147483647')})",
            f"select * from unnest(array[3, 1, null, 2]) {one('', 'with ordinality')}",
        )
        return Statement(text)

    def overflow(self) -> Statement:
        one = self._one
        kind = one("smallint", "integer", "bigint")
        top = {"smallint": "32767", "integer": "2147483647", "bigint": "9223372036854775807"}[kind]
        least = f"(-{top}::{kind} - 1::{kind})"
        top = f"{top}::{kind}"
        column = {"smallint": "c_small", "integer": "c_int", "bigint": "c_big"}[kind]
        text = one(
            *(
                f"{top} + 1::{kind}",
                f"{least} - 1::{kind}",
                f"{top} * 2::{kind}",
                f"- {least}",
                f"abs({least})",
            ),
            *(
                f"{least} / (-1)::{kind}",
                f"{least} % (-1)::{kind}",
                f"{column} + {column}",
                f"{column} * {column}",
            ),
            *(
                f"- {column}",
                f"abs({column})",
                f"{column} - 1::{kind}",
                f"{column} + 1",
                f"sum({column})",
                f"{column} / (-1)",
            ),
            *(
                f"avg({column})",
                f"({column}::numeric + 1)::{kind}",
                f"({column}::double precision * 2)::{kind}",
            ),
            *(
                f"{column}::smallint",
                f"({column} + 1::bigint)::integer",
                f"{column} << 1",
                f"{top} + 0.5",
                f"{top}::real",
            ),
            *(
                f"1e308 * {column}::double precision * 10",
                "1e308::float8 * 10",
                "1e-308::float8 / 1e10",
                "power(10::float8, 400)",
            ),
            *(
                "exp(1000::float8)",
                "10::numeric ^ 200000",
                "c_real * 1e250 * 1e250",
                "-32768::smallint",
                "2147483648 - 1",
            ),
            *(
                "9223372036854775808",
                "-9223372036854775808",
                "9223372036854775807 + 1",
                "1.5e5::smallint",
                "'32768'::smallint",
            ),
            *(
                "factorial(40000)",
                "cast(c_real as integer)",
                "lcm(2147483647, 2147483646)",
                f"mod({least}, (-1)::{kind})",
            ),
            *(
                "date '9999-12-31' + 1000000000",
                "chr(2147483647)",
                "repeat('x', -5)",
                f"c_big::{kind}",
                f"c_num::{kind}",
            ),
        )
        return Statement(f"select {text} from t")

    def joins(self) -> Statement:
        one = self._one
        kind = one("join", "left join", "right join", "full join")
        text = one(
            f"select * from u {kind} w using (k) ".replace("using (k)", "on u.k = w.id"),
            f"select k, id, u.d from u {kind} w using (d)",
            f"select * from u {kind} w using (d)",
            f"select u.k, w.id from u natural {kind} w",
            f"select u.k, x.k from u {kind} u x on u.g = x.v and u.k < x.k",
            f"select count(*), count(u.k), count(n.a) from u {kind} n on u.g = n.a",
            f"select a.k, b.a, c.id from u a {kind} n b on a.k = b.a {one('join', 'left join', 'full join')} w c on c.id = b.b",
            "select * from u, n where u.k = n.a and n.b > u.v",
            "select u.k, l.c from u, lateral (select count(*) as c from n where n.a = u.g) l",
            f"select d, count(*) from u {kind} w using (d) group by d",
            f"select coalesce(u.k, w.id) as c from u {kind} w on u.k = w.id and u.v > 0 where u.k is null or w.id is null",
            f"select t.id, u.k from t {kind} u on t.{one('c_num', 'c_fix', 'c_int')} = u.{one('q', 'v')}",
            f"select t.id, u.k from t {kind} u on t.{one('c_real', 'c_small', 'c_big')} = u.{one('q', 'v')}",
            "select u from u where k < 2",
            f"select x.* from u x {kind} w y on x.k = y.id where y.b like 'x%' or y.b is null",
        )
        return Statement(text)

    def subqueries(self) -> Statement:
        one = self._one
        test = one(
            *(
                "k in (select a from n)",
                "k not in (select g from u)",
                "v = any (select b from n where a = u.g)",
            ),
            *(
                "v > all (select b from n where a = u.g)",
                "exists (select 1 from n where a = k and b = g)",
            ),
            *(
                "(g, v) in (select a, b from n)",
                "(g, v) not in (select a, b from n)",
                "k = (select min(a) from n where b = u.g)",
            ),
            *(
                "v < (select b from n)",
                "(k, g) = (select a, b from n where a = 0 limit 1)",
                "(g, v) < (1, 2)",
            ),
            *(
                "k in (values (1), (2), (null))",
                "v in (select id from w where w.b = u.w)",
                "not exists (select 1 from w where id = k)",
            ),
            *(
                "v is not distinct from (select max(b) from n)",
                "w = any (select s from n)",
                "q in (select c from w)",
            ),
        )
        text = one(
            f"select k from u where {test}",
            f"select k, ({test}) as t from u",
            f"select k, (select count(*) from n where a = u.g) c from u where {test}",
            f"select k, (select s from n where a = u.g order by b{one('', ' desc')} limit 1) from u",
            "select (select sum(v) from u x where x.g = u.g) from u group by g",
            f"select k from u where case when {test} then v > 0 else true end",
            f"select count(*) filter (where {test}) from u",
            f"select * from (select k, v from u where {test} order by k limit 3) s",
            "select k, array(select b from n where a = u.g order by b) from u",
        )
        return Statement(text)

    def literals(self) -> Statement:
        return Statement(
            "select "
            + self._one(
                *(
                    "E'a\\nb\\x41\\u00e9'",
                    "U&'d\\0061t\\+000061'",
                    "$$it's$$",
                    "$q$a$b$q$",
                    "'a' 'b'",
                    "'a'\n'b'",
                ),
                *(
                    "1_000",
                    "0x1F",
                    "0b11",
                    "0o17",
                    "1e",
                    "1.e3",
                    ".5e-2",
                    "12abc",
                    "B'101'",
                    "X'1F'",
                    "1..2",
                    "1.5.2",
                ),
                *(
                    "-1 - -1",
                    "- - 1",
                    "2 ^ 3 ^ 2",
                    "-2 ^ 2",
                    "not true = false",
                    "1 < 2 = true",
                    "1 is null is null",
                ),
                *(
                    "5 !~ '3'",
                    "'5' + 1",
                    "'5' || 1",
                    "1 || 2",
                    "'a' < 'b' and true",
                    "null + 1",
                    "null || 'a'",
                    "true + 1",
                ),
                *(
                    "'1' = 1",
                    "'a' = 1",
                    "1 = '1 '",
                    "1 = 1.0",
                    "1.0 = '1.00'",
                    "'t' = true",
                    "true = 't'",
                    "true > false",
                ),
                *(
                    "date '2024-01-01' = '2024-01-01'",
                    "date '2024-01-01' < timestamp '2024-01-01 00:01'",
                    "interval '1' day",
                ),
                *(
                    "interval '1-2' year to month",
                    "interval '1:2:3' hour to second",
                    "cast('1' as int)",
                    "int '5'",
                    "float8 '1.50'",
                ),
                *(
                    "greatest(1, 2.5, '3')",
                    "coalesce(null, '1', 2)",
                    "case when true then 1 else 2.5 end",
                    "nullif(1, '1')",
                ),
                *(
                    "array[1, 2.5]",
                    "array['a', null]",
                    "row(1, 'a')",
                    "(1, 2) = (1, 2)",
                    "(1, null) is null",
                    "row(null, null) is null",
                ),
                *(
                    "current_date = now()::date",
                    "pg_typeof(1)",
                    "pg_typeof(1.0)",
                    "pg_typeof('a')",
                    "pg_typeof(1 + 2.0)",
                ),
                *(
                    "pg_typeof(2147483648)",
                    "pg_typeof(9223372036854775808)",
                    "pg_typeof(1::smallint + 1)",
                    "pg_typeof(1 / 2.0::float8)",
                ),
                *(
                    "pg_typeof(date '2024-01-01' + 1)",
                    "pg_typeof(date '2024-01-01' + interval '1 day')",
                    "pg_typeof(sum(1))",
                ),
                *(
                    "1 between 0 and 2",
                    "1 between symmetric 2 and 0",
                    "'b' between 'a' and 'c'",
                    "not 1 between 2 and 3",
                    "1 in (1, '2')",
                ),
                *(
                    "nullif('a', 'b') || 'c'",
                    "bool 'yes'",
                    "'on'::bool",
                    "1::bool",
                    "2::bool::int",
                    "true::text",
                    "'x'::char(3) = 'x'",
                ),
                *(
                    "- 5 % 3",
                    "5 % -3",
                    "-5 / 3",
                    "5.5 % 2",
                    "0.1 + 0.2",
                    "1e0",
                    "1e400::text",
                    "1.10 * 1.1",
                    "10 / 4",
                    "10 / 4.0",
                    "2.0 ^ 0.5",
                ),
            )
        )
