"""Goal: a node never keeps half of what a newer release wrote (it would be another schema than the
others have), and says what to do.

Method: records of today with one thing more in them, at every depth.
"""

from __future__ import annotations

from typing import Any

import pytest

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.descriptor import Descriptor, from_wire
from leasehold.catalog.elements import Check, Column, Index
from leasehold.model.errors import LogStopped
from leasehold.model.records.log import DescriptorWrite, JobWrite
from leasehold.values.types import Type
from tests.support.schema_change.made_job import index_job

INTEGER = Type("integer")
TABLE = Descriptor(
    table_id=1,
    name="t",
    version=1,
    primary_key=(1,),
    columns=(Column(1, "a", INTEGER, nullable=False), Column(2, "b", INTEGER)),
    indexes=(Index(3, "t_b_key", (2,), unique=True),),
    checks=(Check(4, "t_b_check", "(b > 0)", (2,)),),
).to_wire()
JOB = index_job(1, 1).to_wire()


def more_in(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy with one thing more at the end of the path."""
    made = dict(body) if isinstance(body, dict) else list(body)
    if len(path) == 1:
        made[path[0]] = value
    else:
        made[path[0]] = more_in(body[path[0]], path[1:], value)
    return made


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("colour",), 1),
        (("columns", 1, "colour"), "red"),
        (("indexes", 0, "colour"), "red"),
        (("checks", 0, "colour"), "red"),
        (("state",), "lukewarm"),
        (("columns", 0, "type"), "polygon"),
        (("columns",), 7),
    ],
)
def test_a_table_of_a_newer_release_stops_the_node(path: tuple[Any, ...], value: Any) -> None:
    body = more_in(TABLE, path, value)
    catalog = Catalog()
    with pytest.raises(LogStopped, match=r"table 't': .* newer release .* install"):
        catalog.apply(DescriptorWrite(1, 1, body), 1, 1)
    assert catalog.tables() == Catalog().tables()
    with pytest.raises(LogStopped):
        Catalog.load([body], {}, [], "")


@pytest.mark.parametrize(
    ("path", "value"), [(("colour",), 1), (("phase",), "dreaming"), (("steps", 0, 3), 7)]
)
def test_a_job_of_a_newer_release_stops_the_node(path: tuple[Any, ...], value: Any) -> None:
    body = more_in(JOB, path, value)
    with pytest.raises(LogStopped, match=r"job on table .* newer release"):
        Catalog().apply(JobWrite(1, body), 1, 1)
    with pytest.raises(LogStopped):
        Catalog.load([], {}, [body], "")


def test_what_an_older_release_wrote_is_read() -> None:
    later = ("alias", "locks", "lock_moves", "foreign_keys")
    body = {name: value for name, value in TABLE.items() if name not in later}
    Catalog().apply(DescriptorWrite(1, 1, body), 1, 1)
    Catalog.load([body], {}, [{n: v for n, v in JOB.items() if n not in ("look", "looked")}], "")


def test_who_only_reads_may_pass_it_over() -> None:
    """A subscriber of an older release goes on."""
    assert from_wire(more_in(TABLE, ("colour",), 1)) == from_wire(TABLE)
