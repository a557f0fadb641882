"""Goal: what a backup gives back is what the database was, at every LSN and time; and what is not
whole, damaged or of another key is said so, by its name.

Method: a database in this process, with a full backup and increments of its log made while it is
written to; its contents at each LSN are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from leasehold.adapters.codec.records import MessagePackCodec
from leasehold.adapters.objects.folder import FolderObjects
from leasehold.adapters.objects.object_store import StoreObjects
from leasehold.adapters.sqlite.layout import LEVEL_LAYOUT, stored_layout
from leasehold.adapters.sqlite.store import SqliteStore
from leasehold.backup import create, one_table
from leasehold.backup.chain import NEWEST, Target, plan_restore
from leasehold.backup.create import create_full, create_increment
from leasehold.backup.manifest import (
    PRIVATE,
    Kind,
    Manifest,
    Place,
    StoredObject,
    manifest_name,
    write_private,
)
from leasehold.backup.new_log import position_in_new_log
from leasehold.backup.one_table import copy_table
from leasehold.backup.rebuild import Rebuilt, rebuild_from_file, rebuild_store
from leasehold.backup.repository import UNFINISHED_KEPT_US, Repository
from leasehold.backup.sources import FileSource
from leasehold.backup.store_file import open_file
from leasehold.backup.verify import verify_backups
from leasehold.dev.database import DevDatabase
from leasehold.model.errors import (
    BackupDamaged,
    ConfigurationError,
    DuplicateObject,
    LogStopped,
    UnknownTable,
)
from leasehold.model.records.log import LogPosition
from leasehold.replica.row_values import named
from leasehold.replication.log.identity import check_log
from tests.support.sql_session.sql_client import SqlClient, database_with

CODEC = MessagePackCodec()
SECRET = b"a key that nobody can guess, really"
Contents = Mapping[str, list[Mapping[str, Any]]]


NOWHERE = Place(0, 0, 0)
EMPTY = Manifest(
    *("b", Kind.FULL, "", "b", "d", "r1", "p", 1, NOWHERE, NOWHERE),
    private=StoredObject("private", 0, 0, ""),
)


class MemoryLog:
    """The log of a database in this process."""

    def __init__(self, database: DevDatabase) -> None:
        self._bus = database.cluster.bus
        self.name = database.cluster.topics.log.name

    def end_behind(self, position: LogPosition) -> int:
        first, end = self._bus.first(self.name), self._bus.end(self.name)
        digests = lambda begin, below: [  # noqa: E731 - of one use
            CODEC.digest(data) for _, data in self.records(begin, below)
        ]
        check_log(self.name, position, first, end, digests)
        return end

    def records(self, begin: int, end: int) -> Iterator[tuple[int, bytes]]:
        for message in self._bus.read(self.name, 0, begin):
            if message.offset < end:
                yield message.offset, message.value or b""


class World(NamedTuple):
    repository: Repository
    manifests: tuple[Manifest, ...]
    contents: Mapping[int, Contents]
    """By LSN."""
    times: Mapping[int, int]
    """The time of each LSN's commit."""
    asked: tuple[int, ...]
    """LSNs of the increments whose commits answer a request."""


def contents_of(path: Path) -> tuple[int, int, Contents]:
    """LSN, time and rows by table."""
    with open_file(path) as snapshot:
        found: Contents = {
            table.name: [
                named(table, row) for _, row in snapshot.scan(table, None, None, rows_max=1000)
            ]
            for table in snapshot.tables()
            if table.sequence is None
        }
        return snapshot.lsn, snapshot.position().commit_us, found


