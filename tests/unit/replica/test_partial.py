"""A partial replica answers as a full one does, or refuses by name.

Method: a database in this process; r1 holds everything, r2 one table and some rows of another.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from leasehold.catalog.descriptor import Descriptor
from leasehold.catalog.part import PartWish
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import (
    ConfigurationError,
    ForeignKeyViolation,
    LeaseholdError,
    NotHeldHere,
)
from leasehold.node.bootstrap import stored_part
from tests.support.replication.partial import narrow
from tests.support.sql_session.sql_client import SqlClient

WHERE = "id >= 100 AND id < 200"
WISH = PartWish.of(["flights"], {"seats": WHERE})
TABLES = (
    "CREATE TABLE flights (id integer PRIMARY KEY, gate text)",
    "CREATE TABLE seats (id integer PRIMARY KEY, flight integer NOT NULL, name text NOT NULL)",
    "CREATE INDEX seats_by_name ON seats (name)",
    "CREATE TABLE crews (id integer PRIMARY KEY, flight integer)",
    "CREATE VIEW gates AS SELECT id, gate FROM flights",
    "CREATE VIEW staffed AS SELECT f.id FROM flights f JOIN crews c ON c.flight = f.id",
)
ROWS = (
    "INSERT INTO flights SELECT n, 'g' || n % 5 FROM generate_series(1, 20) AS s (n)",
    "INSERT INTO seats SELECT n, n % 20 + 1, 'n' || n % 7 FROM generate_series(1, 300) AS s (n)",
    "INSERT INTO crews SELECT n, n FROM generate_series(1, 20) AS s (n)",
)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[DevDatabase]:
    made = DevDatabase(tmp_path)
    try:
        made.wait_ready()
        maker = SqlClient(made)
        for text in (*TABLES, *ROWS):
            maker.ask(text)
        maker.session.close()
        yield made
    finally:
        made.close()


def ask(database: DevDatabase, node: str, *texts: str) -> list[object]:
    client = SqlClient(database, node)
    try:
        for text in texts:
            rows = client.ask(text)
        return rows
    finally:
        client.session.close()


def named(database: DevDatabase, name: str) -> list[Descriptor]:
    """Return the tables of that name which are there: two, while one takes the other's place."""
    node = database.cluster.nodes["r1"].node
    assert node is not None, "it is up"
    return [table for table in node.catalog.tables() if table.name == name]


def refusal(database: DevDatabase, *texts: str) -> LeaseholdError:
    with pytest.raises(NotHeldHere) as refused:
        ask(database, "r2", *texts)
    return refused.value


def test_it_answers_about_what_it_holds_as_a_full_replica_does(database: DevDatabase) -> None:
    copied = narrow(database, "r2", WISH)
    assert sorted(copied.rows.values()) == [20, 100]
    for text in (
        "SELECT * FROM flights ORDER BY id",
        "SELECT * FROM gates ORDER BY id",
        f"SELECT count(*), min(id), max(id) FROM seats WHERE {WHERE}",
        f"SELECT id FROM seats WHERE name = 'n3' AND {WHERE} ORDER BY id",
        "SELECT name FROM seats WHERE id = 150",
        "SELECT count(*) FROM seats WHERE id IN (100, 199, 150)",
        "SELECT count(*) FROM flights f, seats s WHERE flight = f.id AND s.id BETWEEN 100 AND 199",
    ):
        assert ask(database, "r2", text) == ask(database, "r1", text), text


