"""What may be repaired: entries of a node whose rows all others prove right, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.admin.repairs import proof_of
from leasehold.model.records.acks import CheckReport

LACKS, DIFFERS, UNIQUE = (4, 9, (1,), "lacks"), (5, 9, (2,), "differs"), (6, 9, (3,), "twice")
TYPE = (1, 2, (4,), "is no integer")


def report(node: str, *findings: Any, rows: bytes = b"rows", **more: Any) -> CheckReport:
    fields = {"offset": 7, "error": "", **more}
    return CheckReport(
        b"s", node, b"", fields["offset"], 5, 1, 1, 10, {9: 10}, b"whole" + node.encode(),
        len(findings), findings, 1, fields["error"], rows,
    )  # fmt: skip


def test_entries_may_be_put_right_where_the_rows_are_everybodys() -> None:
    proof = proof_of([report("r2"), report("r1", LACKS, DIFFERS), report("m1")])
    assert proof == (("r1",), ())
    both = proof_of([report("r1", LACKS), report("r2", DIFFERS)])
    assert both.nodes == ("r1", "r2"), "each by its own rows"
    mixed = proof_of([report("r1", UNIQUE, DIFFERS), report("r2")])
    assert mixed.nodes == ("r1",), "what is no entry's fault stays listed"


@pytest.mark.parametrize(
    ("others", "why"),
    [
        ([], "no other node reported"),
        ([report("r2", offset=8)], "no other node reported"),
        ([report("r2", error="it broke")], "no other node reported"),
        ([report("r2", rows=b"")], "no other node reported"),
        ([report("r2", rows=b"unlike")], "its rows are not those of r2"),
        ([report("m1"), report("r2", rows=b"unlike")], "its rows are not those of r2"),
    ],
)
def test_without_proof_nothing_is_touched(others: list[CheckReport], why: str) -> None:
    proof = proof_of([report("r1", LACKS), *others])
    assert proof.nodes == ()
    assert why in proof.reasons[0]


def test_what_is_not_an_entrys_fault_is_left_to_people() -> None:
    proof = proof_of([report("r1", TYPE, UNIQUE), report("r2")])
    assert proof.nodes == ()
    assert "no finding is about an index entry" in proof.reasons[0]


def test_an_earlier_program_and_a_clean_table() -> None:
    assert "earlier program" in proof_of([report("r1", LACKS, rows=b""), report("r2")]).reasons[0]
    assert proof_of([report("r1"), report("r2")]) == ((), ())
