"""num_nulls and num_nonnulls, which take values of any types: sums of tests."""

from __future__ import annotations

from functools import reduce
from typing import Final

from leasehold.model.errors import OutOfRange
from leasehold.sql.syntax import tree

ARGUMENTS_MAX: Final = 100
NULL_COUNTS: Final = frozenset({"num_nulls", "num_nonnulls"})


def count_nulls(node: tree.Call) -> tree.Node:
    """Return the sum that a call of one of them is, of at least one argument. Raises
    OutOfRange."""
    at, integer = node.at, tree.TypeName(node.at, "integer")
    if len(node.arguments) > ARGUMENTS_MAX:
        raise OutOfRange(
            f"cannot pass more than {ARGUMENTS_MAX} arguments to a function", position=at
        )
    negated = node.name == "num_nonnulls"
    tests = (tree.Test(at, each, "null", negated) for each in node.arguments)
    casts: list[tree.Node] = [tree.Cast(at, test, integer) for test in tests]
    return reduce(lambda left, right: tree.Binary(at, "+", left, right), casts)
