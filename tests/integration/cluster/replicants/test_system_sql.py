"""SQL on the replicants of a real cluster, by real clients: psql and psycopg.

Goal: what the documents tell a new user to try works as told, on each replicant.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import psycopg
import pytest

from infra.local_cluster import LocalCluster
from leasehold import ChangeProducer, connect_async
from leasehold import connect as connect_embedded
from tests.support.changefeed.changefeed_process import published
from tests.support.cluster.secure_suite import dsn_of, libpq_environment
from tests.support.cluster.system_cluster import command, settings_of, until

ADDED = 15
LONG = "SELECT count(*) FROM generate_series(1, 3000000) a, generate_series(1, 9000) b"


def environment(cluster: LocalCluster, place: int) -> dict[str, str]:
    return {**os.environ, **libpq_environment(cluster, place)}


def program(name: str) -> str:
    """Skips the test, saying so, where PostgreSQL's programs are not installed."""
    if shutil.which(name) is None:
        pytest.skip(f"NOT TESTED with {name}: it is not installed (apt install postgresql)")
    return name


def psql(cluster: LocalCluster, place: int, text: str) -> str:
    """What psql prints, tuples only."""
    done = subprocess.run(
        [program("psql"), "-X", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", text],
        env=environment(cluster, place),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def connect(
    cluster: LocalCluster, place: int, search_path: str = ""
) -> psycopg.Connection[tuple[object, ...]]:
    path = search_path.replace(" ", "\\ ")
    options = f"-c search_path={path}" if path else ""
    return psycopg.connect(dsn_of(cluster, place), options=options)


def test_what_a_new_user_tries(cluster: LocalCluster) -> None:
    psql(cluster, 0, "CREATE TABLE seats (flight int PRIMARY KEY, free int NOT NULL)")
    psql(cluster, 1, "INSERT INTO seats SELECT f, f * 10 FROM generate_series(1, 5) f")
    for place in (0, 1):  # answered commits are on every coherent node
        assert psql(cluster, place, "SELECT count(*), sum(free) FROM seats") == "5|150"
    assert psql(cluster, 1, "SELECT version()").startswith("PostgreSQL 15")
    told = psql(cluster, 1, "EXPLAIN ALTER TABLE seats ADD COLUMN gate text")
    assert told.startswith("step 1, version 2: column gate")
    psql(cluster, 0, "ALTER TABLE seats ADD COLUMN gate text")
    assert psql(cluster, 0, "SELECT gate IS NULL FROM seats WHERE flight = 1") == "t"


def test_psycopg_reads_in_a_block_with_parameters_and_prepared(cluster: LocalCluster) -> None:
    with connect(cluster, 1) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for flight in range(1, 9):  # from the sixth on it is prepared by name
            found = connection.execute(
                "SELECT free FROM seats WHERE flight = %s", (flight,)
            ).fetchone()
            assert found == ((flight * 10,) if flight < 6 else None)
        with pytest.raises(psycopg.errors.UndefinedColumn):
            connection.execute("SELECT nope FROM seats")
        connection.rollback()
        with connection.transaction(), connection.pipeline():
            cursors = [connection.execute("SELECT %s::int + 1", (n,)) for n in range(3)]
        assert [c.fetchone() for c in cursors] == [(1,), (2,), (3,)]
        assert connection.info.server_version == 150000


def test_no_increment_is_lost_between_writers_on_two_replicants(cluster: LocalCluster) -> None:
    """Each in a block of two statements; after a verify error the replicant runs them again."""

    def add(place: int) -> int:
        with connect(cluster, place) as connection:
            for _ in range(ADDED):
                with connection.transaction():
                    connection.execute("UPDATE seats SET free = free + 1 WHERE flight = 1")
                    connection.execute("UPDATE seats SET free = free - 1 WHERE flight = 2")
        return place

    psql(cluster, 0, "UPDATE seats SET free = 0 WHERE flight IN (1, 2)")
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(add, (0, 0, 1, 1))) == [0, 0, 1, 1]
    for place in (0, 1):
        told = psql(cluster, place, "SELECT free FROM seats WHERE flight <= 2 ORDER BY flight")
        assert told.split() == [str(4 * ADDED), str(-4 * ADDED)]


def test_copy_and_rows_given_back(cluster: LocalCluster) -> None:
    with connect(cluster, 0) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY seats (flight, free) FROM STDIN") as copy:
            for flight in range(1_000, 1_100):
                copy.write_row((flight, 1))
        assert cursor.rowcount == 100
        cursor.execute("DELETE FROM seats WHERE flight >= %s RETURNING flight", (1_098,))
        assert sorted(cursor.fetchall()) == [(1_098,), (1_099,)]
        connection.commit()
    assert psql(cluster, 1, "SELECT count(*) FROM seats WHERE flight >= 1000") == "98"


def test_schema_changes_in_a_block_are_taken_back_with_it(cluster: LocalCluster) -> None:
    """Scenario 77, on two replicants: nobody sees them before COMMIT, and nobody after ROLLBACK."""
    made = "CREATE TABLE drafts (id serial PRIMARY KEY, word text UNIQUE)"
    there = "SELECT count(*) FROM pg_class WHERE relname LIKE 'drafts%'"
    with connect(cluster, 0) as one, connect(cluster, 1) as other:
        other.autocommit = True
        for end, relations in ((one.rollback, 0), (one.commit, 4)):
            one.execute(made.encode())
            one.execute("ALTER TABLE drafts ADD COLUMN size int DEFAULT 7")
            one.execute("INSERT INTO drafts (word) VALUES ('a'), ('b')")
            assert one.execute("SELECT sum(size) FROM drafts").fetchone() == (14,)
            assert other.execute(there).fetchone() == (0,)
            end()
            assert other.execute(there).fetchone() == (relations,)
        assert other.execute("SELECT count(*), sum(size) FROM drafts").fetchone() == (2, 14)
        one.execute("DROP TABLE drafts")
        assert sqlstate_of(one, "SELECT 1 FROM drafts") == "42P01"
        one.rollback()
        assert other.execute("SELECT count(*) FROM drafts").fetchone() == (2,)
        other.execute("DROP TABLE drafts")


def test_rows_number_themselves_on_every_road(cluster: LocalCluster) -> None:
    """Sessions on two replicants, an embedded one, and requests on the topic; then one that stops
    with what it has taken, a RESTART, and the sequence goes with its table."""
    psql(cluster, 0, "CREATE TABLE tickets (id serial PRIMARY KEY, road text)")
    insert = "INSERT INTO tickets (road) VALUES (%s) RETURNING id"

    def ask(place: int) -> list[object]:
        with connect(cluster, place) as connection:
            connection.autocommit = True
            made = [connection.execute(insert, (f"r{place}",)).fetchone() for _ in range(ADDED)]
            return [row[0] for row in made if row is not None]

    def embed() -> list[object]:
        with connect_embedded(settings_of(cluster, "embedded"), autocommit=True) as one:
            made = [one.execute(insert, ("embedded",)).fetchone() for _ in range(ADDED)]
            return [row[0] for row in made if row is not None]

    with ThreadPoolExecutor(3) as pool:
        told = [pool.submit(ask, 0), pool.submit(ask, 1), pool.submit(embed)]
        with ChangeProducer(settings_of(cluster, "producer")) as changes:
            request = {"table": "tickets", "op": "insert", "values": {"road": "topic"}}
            for pending in [changes.submit(request) for _ in range(ADDED)]:
                assert pending.result(60).lsn
        given = [number for each in told for number in each.result()]
    assert len(set(given)) == 3 * ADDED
    counted = "SELECT count(*), count(DISTINCT id) FROM tickets"
    assert psql(cluster, 1, counted) == f"{4 * ADDED}|{4 * ADDED}"
    for number, place in ((given[0], 0), (given[ADDED], 1)):
        assert psql(cluster, 0, f"SELECT road FROM tickets WHERE id = {number}") == f"r{place}"
    cluster.stop("r2")
    cluster.start("r2")
    assert not set(ask(1)) & set(given)
    psql(cluster, 0, "TRUNCATE tickets RESTART IDENTITY")
    numbers = [*ask(1), *ask(0), *ask(1)]
    assert (min(map(int, map(str, numbers))), len(set(numbers))) == (1, 3 * ADDED)
    said = command(cluster, "check")
    assert not said.code, said
    assert re.search(r"^sequence \d+ ", said.out, re.MULTILINE), said
    psql(cluster, 1, "ALTER TABLE tickets ALTER id DROP DEFAULT; DROP TABLE tickets")
    assert psql(cluster, 0, "SELECT count(*) FROM pg_sequences") == "0"


def test_pgbench_reads_and_updates(cluster: LocalCluster, tmp_path: Path) -> None:
    script = tmp_path / "update.sql"
    script.write_text(
        "\\set f random(1000, 1097)\n"
        "UPDATE seats SET free = free + 1 WHERE flight = :f;\n"
        "SELECT free FROM seats WHERE flight = :f;\n"
    )
    for mode in ("simple", "extended", "prepared"):
        done = subprocess.run(
            [program("pgbench"), "-n", "-M", mode, "-c", "2", "-t", "20", "-f", str(script)],
            env=environment(cluster, 0),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not done.returncode, done.stderr
        assert "number of failed transactions: 0" in done.stdout, done.stdout


def test_an_embedded_replica_is_shared_and_leaves_no_thread(cluster: LocalCluster) -> None:
    before = set(threading.enumerate())
    settings = settings_of(cluster, "embedded")
    with connect_embedded(settings) as one, connect_embedded(settings, autocommit=True) as other:
        one.execute("INSERT INTO seats (flight, free) VALUES (%s, %s)", (5_000, 1))
        assert other.execute("SELECT free FROM seats WHERE flight = 5000").fetchone() is None
        one.commit()
        assert other.execute("SELECT free FROM seats WHERE flight = 5000").fetchone() == (1,)
        assert psql(cluster, 1, "SELECT free FROM seats WHERE flight = 5000") == "1"
    until(lambda: set(threading.enumerate()) == before, "no thread of its own")


def test_one_on_an_event_loop_does_not_either(cluster: LocalCluster) -> None:
    """Two tasks with a connection each and one replica; a third gives up what takes too long."""
    before = set(threading.enumerate())
    settings = settings_of(cluster, "embedded")

    async def add(times: int) -> None:
        async with connect_async(settings) as connection:
            for _ in range(times):
                async with connection.transaction():
                    await connection.execute("UPDATE seats SET free = free + 1 WHERE flight = 3")

    async def give_up() -> None:
        async with connect_async(settings, autocommit=True) as connection:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(connection.execute(LONG), 0.2)

    async def main() -> tuple[object, ...] | None:
        await asyncio.gather(add(5), add(5), give_up())
        async with connect_async(settings) as connection:
            cursor = await connection.execute("SELECT free FROM seats WHERE flight = 3")
            return await cursor.fetchone()

    psql(cluster, 1, "UPDATE seats SET free = 0 WHERE flight = 3")
    assert asyncio.run(main()) == (10,)
    # A connection to Redis that was being made is given up, and its thread ends a moment later.
    until(lambda: set(threading.enumerate()) == before, "no thread of its own")


def test_what_a_node_tells_in_sql_and_does(cluster: LocalCluster) -> None:
    """The same as the command says, from the same report; a session and a job are cancelled."""
    with connect(cluster, 0) as holder, connect(cluster, 1) as client:
        client.autocommit = True

        def ask(text: str) -> list[tuple[object, ...]]:
            return client.execute(text).fetchall()

        assert ask("SELECT node FROM leasehold.nodes WHERE role = 'master'") == [("m1",)]
        said = command(cluster, "jobs", "--json").json
        told = ask("SELECT job, status, sql FROM leasehold.jobs ORDER BY job")
        assert told == [(job["job"], job["status"], job["sql"]) for job in said]
        holder.execute("SELECT * FROM seats LIMIT 1")
        holder.execute("SELECT 1")
        mine = holder.execute("SELECT pid, pinned ->> 'seats' FROM leasehold.transactions")
        versions = "SELECT version FROM leasehold.versions WHERE is_newest AND table_name = 'seats'"
        assert mine.fetchall() == [(holder.info.backend_pid, str(ask(versions)[0][0]))]
        client.execute("SET leasehold.wait_for_jobs = off")
        client.execute("ALTER TABLE seats ADD COLUMN gone text")
        ((job,),) = ask("SELECT max(job) FROM leasehold.jobs")
        assert ask(f"SELECT leasehold.cancel_job({job})") == [(True,)]
        agents = "SELECT agent FROM leasehold.leases WHERE is_old AND table_name = 'seats'"
        until(lambda: ask(agents) == [("r1",)], "the lease of the transaction on r1")
        holder.rollback()
        status = f"SELECT status FROM leasehold.jobs WHERE job = {job}"
        until(lambda: ask(status) == [("cancelled",)], "the job to be cancelled")
        for function, sqlstate in (
            ("pg_cancel_backend", "57014"),
            ("pg_terminate_backend", "57P01"),
        ):
            with connect(cluster, 1) as other, ThreadPoolExecutor(1) as pool:
                pid = other.info.backend_pid
                running = pool.submit(sqlstate_of, other, LONG)
                # A session that is ended before it has heard the statement gives no SQLSTATE.
                active = f"SELECT sql FROM leasehold.transactions WHERE pid = {pid}"
                until(partial(shows, client, active, LONG), "the statement to run")
                steer = f"SELECT {function}({pid})"
                assert ask(steer) == [(True,)]
                while not running.done():  # again, as it may have been heard and not begun
                    ask(steer)
                assert running.result() == sqlstate
        with ChangeProducer(settings_of(cluster, "producer")) as changes:
            request = {"table": "nope", "op": "delete", "key": {"id": 1}}
            assert not changes.submit(request).result(60).lsn
        letters = "SELECT sqlstate, request ->> 'table' FROM leasehold.dead_letter"
        until(lambda: ("42P01", "nope") in ask(letters), "the dead letter")
        named = "SELECT value FROM leasehold.settings WHERE name = 'LEASEHOLD_NODE'"
        assert ask(named) == [("r2",)]


def shows(connection: psycopg.Connection[tuple[object, ...]], text: str, value: str) -> bool:
    return connection.execute(text).fetchall() == [(value,)]


def sqlstate_of(connection: psycopg.Connection[tuple[object, ...]], text: str) -> str | None:
    try:
        connection.execute(text)
    except psycopg.Error as error:
        return error.sqlstate
    return ""


def test_a_schema_comes_and_goes_with_all_that_lies_in_it(cluster: LocalCluster) -> None:
    psql(cluster, 0, "CREATE SCHEMA app; CREATE TYPE app.kind AS ENUM ('near', 'far')")
    with connect(cluster, 0, "app") as one, connect(cluster, 1, "app, public") as other:
        one.autocommit = other.autocommit = True
        one.execute("CREATE TABLE gates (id serial PRIMARY KEY, kind kind DEFAULT 'near')")
        one.execute("CREATE VIEW far AS SELECT id FROM gates WHERE kind = 'far'")
        assert command(cluster, "feed", "create", "app.gates").code == 0
        other.execute("INSERT INTO gates (kind) VALUES ('far'), ('near')")
        assert one.execute("SELECT id FROM far").fetchall() == [(1,)]
        one.execute("UPDATE gates SET kind = 'far' WHERE id = 2")
        assert other.execute("SELECT count(*) FROM far").fetchall() == [(2,)]
        consumer = settings_of(cluster, "consumer")
        topic, kafka = f"{consumer.cluster.database}.feed.app.gates", consumer.kafka

        def told() -> list[tuple[str, str]]:
            values = (record.value for record in published(kafka, topic))
            events = [json.loads(value) for value in values if value]
            return [(each["op"], each["after"]["kind"]) for each in events if "op" in each]

        until(lambda: told() == [("c", "far"), ("c", "near"), ("u", "far")], "the feed's events")
        assert sqlstate_of(other, "DROP SCHEMA app") == "2BP01"
        other.execute("DROP SCHEMA app CASCADE")
        for connection in (one, other):
            assert sqlstate_of(connection, "SELECT * FROM gates") == "42P01"
            assert sqlstate_of(connection, "SELECT 'far'::app.kind") == "3F000"
            named = "SELECT nspname FROM pg_namespace WHERE nspname = 'app'"
            assert connection.execute(named).fetchall() == []
        one.execute("CREATE SCHEMA app; CREATE TABLE app.gates (id int); DROP SCHEMA app CASCADE")
    assert command(cluster, "check").code == 0


def test_the_command_asks_and_tells(cluster: LocalCluster) -> None:
    port = str(cluster.ports.sql[1])
    said = command(cluster, "sql", "-p", port, "--json", "-c", "SELECT count(*) AS c FROM seats")
    assert (said.code, list(said.json)) == (0, ["c"])
    said = command(cluster, "sql", "-p", port, "-c", "SELECT nope FROM seats")
    assert (said.code, said.out) == (1, "")
    _, line, caret, hint = said.err.splitlines()
    assert (line, caret) == ("line 1: SELECT nope FROM seats", " " * 15 + "^")
    assert hint.startswith("hint: ")


def test_a_replicant_that_stops_says_so_and_gives_its_leases_back(cluster: LocalCluster) -> None:
    connection = connect(cluster, 1)
    connection.execute("SELECT * FROM seats")  # in a block: a lease is held
    cluster.stop("r2")
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    # Were its lease still there, this would wait for the session's end (15 s).
    psql(cluster, 0, "SET statement_timeout = '10s'; ALTER TABLE seats ADD COLUMN meal text")
    cluster.start("r2")
    assert psql(cluster, 1, "SELECT count(meal) FROM seats") == "0"
