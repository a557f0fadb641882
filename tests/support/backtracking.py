"""What Python's `re` does with a text, counted: each character that it looks at is a step.

`steps_of` runs a pattern as `re` would, back and forth; `pumped_texts` makes, from the pattern's
own parse tree, the texts on which going back costs most: a repeat's body many times over, with
something behind it that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

Rest = Callable[[int], bool]
STEPS_MAX = 100_000
"""Where counting ends: of a text of some hundred characters that is not linear."""
_UNENDING = 40
"""A repeat that may be longer than this is pumped."""
_LIKELY_ENDS = "(!x'\"\\ ;\n0.-"
_ENDS_MAX = 4
_BODIES_MAX = 8
_PROBES = [chr(n) for n in range(128)] + ["\x80", "\xe9", "\u3042"]


class _TooManySteps(Exception):
    pass


class _Walk:
    """One run over `text`. A node's matcher is called with a place and what is to match behind."""

    def __init__(self, text: str, flags: int) -> None:
        self.text = text
        self.flags = flags
        self.steps = 0
        self.groups: dict[int, tuple[int, int]] = {}

    def _step(self) -> None:
        self.steps += 1
        if self.steps > STEPS_MAX:
            raise _TooManySteps

    def sequence(self, nodes: list[Any], number: int, at: int, rest: Rest) -> bool:
        if number == len(nodes):
            return rest(at)
        operation, given = nodes[number]
        return self.node(
            operation, given, at, lambda end: self.sequence(nodes, number + 1, end, rest)
        )

    def node(self, operation: Any, given: Any, at: int, rest: Rest) -> bool:
        self._step()
        if operation in _ONE_CHARACTER:
            fits = at < len(self.text) and _fits(operation, given, self.flags, self.text[at])
            return fits and rest(at + 1)
        if operation is codes.AT:
            return self._is_at(given, at) and rest(at)
        if operation is codes.SUBPATTERN:
            return self._group(given, at, rest)
        if operation is codes.BRANCH:
            return any(self.sequence(list(branch), 0, at, rest) for branch in given[1])
        if operation is codes.MAX_REPEAT:
            return self._repeat(given, at, 0, rest)
        if operation is codes.MIN_REPEAT:
            return self._few(given, at, 0, rest)
        if operation is codes.POSSESSIVE_REPEAT:
            return self._possessive(given, at, rest)
        if operation is codes.ATOMIC_GROUP:
            end = self._first_end(list(given), at)
            return end is not None and rest(end)
        if operation in (codes.ASSERT, codes.ASSERT_NOT):
            assert given[0] == 1, "looking behind is not counted"
            found = self._first_end(list(given[1]), at) is not None
            return found == (operation is codes.ASSERT) and rest(at)
        if operation is codes.GROUPREF:
            start, end = self.groups.get(given, (0, 0))
            self.steps += end - start
            return self.text.startswith(self.text[start:end], at) and rest(at + end - start)
        raise AssertionError(f"{operation} is not counted")

    def _is_at(self, where: Any, at: int) -> bool:
        if where in (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING):
            before = at and self.flags & re.MULTILINE and self.text[at - 1] == "\n"
            return at == 0 or bool(before)
        if where in (codes.AT_END, codes.AT_END_STRING):
            return at == len(self.text) or self.text[at:] == "\n"
        return True  # a word's boundary costs a step wherever it stands

    def _group(self, given: Any, at: int, rest: Rest) -> bool:
        number, _, _, nodes = given

        def behind(end: int) -> bool:
            if number is not None:
                self.groups[number] = (at, end)
            return rest(end)

        return self.sequence(list(nodes), 0, at, behind)

    def _first_end(self, nodes: list[Any], at: int) -> int | None:
        ends: list[int] = []
        self.sequence(nodes, 0, at, lambda end: not ends.append(end))  # type: ignore[func-returns-value]
        return ends[0] if ends else None

    def _repeat(self, given: Any, at: int, count: int, rest: Rest) -> bool:
        least, most, nodes = given
        if count < most and self.sequence(
            list(nodes),
            0,
            at,
            lambda end: end > at and self._repeat(given, end, count + 1, rest),
        ):
            return True
        return count >= least and rest(at)

    def _few(self, given: Any, at: int, count: int, rest: Rest) -> bool:
        least, most, nodes = given
        if count >= least and rest(at):
            return True
        return count < most and self.sequence(
            list(nodes), 0, at, lambda end: end > at and self._few(given, end, count + 1, rest)
        )

    def _possessive(self, given: Any, at: int, rest: Rest) -> bool:
        least, most, nodes = given
        count = 0
        while count < most:
            end = self._first_end(list(nodes), at)
            if end is None or end == at:
                break
            at, count = end, count + 1
        return count >= least and rest(at)


