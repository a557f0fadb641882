"""What an import asks the node that it reads, and when."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from leasehold.adapters.postgres.client import SqlConnection
from leasehold.model.errors import DuplicateConstraint
from leasehold.model.records.requests import Outcome
from leasehold.pgwire.messages.client_replies import Row, Said
from leasehold.transfer.target import Target


class LateNode:
    """A connection to a node that knows of a name only behind a barrier of its own."""

    def __init__(self) -> None:
        self._knows = False

    def ask(self, text: str) -> Iterator[Said]:
        if "LINEARIZABLE" in text:
            self._knows = True
        elif self._knows:
            yield Row((text,))

    def close(self) -> None:
        pass


class Refusing:
    """Sends requests to a master that has the name already."""

    def submit(self, _: Any) -> Refusing:
        return self

    def result(self, _: float = 0) -> Outcome:
        return Outcome(1, 0, 0, 0, True, DuplicateConstraint.sqlstate, "it exists")

    def ask_again(self) -> Refusing:
        return self


def test_what_a_refusal_rests_on_can_be_read() -> None:
    target = Target(Refusing(), lambda: cast("SqlConnection", LateNode()))
    assert target.rows("the name") == []
    with pytest.raises(DuplicateConstraint):
        target.apply((), "ALTER TABLE t ADD CONSTRAINT c CHECK (n > 0)")
    assert target.rows("the name") == [("the name",)]
