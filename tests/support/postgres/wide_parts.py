# ruff: noqa: E501 - a statement stands in one line
"""Families of statements of several parts, and of MERGE, each taken back afterwards."""

from __future__ import annotations

from tests.support.postgres.wide_tables import Pieces, Statement


class Parts(Pieces):
    def with_write(self) -> Statement:
        """Writes in WITH whose parts touch rows of their own: which of two changes a row PostgreSQL
        leaves open."""
        one = self._one
        low = one(
            "update w set c = c + 1, b = b || '1' where id % 3 = 0 returning id, b, c",
            "delete from w where id % 3 = 0 returning *",
            "update w set b = u.w from u where u.k = w.id and w.id % 3 = 0 returning w.id, w.b, u.v as c",
            "insert into w (id, b, c) select k + 100, w, 1.005 from u where k < 4 returning id, b, c",
            "insert into w (id, b) values (1, 'x'), (77, 'y') on conflict (id) do nothing returning id, b, c",
            "update w set c = 7 where id % 3 = 0 and id in (select g from u) returning id, b, c",
        )
        high = one(
            "update w set b = p.b from p where w.id % 3 = 1 and p.id <> w.id and p.id = (select min(id) from p) returning w.id",
            "delete from w where id % 3 = 1 and exists (select 1 from p where p.id > w.id) returning id",
            "update w set c = (select count(*) from p) where id % 3 = 1 returning id",
            "insert into w (id, b, c) select p.id + 200, p.b, p.c from p returning id",
            "insert into w (id, c) select id + 300, (select max(c) from p) from p where id > 0 returning id, c",
            "delete from w using p where w.id = p.id + 1 and w.id % 3 = 1",
        )
        tail = one(
            "select * from p order by 1",
            "select count(*), max(p.c), (select count(*) from w) from p",
            "select p.id, w.b from p left join w on w.id = p.id order by 1, 2",
            "select * from p where p.c > (select avg(c) from w) or p.b is null order by 1",
            "update w set d = date '2020-02-02' where id % 3 = 2 and id in (select id + 1 from p) returning id, d",
            "delete from w where id % 3 = 2 and c < (select max(c) from p) returning id",
            "insert into w (id, c) select 400 + count(*), sum(c) from p returning *",
            high.split(" returning ")[0],
        )
        middle = one("", f", q as ({high})", ", s as (select max(v) as m from u)")
        if middle.startswith(", s"):
            tail = one(
                "select p.id, s.m from p, s order by 1",
                "update w set c = s.m from s, p where w.id % 3 = 2 and p.id = w.id - 2 returning w.id, w.c",
            )
        if middle.startswith(", q") and tail in high:
            middle = ""  # both would change the same rows
        ordered = "order by" in tail and "select" in tail[:6]
        return Statement(f"with p as ({low}){middle} {tail}", ordered, writes=True)

    def merge(self) -> Statement:
        one = self._one
        source = one(
            "u",
            "(select * from u where k < 5)",
            "(values (1, 2, 3, 'x', null::date, 1.5), (50, 1, 1, 'y', null, 2))",
        )
        columns = " (k, g, v, w, d, q)" if "values" in source else ""
        on = one(
            "s.k = w.id",
            "s.g = w.id",
            "s.k = w.id and s.v > 0",
            "s.k = w.id + 1",
            "s.w = w.b",
            "false",
        )
        matched = [
            one(
                "when matched and s.v > 0",
                "when matched and w.c is null",
                "when matched and s.v / s.g > 0",
            ),
            one("when matched", "when matched and w.b = 'x'"),
        ]
        does = (
            *(
                "then delete",
                "then do nothing",
                "then update set c = s.q",
                "then update set b = s.w, c = w.c + 1",
            ),
            *(
                "then update set (b, c) = (select max(w), 5 from u)",
                "then update set c = s.v / s.g",
                "then update set d = default",
            ),
        )
        lacks = [
            one("when not matched and s.k > 3", "when not matched and s.w is not null"),
            "when not matched",
        ]
        makes = (
            *(
                "then do nothing",
                "then insert (id, b) values (s.k + 500, s.w)",
                "then insert (id, c) values (s.k + 600, s.q)",
            ),
            *(
                "then insert values (s.k + 700, null, s.w, 1.005, s.d)",
                "then insert (id, b, c) values (s.g, default, 7)",
            ),
        )
        whens = [f"{each} {one(*does)}" for each in matched[: self.random.randint(0, 2)]]
        whens += [f"{each} {one(*makes)}" for each in lacks[: self.random.randint(0, 2)]]
        whens = whens or [f"when matched {one(*does)}"]
        return Statement(
            f"merge into w using {source} s{columns} on {on} {' '.join(whens)}", writes=True
        )
