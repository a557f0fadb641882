"""What Redis says, cut at every place; and what is no reply."""

from __future__ import annotations

import random
from typing import Any

import pytest

from leasehold.adapters.redis.resp import (
    REPLY_BYTES_MAX,
    Failure,
    Malformed,
    Replies,
    pack_command,
)

KEPT = 1_024
"""More or less of a reply that is too large."""
SAID = (
    b"+OK\r\n:3\r\n:-1\r\n$5\r\na\r\nbc\r\n$0\r\n\r\n$-1\r\n"
    b"-NOPERM no channel\r\n*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\n\x00\xff\r\n\r\n*0\r\n:0\r\n"
)
MEANT: list[Any] = [
    b"OK",
    3,
    -1,
    b"a\r\nbc",
    b"",
    None,
    "NOPERM no channel",
    [b"message", b"c", b"\x00\xff\r\n"],
    [],
    0,
]


@pytest.mark.parametrize("first", range(len(SAID)))
def test_replies_are_the_same_wherever_the_bytes_are_cut(first: int) -> None:
    for second in range(first, len(SAID), 7):
        replies = Replies()
        parts = (SAID[:first], SAID[first:second], SAID[second:])
        found = [value for part in parts for value in replies.take(part)]
        assert found == MEANT
        assert [isinstance(value, Failure) for value in found].index(True) == 6


@pytest.mark.parametrize(
    "data",
    [
        b"?3\r\n",
        b"\r\n",
        b":three\r\n",
        b":1_0\r\n",
        b":%b\r\n" % (b"9" * 5_000),
        b"$9999999999999999999\r\n",
        b"*4294967296\r\n",
        b"*1\r\n*1\r\n:1\r\n",
        b"*65\r\n" + b":1\r\n" * 65,
        b"*1\r\n" * REPLY_BYTES_MAX,
        b"*100000\r\n" + b":1\r\n" * REPLY_BYTES_MAX,
        b"+" + b"x" * (REPLY_BYTES_MAX + KEPT),
        b"$%d\r\n" % (2 * REPLY_BYTES_MAX) + b"x" * (REPLY_BYTES_MAX + KEPT),
        b"*2\r\n$60000\r\n" + b"x" * 60_000 + b"\r\n$60000\r\n" + b"x" * 10_000,
    ],
)
def test_what_is_no_reply_or_too_large_ends_the_connection(data: bytes) -> None:
    with pytest.raises(Malformed):
        Replies().take(data)


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_are_read_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    replies = Replies()
    alphabet = b"+-:$*0123\r\n\x00a"
    try:
        for _ in range(20):
            replies.take(bytes(rng.choice(alphabet) for _ in range(rng.randrange(40))))
    except Malformed:
        pass


def test_a_command_is_its_words_with_their_lengths() -> None:
    assert (
        pack_command(b"PUBLISH", b"c", b"\r\n")
        == b"*3\r\n$7\r\nPUBLISH\r\n$1\r\nc\r\n$2\r\n\r\n\r\n"
    )


def test_what_is_read_is_not_kept() -> None:
    """However much comes by one connection, only what is not whole yet is in memory."""
    replies, one = Replies(), b"$1000\r\n%b\r\n" % (b"x" * 1_000)
    for _ in range(3 * REPLY_BYTES_MAX // len(one)):
        assert replies.take(one[:700]) == []
        assert replies.take(one[700:]) == [b"x" * 1_000]
