"""Goal: a backup's files mean what was written, or are said to be damaged; whatever byte it is.

Method: manifests, objects and segments written and read back, with every byte changed once; places
of objects of each kind; a write that is broken off.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leasehold.adapters.objects import pace as pace_module
from leasehold.adapters.objects.folder import UNFINISHED, FolderObjects
from leasehold.adapters.objects.object_store import StoreObjects
from leasehold.adapters.objects.pace import Pace
from leasehold.adapters.objects.place import Objects, open_objects
from leasehold.backup.manifest import (
    FORMAT,
    Kind,
    Manifest,
    Place,
    Private,
    Segment,
    StoredObject,
    TableSum,
    backup_id,
    digest_of,
    read_manifest,
    read_private,
    write_manifest,
    write_private,
)
from leasehold.backup.sealing import Key, key_secret, pack, unpack
from leasehold.backup.segment import frame, read_frames
from leasehold.model.errors import BackupDamaged, BackupUnavailable, ConfigurationError

STORED = StoredObject("log-00000", 40, 90, "ab" * 32)
MANIFEST = Manifest(
    id="20261128T211500Z-log-abcdef",
    kind=Kind.LOG,
    parent="20261128T211400Z-full-abcdef",
    root="20261128T211400Z-full-abcdef",
    database="flights",
    source="flights.log",
    program="leasehold 0.1.0",
    made_us=1_795_900_500_000_000,
    begin=Place(4, 2, 7),
    end=Place(9, 5, 70),
    private=StoredObject("private", 1, 2, "cd"),
    segments=(Segment(STORED, Place(4, 2, 7), Place(9, 5, 70), 5),),
    salt="00ff",
    key_check="11",
)
SECRET = b"k" * 32
SALT = b"s" * 16


def no_random(count: int) -> bytes:
    return bytes(range(count))


# ---------------------------------------------------------------- the manifest


def test_a_manifest_is_read_as_it_was_written() -> None:
    full = replace(MANIFEST, kind=Kind.FULL, segments=(), parts=(STORED, STORED), store_bytes=7)
    for manifest in (MANIFEST, full):
        assert read_manifest(write_manifest(manifest), "m") == manifest
    assert full.objects == (full.private, STORED, STORED)
    assert full.size_bytes == 81


def test_every_changed_byte_of_a_manifest_is_seen() -> None:
    data = write_manifest(MANIFEST)
    with pytest.raises(BackupDamaged, match="the/manifest is damaged"):
        read_manifest(data[1:], "the/manifest")
    passed = []
    for at in range(len(data)):
        for changed in (data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :], data[:at]):
            try:
                read_manifest(changed, "the/manifest")
            except BackupDamaged:
                continue
            passed.append(at)
    assert passed == []


def test_a_field_of_a_newer_release_is_passed_over_and_a_newer_format_is_not() -> None:
    data = write_manifest(MANIFEST)
    text = data.rsplit(b"\n", 2)[0].replace(b'"begin"', b'"aftermath": [1],\n "begin"')
    assert read_manifest(text + b"\n" + digest_of(text).encode() + b"\n", "m") == MANIFEST
    newer = text.replace(b'"format": %d' % FORMAT, b'"format": %d' % (FORMAT + 1))
    with pytest.raises(ConfigurationError, match=f"format {FORMAT + 1}.*{FORMAT} at most"):
        read_manifest(newer + b"\n" + digest_of(newer).encode() + b"\n", "m")


@pytest.mark.parametrize("name", ["", "../other", "a/b", "..", ".hidden", "a\\b"])
def test_a_manifest_names_nothing_outside_its_own_folder(name: str) -> None:
    """Whoever may write to the place could have files of somebody else's removed or read."""
    foreign = replace(MANIFEST, private=STORED._replace(name=name))
    with pytest.raises(BackupDamaged, match="name of no object"):
        read_manifest(write_manifest(foreign), "m")


def test_what_is_private_is_read_as_it_was_written() -> None:
    private = Private(b"\x00\xff", (TableSum(7, "flüge", 3, "aa"),))
    assert read_private(write_private(private), "p") == private
    for wrong in (
        b"",
        b"{}",
        b'{"position": "zz", "tables": []}',
        b'{"position": "", "tables": [1]}',
    ):
        with pytest.raises(BackupDamaged):
            read_private(wrong, "p")


def test_ids_are_in_the_order_of_time() -> None:
    first = backup_id(1_795_900_500_000_000, Kind.LOG, b"\xff" * 4)
    second = backup_id(1_795_900_501_000_000, Kind.FULL, b"\x00" * 4)
    assert first < second
    assert first.endswith("-log-ffffff")


# ---------------------------------------------------------------- objects


def test_every_changed_byte_of_a_sealed_object_is_seen() -> None:
    key = Key(SECRET, SALT)
    data = pack(b"rows " * 20, "b/store-00000", key, no_random)
    assert unpack(data, "b/store-00000", key, 100) == b"rows " * 20
    assert b"rows" not in data
    passed = []
    for at in range(len(data)):
        for changed in (data[:at] + bytes((data[at] ^ 1,)) + data[at + 1 :], data[:at]):
            try:
                unpack(changed, "b/store-00000", key, 100)
            except BackupDamaged:
                continue
            passed.append(at)
    assert passed == []


