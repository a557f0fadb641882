"""Random statements over everything that the language says it has, for the same seed the same: each
family makes statements of one kind. What comes out is told by the text alone; where the order of
rows is not said, the test sorts them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.support.postgres.wide_parts import Parts
from tests.support.postgres.wide_queries import Queries
from tests.support.postgres.wide_tables import Statement
from tests.support.postgres.wide_texts import Texts
from tests.support.postgres.wide_values import Computed
from tests.support.postgres.wide_writes import Writes


class Wide(Queries, Writes, Parts, Computed, Texts):
    """`families`: by name, each makes one statement."""

    def __init__(self, random: Random) -> None:
        super().__init__(random)
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
            "grouping_sets": self.grouping_sets,
            "interval_fields": self.interval_fields,
            "with_write": self.with_write,
            "merge": self.merge,
        }

    def statement(self, family: str) -> Statement:
        return self.families[family]()
