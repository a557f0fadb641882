"""Names: taken while any version in use resolves them, or a running job will give them (D9).

Method: jobs on the catalog, one move at a time; at every move the catalog must answer as one loaded
from a store at that moment does.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leasehold.catalog.catalog import Catalog
from leasehold.catalog.job import Job, Phase
from leasehold.catalog.names import constraint_names, relation_names
from leasehold.catalog.object_names import (
    NAME_BYTES_MAX,
    free_object_name,
    joined_names,
    object_name,
)
from leasehold.model.errors import DuplicateObject, Refused, StaleVersion, UnknownTable
from leasehold.schema_change.plan.plan import plan
from leasehold.schema_change.plan.results import CreateTablePlan, NothingToDo
from leasehold.sql.syntax.statements import (
    Change,
    DropIndex,
    DropTable,
    RenameIndex,
    RenameTable,
)
from tests.support.schema_change.made_statements import (
    add_check,
    add_unique,
    advance,
    alter,
    catalog_with,
    column,
    create_index,
    create_table,
    job_plan,
    put,
    put_job,
    run_to_end,
)

T = create_table("t", column("a"))
RENAME = alter("t", RenameTable("u"))


def begun(catalog: Catalog, statement: Change) -> Job:
    return put_job(catalog, job_plan(statement, catalog).job)


def reach(catalog: Catalog, job: Job, step: int, phase: Phase) -> Job:
    while (job.step, job.phase) != (step, phase):
        job = advance(catalog, job)
    return job


def loaded(catalog: Catalog) -> Catalog:
    """What a node has after a restart."""
    tables = list(catalog._newest)
    return Catalog.load(
        [d.to_wire() for table in tables for d in catalog.versions(table)],
        {table: catalog.min_version(table) for table in tables},
        [job.to_wire() for job in catalog.jobs.values()],
        catalog.ledger_run,
    )


def refused(statement: Change, catalog: Catalog) -> bool:
    try:
        plan(statement, catalog)
    except DuplicateObject:
        return True
    return False


# ------------------------------------------------------------------ tables


def test_dropped_tables_name_is_taken_until_nobody_resolves_it() -> None:
    catalog = catalog_with(T)
    job = begun(catalog, DropTable("t"))
    taken = []
    while not job.status.ended:
        taken.append((job.step, job.phase.value, "t" in catalog.table_names()))
        assert refused(T, catalog)
        job = advance(catalog, job)
    assert taken == [
        (0, "publishing", True),
        (0, "draining", True),
        (1, "publishing", False),
        (1, "draining", False),
    ]
    made = plan(T, catalog)
    assert isinstance(made, CreateTablePlan)
    assert made.descriptor.table_id == 2, "the id of a table that was there is never used again"
    put(catalog, made.descriptor)
    assert catalog.resolve("t").table_id == 2
    assert loaded(catalog).resolve("t").table_id == 2


def test_delete_only_table_is_not_there_but_for_those_at_the_version_before() -> None:
    catalog = catalog_with(T)
    job = reach(catalog, begun(catalog, DropTable("t")), 0, Phase.DRAINING)
    assert catalog.resolve("t", 1).version == 1
    for version in (None, 2):
        with pytest.raises(UnknownTable):
            catalog.resolve("t", version)
    reach(catalog, job, 1, Phase.PUBLISHING)
    with pytest.raises(UnknownTable):
        catalog.resolve("t", 1)


@pytest.mark.parametrize("moves", range(1, 4))
def test_a_table_that_is_being_dropped_is_no_table_that_exists(moves: int) -> None:
    """IF NOT EXISTS would promise a table that is about to be gone."""
    catalog = catalog_with(T)
    job = begun(catalog, DropTable("t"))
    for _ in range(moves):
        job = advance(catalog, job)
    again = create_table("t", column("a"), if_not_exists=True)
    with pytest.raises(DuplicateObject, match="being made or dropped"):
        plan(again, catalog)


def test_renamed_table_answers_to_both_names_while_two_versions_live() -> None:
    catalog = catalog_with(T)
    job = begun(catalog, RENAME)
    assert refused(create_table("u"), catalog), "taken from the moment it is planned"
    job = reach(catalog, job, 0, Phase.DRAINING)
    assert catalog.resolve("t", 1).name == "t"
    assert catalog.resolve("t").version == catalog.resolve("u").version == 2
    with pytest.raises(UnknownTable):
        catalog.resolve("u", 1)
    job = reach(catalog, job, 1, Phase.DRAINING)
    assert catalog.resolve("t", 2) is catalog.resolve("u", 2)
    with pytest.raises(UnknownTable):
        catalog.resolve("t")
    assert refused(T, catalog), "version 2 is in use and resolves the old name"
    job = advance(catalog, job)
    assert job.status.ended
    assert catalog.table_names() == {"u"}
    with pytest.raises(StaleVersion):
        catalog.resolve("u", 2)
    assert not refused(T, catalog)


def test_old_name_goes_to_a_new_table_and_a_restart_keeps_them_apart() -> None:
    catalog = catalog_with(T)
    run_to_end(RENAME, catalog)
    made = plan(T, catalog)
    assert isinstance(made, CreateTablePlan)
    put(catalog, made.descriptor)
    for each in (catalog, loaded(catalog)):
        assert (each.resolve("u").table_id, each.resolve("t").table_id) == (1, 2)


CHANGES: list[Change] = [
    RENAME,
    DropTable("t"),
    create_index("i", "t", "a"),
    alter("t", add_unique("a")),
]


@pytest.mark.parametrize("statement", CHANGES)
def test_a_loaded_catalog_knows_the_same_names_at_every_move(statement: Change) -> None:
    catalog = catalog_with(T, create_table("other"))
    job = begun(catalog, statement)
    while not job.status.ended:
        again = loaded(catalog)
        assert again.table_names() == catalog.table_names()
        assert relation_names(again) == relation_names(catalog)
        for name in ("t", "u", "other"):
            for version in (None, 1, 2, 3):
                assert answer(again, name, version) == answer(catalog, name, version)
        job = advance(catalog, job)


def answer(catalog: Catalog, name: str, version: int | None) -> object:
    try:
        found = catalog.resolve(name, version)
    except Refused as error:
        return type(error)
    return found.table_id, found.version


# ------------------------------------------------------------------ indexes


def test_index_names_are_taken_by_jobs_that_give_them_or_have_yet_to_let_go() -> None:
    catalog = catalog_with(T, create_table("other", column("a")))
    run_to_end(create_index("i", "t", "a"), catalog)
    job = begun(catalog, RenameIndex("i", "j"))
    while not job.status.ended:
        assert refused(create_index("i", "other", "a"), catalog)
        assert refused(create_index("j", "other", "a"), catalog)
        job = advance(catalog, job)
    assert not refused(create_index("i", "other", "a"), catalog)
    job = begun(catalog, DropIndex("j"))
    while not job.status.ended:
        assert refused(create_index("j", "other", "a"), catalog)
        job = advance(catalog, job)
    assert not refused(create_index("j", "other", "a"), catalog)


def test_tables_and_indexes_share_their_names() -> None:
    catalog = catalog_with(T, create_table("other", column("a")))
    run_to_end(create_index("i", "t", "a"), catalog)
    assert refused(create_table("i"), catalog)
    assert refused(create_index("other", "t", "a"), catalog)
    assert refused(alter("t", RenameTable("i")), catalog)
    assert refused(RenameIndex("i", "other"), catalog)
    made = plan(create_index("t", "t", "a", if_not_exists=True), catalog)
    assert isinstance(made, NothingToDo)


def test_constraint_names_are_one_tables_own() -> None:
    catalog = catalog_with(T, create_table("other", column("a")))
    run_to_end(alter("t", add_check("a > 0", "k")), catalog)
    assert constraint_names(catalog.newest(1)) == {"k", "t_pkey"}
    assert not refused(alter("other", add_check("a > 0", "k")), catalog)
    assert refused(alter("t", add_unique("a", name="t_pkey")), catalog)


# ------------------------------------------------------------------ derived names


NAME = st.text(st.sampled_from("abé漢"), min_size=1, max_size=63).filter(
    lambda name: len(name.encode()) <= NAME_BYTES_MAX
)


@given(NAME, NAME | st.just(""), st.sampled_from(("key", "fkey12", "pkey")))
def test_a_derived_name_fits_and_tells_of_both_parts(table: str, parts: str, label: str) -> None:
    name = object_name(table, parts, label)
    assert len(name.encode()) <= NAME_BYTES_MAX
    whole = "_".join((table, parts, label) if parts else (table, label))
    if len(whole.encode()) <= NAME_BYTES_MAX:
        assert name == whole
        return
    assert name.endswith(f"_{label}")
    left = name.removesuffix(f"_{label}")
    first, _, second = left.partition("_")
    assert table.startswith(first)
    assert parts.startswith(second)
    # Neither is cut while the other is longer, but for what is left of a character.
    for kept, all_of_it, other in ((first, table, second), (second, parts, first)):
        assert kept == all_of_it or len(kept.encode()) >= len(other.encode()) - 4


def test_a_derived_name_that_is_taken_has_a_number_behind_its_label() -> None:
    assert free_object_name("t", "a", "idx", {"t_a_idx", "t_a_idx1"}) == "t_a_idx2"
    long = object_name("t" * 63, "c" * 63, "idx")
    second = free_object_name("t" * 63, "c" * 63, "idx", {long})
    assert (second.endswith("_idx1"), len(second)) == (True, NAME_BYTES_MAX)
    assert joined_names(["c" * 40] * 1_000) == "_".join(["c" * 40] * 2)
