"""Functions over numbers."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from leasehold.sql.arithmetic import OPERATORS, of_decimals, ranged
from leasehold.sql.function import (
    DOUBLE,
    INTEGERS,
    NUMERIC,
    Function,
)

_REMAINDERS: Final = [f for f in OPERATORS if f.name == "%"]

FUNCTIONS: Final = (
    *(Function("abs", (kind,), kind, ranged(kind, abs)) for kind in INTEGERS),
    Function("abs", (DOUBLE,), DOUBLE, abs),
    Function("abs", (NUMERIC,), NUMERIC, of_decimals(Decimal.copy_abs)),
    *(
        Function("mod", f.arguments, f.result, f.compute)
        for f in _REMAINDERS
        if f.arguments[0] == f.arguments[1]
    ),
)