STEPS = (
    "INSERT INTO t VALUES (3, 'c')",
    "INSERT INTO t VALUES (4, 'd'), (5, 'e')",
    "UPDATE t SET b = 'z' WHERE a = 1",
    "CREATE TABLE u (k text PRIMARY KEY, n numeric)",
    "INSERT INTO u VALUES ('x', 1.50)",
    "DELETE FROM t WHERE a = 2",
    "ALTER TABLE t ADD COLUMN c int DEFAULT 7",
    "INSERT INTO t VALUES (9, 'i', 8)",
    "TRUNCATE u",
    "INSERT INTO u VALUES ('y', 2)",
)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """A full backup, then an increment after some of the steps, the last one after all."""
    place = tmp_path_factory.mktemp("place")
    repository = Repository(FolderObjects(place), SECRET)
    contents: dict[int, Contents] = {}
    times: dict[int, int] = {}
    asked: list[int] = []
    with (
        pytest.MonkeyPatch.context() as patch,
        database_with(
            tmp_path_factory,
            "CREATE TABLE t (a int PRIMARY KEY, b text)",
            "CREATE INDEX ON t (b)",
            "INSERT INTO t VALUES (1, 'a'), (2, 'b')",
        ) as database,
    ):
        patch.setattr(create, "PART_BYTES", 50_000)  # several parts
        client = SqlClient(database)
        store = database._folder / "r1" / "store.db"
        lsn, time_us, found = contents_of(store)
        contents[lsn], times[lsn] = found, time_us
        full = create_full(repository, FileSource(store), "d").manifest
        assert full.end.lsn == lsn
        newest, log = full, MemoryLog(database)
        for number, text in enumerate(STEPS):
            client.ask(text)
            lsn, time_us, found = contents_of(store)
            contents[lsn], times[lsn] = found, time_us
            if not text.startswith("ALTER"):
                asked.append(lsn)
            if number in (2, 6, len(STEPS) - 1):
                made = create_increment(repository, newest, log)
                assert made is not None
                newest = made.manifest
        client.session.close()
    return World(repository, repository.listing().manifests, contents, times, tuple(asked))


def rebuilt(world: World, path: Path, target: Target = NEWEST) -> Rebuilt:
    return rebuild_store(world.repository, plan_restore(world.manifests, target), path)


def test_a_store_comes_back_as_of_every_lsn_and_time(world: World, tmp_path: Path) -> None:
    """LSNs that are not known lie within a schema change."""
    assert len(world.manifests) == 4
    assert len(world.manifests[0].parts) > 1
    wrong = []
    last = max(world.contents)
    for lsn, wanted in world.contents.items():
        path = tmp_path / f"{lsn}.db"
        done = rebuilt(world, path, Target(lsn=lsn))
        found_lsn, time_us, found = contents_of(path)
        if (done.position.lsn, found_lsn, time_us, found) != (lsn, lsn, world.times[lsn], wanted):
            wrong.append(f"LSN {lsn}: {found}")
        if lsn == last or lsn % 4:
            continue  # (the backups' end is no later time)
        by_time = tmp_path / f"time-{lsn}.db"
        rebuilt(world, by_time, Target(time_us=max(world.times[lsn], done.position.time_us)))
        if contents_of(by_time)[2] != wanted:
            wrong.append(f"time of LSN {lsn}: {contents_of(by_time)}")
    assert wrong == []
    assert contents_of_newest(world, tmp_path) == world.contents[last]


def contents_of_newest(world: World, folder: Path) -> Contents:
    rebuilt(world, folder / "newest.db")
    return contents_of(folder / "newest.db")[2]


def test_an_lsn_within_a_record_ends_there(world: World, tmp_path: Path) -> None:
    """LSNs inside of batches and schema changes."""
    first, last = world.manifests[0].end.lsn, world.manifests[-1].end.lsn
    within = [lsn for lsn in range(first, last + 1) if lsn not in world.contents]
    assert within
    for lsn in within[::3]:
        done = rebuilt(world, tmp_path / f"{lsn}.db", Target(lsn=lsn))
        assert done.position.lsn == lsn


def test_outcomes_of_requests_come_back(world: World, tmp_path: Path) -> None:
    """Each request's commit has one, those of the increments, too."""
    rebuilt(world, tmp_path / "s.db")
    store = SqliteStore(tmp_path / "s.db")
    try:
        found = {outcome.lsn for outcome in store.oldest_outcomes(1_000)}
    finally:
        store.close()
    assert len(world.asked) > 5
    assert set(world.asked) <= found


