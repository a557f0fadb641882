"""Judges a bank: transfers between accounts whose balances a CHECK keeps at 0 or above. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tests.faults.workload.history import Op, Told


def judge_bank(
    ops: Iterable[Op], initial: Mapping[int, int], final: Mapping[int, int]
) -> list[str]:
    """Return what contradicts: a total that was another one, a balance below 0, and, where each
    transfer's outcome is known, a balance that is not what they add up to."""
    whole = sum(initial.values())
    found, owed, unknown = [], dict(initial), False
    for op in ops:
        if op.kind == "total" and op.told is Told.YES:
            balances = op.value["balances"]
            if sum(balances) != whole:
                found.append(f"{op.client} saw a total of {sum(balances)}, not {whole}")
            if min(balances, default=0) < 0:
                found.append(f"{op.client} saw a balance of {min(balances)}")
        elif op.kind == "transfer":
            unknown = unknown or op.told is Told.UNKNOWN
            if op.told is Told.YES:
                owed[op.value["payer"]] -= op.value["amount"]
                owed[op.value["payee"]] += op.value["amount"]
    if sum(final.values()) != whole:
        found.append(f"the total is {sum(final.values())} in the end, not {whole}")
    if min(final.values(), default=0) < 0:
        found.append(f"a balance is {min(final.values())} in the end")
    if not unknown and dict(final) != owed:
        found.append(f"balances are {dict(final)} in the end, transfers add up to {owed}")
    return [f"bank: {words}" for words in found]
