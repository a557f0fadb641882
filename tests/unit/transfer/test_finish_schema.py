"""Goal: an import that goes on behind one that was cut off takes over the indexes which that one's
jobs have made, or are making, and makes those that come to nothing itself.

Method: a target whose job ends as a story says, looked at again and again.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final

import pytest

from leasehold.model.errors import DuplicateObject
from leasehold.transfer import postgres_import
from leasehold.transfer.postgres_import import Options, PostgresImport

INDEX: Final = "by_body"


class Target:
    """A target in which a job makes the index for `looks` looks at it; then the index is there, or
    (`fails`) the job has failed. `taken`: the name is something else's, for good."""

    def __init__(self, looks: int, *, fails: bool = False, taken: bool = False) -> None:
        self.looks, self.fails, self.taken = looks, fails, taken
        self.asked = 0
        self.made = False

    @property
    def _is_there(self) -> bool:
        return self.made or (self.looks <= 0 and not self.fails and not self.taken)

    def run_schema_change(self, _text: str, _note: Any) -> None:
        self.asked += 1
        if self.looks > 0 or self._is_there or self.taken:
            raise DuplicateObject(f"'{INDEX}' exists already, or is being made")
        self.made = True

    def has_job(self, _table: str) -> bool:
        self.looks -= 1
        return self.looks >= 0 and not self.taken

    def rows(self, _query: str) -> list[tuple[str]]:
        return [(INDEX,)] if self._is_there else []


def finish(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_import, "look_pauses", lambda: iter([0.0] * 20))
    told = SimpleNamespace(note=lambda _: None)
    importing = PostgresImport(None, target, Options("i"), told)  # type: ignore[arg-type]
    importing._make("t", INDEX, "create index by_body on t (body)")


@pytest.mark.parametrize("looks", range(1, 6))
def test_a_job_that_is_making_it_is_waited_for(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(looks)
    finish(target, monkeypatch)
    assert not target.made
    assert target.looks <= 0


@pytest.mark.parametrize("looks", range(1, 6))
def test_what_a_job_fails_to_make_is_made(looks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(looks, fails=True)
    finish(target, monkeypatch)
    assert target.made


def test_a_name_that_is_taken_for_good_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    target = Target(0, taken=True)
    with pytest.raises(DuplicateObject):
        finish(target, monkeypatch)
    assert target.asked == 2