def test_what_it_lacks_is_refused_by_name(database: DevDatabase) -> None:
    narrow(database, "r2", WISH)
    error = refusal(database, "SELECT * FROM crews")
    assert "does not hold table 'crews': it holds only flights, seats" in error.message
    assert error.sqlstate == "55000"
    assert "crews" in refusal(database, "SELECT * FROM staffed").message
    for text in (
        "SELECT * FROM seats",
        "SELECT count(*) FROM seats WHERE id >= 100",
        "SELECT count(*) FROM seats WHERE id BETWEEN 100 AND 200",
        "SELECT * FROM seats WHERE name = 'n3'",
        "SELECT * FROM seats WHERE id = 99",
        "SELECT * FROM seats WHERE id IN (150, 200)",
        f"SELECT * FROM seats WHERE {WHERE} OR name = 'n1'",
        "SELECT * FROM flights f LEFT JOIN seats s ON s.id = f.id + 100",
        "SELECT * FROM flights f WHERE EXISTS (SELECT 1 FROM seats WHERE seats.flight = f.id)",
        f"SELECT (SELECT count(*) FROM seats) FROM seats WHERE {WHERE}",
        f"SELECT id FROM seats WHERE {WHERE} UNION ALL SELECT id FROM seats",
        "INSERT INTO flights SELECT id + 500, name FROM seats",
        "UPDATE seats SET name = 'x'",
        "DELETE FROM seats WHERE name = 'n3'",
        "INSERT INTO seats VALUES (150, 1, 'x') ON CONFLICT (id) DO UPDATE SET name = 'y'",
        "INSERT INTO crews VALUES (99, 1)",
    ):
        assert refusal(database, text).sqlstate == "55000", text


def test_it_writes_rows_that_it_holds(database: DevDatabase) -> None:
    narrow(database, "r2", WISH)
    ask(database, "r2", "UPDATE seats SET name = 'mine' WHERE id = 150")
    ask(database, "r2", "BEGIN", "INSERT INTO flights VALUES (77, 'new')", "COMMIT")
    ask(database, "r2", "DELETE FROM seats WHERE id = 151")
    for node in ("r1", "r2"):
        assert ask(database, node, "SELECT name FROM seats WHERE id = 150") == [("mine",)]
        assert ask(database, node, "SELECT gate FROM flights WHERE id = 77") == [("new",)]
        assert ask(database, node, "SELECT 1 FROM seats WHERE id = 151") == []


def test_rows_move_in_and_out_by_their_key(database: DevDatabase) -> None:
    narrow(database, "r2", WISH)
    ask(database, "r1", "UPDATE seats SET id = 1150 WHERE id = 150")
    ask(database, "r1", "DELETE FROM seats WHERE id = 160")
    ask(database, "r1", "UPDATE seats SET id = 160, name = 'came' WHERE id = 10")
    ask(database, "r1", "INSERT INTO seats VALUES (400, 1, 'outside')")
    text = f"SELECT * FROM seats WHERE {WHERE} ORDER BY id"
    assert ask(database, "r2", text) == ask(database, "r1", text)
    by_name = f"SELECT id FROM seats WHERE name = 'came' AND {WHERE}"
    assert ask(database, "r2", by_name) == [(160,)]
    # By itself it moves none out: whether another row is in the way there it can't tell.
    refusal(database, "UPDATE seats SET id = 2000 WHERE id = 170")


