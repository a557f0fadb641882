# ruff: noqa: E501 - a statement stands in one line
"""Families of statements that write, each taken back afterwards."""

from __future__ import annotations

from tests.support.postgres.wide_tables import VALUES, Pieces, Statement, quoted


class Writes(Pieces):
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
            f"update w set (b, c) = (select u.w, u.q from u where u.k = w.id{one('', ' + 1', ' and false')})",
            f"update w set (b, d, c) = (select u.w, {one('u.d', 'w.d - 1')}, v from u where u.g = w.id order by u.k{one(' limit 1', '')})",
            f"update w set (c, b) = {one('row(q, u.w)', '(values (q, u.w))', '((select q), u.w)')} from u where u.k = w.id",
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
        if "'many'" in text and "*" in back:
            back = " returning w.*"  # which of many it was is nobody's promise
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
