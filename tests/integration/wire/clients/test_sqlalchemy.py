"""SQLAlchemy 2 over psycopg and asyncpg, and pandas over it, on our listener and on PostgreSQL.

Goal and method: conftest.py.
"""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext import asyncio as sa_asyncio

from tests.support.postgres.client_server import Server
from tests.support.postgres.every_type import ZONED

pytestmark = pytest.mark.integration


class Base(orm.DeclarativeBase):
    pass


class Airline(Base):
    __tablename__ = "airline"
    code: orm.Mapped[str] = orm.mapped_column(sa.String(3), primary_key=True)
    name: orm.Mapped[str]
    founded: orm.Mapped[dt.date | None]
    routes: orm.Mapped[list[Route]] = orm.relationship(
        back_populates="airline", order_by="Route.id"
    )


class Route(Base):
    __tablename__ = "route"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True, autoincrement=False)
    code: orm.Mapped[str] = orm.mapped_column(sa.ForeignKey("airline.code"), index=True)
    price: orm.Mapped[Decimal] = orm.mapped_column(sa.Numeric(10, 2))
    seen: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    extra: orm.Mapped[dict[str, Any] | None] = orm.mapped_column(postgresql.JSONB)
    active: orm.Mapped[bool] = orm.mapped_column(default=True)
    airline: orm.Mapped[Airline] = orm.relationship(back_populates="routes")


