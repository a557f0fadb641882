"""Arguments, settings and exit codes, without starting anything."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bench import __main__ as command
from tests.bench.bench_settings import BenchSettings
from tests.bench.figure import TARGETS, Figure
from tests.bench.groups import _ALONE, _ON_ROWS, GROUPS, SUMMARIES
from tests.bench.stand import BenchFailure

METRICS = [
    *("commit_p50", "commit_p99", "commit_p50_1r", "commit_p99_1r"),
    *("txn_rate_64", "txn_rate_1000", "step_p50_3", "step_p50_10", "step_p50_100"),
    *("add_column_e2e", "index_rows_rate", "write_p50_before", "write_p99_before"),
    *("write_stall_before", "write_p50_during", "write_p99_during", "write_stall_during"),
    *("held_lease", "point_read", "takeover", "bulk_rate", "agents_step_p50"),
    *("renewal_10", "renewal_1000", "lock_rate_shared", "session_stall_blocked"),
    *("wire_read_p50", "wire_read_rate_pg", "wire_update_p99", "wire_tpcb_rate_pg", "sql_read"),
    *("write_p99_unique", "write_stall_default", "write_p50_type", "type_rows_rate_beside"),
    *("bootstrap_node_took", "bootstrap_replica_stored", "rows_index_10x", "rows_check_growth"),
    *("add_default_e2e", "default_took_beside", "default_took_beside_pg"),
    *("write_p99_ratio_during", "write_p99_ratio_type", "machine_stall_before"),
]


def test_an_unknown_group_is_named_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--only", "comit"], {})
    assert end.value.code == 2
    said = capsys.readouterr()
    assert "there is no group 'comit'; the groups are commit, rate," in said.err
    assert said.out == ""


def test_without_only_every_group_runs_and_with_it_those_in_their_order() -> None:
    assert command.parse([]).only == list(GROUPS)
    assert command.parse(["--only", "stall", "--only", "index"]).only == ["index", "stall"]


def test_every_target_is_that_of_a_metric() -> None:
    assert TARGETS.keys() <= {metric for metrics in GROUPS.values() for metric in metrics}


def test_list_names_every_group_and_metric(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--list"], {}) == 0
    said = capsys.readouterr().out
    assert [line.split(":")[0] for line in said.splitlines()] == list(GROUPS)
    assert set(METRICS) <= set(said.split())


def test_help_has_a_line_for_every_group_and_each_can_be_measured(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as end:
        command.main(["--help"], {})
    assert end.value.code == 0
    said = capsys.readouterr().out.partition("groups:\n")[2].splitlines()
    assert [line.split()[0] for line in said] == list(GROUPS)
    assert SUMMARIES.keys() == GROUPS.keys() == _ALONE.keys() | _ON_ROWS.keys()


def test_a_trial_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def measured(names: list[str], settings: BenchSettings) -> Iterator[Figure]:
        given.append(settings)
        yield Figure("takeover", 2, "s")

    monkeypatch.setattr(command, "measure", measured)
    assert command.main(["--trial"], {"LEASEHOLD_BENCH_ROWS": "5000000"}) == 0
    (settings,) = given
    assert settings == BenchSettings().for_trial()
    assert (settings.rows, settings.warm_up) == (1_000, 0)


def test_a_wrong_setting_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([], {"LEASEHOLD_BENCH_ROWS": "many"}) == 2
    assert "LEASEHOLD_BENCH_ROWS is 'many'; expected" in capsys.readouterr().err


def test_figures_go_out_as_they_come_and_a_failure_ends_with_a_sentence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails_second(names: list[str], settings: object) -> Iterator[Figure]:
        yield Figure("takeover", 2, "s")
        raise BenchFailure("no master was seen in the log")

    monkeypatch.setattr(command, "measure", fails_second)
    assert command.main(["--only", "takeover"], {}) == 1
    said = capsys.readouterr()
    assert said.out == "takeover 2.00 s\n"
    assert said.err == "bench: failed: no master was seen in the log\n"


def test_standard_output_carries_nothing_but_the_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    figures = iter([Figure("point_read", 14, "µs")])
    monkeypatch.setattr(command, "measure", lambda names, settings: figures)
    assert command.main(["--only", "read"], {}) == 0
    said = capsys.readouterr()
    assert said.out == "point_read 14.0 µs\n"
    assert "met" in said.err
