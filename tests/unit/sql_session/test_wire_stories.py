"""Goal: whole sessions behind the protocol answer as PostgreSQL does.

Method: the stories that a real PostgreSQL is held to in `tests/integration/test_wire_and_postgres`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasehold.dev.database import DevDatabase
from tests.support.pgwire.wire_words import query, said
from tests.support.sql_session.wire_stories import MADE, STORIES, Story
from tests.unit.sql_session.test_wire_cursors import Talk


@pytest.fixture
def talk(database: DevDatabase) -> Iterator[Talk]:
    made = Talk(database)
    for text in MADE:
        made.send(query(text))
    yield made
    made.conversation.close()
    assert not made.defects
    assert made.session._cursors.room.bytes_taken == 0


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_stories(story: Story, talk: Talk) -> None:
    for turn in story.turns:
        assert " ".join(said(talk.send(*turn.messages))) == turn.answer, turn.said
