"""Goal: the conversation answers as PostgreSQL does, message by message.

Method: transcripts that PostgreSQL itself is held to (see transcripts.py), sent whole, in single
bytes, and message by message.
"""

from __future__ import annotations

import random

import pytest

from tests.support.pgwire.small_session import Shared
from tests.support.pgwire.talk import Talk
from tests.support.pgwire.transcripts import TRANSCRIPTS, Transcript
from tests.support.pgwire.wire_words import said


@pytest.mark.parametrize("way", ["messages", "at once", "single bytes"])
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_answers_are_those_of_postgresql(transcript: Transcript, way: str) -> None:
    talk = Talk()
    data = b"".join(transcript.messages)
    parts = {
        "messages": list(transcript.messages),
        "at once": [data],
        "single bytes": [data[at : at + 1] for at in range(len(data))],
    }[way]
    assert " ".join(said(talk.send(*parts))) == transcript.answer
    assert not talk.defects
    talk.conversation.close()
    assert not talk.session.open_portals
    assert talk.shared.closed == 1


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("transcript", TRANSCRIPTS, ids=lambda transcript: transcript.name)
def test_in_a_hurry_a_message_is_gone_on_with_where_it_was(
    transcript: Transcript, seed: int
) -> None:
    """Any call of the session may wait; seed 0: each one does, the first time."""
    chance = random.Random(seed)
    before = [False]

    def reluctant() -> bool:
        before[0] = (not before[0]) if seed == 0 else chance.random() < 0.5
        return before[0]

    talk = Talk(shared=Shared(reluctant=reluctant))
    assert " ".join(said(talk.send_hurried(b"".join(transcript.messages)))) == transcript.answer
    assert not talk.defects
    talk.conversation.close()
    assert not talk.session.open_portals


def test_every_scenario_of_the_design_has_a_transcript() -> None:
    assert {t.scenario for t in TRANSCRIPTS} == {0, 81, 82, 83, 85, 86, 87}  # 84: below
