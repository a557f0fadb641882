"""Files of change requests, whole and broken: what is no request is told and hides no other one."""

from __future__ import annotations

import io

import msgpack
import pytest

from leasehold.cli.request_file import LINE_BYTES_MAX, FileRequest, read_requests

GOOD = {"table": "t", "op": "delete", "key": {"id": 1}}
OBJECT: bytes = msgpack.packb(GOOD)
LINE = b'{"table": "t", "op": "delete", "key": {"id": 1}}\n'
LONG = 20 * 1024 * 1024


def read(data: bytes, *, as_json: bool) -> list[FileRequest]:
    return list(read_requests(io.BytesIO(data), as_json=as_json))


@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_is_no_request(as_json: bool) -> None:
    assert read(b"", as_json=as_json) == []


@pytest.mark.parametrize("left", range(1, len(OBJECT)))
def test_an_object_that_the_file_ends_in_is_told(left: int) -> None:
    found = read(OBJECT * 2 + OBJECT[:left], as_json=False)
    assert [each.fields for each in found] == [GOOD, GOOD, None]
    assert found[-1].where == "object 3"
    assert "cut short" in found[-1].error


def test_whole_objects_are_all_there_is() -> None:
    found = read(OBJECT * 50_000, as_json=False)
    assert len(found) == 50_000
    assert all(each.fields == GOOD for each in found)
    assert found[-1].bytes_read == len(OBJECT) * 50_000


def test_what_is_no_object_hides_none_behind_it() -> None:
    others = b"".join(msgpack.packb(each) for each in (5, [1], None, {1: 2}))
    found = read(others + OBJECT, as_json=False)
    assert [each.fields for each in found] == [None] * 4 + [GOOD]


@pytest.mark.parametrize("broken", [b"\xc1", msgpack.packb({"x": b"a" * LONG})])
def test_where_reading_ends_it_says_so(broken: bytes) -> None:
    found = read(OBJECT + broken + OBJECT, as_json=False)
    assert [each.fields for each in found] == [GOOD, None]
    assert found[-1].error.endswith("nothing behind it was read")


def test_a_line_that_is_too_long_is_told_and_the_next_is_read() -> None:
    data = b'{"x": "' + b"a" * LONG + b'"}\n'
    found = read(LINE + data + LINE, as_json=True)
    assert [each.fields for each in found] == [GOOD, None, GOOD]
    assert found[1].error == f"is longer than {LINE_BYTES_MAX} bytes"
    assert found[2].where == "line 3"
    assert found[2].bytes_read == len(data) + 2 * len(LINE)


def test_a_last_line_that_is_too_long_ends_the_file() -> None:
    found = read(LINE + b"a" * LONG, as_json=True)
    assert [each.fields for each in found] == [GOOD, None]
