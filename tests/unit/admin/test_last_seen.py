"""Goal: a node that died is found by its last word, whatever others have said since."""

from __future__ import annotations

import pytest

from leasehold.admin.last_seen import last_heard

SIZE = 100
NODES = ("m1", "r1", "r2")


class Said:
    """A topic of who spoke, and how much of it was read."""

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self.windows = 0

    def window(self, offset: int) -> dict[str, int]:
        self.windows += 1
        said = self.names[offset : offset + SIZE]
        return {name: offset + number for number, name in enumerate(said)}

    def last_heard(self, first: int = 0) -> dict[str, int]:
        tail = max(first, len(self.names) - SIZE)
        return last_heard(self.window, SIZE, first, tail, self.window(tail))


def spoken(until: dict[str, int], records: int) -> list[str]:
    """In turn, each until its record; `m1` says the rest."""
    turn = [
        name
        for number in range(records)
        for name in NODES
        if name == "m1" or number < until.get(name, 0)
    ]
    return turn[:records]


@pytest.mark.parametrize("death", [1, 7, 99, 150, 640, 3_000, 9_000])
def test_the_last_word_of_one_who_fell_silent_is_found(death: int) -> None:
    said = Said(spoken({"r1": death}, 20_000))
    last = max(offset for offset, name in enumerate(said.names) if name == "r1")
    found = said.last_heard()
    assert found == {"r1": last}
    assert said.windows < 20, "by halves, not one after the other"


def test_each_has_a_last_word_of_its_own() -> None:
    said = Said(spoken({"r1": 400, "r2": 5_000}, 20_000))
    assert said.last_heard() == {
        name: max(offset for offset, each in enumerate(said.names) if each == name)
        for name in ("r1", "r2")
    }


def test_who_still_speaks_is_not_looked_for() -> None:
    said = Said(["m1", "r1"] * 5_000)
    assert said.last_heard() == {}


@pytest.mark.parametrize("records", [0, 1, SIZE - 1, SIZE])
def test_nothing_lies_before_a_short_topics_tail(records: int) -> None:
    said = Said(["m1"] * records)
    assert said.last_heard() == {}
    assert said.windows == 1, "the tail's own"


def test_what_was_deleted_is_not_asked_for() -> None:
    said = Said(spoken({"r1": 300, "r2": 4_000}, 20_000))
    asked: list[int] = []
    plain = said.window

    def window(offset: int) -> dict[str, int]:
        asked.append(offset)
        return plain(offset)

    first = 5_000
    found = last_heard(window, SIZE, first, 19_900, {"m1"})
    assert set(found) == {"r2"}
    assert min(asked) == first
