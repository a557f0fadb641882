"""Families of expressions over texts, NULLs and what literals say."""

from __future__ import annotations

from tests.support.postgres.wide_tables import KINDS, Pieces, Statement, quoted


class Texts(Pieces):
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
