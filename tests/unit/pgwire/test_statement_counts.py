"""Goal: statements of clients are counted and timed by kind, failures by their code.

Method: a conversation over a small session, and a clock that the test moves.
"""

from __future__ import annotations

import itertools

from leasehold.model import metrics
from leasehold.model.measures import Measures
from leasehold.pgwire.conversation import Conversation
from leasehold.pgwire.limits import Limits
from tests.support.pgwire.small_session import Shared, SmallSession
from tests.support.pgwire.wire_words import SYNC, bind, execute, parse, query

MS = 1_000_000


def conversation(measures: Measures) -> Conversation:
    clock = itertools.count(0, 3 * MS)  # 3 ms pass between two looks
    made = Conversation(
        SmallSession(Shared()),
        lambda _: None,
        Limits(),
        lambda _: None,
        measures,
        lambda: next(clock),
    )
    made.begin(7, b"key!")
    return made


def test_a_statement_counts_when_it_is_complete_by_the_word_of_its_tag() -> None:
    measures = Measures()
    talk = conversation(measures)
    talk.receive(query("select 1"))
    talk.receive(parse("select 1", "s"))
    talk.receive(SYNC)
    assert measures.value(metrics.STATEMENTS, ("select",)) == 1
    talk.receive(bind(name="s") + execute() + SYNC)
    assert measures.value(metrics.STATEMENTS, ("select",)) == 2
    times = measures.distribution(metrics.STATEMENT_S, ("select",))
    assert sum(times.counts) == 2
    assert times.total == 0.006


def test_what_fails_counts_by_its_code_and_not_as_a_statement() -> None:
    measures = Measures()
    talk = conversation(measures)
    talk.receive(query("fail"))
    failed = {s.labels: s.value for s in measures.samples() if s.metric is metrics.STATEMENT_ERRORS}
    assert sum(value for value in failed.values() if isinstance(value, int)) == 1
    assert not [s for s in measures.samples() if s.metric is metrics.STATEMENTS]
