"""Goal: whoever is stopped in a log that has lost its end says so, and to keep the stores: to take
a snapshot would throw away what may be the last copy.

Method: answers of a broker by hand.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest

from leasehold.adapters.kafka.log_identity import explain_stop
from leasehold.model.errors import BusUnavailable, LogStopped
from leasehold.model.records.log import LogPosition
from leasehold.replication.log.identity import LogIdentity

POSITION = LogPosition(epoch=3, lsn=40, offset=20)
MET = LogStopped("offset 20 is not there", topic="demo.log")


def explained(offsets: Any) -> str:
    reader = Mock()
    reader.offsets.side_effect = [offsets]
    admin = Mock()
    admin.topic_id.return_value = "one"
    found = explain_stop(MET, LogIdentity(0), admin, reader, "demo.log", POSITION)
    return found.message


@pytest.mark.parametrize(
    ("offsets", "words"),
    [
        ((0, 19), "has only 19: the broker lost acknowledged records"),
        ((21, 30), "what lies between was deleted; start it from a snapshot"),
        ((0, 20), MET.message),
        ((5, 90), MET.message),
        (BusUnavailable("no answer"), MET.message),
    ],
)
def test_l2_it_is_told_what_became_of_the_log(offsets: Any, words: str) -> None:
    assert words in explained(offsets)


def test_l2_a_lost_end_says_to_keep_the_stores() -> None:
    words = explained((0, 3))
    assert "docs/how-to/recover-a-lost-log.md" in words
    assert "keep them" in words
    assert "snapshot" not in words