OF_MANY_TYPES = (
    """CREATE TABLE m (a int, b text, n numeric(9,2), f double precision, r real, d date,
        ts timestamptz, u uuid, y bytea, j jsonb, ok boolean, l int[], s serial,
        g int GENERATED ALWAYS AS (a + 1) STORED, PRIMARY KEY (b, a))""",
    """INSERT INTO m VALUES (1, 'é"''x', 1.50, 'NaN', 0.1, '2026-11-28', '2026-11-28 21:15Z',
        '00000000-0000-0000-0000-000000000001', '\\x00ff', '{"k": [1, null]}', true, '{1,NULL}')""",
    "INSERT INTO m (a, b) VALUES (2, ''), (3, 'z')",
)


def test_one_table_comes_back_beside_the_living_one(
    world: World, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With values of many types, into a database in this process; by many requests."""
    with (
        pytest.MonkeyPatch.context() as patch,
        database_with(tmp_path_factory, *OF_MANY_TYPES) as database,
    ):
        patch.setattr(one_table, "ROWS_AT_ONCE", 2)
        client = SqlClient(database)
        store = tmp_path / "store.db"
        rebuild_from_file(database._folder / "r1" / "store.db", store)
        done = copy_table(store, "m", 'm "2"', Submitting(database).submit)
        assert (done.rows, done.name) == (3, 'm "2"')
        both = [client.ask(f"SELECT * FROM {name} ORDER BY a") for name in ("m", '"m ""2"""')]
        assert len(both[0]) == 3
        assert repr(both[0]) == repr(both[1])
        with pytest.raises(DuplicateObject):
            copy_table(store, "m", "m", Submitting(database).submit)
        with pytest.raises(UnknownTable):
            copy_table(store, "no", "m3", Submitting(database).submit)
        client.session.close()


class Submitting:
    """Change requests to a database in this process."""

    def __init__(self, database: DevDatabase) -> None:
        self._database = database

    def submit(self, request: Mapping[str, Any]) -> Submitted:
        return Submitted(self._database.ask(request).outcome)


class Submitted:
    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome

    def result(self, _: float = 0) -> Any:
        return self._outcome

    def ask_again(self) -> None:
        raise AssertionError("all outcomes are known")


def test_everything_is_verified(world: World) -> None:
    verdicts = verify_backups(world.repository, world.manifests)
    assert [(each.manifest.id, each.trouble) for each in verdicts] == [
        (manifest.id, "") for manifest in world.manifests
    ]
    assert {each.tables for each in verdicts} == {3}


def copied(world: World, secret: bytes | None = SECRET) -> Repository:
    """The same backups at another place, in memory."""
    place = StoreObjects.at("memory://")
    for name in world.repository.objects.names():
        place.put(name, world.repository.objects.get(name) or b"")
    return Repository(place, secret)


def test_a_damaged_object_is_named_whichever_it_is(world: World) -> None:
    """One byte of each object in turn, or all of it."""
    for number, name in enumerate(world.repository.objects.names()):
        there = copied(world)
        data = there.objects.get(name) or b""
        at = len(data) * 2 // 3
        if number % 2 and not name.endswith("manifest"):
            there.objects.remove(name)
        else:
            there.objects.put(name, data[:at] + bytes((data[at] ^ 4,)) + data[at + 1 :])
        listing = there.listing()
        verdicts = verify_backups(there, listing.manifests)
        words = " ".join(each.trouble for each in verdicts)
        words += " ".join(f"{left.id}/manifest {left.why}" for left in listing.unfinished)
        assert name in words, (name, words)
        rests = [each.id for each in world.manifests]
        sound = rests[: rests.index(name.partition("/")[0])]
        assert [each.manifest.id for each in verdicts if not each.trouble] == sound, name


def test_an_object_in_the_place_of_another_is_seen_without_a_key(tmp_path: Path) -> None:
    """It is whole, and of the same length: its digest alone tells."""
    there = Repository(FolderObjects(tmp_path))
    stored = there.put("b", "store-00000", b"rows of then", None)
    manifest = replace(EMPTY, id="b")
    assert there.read(manifest, stored, None) == b"rows of then"
    there.put("b", "store-00000", b"rows of that", None)
    with pytest.raises(BackupDamaged, match="b/store-00000 is damaged"):
        there.read(manifest, stored, None)


def test_another_key_or_none_is_said(world: World, tmp_path: Path) -> None:
    for secret, words in ((None, "is encrypted: give the key"), (b"x" * 32, "is not the one that")):
        there = copied(world, secret)
        plan = plan_restore(there.listing().manifests)
        with pytest.raises(ConfigurationError, match=words):
            rebuild_store(there, plan, tmp_path / "s.db")
        with pytest.raises(ConfigurationError, match=words):
            verify_backups(there, world.manifests)
        assert not (tmp_path / "s.db").exists()


def test_nothing_of_the_data_can_be_read_without_the_key(world: World) -> None:
    names = world.repository.objects.names()
    everything = b"".join(world.repository.objects.get(name) or b"" for name in names)
    assert b"CREATE TABLE" not in everything
    assert SECRET not in everything


def test_what_has_no_manifest_is_no_backup(world: World) -> None:
    there = copied(world)
    last = world.manifests[-1]
    there.objects.remove(manifest_name(last.id))
    listing = there.listing()
    assert [each.id for each in listing.manifests] == [m.id for m in world.manifests[:-1]]
    assert [(each.id, each.why) for each in listing.unfinished] == [(last.id, "")]
    assert plan_restore(listing.manifests).last.id == world.manifests[-2].id
    # It may be under way; once it is a day old it goes.
    assert there.prune(1, last.made_us) == []
    assert there.prune(1, last.made_us + 2 * UNFINISHED_KEPT_US) == [last.id]
    assert there.listing().unfinished == ()


def test_what_breaks_off_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At each of its objects in turn, the manifest among them."""
    rebuilt(world, tmp_path / "store.db")
    monkeypatch.setattr(create, "PART_BYTES", 120_000)
    puts = 0

    class Full(Exception): ...

    class Breaking(FolderObjects):
        left = 10**6

        def put(self, name: str, data: bytes) -> None:
            nonlocal puts
            puts += 1
            self.left -= 1
            if self.left < 0:
                raise Full
            super().put(name, data)

    objects = Breaking(tmp_path / "place")
    create_full(Repository(objects), FileSource(tmp_path / "store.db"), "d")
    whole, count = objects.names(), puts
    assert count >= 4
    for left in range(count):
        objects.left = left
        with pytest.raises(Full):
            create_full(Repository(objects), FileSource(tmp_path / "store.db"), "d")
        assert objects.names() == whole, left


def test_a_log_that_was_cut_off_takes_no_increment(
    world: World, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Neither one that begins behind the backup, nor one of another database."""
    with database_with(tmp_path_factory, "CREATE TABLE t (a int PRIMARY KEY)") as database:
        log = MemoryLog(database)
        there = copied(world)
        before = there.objects.names()
        with pytest.raises(LogStopped):
            create_increment(there, world.manifests[0], log)
        assert there.objects.names() == before


def test_a_restored_database_has_the_feature_level_of_before(world: World, tmp_path: Path) -> None:
    """And a backup says the layout that its store needs, whatever is the newest."""
    path = tmp_path / "s.db"
    restored = rebuild_store(world.repository, plan_restore(world.manifests), path).position
    assert position_in_new_log(restored, 2).feature_level == restored.feature_level > 0
    assert world.manifests[0].layout == stored_layout(path) == LEVEL_LAYOUT


def test_a_backup_of_a_newer_layout_is_refused(world: World, tmp_path: Path) -> None:
    newer = replace(world.manifests[0], layout=99)
    with pytest.raises(ConfigurationError, match="layout 99"):
        rebuild_store(world.repository, plan_restore((newer,)), tmp_path / "s.db")


def test_a_store_that_is_another_one_than_was_checked_is_damaged(
    world: World, tmp_path: Path
) -> None:
    """Whole by all digests, but its table's sum is not the manifest's."""
    there = copied(world)
    full = world.manifests[0]
    private = there.private(full)
    key = there.key_of(full)
    sums = tuple(each._replace(checksum="00") for each in private.tables)
    stored = there.put(full.id, PRIVATE, write_private(private._replace(tables=sums)), key)
    forged = replace(full, private=stored)
    with pytest.raises(BackupDamaged, match="has another checksum at LSN"):
        rebuild_store(there, plan_restore((forged,)), tmp_path / "s.db")
