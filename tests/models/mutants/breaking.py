"""Breaks rules of the library for a while: what keeps a rule is replaced by what does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from typing import Any, Final
from unittest.mock import patch

Replacement = Callable[..., Any]
"""Called with what it stands for, then with the arguments of that."""


class Breaks:
    """By the name of a rule, what breaks it."""

    def __init__(self) -> None:
        self._of: Final[dict[str, list[tuple[Any, str, Replacement]]]] = {}

    def __call__(self, rule: str, owner: Any, name: str) -> Callable[[Replacement], Replacement]:
        """The decorated function stands for that method, property, or function of a
        module, while the rule is broken."""
        assert hasattr(owner, name), f"{owner}.{name}"

        def register(replacement: Replacement) -> Replacement:
            self._of.setdefault(rule, []).append((owner, name, replacement))
            return replacement

        return register

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(self._of)

    def broken_in(self, rules: Any) -> AbstractContextManager[None]:
        """Those that are off in these dataclasses."""
        return self.broken(names_off(rules) & self.rules)

    @contextmanager
    def broken(self, rules: frozenset[str]) -> Iterator[None]:
        with ExitStack() as stack:
            for rule in sorted(rules):
                for owner, name, replacement in self._of[rule]:
                    kept: Any = getattr(owner, name)
                    other: Any = _method(replacement, kept)
                    if isinstance(kept, property):
                        other = property(_method(replacement, kept.fget))
                    stack.enter_context(patch.object(owner, name, other))
            yield


def names_off(rules: Any) -> frozenset[str]:
    """Names of the rules that are off in these dataclasses, and those in them."""
    found: set[str] = set()
    for each in fields(rules):
        value = getattr(rules, each.name)
        if value is False:
            found.add(each.name)
        elif is_dataclass(value):
            found |= names_off(value)
    return frozenset(found)


def _method(replacement: Replacement, kept: Any) -> Any:
    def called(self: Any, *arguments: Any, **named: Any) -> Any:
        return replacement(kept, self, *arguments, **named)

    return called
