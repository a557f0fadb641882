"""Stories about numbers of sequences, each with the harm that it demands not to see."""

from __future__ import annotations

from leasehold.model.errors import LeaseholdError
from tests.isolation.sql_stage import SqlScene, SqlStage
from tests.simulation.harm import demand
from tests.support.sql_session.sql_client import SqlClient

TABLE = "create table numbered (id serial primary key, v text)"
INSERT = "insert into numbered (v) values ('{}') returning id"


def client(stands: SqlScene, node: str) -> SqlClient:
    made = SqlClient(stands.stage, node)
    stands.clients.append(made)
    return made


def drawn(one: SqlClient, name: str) -> int:
    number: int = one.ask(INSERT.format(name))[0][0]
    return number


def a_told_number_stays_in_a_replay(stands: SqlScene) -> None:
    """Others change the row that the transaction has changed, too."""
    stands.ask("r1", TABLE)
    one = client(stands, "r1")
    one.ask("begin")
    told = [drawn(one, "a")]
    one.ask("update test set value = (select max(value) from test) + 1 where id = 1")
    told.append(drawn(one, "b"))
    stands.ask("r2", "update test set value = value + 5")
    try:
        one.ask("commit")
    except LeaseholdError as error:
        demand(False, "T2", f"{error.sqlstate} for numbers that could have stayed")
    kept = stands.ask("r2", "select id from numbered order by v")
    demand([n for (n,) in kept] == told, "T2", f"{told} were told, {kept} are committed")


def numbers_from_before_a_restart_are_not_given(stands: SqlScene) -> None:
    """r1 has taken a block; r2 sets the sequence back, and comes to the same numbers."""
    stands.ask("r1", TABLE)
    one, two = client(stands, "r1"), client(stands, "r2")
    drawn(one, "a")
    two.ask("truncate numbered restart identity")
    given: list[int] = []
    for turn in range(80):
        each = (one, two)[turn % 2]
        try:
            given.append(drawn(each, str(turn)))
        except LeaseholdError as error:
            demand(False, "T8", f"{error.sqlstate} after {len(given)} rows: a number came twice")
    demand(len(set(given)) == len(given), "T8", "a number came twice")


def crash(stage: SqlStage, name: str) -> None:
    """With what the node has taken and not handed out."""
    stage.node(name).crash()
    stage.sequence_values.pop(name, None)
    stage.restart(name)
    stage.until(lambda: name in stage.coherent(), f"{name} to be coherent", virtual_ms=60_000)
