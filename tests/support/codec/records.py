"""Hypothesis strategies for every record that travels, derived from its annotations."""

from __future__ import annotations

import types
from collections.abc import Mapping
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from leasehold.adapters.codec.record_shape import CLASS_BY_TAG
from leasehold.model.keys import IntKeys

INTEGER = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
PLAIN = st.one_of(st.none(), st.booleans(), INTEGER, st.floats(allow_nan=False), TEXT, st.binary())
BODY = st.recursive(
    PLAIN,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple), st.dictionaries(TEXT, inner, max_size=3)
    ),
    max_leaves=6,
)


def strategy(hint: Any) -> st.SearchStrategy[Any]:
    """Values for one annotation of `model/records/`."""
    if hint is Any:
        return BODY
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of([st.none() if a is type(None) else strategy(a) for a in args])
    if origin is tuple:
        if args[-1] is Ellipsis:
            return st.lists(strategy(args[0]), max_size=3).map(tuple)
        return st.tuples(*map(strategy, args))
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(strategy(args[0]), strategy(args[1]), max_size=3)
    if issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if issubclass(hint, tuple):
        return record(hint)
    return {
        int: INTEGER,
        str: TEXT,
        bytes: st.binary(max_size=16),
        IntKeys: st.lists(INTEGER, max_size=3).map(IntKeys),
        bool: st.booleans(),
        float: st.floats(allow_nan=False),
    }[hint]


def record(cls: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(cls)
    return st.tuples(*[strategy(hints[name]) for name in cls._fields]).map(cls._make)


ANY_RECORD = st.one_of([record(cls) for cls in CLASS_BY_TAG.values()])


def sample(hint: Any) -> Any:
    """Return one and the same value for an annotation, with something in every part of it."""
    if hint is Any:
        return {"a": (1, "b", None)}
    origin, args = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return sample(next(a for a in args if a is not type(None)))
    if origin is tuple:
        return tuple(sample(a) for a in args if a is not Ellipsis)
    if origin is not None and issubclass(origin, Mapping):
        return {sample(args[0]): sample(args[1])}
    if issubclass(hint, Enum):
        return list(hint)[-1]
    if issubclass(hint, tuple):
        hints = get_type_hints(hint)
        return hint(*[sample(hints[name]) for name in hints])
    plain: dict[Any, Any] = {int: 300, str: "text", bytes: b"bytes", bool: True, float: 1.5}
    return IntKeys([1, 2]) if hint is IntKeys else plain[hint]
