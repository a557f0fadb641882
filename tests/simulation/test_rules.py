"""Each ⚠ rule of replication that has a switch, on the whole system: its interleaving does no harm,
and does it with the rule off.

Two rules that stand in for each other are turned off together, and each alone does no harm. The
lease's rules have their stories in `tests/unit/lease/test_rules.py`, a job's in
`tests/unit/schema_change/test_coordinator.py`, the log's also in `tests/models`.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from leasehold.replication.outcomes import OutcomeSettings
from tests.models.mutants.replication import (
    RULES,
    CoherencyRules,
    ElectionRules,
    LogRules,
    OwnAppendsRules,
    PartRules,
    ReplicationRules,
    broken,
)
from tests.models.mutants.schema import JobRules
from tests.models.mutants.transaction import VerifyRules
from tests.models.summary import AddLine, ModelLine
from tests.models.switches import switches_off
from tests.simulation.harm import Harm
from tests.simulation.interleavings import (
    Scenario,
    a_backfill_that_skips_rows,
    a_broker_loses_an_acknowledged_tail,
    a_copy_breaks_a_constraint_that_the_others_keep,
    a_copy_is_taken_while_the_log_is_deleted,
    a_grant_of_another_life,
    a_master_dies_before_it_answers,
    a_new_master_while_a_coherent_node_is_cut_off,
    a_repeat_while_a_coherent_node_is_behind,
    a_request_older_than_its_memory,
    a_request_that_no_master_survives,
    a_standby_that_lags_behind,
    a_write_from_before_the_fence,
    a_write_while_a_coherent_node_is_cut_off,
    a_writer_sees_a_row_before_it_is_filled,
    an_end_marker_of_another_run,
    an_older_writer_updates_the_row,
    an_own_record_behind_a_claim,
    another_record_for_one_place,
    rows_are_mended_behind_sparks_back,
    terms_are_shorter_than_a_reader_may_be_away,
    two_writers_saw_the_same_row,
)
from tests.simulation.partial import (
    a_part_is_told_to_a_new_master,
    a_part_starts_again_with_everything,
    a_table_is_emptied_while_its_part_is_cut_off,
    a_write_while_the_part_is_cut_off,
)
from tests.simulation.stage import Stage

JOBS = JobRules(verify_before_public=False)
RE_APPENDS = replace(RULES, epoch_given_up_after_error=False)
OFF: list[tuple[str, str, Scenario, ReplicationRules]] = [
    (
        "attempts_are_counted",
        "L10",
        a_request_that_no_master_survives,
        replace(RULES, attempts_are_counted=False),
    ),
    (
        "lost_node_waits",
        "C1",
        a_write_while_a_coherent_node_is_cut_off,
        replace(RULES, coherency=CoherencyRules(lost_node_waits=False)),
    ),
    (
        "takeover_waits",
        "C1",
        a_new_master_while_a_coherent_node_is_cut_off,
        replace(RULES, coherency=CoherencyRules(takeover_waits=False)),
    ),
    (
        "grant_names_an_ask",
        "C1",
        a_grant_of_another_life,
        replace(RULES, coherency=CoherencyRules(grant_names_an_ask=False)),
    ),
    (
        "copies_are_acknowledged",
        "copy",
        a_copy_is_taken_while_the_log_is_deleted,
        replace(RULES, copies_are_acknowledged=False),
    ),
    (
        "each_copy_has_its_name",
        "copy",
        a_copy_is_taken_while_the_log_is_deleted,
        replace(RULES, each_copy_has_its_name=False),
    ),
    (
        "acks_before_a_start_are_read",
        "L11",
        terms_are_shorter_than_a_reader_may_be_away,
        replace(RULES, acks_before_a_start_are_read=False),
    ),
    (
        "readers_before_a_start_count",
        "L11",
        terms_are_shorter_than_a_reader_may_be_away,
        replace(RULES, readers_before_a_start_count=False),
    ),
    (
        "repeats_wait_too",
        "C1",
        a_repeat_while_a_coherent_node_is_behind,
        replace(RULES, repeats_wait_too=False),
    ),
    (
        "unanswered_given_again",
        "L7",
        a_master_dies_before_it_answers,
        replace(RULES, unanswered_given_again=False),
    ),
    ("epoch_given_up_after_error", "L2: m1 stops", another_record_for_one_place, RE_APPENDS),
    (
        "own_record_by_incarnation",
        "L6",
        another_record_for_one_place,
        replace(RE_APPENDS, own_record_by_incarnation=False),
    ),
    (
        "next_only",
        "L1",
        an_own_record_behind_a_claim,
        replace(RULES, own_appends=OwnAppendsRules(next_only=False)),
    ),
    (
        "genids_are_verified",
        "T1",
        two_writers_saw_the_same_row,
        replace(RULES, verify=VerifyRules(genids_are_verified=False)),
    ),
    (
        "master_composes",
        "T0",
        an_older_writer_updates_the_row,
        replace(RULES, verify=VerifyRules(master_composes=False)),
    ),
    (
        "min_version_fences",
        "D5",
        a_write_from_before_the_fence,
        replace(RULES, verify=VerifyRules(min_version_fences=False)),
    ),
    (
        "reach_the_end_first and claim_is_compare_and_set",
        "L1",
        a_standby_that_lags_behind,
        replace(
            RULES,
            election=ElectionRules(reach_the_end_first=False),
            log=LogRules(claim_is_compare_and_set=False),
        ),
    ),
    ("verify_before_public", "d ⊨ S", a_backfill_that_skips_rows, replace(RULES, jobs=JOBS)),
    (
        "every_node_is_asked",
        "d ⊨ S",
        a_copy_breaks_a_constraint_that_the_others_keep,
        replace(RULES, jobs=JobRules(every_node_is_asked=False)),
    ),
    (
        "findings_confirmed",
        "⚠ findings",
        rows_are_mended_behind_sparks_back,
        replace(RULES, jobs=JobRules(findings_confirmed=False)),
    ),
    (
        "backfill_leaves_genids",
        "⚠ chunks",
        a_writer_sees_a_row_before_it_is_filled,
        replace(RULES, verify=VerifyRules(backfill_leaves_genids=False)),
    ),
    (
        "digests_chain",
        "L2",
        a_broker_loses_an_acknowledged_tail,
        replace(RULES, log=LogRules(digests_chain=False)),
    ),
    (
        "owed_in_order",
        "C1",
        a_write_while_the_part_is_cut_off,
        replace(RULES, parts=PartRules(owed_in_order=False)),
    ),
    (
        "catalog_is_counted",
        "C1",
        a_table_is_emptied_while_its_part_is_cut_off,
        replace(RULES, parts=PartRules(catalog_is_counted=False)),
    ),
    (
        "part_is_its_incarnations",
        "C1",
        a_part_starts_again_with_everything,
        replace(RULES, parts=PartRules(part_is_its_incarnations=False)),
    ),
    (
        "records_of_before_count",
        "C1",
        a_part_is_told_to_a_new_master,
        replace(RULES, parts=PartRules(records_of_before_count=False)),
    ),
]
REMEMBERS = OutcomeSettings(horizon_ms=5_000, ahead_ms_max=1_000)
FORGETS = replace(REMEMBERS, ids_own_time_counts=False)
SCENARIOS = list(dict.fromkeys(scenario for _, _, scenario, _ in OFF))


BACKED: list[tuple[Scenario, ReplicationRules]] = [
    (
        a_standby_that_lags_behind,
        replace(RULES, election=ElectionRules(reach_the_end_first=False)),
    ),
    (
        a_standby_that_lags_behind,
        replace(RULES, log=LogRules(claim_is_compare_and_set=False)),
    ),
    # The catalog counts nothing of another run either.
    (an_end_marker_of_another_run, replace(RULES, jobs=JobRules(chunk_names_run=False))),
]


@pytest.mark.parametrize(
    ("scenario", "rules"), BACKED, ids=[switches_off(rules) for _, rules in BACKED]
)
def test_rule_that_another_one_backs(
    scenario: Scenario, rules: ReplicationRules, model_line: AddLine
) -> None:
    with broken(rules):
        scenario()
    name = scenario.__name__.replace("_", " ")
    events = Stage.events_of_last
    words = f"{switches_off(rules)} off: {name}"
    line = ModelLine("backed by another rule", words, events, events, False, "simulation: no harm")
    model_line(line)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.__name__)
def test_no_harm_with_every_rule(scenario: Scenario) -> None:
    scenario()


@pytest.mark.parametrize(
    ("rule", "invariant", "scenario", "rules"), OFF, ids=[rule for rule, *_ in OFF]
)
def test_harm_with_the_rule_off(
    rule: str, invariant: str, scenario: Scenario, rules: ReplicationRules, model_line: AddLine
) -> None:
    with pytest.raises(Harm, match=f"^{invariant}") as harm, broken(rules):
        scenario()
    # One written interleaving: its states are its events, and there is nothing to exhaust.
    words = f"simulation: harm shown, {str(harm.value)[:60]}"
    name = scenario.__name__.replace("_", " ")
    events = Stage.events_of_last
    model_line(ModelLine(invariant, f"{rule} off: {name}", events, events, False, words))


def test_l5_no_harm_with_the_ids_own_time() -> None:
    a_request_older_than_its_memory(REMEMBERS)


def test_l5_harm_when_ids_may_be_of_any_age(model_line: AddLine) -> None:
    with pytest.raises(Harm, match=r"^R1: .* committed twice") as harm:
        a_request_older_than_its_memory(FORGETS)
    words = f"simulation: harm shown, {str(harm.value)[:60]}"
    name = a_request_older_than_its_memory.__name__.replace("_", " ")
    events = Stage.events_of_last
    mutation = f"{switches_off(FORGETS)} off: {name}"
    model_line(ModelLine("L5", mutation, events, events, False, words))