@pytest.fixture
def engine(server: Server) -> Iterator[sa.Engine]:
    engine = sa.create_engine(server.url("psycopg"))
    try:
        Base.metadata.drop_all(engine)
        Base.metadata.create_all(engine)
        yield engine
        Base.metadata.drop_all(engine)
    finally:
        engine.dispose()


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_sqlalchemy_makes_and_drops_tables(server: Server, driver: str) -> None:
    """The two refer to each other, so that both are made and dropped by ALTER TABLE, too."""
    tables = sa.MetaData()
    sa.Table(
        "thing",
        tables,
        sa.Column("id", sa.Uuid, primary_key=True),
        sa.Column("part", sa.ForeignKey("part.n", name="thing_part", use_alter=True)),
    )
    sa.Table(
        "part",
        tables,
        sa.Column("n", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("name", sa.Text, nullable=False, unique=True),
        sa.Column("kind", sa.String(5), index=True),
        sa.Column("thing", sa.ForeignKey("thing.id", name="part_thing")),
    )

    def names(connection: sa.Connection) -> set[str]:
        return set(sa.inspect(connection).get_table_names()) & {"thing", "part"}

    async def work() -> None:
        engine = sa_asyncio.create_async_engine(server.url(driver))
        try:
            async with engine.begin() as connection:
                await connection.run_sync(tables.create_all)
                assert await connection.run_sync(names) == {"thing", "part"}
                await connection.execute(sa.insert(tables.tables["part"]), {"n": 1, "name": "a"})
                await connection.run_sync(tables.create_all)
            async with engine.begin() as connection:
                found = await connection.execute(sa.select(tables.tables["part"]))
                assert found.all() == [(1, "a", None, None)]
                await connection.run_sync(tables.drop_all)
            async with engine.connect() as connection:
                assert await connection.run_sync(names) == set()
        finally:
            await engine.dispose()

    asyncio.run(work())


def backfill(session: orm.Session) -> None:
    lh = Airline(code="LH", name="Lufthansa", founded=dt.date(1953, 1, 6))
    lh.routes = [
        Route(id=1, price=Decimal("99.50"), seen=ZONED, extra={"meal": ["a", None]}),
        Route(id=2, price=Decimal("10.00"), active=False),
    ]
    session.add_all([lh, Airline(code="BA", name="British Airways")])
    session.commit()


def test_sqlalchemy_orm(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        backfill(session)
    with orm.Session(engine) as session:
        lh = session.get_one(Airline, "LH")
        assert [(r.id, r.price, r.active) for r in lh.routes] == [
            (1, Decimal("99.50"), True),
            (2, Decimal("10.00"), False),
        ]
        assert lh.routes[0].seen == ZONED
        assert lh.routes[0].extra == {"meal": ["a", None]}
        lh.routes[1].price += 1
        lh.name = "Deutsche Lufthansa"
        session.flush()
        session.delete(lh.routes[0])
        session.commit()
        counted = sa.select(Airline.code, sa.func.count(Route.id)).join(Route, isouter=True)
        found = session.execute(counted.group_by(Airline.code).order_by(Airline.code)).all()
        assert [tuple(row) for row in found] == [("BA", 0), ("LH", 1)]
        many = session.scalars(
            sa.select(Airline)
            .where(Airline.code.in_(["BA", "LH", "XX"]))
            .order_by(Airline.code)
            .options(orm.selectinload(Airline.routes))
        ).all()
        assert [(a.code, len(a.routes)) for a in many] == [("BA", 0), ("LH", 1)]


def test_sqlalchemy_core(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        backfill(session)
    with engine.begin() as connection:
        made = connection.execute(
            sa.insert(Route).returning(Route.id, Route.active),
            [{"id": n, "code": "BA", "price": n} for n in range(10, 13)],
        )
        assert sorted(map(tuple, made)) == [(10, True), (11, True), (12, True)]
        insert = postgresql.insert(Airline).values(code="LH", name="x")
        upsert = insert.on_conflict_do_update(
            index_elements=[Airline.code], set_={"name": insert.excluded.name + "!"}
        )
        assert connection.execute(upsert.returning(Airline.name)).scalar_one() == "x!"
        nothing = postgresql.insert(Airline).values(code="LH", name="y").on_conflict_do_nothing()
        assert connection.execute(nothing.returning(Airline.code)).all() == []
        updated = connection.execute(sa.update(Route).values(price=Route.price * 2))
        assert updated.rowcount == 5
        deleted = connection.execute(sa.delete(Route).where(Route.id >= 11).returning(Route.id))
        assert sorted(deleted.scalars()) == [11, 12]
        assert connection.execute(sa.select(sa.func.sum(Route.price))).scalar() == Decimal("239.00")
        some = sa.select(Route.id).where(
            Route.id == sa.any_(sa.literal([1, 10], sa.ARRAY(sa.Integer)))
        )
        assert sorted(connection.execute(some).scalars()) == [1, 10]
        window = sa.select(Route.id, sa.func.rank().over(order_by=Route.price.desc())).order_by(
            Route.id
        )
        assert [tuple(row) for row in connection.execute(window)] == [(1, 1), (2, 2), (10, 2)]
        like = sa.select(Airline.code).where(Airline.name.regexp_match("^Brit"))
        assert connection.execute(like).scalars().all() == ["BA"]
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(Airline).values(code="LH", name="again"))
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.insert(Route).values(id=77, code="??", price=1))


def add_nested(session: orm.Session, made: Base) -> None:
    with session.begin_nested():
        session.add(made)
        session.flush()


def test_sqlalchemy_nests_transactions(engine: sa.Engine) -> None:
    with orm.Session(engine) as session:
        backfill(session)
        with pytest.raises(sa.exc.IntegrityError):
            add_nested(session, Airline(code="BA", name="twice"))
        session.add(Airline(code="AF", name="Air France"))
        session.commit()
        codes = session.scalars(sa.select(Airline.code).order_by(Airline.code)).all()
        assert codes == ["AF", "BA", "LH"]


def test_sqlalchemy_inspects(engine: sa.Engine) -> None:
    inspector = sa.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["airline", "route"]
    assert inspector.has_table("route")
    assert not inspector.has_table("nowhere")
    columns = {c["name"]: c for c in inspector.get_columns("route")}
    assert {name: (str(c["type"]), c["nullable"]) for name, c in columns.items()} == {
        "id": ("INTEGER", False),
        "code": ("VARCHAR(3)", False),
        "price": ("NUMERIC(10, 2)", False),
        "seen": ("TIMESTAMP", True),
        "extra": ("JSONB", True),
        "active": ("BOOLEAN", False),
    }
    assert inspector.get_pk_constraint("route")["constrained_columns"] == ["id"]
    (foreign,) = inspector.get_foreign_keys("route")
    assert (foreign["constrained_columns"], foreign["referred_table"]) == (["code"], "airline")
    assert foreign["referred_columns"] == ["code"]
    assert [(i["name"], i["column_names"]) for i in inspector.get_indexes("route")] == [
        ("ix_route_code", ["code"])
    ]
    assert inspector.get_indexes("airline") == []


def shape(metadata: sa.MetaData, engine: sa.Engine) -> dict[str, Any]:
    """All that a migration tool compares."""
    return {
        table.name: (
            {
                c.name: (c.type.compile(engine.dialect), c.nullable, c.primary_key)
                for c in table.columns
            },
            {(i.name, tuple(i.columns.keys()), i.unique) for i in table.indexes},
            {
                (tuple(k.column_keys), k.referred_table.name, k.ondelete)
                for k in table.foreign_key_constraints
            },
        )
        for table in metadata.sorted_tables
    }


def test_sqlalchemy_reflects(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    metadata.reflect(engine)
    assert sorted(metadata.tables) == ["airline", "route"]
    route = metadata.tables["route"]
    assert [key.target_fullname for key in route.foreign_keys] == ["airline.code"]
    assert shape(metadata, engine) == shape(Base.metadata, engine), "nothing to migrate"
    metadata.drop_all(engine)
    metadata.create_all(engine)
    again = sa.MetaData()
    again.reflect(engine)
    assert shape(again, engine) == shape(Base.metadata, engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(metadata.tables["airline"]).values(code="X", name="y"))
        assert connection.execute(sa.select(sa.func.count()).select_from(route)).scalar() == 0


def test_sqlalchemy_streams(engine: sa.Engine, many: str) -> None:
    asked = sa.text(f"SELECT id, name FROM {many} ORDER BY id")
    with engine.connect().execution_options(stream_results=True, max_row_buffer=500) as connection:
        assert [row.id for row in connection.execute(asked)] == [*range(1, 5001)]
        parts = connection.execute(asked).partitions(1200)
        assert [len(part) for part in parts] == [1200, 1200, 1200, 1200, 200]


@asynccontextmanager
async def over_asyncpg(server: Server) -> AsyncIterator[sa_asyncio.AsyncEngine]:
    """Whatever fails, no connection is left to the collector, which blames another test for it."""
    made = sa_asyncio.create_async_engine(server.url("asyncpg"))
    try:
        yield made
    finally:
        await made.dispose()


def test_sqlalchemy_over_asyncpg(server: Server, engine: sa.Engine) -> None:
    async def work(made: sa_asyncio.AsyncEngine) -> None:
        sessions = sa_asyncio.async_sessionmaker(made, expire_on_commit=False)
        async with sessions() as session:
            await session.run_sync(backfill)
        async with sessions() as session:
            chosen = sa.select(Airline).options(orm.selectinload(Airline.routes))
            found = (await session.scalars(chosen.order_by(Airline.code))).all()
            assert [(a.code, [r.price for r in a.routes]) for a in found] == [
                ("BA", []),
                ("LH", [Decimal("99.50"), Decimal("10.00")]),
            ]
            assert found[1].routes[0].seen == ZONED
            assert found[1].routes[0].extra == {"meal": ["a", None]}
            found[0].name = "BA"
            session.add(Route(id=5, code="BA", price=Decimal(1)))
            await session.commit()
        async with made.connect() as connection:
            tables = await connection.run_sync(lambda c: sa.inspect(c).get_table_names())
            assert sorted(tables) == ["airline", "route"]

    async def run() -> None:
        async with over_asyncpg(server) as made:
            await work(made)

    asyncio.run(run())


def test_sqlalchemy_over_asyncpg_meets_a_schema_change(server: Server, engine: sa.Engine) -> None:
    """The first statement afterwards may fail, and says so; the next one is prepared anew."""

    async def work(made: sa_asyncio.AsyncEngine) -> None:
        text = sa.text("SELECT * FROM airline WHERE code = :code")
        async with made.connect() as connection:
            assert (await connection.execute(text, {"code": "LH"})).all() == []
        with server.psycopg(autocommit=True) as other:
            other.execute("ALTER TABLE airline ADD COLUMN more integer")
        for attempt in range(2):
            try:
                async with made.connect() as connection:
                    keys = list((await connection.execute(text, {"code": "LH"})).keys())
                    assert keys == ["code", "name", "founded", "more"]
            except sa.exc.DBAPIError:
                assert attempt == 0

    async def run() -> None:
        async with over_asyncpg(server) as made:
            await work(made)

    asyncio.run(run())


def test_pandas(server: Server) -> None:
    engine = sa.create_engine(server.url("psycopg"))
    frame = pd.DataFrame(
        {
            "n": [1, 2, 3],
            "x": [1.5, float("nan"), -2.25],
            "t": ["a", None, "ö"],
            "b": [True, False, True],
            "d": pd.to_datetime(["2024-02-29 01:02:03", None, "1999-12-31 00:00:00"]),
        }
    )
    try:
        frame.to_sql("frame", engine, index=False, if_exists="replace")
        found = pd.read_sql("SELECT * FROM frame ORDER BY n", engine)
        pd.testing.assert_frame_equal(found, frame, check_dtype=False, check_column_type=False)
        frame.to_sql("frame", engine, index=False, if_exists="replace")  # of one that is there
        pd.testing.assert_frame_equal(
            pd.read_sql("SELECT * FROM frame ORDER BY n", engine),
            *(frame,),
            check_dtype=False,
            check_column_type=False,
        )
        frame.to_sql("frame", engine, index=False, if_exists="append", method="multi")
        assert pd.read_sql("SELECT count(*) AS c FROM frame", engine)["c"].tolist() == [6]
        some = pd.read_sql(
            "SELECT n FROM frame WHERE n = ANY(%(wanted)s) ORDER BY n",
            engine,
            params={"wanted": [1, 3]},
        )
        assert some["n"].tolist() == [1, 1, 3, 3]
        assert len(pd.read_sql_table("frame", engine)) == 6
        with engine.connect() as connection:
            parts = list(pd.read_sql("SELECT n FROM frame", connection, chunksize=4))
            assert [len(part) for part in parts] == [4, 2]
    finally:
        with engine.begin() as connection:
            connection.execute(sa.text("DROP TABLE IF EXISTS frame"))
        assert not sa.inspect(engine).has_table("frame")
        engine.dispose()


def test_pandas_reads_in_chunks(engine: sa.Engine, many: str) -> None:
    with engine.connect().execution_options(stream_results=True) as connection:
        asked = sa.text(f"SELECT id, name FROM {many} ORDER BY id")
        chunks = list(pd.read_sql(asked, connection, chunksize=2000))
    assert [len(chunk) for chunk in chunks] == [2000, 2000, 1000]
    assert chunks[2]["name"].iloc[-1] == "n5000"