_ONE_CHARACTER = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN, codes.CATEGORY)


@cache
def _fits_text(source: Any, flags: int, character: str) -> bool:
    operation, given = source
    state = parser.State()
    state.flags = flags
    state.str = ""
    given = list(given) if operation is codes.IN else given
    pattern = parser.SubPattern(state, [(operation, given)])
    compiled = re._compiler.compile(pattern, flags)  # type: ignore[attr-defined]
    return compiled.fullmatch(character) is not None


def _fits(operation: Any, given: Any, flags: int, character: str) -> bool:
    kept = tuple(given) if operation is codes.IN else given
    return _fits_text((operation, kept), flags, character)


def _as_text(pattern: str | bytes) -> str:
    return pattern if isinstance(pattern, str) else pattern.decode("latin-1")


def steps_of(pattern: str | bytes, flags: int, text: str, *, searches: bool) -> int:
    """Steps that a match takes; of one that searches, all matches one behind the other."""
    # Of bytes the flag for ASCII stands for itself; a text's is never read from bytes.
    tree = parser.parse(_as_text(pattern), flags)
    walk = _Walk(text, tree.state.flags)
    whole: list[int] = []

    def ends(end: int) -> bool:
        whole.append(end)
        return True

    try:
        if not searches:
            walk.sequence(list(tree), 0, 0, lambda end: end == len(text))
            return walk.steps
        at = 0
        while at <= len(text):
            whole.clear()
            walk.sequence(list(tree), 0, at, ends)
            at = max(whole[0], at + 1) if whole else at + 1
    except _TooManySteps:
        pass
    return walk.steps


# ------------------------------------------------------------------ the worst texts


def pumped_texts(pattern: str | bytes, flags: int, times: int) -> Iterator[str]:
    """Texts in which one repeat of the pattern goes on for `times` turns."""
    tree = parser.parse(_as_text(pattern), flags)
    flags = tree.state.flags
    seen: set[str] = set()
    for before, nodes in _repeats(list(tree), "", flags):
        ends = _ends(nodes, flags)
        for body in dict.fromkeys(_samples(nodes, flags)[:_BODIES_MAX]):
            for end in ends:
                text = before + body * times + end
                if body and text not in seen:
                    seen.add(text)
                    yield text


def _ends(nodes: list[Any], flags: int) -> list[str]:
    """What can't go on with such a body, alone and with more behind it."""
    begins = {body[:1] for body in _samples(nodes, flags)}
    operation, given = nodes[0]
    others = [
        c
        for c in _LIKELY_ENDS
        if c not in begins
        and not (operation in _ONE_CHARACTER and _fits(operation, given, flags, c))
    ][:_ENDS_MAX]
    return ["", "\x00", *others, *(c + "x" for c in others[:1])]


def _repeats(nodes: list[Any], before: str, flags: int) -> Iterator[tuple[str, list[Any]]]:
    """Each repeat without an end, and a text that leads to it."""
    for operation, given in nodes:
        if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            if given[1] > _UNENDING:
                yield before, list(given[2])
            yield from _repeats(list(given[2]), before, flags)
        elif operation is codes.SUBPATTERN:
            yield from _repeats(list(given[3]), before, flags)
        elif operation is codes.ATOMIC_GROUP:
            yield from _repeats(list(given), before, flags)
        elif operation in (codes.ASSERT, codes.ASSERT_NOT):
            yield from _repeats(list(given[1]), before, flags)
        elif operation is codes.BRANCH:
            for branch in given[1]:
                yield from _repeats(list(branch), before, flags)
        before += _samples([(operation, given)], flags)[0]


def _samples(nodes: list[Any], flags: int) -> list[str]:
    """Some texts that these match, the shortest of each way through them."""
    found = [""]
    for operation, given in nodes:
        found = [a + b for a, b in product(found, _of_node(operation, given, flags))][:60]
    return found


def _of_node(operation: Any, given: Any, flags: int) -> list[str]:
    if operation in _ONE_CHARACTER:
        fitting = [c for c in _PROBES if _fits(operation, given, flags, c)] or ["\U0001f600"]
        liked = [c for c in " a0.'\"\\-_,(A\n/x" if c in fitting]
        return (liked or fitting)[:8]
    if operation is codes.SUBPATTERN:
        return _samples(list(given[3]), flags)
    if operation is codes.ATOMIC_GROUP:
        return _samples(list(given), flags)
    if operation is codes.BRANCH:
        return [text for branch in given[1] for text in _samples(list(branch), flags)]
    if operation in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        bodies = _samples(list(given[2]), flags)
        least = given[0]
        return [body * least for body in bodies] if least else ["", *bodies][:8]
    return [""]
