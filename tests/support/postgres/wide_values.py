# ruff: noqa: E501 - a statement stands in one line
"""Families of expressions over numbers, moments and jsonb, and their casts."""

from __future__ import annotations

from tests.support.postgres.wide_tables import VALUES, Pieces, Statement, quoted


class Computed(Pieces):
    def interval_fields(self) -> Statement:
        one = self._one
        text = one(
            *("1", "-3", "1.5", "1-2", "-1-2", "+2-11", "1-12", "1 2", "1:2", "-1:2", "1:2:3.5"),
            *("1 2:03", "-1 2:03:04", "2 days 3:04", "1 year", "14 months", "1 mon 2 days 3:4:5"),
            *("1.23456789", "0:59.9999996", "1:2.5", "1 2 3", "x", "1 hour 2:30", "1 2 hours", ""),
            *("1 2 days", "3 days ago", "1-2 3 4:05:06", "P1Y2M3DT4H5M6.7S", "2 weeks 5", "99:59"),
        )
        fields = one(
            *("year", "month", "day", "hour", "minute", "second", "year to month", "day to hour"),
            *("day to minute", "day to second", "hour to minute", "hour to second"),
            *("minute to second", "second(2)", "day to second(0)", "second(0)", "", ""),
        )
        made = f"interval '{text}' {fields}"
        timestamp = self._value("timestamp")
        return Statement(f"select {one(made, f'{timestamp} + {made}')} from t")

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
