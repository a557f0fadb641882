"""Goal: a query as of an LSN gives what it gave then, whatever its shape and whichever index finds
its rows. Method: random tables and statements; rows are changed, and what the tables were before is
asked for as of then, and of a store that has never held anything else; with own rows beside them
too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from leasehold.adapters.sqlite.as_of import SqlitePast
from leasehold.adapters.sqlite.query import run
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.adapters.sqlite.write import own_rows
from leasehold.catalog.elements import CommitContext
from leasehold.model.errors import Refused
from leasehold.model.keys import Key
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.sql.planning.plan import Plans
from tests.support.postgres.query_cases import Grammar, Made, backfill, tables
from tests.unit.sql.queries.test_own_rows import images

SEEDS = range(1, 9)
STATEMENTS = 25
CHANGED = 0.5


def answer(
    store: SqliteStore, plans: Plans, text: str, own: dict[int, Any], lsn: int | None
) -> tuple[list[tuple[Any, ...]], str, frozenset[int]]:
    with store.open_snapshot() as newest:
        seen = newest if lsn is None else newest.as_of(lsn)
        changed = seen.has_changed if isinstance(seen, SqlitePast) else None
        try:
            prepared = plans.get(text, seen.newest, (), frozenset(own), changed)
            with own_rows(newest.connection, own):
                rows = run(
                    newest.connection, prepared, context=CommitContext(0, b""), as_of=lsn or 0
                )
                found = rows.all()
        except Refused as error:
            return [], error.sqlstate, frozenset()
    return sorted(found, key=repr), "", prepared.beside.past


def overwrite(store: SqliteStore, made: tuple[Made, ...], random: Random, lsn: int) -> None:
    """Rows change, go, and come back as others."""
    for table in made:
        held = images(table)
        for _ in range(2):
            for key in held:
                if random.random() < CHANGED:
                    lsn += 1
                    store.begin()
                    _change(store, table, key, random.choice(list(held.values())), lsn, random)
                    store.commit(LogPosition(lsn + 3, lsn=lsn))


def _change(
    store: SqliteStore, table: Made, key: Key, other: Image, lsn: int, random: Random
) -> None:
    descriptor = table.descriptor
    row = store.row(descriptor, key)
    image: Image | None = {**other, **dict(zip(descriptor.primary_key, key, strict=True))}
    kind = ChangeKind.INSERT if row is None else ChangeKind.UPDATE
    if row is not None and random.random() < 0.4:
        kind, image = ChangeKind.DELETE, None
    before = {} if row is None else row.genids
    locks = () if image is None else (0,)
    change = RowChange(kind, descriptor.table_id, 1, key, image, before, locks)
    store.change(descriptor, change, lsn, 0, None)


def test_the_past_is_seen_as_it_was(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for seed in SEEDS:
        random = Random(seed)
        before = tables(random)
        after = tuple(
            Made(m.descriptor, m.ddl, tuple(r for r in m.rows if random.random() < 0.7))
            for m in before
        )
        stores = [SqliteStore(tmp_path / f"{seed}{n}.db", cache_mb=1) for n in "abc"]
        stores[0].keep_rows(True)
        backfill(stores[0], before)
        backfill(stores[1], before)
        backfill(stores[2], after)
        with stores[0].open_snapshot() as snapshot:
            then = snapshot.lsn
        overwrite(stores[0], before, random, then)
        own: dict[int, Any] = {}
        for there, seen in zip(before, after, strict=True):
            gone = images(there).keys() - images(seen).keys()
            if gone:
                own[seen.descriptor.table_id] = (seen.descriptor, dict.fromkeys(gone))
        grammar, plans = Grammar(random, before), Plans()
        for _ in range(STATEMENTS):
            text, ordered = grammar.statement()
            if ordered and " limit " in text:
                text = text[: text.rindex(" limit ")]  # which of equal rows come is open
            for mine, other in (({}, stores[1]), (own, stores[2])):
                rows, code, past = answer(stores[0], plans, text, mine, then)
                want, expected, _ = answer(other, plans, text, {}, None)
                if {code, expected} == {"", "22012"}:
                    counts["computed on one side only"] += 1
                    continue
                assert (rows, code) == (want, expected), (seed, text)
                counts[code or ("rows, past" if past else "rows, unchanged")] += 1
        for store in stores:
            store.close()
    print(f"{sum(counts.values())} statements, seeds {SEEDS}: {dict(counts)}")
    assert counts["rows, past"] > len(SEEDS) * STATEMENTS
