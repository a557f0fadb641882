# ruff: noqa: E501 - a statement stands in one line
"""Families of queries: what stands around expressions."""

from __future__ import annotations

from tests.support.postgres.wide_tables import BARE, KINDS, NUMBERS, VALUES, Pieces, Statement


class Queries(Pieces):
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
                    order = one("order by v", "order by v desc", "order by d", "order by k")
                else:
                    start, end = one("unbounded preceding", "current row"), "unbounded following"
            if self.random.random() < 0.2:
                start, end = one("1 following", "2 preceding"), one("2 following", "1 preceding")
            if unit == "range" and order == "order by d":
                start, end = (
                    s.replace("1 ", "'1 day' ").replace(
                        "2 ", f"'{one('700', '9000')} days -1 hour' "
                    )
                    for s in (start, end)
                )
                order += one("", " desc", " nulls first")
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
            f"string_agg(distinct {column}::text, '-'{one('', f' order by {column}::text desc')})",
            f"array_agg(distinct {column}{one('', f' order by {column} desc', ' order by id')})",
            f"{one('sum', 'avg', 'array_agg', 'stddev')}(distinct {self._column(*NUMBERS)})",
            f"jsonb_object_agg(distinct id % 3, {one('c_int', 'c_num', 'c_bool', '0')})",
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

    def grouping_sets(self) -> Statement:
        one = self._one
        a, b = self.random.sample(
            ["g", "w", "q", "v % 2", "d", "upper(w)", "v > 0", "extract(year from d)"], 2
        )
        sets = one(
            *(f"rollup({a}, {b})", f"cube({a}, {b})", f"grouping sets (({a}), ({b}), ())"),
            *(
                f"{a}, rollup({b})",
                f"rollup(({a}, {b}))",
                f"rollup({a}), cube({b})",
                f"{a}, {b}, ()",
            ),
            f"grouping sets (rollup({a}), cube({b}, {a}), ({b}, {a}))",
            *(f"distinct rollup({a}, {b}), rollup({a})", f"grouping sets (({a}, {b}), ({a}, {b}))"),
            *(
                f"rollup({a}), {b}",
                f"rollup(1), {b}",
                f"grouping sets (({a}, {b}))",
                f"({a}, {b}), ()",
            ),
        )
        call = one(
            *(
                "count(*)",
                "sum(v)",
                "avg(q)",
                "max(d)",
                "min(w)",
                "count(distinct q)",
                "array_agg(k)",
            ),
            *(
                "sum(distinct q)",
                "string_agg(distinct w, ',' order by w desc)",
                "count(*) + max(v)",
            ),
            *(f"count(*) filter (where {a} is not null)", f"count(distinct {b})", f"max({a})"),
            "rank() over (order by count(*), sum(k))",
            "sum(count(*)) over ()",
            f"rank() over (partition by grouping({a}) order by count(*))",
        ).replace("array_agg(k)", "array_agg(k order by k)")
        shown = "sum(v)" if b == "q" else b  # which of equal numerics is shown is nobody's promise
        told = one(
            f"grouping({a}, {b})",
            f"grouping({b})",
            f"{a} is null",
            f"coalesce({shown}::text, 'all')",
        )
        having = one(
            "", "", "", " having count(*) > 1", f" having grouping({a}) = 0", " having sum(v) > 0"
        )
        where = one("", "", " where v > 0", " where k < 0")
        text = f"select {a}, {b}, {call}, {told} from u{where} group by {sets}{having}"
        return Statement(
            one(
                *(text, text, text),
                f"select {a}, {b}, {told} from u{where} group by {sets}{having}",
                f"select {call} from u{where} group by {sets}",
                f"select distinct {a}, {told} from u{where} group by {sets}",
                f"select {a}, count(*) from u{where} group by {sets} order by grouping({a}), 2 desc, 1",
                f"select count(*), max(c) from (select {call}::text as c from u{where} group by {sets}) s",
                f"select k, s.* from w x join (select {a} as e, count(*) as n from u group by {sets}) s on s.n = x.id",
                f"select id, (select sum(n) from (select count(*) as n from u where u.k < x.id group by {sets}) s) from w x",
                f"select {a}, (select count(*) from n where n.a = count(*)) from u group by {sets}",
                "select g, (select count(*) from n where n.a = u.g), grouping(g) from u group by rollup(g)",
                f"select k, w, d from u{where} group by k, rollup(v, {b})",
                f"select k, v, grouping({b}) from u group by k",
            ).replace("select k, s.*", "select s.*")
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
            f"select u.k, l.* from u {one('cross join', 'left join')} lateral (select * from n where n.a = u.g order by b desc nulls last, a limit {one('1', '2')}) l{one('', ' where l.b is null', ' where l.b > u.v')}".replace(
                ") l where", ") l on true where"
            ).replace("cross join", "join"),
            f"select u.k, l.s from u, lateral (select {one('u.d', 'u.q', 'u.w', 'u.v + n.b')} as s from n where n.a = u.k union all select {one('null', 'null')}) l where u.k < 4",
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
                "(k, g) = (select a, b from n where a = 0 order by b limit 1)",
                f"(k, g) {one('<', '>=', '<>', '=')} (select a, b from n where a = v order by b{one(' limit 1', '')})",
                f"(w, q) {one('<=', '=')} (select b, c from w where id = k)",
                "(g, v) < (1, 2)",
            ),
            *(
                "k in (values (1), (2), (null))",
                "k in (values (v), (g), (2))",
                "w = (values (u.w))",
                "v < (select sum(x) from (values (u.g), (k)) s(x))",
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
            f"select * from generate_series({one('9223372036854775806, 9223372036854775807', '2147483646, 2147483647')})",
            f"select * from unnest(array[3, 1, null, 2]) {one('', 'with ordinality')}",
        )
        return Statement(text)
