"""Goal: every question that SQLAlchemy's inspector and pandas ask of a database has the answer here
that PostgreSQL gives of the same tables.

Method: each method of the inspector, of all tables at once and of each, on a whole database in this
process and on a PostgreSQL of the same DDL; frames written and read again on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import pandas as pd
import psycopg
import pytest
import sqlalchemy as sa
from psycopg.types import TypeInfo
from sqlalchemy.engine.reflection import Inspector, ObjectKind, ObjectScope

from tests.support.postgres.dev_server import dev_server
from tests.support.postgres.postgres_server import postgres_server
from tests.support.sql.described_tables import DDL

pytestmark = pytest.mark.integration

USER: Final = "postgres"
TABLES: Final = ("flights", "legs", "nope")
OF_A_TABLE: Final = (
    *("get_columns", "get_pk_constraint", "get_foreign_keys", "get_indexes"),
    *("get_unique_constraints", "get_check_constraints", "get_table_comment"),
    *("get_table_options", "has_table"),
)
OF_ALL: Final = (
    *("get_multi_columns", "get_multi_pk_constraint", "get_multi_foreign_keys"),
    *("get_multi_indexes", "get_multi_unique_constraints", "get_multi_check_constraints"),
    *("get_multi_table_comment", "get_multi_table_options"),
)
OF_THE_DATABASE: Final = (
    *("get_table_names", "get_view_names", "get_materialized_view_names", "get_temp_table_names"),
    *("get_temp_view_names", "get_sequence_names", "get_enums", "get_domains"),
    *("get_foreign_table_names", "get_sorted_table_and_fkc_names"),
)


class Both(NamedTuple):
    ours: sa.Engine
    theirs: sa.Engine


def engine(port: int, database: str) -> sa.Engine:
    return sa.create_engine(f"postgresql+psycopg://{USER}@127.0.0.1:{port}/{database}")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    with postgres_server() as port, dev_server(tmp_path_factory.mktemp("inspect"), DDL) as served:
        with psycopg.connect(host="127.0.0.1", port=port, user=USER, autocommit=True) as client:
            client.execute(DDL.encode())
        ours, theirs = engine(served.port, served.database), engine(port, USER)
        yield Both(ours, theirs)
        ours.dispose()
        theirs.dispose()


def told(of: sa.Engine, ask: Callable[[Inspector], Any]) -> str:
    """The answer, or the kind of the error."""
    with of.connect() as connection:
        try:
            found = ask(sa.inspect(connection))
        except sa.exc.SQLAlchemyError as error:
            return type(error).__name__
        return repr(sorted(found.items(), key=repr) if isinstance(found, dict) else found)


def same(both: Both, ask: Callable[[Inspector], Any]) -> None:
    assert told(both.ours, ask) == told(both.theirs, ask)


@pytest.mark.parametrize("method", OF_THE_DATABASE)
def test_of_the_database(both: Both, method: str) -> None:
    same(both, lambda inspector: getattr(inspector, method)())


@pytest.mark.parametrize("method", OF_ALL)
def test_of_all_tables(both: Both, method: str) -> None:
    same(both, lambda inspector: getattr(inspector, method)())
    same(
        both,
        lambda inspector: getattr(inspector, method)(kind=ObjectKind.ANY, scope=ObjectScope.ANY),
    )


@pytest.mark.parametrize("method", OF_A_TABLE)
@pytest.mark.parametrize("table", TABLES)
def test_of_a_table(both: Both, method: str, table: str) -> None:
    same(both, lambda inspector: getattr(inspector, method)(table))


def test_what_there_is(both: Both) -> None:
    same(both, lambda inspector: inspector.has_index("flights", "flights_gate"))
    same(both, lambda inspector: inspector.has_index("flights", "nope"))
    same(both, lambda inspector: inspector.has_sequence("nope"))
    same(both, lambda inspector: inspector.has_schema("public"))
    same(both, lambda inspector: inspector.get_view_definition("nope"))
    names = [n for n in told(both.ours, Inspector.get_schema_names).split("'") if n != "leasehold"]
    assert "public" in names


def test_frames(both: Both) -> None:
    frame = pd.DataFrame(
        {
            "a": [1.0, 2.0, None],
            "b": ["x", "y", None],
            "c": pd.to_datetime(["2024-01-01 00:00:00", "2024-02-02 03:04:05", None]),
            "d": [True, False, True],
            "e": [1, 2, 3],
        }
    )
    answers = []
    for each in both:
        frame.to_sql("frame", each, index=False, if_exists="replace")
        frame.to_sql("frame", each, index=False, if_exists="append", method="multi", chunksize=2)
        frame.to_sql("other", each, index_label="n", dtype={"a": sa.Numeric(8, 2)})
        frame.to_sql("other", each, index_label="n", if_exists="replace")
        with each.connect().execution_options(stream_results=True) as connection:
            parts = pd.read_sql("select * from frame", connection, chunksize=4)
            lengths = [len(part) for part in parts]
        answers.append(
            (
                pd.read_sql_table("other", each).sort_values("n").to_dict("records"),
                pd.read_sql("select * from frame order by e, b", each).dtypes.to_dict(),
                pd.read_sql(sa.text("select :x + 1 as n"), each, params={"x": 4}).to_dict(),
                lengths,
            )
        )
    assert repr(answers[0]) == repr(answers[1])


@pytest.mark.parametrize("name", ["int4", "int4[]", "numeric(8, 2)", "int", "char", "text", "nope"])
def test_types_by_their_names(both: Both, name: str) -> None:
    found = []
    for each in both:
        with each.connect() as connection:
            driver: Any = connection.connection.driver_connection
            info = TypeInfo.fetch(driver, name)
            found.append(info and (info.name, info.oid, info.array_oid, info.regtype))
    assert found[0] == found[1]