def test_an_object_can_not_take_anothers_place() -> None:
    key = Key(SECRET, SALT)
    data = pack(b"rows", "b/store-00000", key, no_random)
    open_data = pack(b"rows", "b/store-00000", None, no_random)
    other_key, other_salt = Key(b"l" * 32, SALT), Key(SECRET, b"t" * 16)
    cases = {
        "another name": (data, "b/store-00001", key),
        "another backup": (data, "c/store-00000", key),
        "another key": (data, "b/store-00000", other_key),
        "another salt": (data, "b/store-00000", other_salt),
        "in the clear where all is sealed": (open_data, "b/store-00000", key),
    }
    taken = []
    for words, (given, name, with_key) in cases.items():
        try:
            unpack(given, name, with_key, 4)
        except BackupDamaged:
            continue
        taken.append(words)
    assert taken == []
    with pytest.raises(ConfigurationError, match="is encrypted: give the key file"):
        unpack(data, "b/store-00000", None, 4)
    with pytest.raises(BackupDamaged, match="holds 4 bytes where 3 were put"):
        unpack(open_data, "b/store-00000", None, 3)


def test_a_key_is_known_again_and_shows_nothing() -> None:
    key = Key(SECRET, SALT)
    assert key.is_of(Key(SECRET, SALT).check)
    assert not key.is_of(Key(b"l" * 32, SALT).check)
    assert not key.is_of(Key(SECRET, b"t" * 16).check)
    assert SECRET.decode() not in repr(key)
    assert key_secret(b"  " + SECRET + b"\n", "f") == SECRET
    for wrong in (b"", b"k" * 31, b"k" * 5000):
        with pytest.raises(ConfigurationError, match="openssl rand"):
            key_secret(wrong, "f")


def test_a_segment_is_read_as_it_was_written_or_ends_within_a_record() -> None:
    records = [(5, b"abc"), (6, b""), (9, b"x" * 300)]
    data = b"".join(frame(*record) for record in records)
    assert list(read_frames(data, "s")) == records
    whole = {0, 15, 27}
    for at in range(len(data)):
        if at not in whole:
            with pytest.raises(BackupDamaged, match="ends within"):
                list(read_frames(data[:at], "s"))


# ---------------------------------------------------------------- places


def places(folder: Path) -> list[Objects]:
    return [
        FolderObjects(folder / "a"),
        StoreObjects.at("memory://"),
        StoreObjects.at((folder / "b").as_uri()),
    ]


def test_each_kind_of_place_keeps_objects(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    for place in places(tmp_path):
        assert place.names() == [], place.where
        place.put("x/one", b"1")
        place.put("x/two", b"2")
        place.put("x/one", b"again")
        assert (place.get("x/one"), place.get("x/no")) == (b"again", None), place.where
        assert place.names() == ["x/one", "x/two"], place.where
        place.remove("x/one")
        place.remove("x/one")
        assert place.names() == ["x/two"], place.where


def test_an_object_of_a_folder_is_whole_or_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is killed where the file is written, but not yet in its place."""
    place = FolderObjects(tmp_path)
    place.put("x/one", b"before")

    class Killed(BaseException): ...

    def killed(*_: object) -> None:
        raise Killed

    monkeypatch.setattr(Path, "replace", killed)
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    with pytest.raises(Killed):
        place.put("x/one", b"after")
    monkeypatch.undo()
    assert place.get("x/one") == b"before"
    assert place.names() == ["x/one"]
    assert list((tmp_path / "x").glob(f"{UNFINISHED}*"))


def test_files_are_for_their_user_alone(tmp_path: Path) -> None:
    FolderObjects(tmp_path / "new").put("x/one", b"1")
    assert (tmp_path / "new" / "x" / "one").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "new" / "x").stat().st_mode & 0o077 == 0


def test_a_place_that_can_not_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = FolderObjects(tmp_path / "file")
    with pytest.raises(BackupUnavailable, match=r"file: x/one can't be written \(Not a directory"):
        place.put("x/one", b"1")
    with pytest.raises(ConfigurationError, match="ftp://x/y is no place for backups"):
        open_objects("ftp://x/y")
    assert isinstance(open_objects("some/folder"), FolderObjects)
    assert isinstance(open_objects("file:///some/folder"), FolderObjects)


def test_a_pace_makes_bytes_wait_for_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands still, so each waits behind all before it."""
    waited: list[float] = []
    monkeypatch.setattr(pace_module, "boottime_ns", lambda: 7)
    pace = Pace(1_000_000)
    monkeypatch.setattr(pace._pause, "wait", waited.append)
    for _ in range(3):
        pace.spend(500_000)
    assert waited == [0.0, 0.5, 1.0]
    Pace().spend(1 << 60)  # without a limit
