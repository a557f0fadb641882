"""Goal: an UPDATE is told as expressions only where they mean the same to whoever computes them
later, and what they give on a row is what the statement gives on it.

Method: plans over a small table; random expressions over random rows, computed by the query on a
store and by `Binding`, as the master does. The number of cases is in the output.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.adapters.sqlite.write import Writing
from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.elements import Column, CommitContext
from leasehold.model.errors import Refused
from leasehold.model.records.events import Image
from leasehold.model.records.log import ChangeKind, LogPosition, RowChange
from leasehold.sql.planning.plan import Prepared, prepare
from leasehold.transaction.binding import binding
from leasehold.values.storage import to_storage
from leasehold.values.types import Type, parse_type

SEED: Final = int(os.environ.get("LEASEHOLD_SEED", "1"))
CASES: Final = 800
KINDS: Final = {
    "s": "smallint",
    "i": "integer",
    "b": "bigint",
    "n": "numeric",
    "p": "numeric(6,2)",
    "t": "text",
    "v": "varchar(6)",
    'q "x" $1': "integer",
}
TABLE: Final = Descriptor(
    1,
    "t",
    1,
    (
        Column(1, "id", Type("integer"), False),
        *(Column(e, name, parse_type(kind)) for e, (name, kind) in enumerate(KINDS.items(), 2)),
        Column(20, "d", Type("double precision")),
        Column(21, "at", Type("timestamptz")),
    ),
    (1,),
    next_element_id=30,
    since_lsn=1,
)
PAIRS: Final = Descriptor(
    2,
    "pairs",
    1,
    (
        Column(1, "a", Type("integer"), False),
        Column(2, "b", Type("text"), False),
        Column(3, "n", Type("integer")),
    ),
    (1, 2),
    next_element_id=30,
    since_lsn=1,
)


def plan(text: str, *types: str) -> Prepared:
    tables = {"t": TABLE, "pairs": PAIRS}
    return prepare(text, tables.__getitem__, [parse_type(kind) for kind in types])


def said(text: str, *parameters: Any, types: tuple[str, ...] = ()) -> dict[str, Any]:
    """By column: (text, arguments, their types); {} where it is not told so."""
    prepared = plan(text, *types)
    assert prepared.write is not None
    if prepared.write.computed is None:
        return {}
    found = prepared.write.computed.values(parameters)
    return {name: tuple(expression) for name, expression in found.items()}


TOLD: Final = [
    ("i = i + 1", {"i": ('("i" + $1)', (1,), ("integer",))}),
    ("i = i + -1", {"i": ('("i" + $1)', (-1,), ("integer",))}),
    ("i = - (i + 1) - s", {"i": ('((- ("i" + $1)) - "s")', (1,), ("integer",))}),
    ("i = i - 1, b = i", {"i": ('("i" - $1)', (1,), ("integer",)), "b": ('"i"', (), ())}),
    ("n = (n + 1) * 2.5", {"n": ('(("n" + $1) * $2)', ("1", "2.5"), ("numeric", "numeric"))}),
    ("t = t || 'it''s'", {"t": ('("t" || $1)', ("it's",), ("text",))}),
    ("v = v || t", {"v": ('("v" || "t")', (), ())}),
    ("i = '5' + i", {"i": ("($1 + \"i\")", (5,), ("integer",))}),
    ("i = s", {"i": ('"s"', (), ())}),
    ('"q ""x"" $1" = "q ""x"" $1" + 1', {'q "x" $1': ('("q ""x"" $1" + $1)', (1,), ("integer",))}),
]  # fmt: skip


@pytest.mark.parametrize(("assigned", "wanted"), TOLD)
def test_values_stand_beside_the_text(assigned: str, wanted: dict[str, Any]) -> None:
    assert said(f"UPDATE t SET {assigned} WHERE id = 1") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE t SET i = 5 WHERE id = 1",  # whoever computed that has seen something
        "UPDATE t SET i = i + 1, b = 5 WHERE id = 1",
        "UPDATE t SET i = DEFAULT WHERE id = 1",
        "UPDATE t SET i = i + 1",
        "UPDATE t SET i = i + 1 WHERE id = 1 AND i < 5",
        "UPDATE t SET i = i + 1 WHERE id = 1 OR id = 2",
        "UPDATE t SET i = i + 1 WHERE id IN (1, 2)",
        "UPDATE t SET i = i + 1 WHERE id >= 1",
        "UPDATE t SET i = i + 1 WHERE i = 1",
        "UPDATE t SET i = i + 1 WHERE id = i",
        "UPDATE t SET i = i + 1 WHERE id = (SELECT 1)",
        "UPDATE t SET i = i + 1 WHERE id = 1 AND id = 2",
        "UPDATE t SET i = i + 1 WHERE id = 1 RETURNING id",
        "UPDATE t SET i = i + pairs.n FROM pairs WHERE id = 1 AND a = 1 AND pairs.b = 'x'",
        "UPDATE t SET i = i + (SELECT max(n) FROM pairs) WHERE id = 1",
        "UPDATE t SET id = id + 1 WHERE id = 1",
        "UPDATE t SET i = i / 2 WHERE id = 1",
        "UPDATE t SET d = d + 1 WHERE id = 1",
        "UPDATE t SET i = i + (s * 2) WHERE id = 1",  # computed behind a NULL in one of the two
        "UPDATE t SET i = i + 1 FROM generate_series(1, 2) WHERE id = 1",
        "UPDATE t SET i = (i + 1)::smallint WHERE id = 1",
        "UPDATE t SET b = i::bigint + s WHERE id = 1",  # there it would be a sum of integers
        "UPDATE t SET i = abs(i) WHERE id = 1",
        "UPDATE t SET t = t || i WHERE id = 1",
        "UPDATE t SET at = now() WHERE id = 1",
        "UPDATE t SET i = CASE WHEN i > 0 THEN i END WHERE id = 1",
        "UPDATE pairs SET n = n + 1 WHERE a = 1",
        "UPDATE pairs SET n = n + 1 WHERE a = 1 AND n = 1",
        "WITH x AS (SELECT 1 AS y) UPDATE t SET i = i + 1 FROM x WHERE id = 1",
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t (id, i) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET i = t.i + 1",
    ],
)
def test_anything_else_is_not(text: str) -> None:
    assert said(text) == {}


def test_all_of_a_key() -> None:
    text = "UPDATE pairs AS p SET n = p.n + $3 WHERE $1 = a AND p.b = $2"
    assert said(text, 1, "x", 7) == {"n": ('("n" + $1)', (7,), ("integer",))}


def test_a_parameter_has_the_type_that_its_sender_says() -> None:
    text = "UPDATE t SET i = i + $1 WHERE id = $2"
    assert said(text, 7, 1, types=("smallint", "smallint"))["i"][2] == ("smallint",)
    assert said(text, 7, 1, types=("bigint", "bigint"))["i"][2] == ("bigint",)
    half = to_storage(Type("numeric"))("0.50")
    assert said(text, half, 1, types=("numeric", "integer"))["i"][1:] == (("0.50",), ("numeric",))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(tmp_path / "node.db", cache_mb=1)
    made.begin()
    made.prepare(TABLE)
    made.put_descriptor(1, 1, TABLE.to_wire())
    made.commit(LogPosition(3, lsn=1))
    yield made
    made.close()


def test_it_is_what_the_statement_does(store: SqliteStore) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    told = 0
    for case in range(CASES):
        target, text = chance.choice("sibnptv"), expression(chance, 3)
        row = {c.element_id: value(chance, str(c.type)) for c in TABLE.columns[1:9]}
        image = {1: case + 1, **{e: v for e, v in row.items() if v is not None}}
        try:
            prepared = plan(f"UPDATE t SET {target} = {text} WHERE id = {case + 1}")
        except Refused:
            continue  # of types that do not go together
        assert prepared.write is not None
        if prepared.write.computed is None:
            continue
        told += 1
        put(store, image, case + 2)
        with store.open_snapshot() as snapshot:
            expected = outcome(by_statement, snapshot.connection, prepared, target)
        found = outcome(by_expression, prepared, target, image)
        assert found == expected, (text, target, image)
    print(f"{told} expressions")
    assert told > CASES // 4, told


def outcome(work: Callable[..., Any], *of: Any) -> Any:
    try:
        return work(*of)
    except Refused as error:
        return error.sqlstate


def by_expression(prepared: Prepared, target: str, image: Image) -> Any:
    assert prepared.write is not None
    assert prepared.write.computed is not None
    given = prepared.write.computed.values(())
    return binding(TABLE).values(given, image)[TABLE.column(target).element_id]


def by_statement(connection: Any, prepared: Prepared, target: str) -> Any:
    (write,) = Writing(connection, prepared, (), CommitContext(0, b"seed")).run().writes
    assert write.after is not None
    return write.after.get(TABLE.column(target).element_id)


def put(store: SqliteStore, image: Image, lsn: int) -> None:
    store.begin()
    change = RowChange(ChangeKind.INSERT, 1, 1, (image[1],), image, {}, (0,))
    store.change(TABLE, change, lsn, 0, None)
    store.commit(LogPosition(3 + lsn, lsn=lsn))


def value(chance: random.Random, kind: str) -> Any:
    if chance.random() < 0.1:
        return None
    if kind in ("smallint", "integer", "bigint"):
        bits = {"smallint": 16, "integer": 32, "bigint": 64}[kind]
        least, most = -(1 << bits - 1), (1 << bits - 1) - 1
        return chance.choice([0, 1, -3, chance.randint(-99, 99), least, most])
    if kind.startswith("numeric"):
        text = f"{chance.randint(-9999, 9999)}.{chance.choice(['0', '5', '50', '25'])}"
        return to_storage(parse_type(kind))(text)
    return to_storage(parse_type(kind))(chance.choice(["", "a", "é ", "a'b", "$1", "xyz "]))


def expression(chance: random.Random, depth: int) -> str:
    """Mostly of parts that go together, and sometimes of any."""
    numbers = chance.random() < 0.7
    return part(chance, depth, "sibnp" if numbers else "tv", "+-*" if numbers else ["||"])


def part(chance: random.Random, depth: int, names: str, signs: Sequence[str]) -> str:
    if depth == 0 or chance.random() < 0.2:
        constants = ["1", "-7", "2.50", "'3'", "70000", "5000000000", "NULL"]
        constants = constants if "i" in names else ["'x'", "'é'", "'$2'"]
        found: str = chance.choice([*names, *names, *constants, chance.choice("snt")])
        return found
    left = part(chance, depth - 1, names, signs)
    right = part(chance, int(chance.random() < 0.1), names, signs)
    made = f"({left} {chance.choice(signs)} {right})"
    return f"- {made}" if "i" in names and chance.random() < 0.1 else made
