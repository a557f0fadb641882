"""Goal: a transaction's own rows are seen as if they were committed. Method: random tables and
statements; the same rows once as own ones beside a table, once as the table itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from leasehold.adapters.sqlite.query import run
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.adapters.sqlite.write import own_rows
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.sql.planning.plan import prepare
from tests.support.postgres.query_cases import Grammar, Made, backfill, python_value, tables

SEEDS = range(1, 9)
STATEMENTS = 25


def images(made: Made) -> dict[Key, Image]:
    columns = made.descriptor.columns
    found: dict[Key, Image] = {}
    for row in made.rows:
        pairs = [(c.element_id, python_value(c.type, v)) for c, v in zip(columns, row, strict=True)]
        image = {e: v for e, v in pairs if v is not None}
        found[tuple(image[e] for e in made.descriptor.primary_key)] = image
    return found


def answer(store: SqliteStore, text: str, own: dict[int, Any]) -> tuple[list[tuple[Any, ...]], str]:
    with store.open_snapshot() as snapshot:
        try:
            prepared = prepare(text, snapshot.newest, (), frozenset(own))
            with own_rows(snapshot.connection, own):
                rows = run(snapshot.connection, prepared, context=CommitContext(0, b"")).all()
        except Refused as error:
            return [], error.sqlstate
    return sorted(rows, key=repr), ""


def test_own_rows_are_seen_as_if_they_were_committed(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        random = Random(seed)
        before = tables(random)
        after = tuple(
            Made(m.descriptor, m.ddl, tuple(r for r in m.rows if random.random() < 0.7))
            for m in before
        )
        stores = [SqliteStore(tmp_path / f"{seed}{n}.db", cache_mb=1) for n in "ab"]
        # `after` is what the transaction sees; the store has rows that it has deleted, and lacks
        # or has otherwise what it has written.
        kept = tuple(
            Made(m.descriptor, m.ddl, tuple(r for r in m.rows if random.random() < 0.6))
            for m in before
        )
        backfill(stores[0], kept)
        backfill(stores[1], after)
        own: dict[int, Any] = {}
        for there, seen in zip(kept, after, strict=True):
            old, new = images(there), images(seen)
            changed = {key: new.get(key) for key in {*old, *new} if old.get(key) != new.get(key)}
            if changed:
                own[seen.descriptor.table_id] = (seen.descriptor, changed)
        grammar = Grammar(random, before)
        for _ in range(STATEMENTS):
            text, ordered = grammar.statement()
            if ordered and " limit " in text:
                text = text[: text.rindex(" limit ")]  # which of equal rows come is open
            mine, code = answer(stores[0], text, own)
            want, expected = answer(stores[1], text, {})
            if {code, expected} == {"", "22012"}:
                counts["computed on one side only"] += 1
                continue
            assert (mine, code) == (want, expected), (seed, text)
            counts[code or "rows"] += 1
        for store in stores:
            store.close()
    print(f"{sum(counts.values())} statements, seeds {SEEDS}: {dict(counts)}")
    assert counts["rows"] > len(SEEDS) * STATEMENTS // 2
