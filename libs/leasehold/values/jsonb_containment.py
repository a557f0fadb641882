"""What jsonb @> asks, over values of `json_value.value_of`: scalars are looked up in sets, so two
arrays of them take time in proportion to their lengths, not to the product."""

from __future__ import annotations

from typing import Any, Final

from leasehold.model.budget import charge
from leasehold.model.errors import TooComplex
from leasehold.values.jsonb import ordered_bytes

STEPS_MAX: Final = 1_000_000
"""Of arrays and objects that are compared with one another, and of scalars in them: half a second
or so. Only nested ones can take more than there are elements."""
_PAIRS_COMPARED_MAX: Final = 1_000
_STEPS_CHARGED: Final = 1_000
"""Steps between two charges, of so much work each."""
_STEP_WORK: Final = 60


class _Listed:
    """The elements of one array by what may be asked of them."""

    def __init__(self, values: list[Any]) -> None:
        self.scalars: set[Any] = set()
        self.objects: list[dict[str, Any]] = []
        self.arrays: list[list[Any]] = []
        for value in values:
            if isinstance(value, dict):
                self.objects.append(value)
            elif isinstance(value, list):
                self.arrays.append(value)
            else:
                self.scalars.add(_key(value))


def _key(scalar: Any) -> Any:
    """Return what is equal for equal scalars: Python finds True equal to 1; JSON does not."""
    return (scalar,) if isinstance(scalar, bool) else scalar


def contains(value: Any, wanted: Any) -> bool:
    """Whether a value contains another one. Raises TooComplex where nested arrays would have to be
    compared too often."""
    return _Containment().holds(value, wanted, outermost=True)


class _Containment:
    def __init__(self) -> None:
        self._steps = 0
        self._uncharged = 0
        self._listed: dict[int, _Listed] = {}

    def holds(self, value: Any, wanted: Any, *, outermost: bool = False) -> bool:
        if isinstance(wanted, dict | list):
            return self._compound(value, wanted)
        if outermost and isinstance(value, list):
            return any(_same(each, wanted) for each in value)
        return _same(value, wanted)

    def _compound(self, value: Any, wanted: dict[str, Any] | list[Any]) -> bool:
        """Return whether `value` holds the object or array.

        One call for each level of nesting, of which jsonb has hundreds: Python has room for a
        thousand calls, so nothing here goes down by way of a generator."""
        self._count(len(wanted))
        if isinstance(wanted, dict):
            if not isinstance(value, dict) or len(wanted) > len(value):
                return False
            for name, part in wanted.items():
                if name not in value:
                    return False
                there = value[name]
                if isinstance(part, dict | list):
                    if not self._compound(there, part):
                        return False
                elif not _same(there, part):
                    return False
            return True
        if not isinstance(value, list):
            return False
        has, asked = self._by_kind(value), self._by_kind(wanted)
        if not asked.scalars <= has.scalars:
            return False
        for parts, candidates in ((asked.objects, has.objects), (asked.arrays, has.arrays)):
            for part in _without_equals(parts, candidates):
                for candidate in candidates:
                    if self._compound(candidate, part):
                        break
                else:
                    return False
        return True

    def _by_kind(self, values: list[Any]) -> _Listed:
        """Return the elements of an array by kind, made once for each: it stands in the value that
        is asked, so its id stays its own."""
        found = self._listed.get(id(values))
        if found is None:
            found = self._listed[id(values)] = _Listed(values)
        return found

    def _count(self, steps: int) -> None:
        self._steps += steps + 1
        if self._steps > STEPS_MAX:
            raise TooComplex("@> over nested arrays would compare more than a million values")
        self._uncharged += steps + 1
        if self._uncharged > _STEPS_CHARGED:
            uncharged, self._uncharged = self._uncharged, 0
            charge(uncharged * _STEP_WORK)


def _without_equals(asked: list[Any], there: list[Any]) -> list[Any]:
    """Return those that no equal one holds; of few all, which are sooner compared than written."""
    if len(asked) * len(there) <= _PAIRS_COMPARED_MAX:
        return asked
    known = {ordered_bytes(value) for value in there}
    return [part for part in asked if ordered_bytes(part) not in known]


def _same(left: Any, right: Any) -> bool:
    scalars = not isinstance(left, dict | list) and not isinstance(right, dict | list)
    return scalars and bool(_key(left) == _key(right))