@pytest.mark.parametrize("seed", range(3))
def test_any_query_is_answered_alike_or_refused(database: DevDatabase, seed: int) -> None:
    """Drawn conditions, joins and writes between them."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    narrow(database, "r2", WISH)
    full, part = SqlClient(database, "r1"), SqlClient(database, "r2")
    answered = 0
    for _ in range(60):
        low, high = sorted(rng.choice((90, 100, 120, 150, 199, 200, 210)) for _ in range(2))
        sign = rng.choice(("<", "<="))
        ranged = f"s.id >= {low} AND s.id {sign} {high}"
        also = rng.choice(("", " AND s.name = 'n3'", " AND s.flight > 4", " OR s.id = 120"))
        source = rng.choice(
            (
                "seats s",
                "seats s JOIN flights f ON f.id = s.flight",
                "flights f LEFT JOIN seats s ON f.id = s.flight",
                "flights f LEFT JOIN seats s ON f.id = s.flight AND s.id = 150",
            )
        )
        text = f"SELECT count(*), sum(s.id), min(s.name) FROM {source} WHERE {ranged}{also}"
        try:
            found = part.ask(text)
        except NotHeldHere:
            continue
        finally:
            key = rng.randrange(80, 220)
            moved = f"UPDATE seats SET id = {1000 + rng.randrange(10_000)} WHERE id = {key}"
            written = f"UPDATE seats SET name = 'n{rng.randrange(7)}' WHERE id = {key}"
            full.ask(rng.choice((moved, written)))
        answered += 1
        del found
        full.ask("SELECT 1")
        assert part.ask(text) == full.ask(text), text
    assert answered >= 5
    full.session.close()
    part.session.close()


def test_schema_changes_of_held_and_other_tables(database: DevDatabase) -> None:
    narrow(database, "r2", WISH)
    ask(database, "r1", "ALTER TABLE flights ADD COLUMN plane text DEFAULT 'b'")
    ask(database, "r1", "ALTER TABLE crews ADD COLUMN size integer NOT NULL DEFAULT 3")
    ask(database, "r1", "CREATE INDEX crews_by_size ON crews (size)")
    ask(database, "r1", "CREATE INDEX seats_by_flight ON seats (flight)")
    ask(database, "r1", "CREATE INDEX flights_by_plane ON flights (plane)")
    ask(database, "r1", "CREATE TABLE bags (id integer PRIMARY KEY)")
    for text in (
        "SELECT id, plane FROM flights WHERE plane = 'b' ORDER BY id",
        f"SELECT id FROM seats WHERE flight = 3 AND {WHERE} ORDER BY id",
    ):
        assert ask(database, "r2", text) == ask(database, "r1", text), text
    assert "'bags'" in refusal(database, "SELECT * FROM bags").message
    ask(database, "r1", "DROP TABLE crews CASCADE")
    ask(database, "r1", "ALTER TABLE flights RENAME TO trips")
    assert len(ask(database, "r2", "SELECT * FROM trips")) == 20
    ask(database, "r1", "CREATE TABLE flights (id integer PRIMARY KEY)")
    assert "only trips, seats" in refusal(database, "SELECT * FROM flights").message
    ask(database, "r1", "ALTER TABLE trips DROP COLUMN gate CASCADE")
    ask(database, "r1", "TRUNCATE trips")
    assert ask(database, "r2", "SELECT * FROM trips") == []
    ask(database, "r1", "DROP TABLE trips")
    assert database.check().differences == ()


def test_a_table_whose_key_changes_is_followed(database: DevDatabase) -> None:
    wish = PartWish.of(["crews"])
    narrow(database, "r2", wish)
    ask(database, "r1", "ALTER TABLE crews ALTER COLUMN flight SET NOT NULL")
    ask(database, "r1", "ALTER TABLE crews DROP CONSTRAINT crews_pkey, ADD PRIMARY KEY (flight)")
    text = "SELECT * FROM crews WHERE flight < 7 ORDER BY flight"
    assert ask(database, "r2", text) == ask(database, "r1", text)
    ask(database, "r1", "UPDATE crews SET id = 99 WHERE flight = 3")
    assert ask(database, "r2", text) == ask(database, "r1", text)
    part = stored_part(database._stores["r2"].path)
    assert len(part.table_ids()) == 2
    assert wish.is_met_by(part), "it goes on with what it has at its next start"


def test_it_begins_while_rows_go_over_to_a_table_with_another_key(database: DevDatabase) -> None:
    """Two tables have the name then: the one that is read, and the one that takes its place."""
    ask(database, "r1", "ALTER TABLE crews ALTER COLUMN flight SET NOT NULL")
    text = "SELECT * FROM crews WHERE flight < 7 ORDER BY flight"
    reader, rows, version = reading(database, text)
    change = "ALTER TABLE crews DROP CONSTRAINT crews_pkey, ADD PRIMARY KEY (flight)"
    ask(database, "r1", "SET leasehold.wait_for_jobs = off", change)
    while True:  # step by step: the job waits for who reads under the version before
        assert database.until(partial(has_newer, database, version), 30.0)
        if len(named(database, "crews")) == 2:
            break
        following, _, version = reading(database, text)
        reader.ask("COMMIT")
        reader = following
    held = narrow(database, "r2", PartWish.of(["crews"])).part
    assert all(held.holds_whole(table.table_id) for table in named(database, "crews"))
    assert ask(database, "r2", text) == rows
    reader.ask("COMMIT")
    assert database.until(lambda: len(named(database, "crews")) == 1, 30.0)
    ask(database, "r1", "UPDATE crews SET id = 99 WHERE flight = 3")
    assert ask(database, "r2", text) == ask(database, "r1", text) != rows
    assert database.check().differences == ()


def has_newer(database: DevDatabase, version: int) -> bool:
    return named(database, "crews")[0].version > version


def reading(database: DevDatabase, text: str) -> tuple[SqlClient, list[object], int]:
    """Return a client in a transaction that has read crews, what it has read, and under which
    version."""
    client = SqlClient(database, "r1")
    client.ask("BEGIN")
    return client, client.ask(text), named(database, "crews")[0].version


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (PartWish.of(["nothing"]), "'nothing', which does not exist"),
        (PartWish.of(["gates"]), r"'gates' is a view: .*flights"),
        (PartWish.of(["staffed"]), r"'staffed' is a view: .*crews, flights"),
        (PartWish.of(["bags"]), "bags's foreign key .* refers to flights"),
        (PartWish.of(["bags"], {"flights": "id < 5"}), "refers to flights"),
        (PartWish.of(None, {"seats": "name > 'n3'"}), "no range of its primary key"),
        (
            PartWish.of(None, {"seats": "flight = 3"}, {"seats": ["name"]}),
            "with flight = 3: name that column",
        ),
    ],
)
def test_what_can_not_be_held_is_refused_with_names(
    database: DevDatabase, wish: PartWish, words: str
) -> None:
    ask(database, "r1", "CREATE TABLE bags (id integer PRIMARY KEY, f integer REFERENCES flights)")
    ask(database, "r1", "CREATE SEQUENCE numbers")
    with pytest.raises(ConfigurationError, match=words):
        narrow(database, "r2", wish)
    narrow(database, "r2", PartWish.of(["bags", "flights"]))
    ask(database, "r2", "INSERT INTO bags VALUES (1, 1)")


def test_a_foreign_key_that_came_later_needs_no_check_here(database: DevDatabase) -> None:
    """Nodes with both tables verify it, the master looks at each write, and this one reads on."""
    narrow(database, "r2", PartWish.of(["seats"]))
    ask(database, "r1", "ALTER TABLE seats ADD FOREIGN KEY (flight) REFERENCES flights")
    assert len(ask(database, "r2", "SELECT * FROM seats")) == 300
    ask(database, "r2", "UPDATE seats SET flight = 2 WHERE id = 5")
    with pytest.raises(ForeignKeyViolation):
        ask(database, "r2", "UPDATE seats SET flight = 99 WHERE id = 5")
    assert database.check().differences == ()


def test_it_reads_as_of_the_past(database: DevDatabase) -> None:
    narrow(database, "r2", WISH)
    client = SqlClient(database, "r2")
    client.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
    text = f"SELECT name FROM seats WHERE {WHERE} AND id = 140"
    before = client.ask(text)
    ask(database, "r1", "UPDATE seats SET name = 'later' WHERE id = 140")
    assert client.ask(text) == before
    with pytest.raises(NotHeldHere):
        client.ask("SELECT * FROM crews")
    client.session.close()
    assert ask(database, "r2", text) == [("later",)]


def test_sequences_come_with_the_tables_that_draw_from_them(database: DevDatabase) -> None:
    """One more is held where it is named, or once a held table draws from it."""
    ask(database, "r1", "CREATE TABLE bags (id serial PRIMARY KEY, note text)")
    ask(database, "r1", "CREATE SEQUENCE numbers")
    ask(database, "r1", "CREATE SEQUENCE others")
    narrow(database, "r2", PartWish.of(["bags", "numbers"]))
    ask(database, "r2", "INSERT INTO bags (note) VALUES ('a')")
    ask(database, "r1", "SELECT setval('bags_id_seq', 500)")
    ask(database, "r2", "INSERT INTO bags (note) VALUES ('b')")
    assert ask(database, "r2", "SELECT max(id) FROM bags") == [(501,)]
    assert ask(database, "r2", "SELECT nextval('numbers') > 0") == [(1,)]
    assert "sequence 'others'" in refusal(database, "SELECT nextval('others')").message
    shown = "SELECT sequencename FROM pg_sequences WHERE last_value IS NULL"
    assert ask(database, "r2", shown) == [("others",)]
    ask(database, "r1", "ALTER TABLE bags ADD COLUMN n bigint DEFAULT nextval('others')")
    ask(database, "r2", "INSERT INTO bags (note) VALUES ('c')")
    text = "SELECT * FROM bags ORDER BY id"
    assert ask(database, "r2", text) == ask(database, "r1", text)


COLUMNS_OF_SEATS = PartWish.of(None, None, {"seats": ["flight"]})


def test_a_table_of_some_columns(database: DevDatabase) -> None:
    """What names no other column is answered as anywhere; all else, and each change, is refused."""
    narrow(database, "r2", COLUMNS_OF_SEATS)
    ask(database, "r1", "CREATE INDEX seats_by_both ON seats (flight, name)")
    ask(database, "r1", "UPDATE seats SET name = 'other' WHERE id < 50")
    ask(database, "r1", "UPDATE seats SET flight = 3 WHERE id < 10")
    ask(database, "r1", "DELETE FROM seats WHERE id = 11")
    ask(database, "r1", "INSERT INTO seats VALUES (900, 3, 'new')")
    for text in (
        "SELECT id, flight FROM seats ORDER BY id",
        "SELECT count(*) FROM seats WHERE flight = 3",
        "SELECT flight, count(*) FROM seats GROUP BY flight ORDER BY 1",
    ):
        assert ask(database, "r2", text) == ask(database, "r1", text), text
    for text in (
        "SELECT * FROM seats",
        "SELECT id FROM seats WHERE name = 'n3'",
        "SELECT id FROM seats ORDER BY name",
        "SELECT (SELECT max(name) FROM seats)",
        "UPDATE seats SET flight = 4 WHERE id = 1",
        "DELETE FROM seats WHERE id = 1",
        "INSERT INTO seats VALUES (901, 3, 'new')",
    ):
        error = refusal(database, text)
        assert "only columns flight of table 'seats'" in error.message, text
    with database._stores["r2"].open_snapshot() as snapshot:
        row = snapshot.get(snapshot.newest("seats"), (900,))
    assert row is not None
    assert [value for value in row.values.values() if value is not None] == [900, 3]
    assert database.check().differences == ()


def test_columns_that_come_later_are_not_held(database: DevDatabase) -> None:
    narrow(database, "r2", COLUMNS_OF_SEATS)
    ask(database, "r1", "ALTER TABLE seats ADD COLUMN kind text NOT NULL DEFAULT 'window'")
    more = "twice bigint GENERATED ALWAYS AS (id * 2) STORED"
    ask(database, "r1", f"ALTER TABLE seats ADD COLUMN {more}")
    ask(database, "r1", "ALTER TABLE seats RENAME COLUMN flight TO trip")
    ask(database, "r1", "ALTER TABLE seats DROP COLUMN name")
    ask(database, "r1", "UPDATE seats SET kind = 'aisle' WHERE id < 5")
    text = "SELECT id, trip FROM seats ORDER BY id"
    assert ask(database, "r2", text) == ask(database, "r1", text)
    refusal(database, "SELECT kind FROM seats")
    assert database.check().differences == ()


def test_columns_that_can_not_be_held_are_named(database: DevDatabase) -> None:
    ask(database, "r1", "CREATE INDEX seats_lower ON seats (lower(name))")
    with pytest.raises(ConfigurationError, match="'nothing' of table 'seats'"):
        narrow(database, "r2", PartWish.of(None, None, {"seats": ["nothing"]}))
    with pytest.raises(ConfigurationError, match=r"'seats_lower' .* computes with name"):
        narrow(database, "r2", COLUMNS_OF_SEATS)


OF_FLIGHT = "flight = 4"
BY_VALUE = PartWish.of(["flights"], {"seats": OF_FLIGHT})


def test_rows_with_a_value_are_answered_as_a_full_replica_does(database: DevDatabase) -> None:
    copied = narrow(database, "r2", BY_VALUE)
    assert sorted(copied.rows.values()) == [15, 20]
    for text in (
        f"SELECT * FROM seats WHERE {OF_FLIGHT} ORDER BY id",
        f"SELECT count(*), min(id), max(name) FROM seats s WHERE s.{OF_FLIGHT} AND name <> 'n3'",
        f"SELECT id FROM seats WHERE name = 'n3' AND {OF_FLIGHT} ORDER BY id",
        f"SELECT id FROM seats WHERE id = 10 AND {OF_FLIGHT}",
        "SELECT s.id FROM flights f JOIN seats s ON s.id = f.id WHERE s.flight = 4 ORDER BY 1",
        "SELECT f.id, s.id FROM flights f LEFT JOIN seats s ON s.flight = 4 AND s.name = f.gate",
        f"SELECT count(*) FROM seats WHERE {OF_FLIGHT} AND (id > 100 OR name = 'n1')",
        "SELECT count(*) FROM seats WHERE flight = NULL",
    ):
        assert ask(database, "r2", text) == ask(database, "r1", text), text


def test_what_does_not_say_the_value_is_refused_by_name(database: DevDatabase) -> None:
    narrow(database, "r2", BY_VALUE)
    for text in (
        "SELECT * FROM seats",
        "SELECT * FROM seats WHERE flight = 5",
        "SELECT * FROM seats WHERE flight IN (4, 5)",
        "SELECT * FROM seats WHERE flight >= 4 AND flight <= 4",
        "SELECT * FROM seats WHERE id = 3",
        f"SELECT * FROM seats WHERE {OF_FLIGHT} OR name = 'n3'",
        "SELECT * FROM flights f JOIN seats s ON s.flight = f.id",
        f"SELECT (SELECT count(*) FROM seats) FROM seats WHERE {OF_FLIGHT}",
        f"UPDATE seats SET name = 'x' WHERE {OF_FLIGHT}",
        f"DELETE FROM seats WHERE {OF_FLIGHT}",
        "INSERT INTO seats VALUES (999, 4, 'x')",
        "INSERT INTO seats VALUES (3, 4, 'x') ON CONFLICT (id) DO NOTHING",
    ):
        error = refusal(database, text)
        assert (error.sqlstate, "flight = 4" in error.message) == ("55000", True), text


def test_rows_come_in_and_go_as_their_value_changes(database: DevDatabase) -> None:
    narrow(database, "r2", BY_VALUE)
    text = f"SELECT * FROM seats WHERE {OF_FLIGHT} ORDER BY id"
    by_name = f"SELECT id FROM seats WHERE name = 'new' AND {OF_FLIGHT} ORDER BY id"
    for change in (
        "UPDATE seats SET flight = 4, name = 'new' WHERE id IN (1, 2)",
        "UPDATE seats SET flight = 9 WHERE id = 3",
        "UPDATE seats SET name = 'new' WHERE id = 23",
        "UPDATE seats SET name = 'out' WHERE id = 25",
        "DELETE FROM seats WHERE id = 43",
        "DELETE FROM seats WHERE id = 44",
        "INSERT INTO seats VALUES (901, 4, 'new'), (902, 5, 'new')",
        "UPDATE seats SET id = 903 WHERE id = 63",
        "UPDATE seats SET id = 904, flight = 4 WHERE id = 64",
    ):
        ask(database, "r1", change)
        assert ask(database, "r2", text) == ask(database, "r1", text), change
        assert ask(database, "r2", by_name) == ask(database, "r1", by_name), change
    ask(database, "r1", "BEGIN", "UPDATE seats SET flight = 4 WHERE id = 5", "COMMIT")
    ask(
        database,
        "r1",
        *("BEGIN", "UPDATE seats SET flight = 1 WHERE id = 5"),
        *("UPDATE seats SET flight = 4 WHERE id = 6", "DELETE FROM seats WHERE id = 6", "COMMIT"),
    )
    assert ask(database, "r2", text) == ask(database, "r1", text)
    assert database.check().differences == ()


def test_the_past_of_rows_with_a_value(database: DevDatabase) -> None:
    narrow(database, "r2", BY_VALUE)
    text = f"SELECT id, name FROM seats WHERE {OF_FLIGHT} ORDER BY id"
    past = {node: SqlClient(database, node) for node in ("r1", "r2")}
    for client in past.values():
        client.ask("BEGIN ISOLATION LEVEL REPEATABLE READ")
        client.ask(text)
    ask(database, "r1", "UPDATE seats SET flight = 9 WHERE id = 3")
    ask(database, "r1", "UPDATE seats SET flight = 4 WHERE id = 4")
    ask(database, "r1", "UPDATE seats SET flight = 9 WHERE id = 4")
    then = [client.ask(text) for client in past.values()]
    assert then[0] == then[1]
    assert len(then[0]) == 15
    for client in past.values():
        client.session.close()
    assert ask(database, "r2", text) == ask(database, "r1", text)


@pytest.mark.parametrize("seed", range(3))
def test_any_query_of_rows_with_a_value_is_answered_alike_or_refused(
    database: DevDatabase, seed: int
) -> None:
    """Drawn conditions, joins and writes between them."""
    print(f"seed {seed}")
    rng = random.Random(seed)
    narrow(database, "r2", BY_VALUE)
    full, part = SqlClient(database, "r1"), SqlClient(database, "r2")
    answered = 0
    for _ in range(60):
        said = rng.choice(("s.flight = 4", "4 = s.flight", "s.flight = 3 + 1", "s.flight < 5"))
        also = rng.choice(("", " AND s.name = 'n3'", " AND s.id > 100", " OR s.id = 120"))
        source = rng.choice(
            (
                "seats s",
                "seats s JOIN flights f ON f.id = s.flight",
                "flights f LEFT JOIN seats s ON f.id = s.flight",
                "flights f LEFT JOIN seats s ON f.id = s.id AND s.flight = 4",
            )
        )
        text = f"SELECT count(*), sum(s.id), min(s.name) FROM {source} WHERE {said}{also}"
        try:
            part.ask(text)
        except NotHeldHere:
            continue
        finally:
            key, flight = rng.randrange(1, 300), rng.choice((3, 4, 4, 5))
            moved = f"UPDATE seats SET flight = {flight} WHERE id = {key}"
            written = f"UPDATE seats SET name = 'n{rng.randrange(7)}' WHERE id = {key}"
            gone = f"DELETE FROM seats WHERE id = {key}"
            full.ask(rng.choice((moved, moved, written, gone)))
        answered += 1
        full.ask("SELECT 1")
        assert part.ask(text) == full.ask(text), text
    assert answered >= 5
    full.session.close()
    part.session.close()


def test_schema_changes_of_a_table_that_is_held_by_a_value(database: DevDatabase) -> None:
    narrow(database, "r2", BY_VALUE)
    ask(database, "r1", "ALTER TABLE seats ADD COLUMN free boolean NOT NULL DEFAULT true")
    ask(database, "r1", "CREATE INDEX seats_by_free ON seats (free, name)")
    ask(database, "r1", "ALTER TABLE seats ALTER COLUMN name TYPE varchar(40) USING upper(name)")
    ask(database, "r1", "UPDATE seats SET flight = 4 WHERE id = 7")
    text = f"SELECT * FROM seats WHERE {OF_FLIGHT} ORDER BY id"
    assert ask(database, "r2", text) == ask(database, "r1", text)
    ask(database, "r1", "ALTER TABLE seats RENAME COLUMN flight TO trip")
    text = "SELECT * FROM seats WHERE trip = 4 AND name = 'N3' ORDER BY id"
    assert ask(database, "r2", text) == ask(database, "r1", text)
    ask(database, "r1", "TRUNCATE seats")
    ask(database, "r1", "INSERT INTO seats VALUES (1, 4, 'x', true), (2, 5, 'y', true)")
    assert len(ask(database, "r2", "SELECT * FROM seats WHERE trip = 4")) == 1
    ask(database, "r1", "ALTER TABLE seats DROP COLUMN trip CASCADE")
    assert "does not hold table 'seats'" in refusal(database, "SELECT * FROM seats").message
    assert database.check().differences == ()
