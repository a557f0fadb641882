"""Goal: alerts fire when they are to and are silent else; they and the boards name what there is.

Method: for each alert, series of a cluster in trouble and of one that is well, run by promtool,
Prometheus' own; names and labels of every expression against the declarations.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from infra.observe.__main__ import files
from infra.observe.alerts import ALERTS, RUNBOOKS, Alert, rules
from infra.observe.boards import BOARDS, board_json
from infra.observe.prometheus import PROMTOOL, configuration, find_binary, find_program
from infra.ports import Ports
from infra.processes import ProcessFailure
from leasehold.model.measures import Kind, Metric
from leasehold.model.metrics import METRICS

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = find_program(PROMTOOL)
TIMEOUT_S: Final = 120.0
NOT_OURS: Final = ("up", "process_resident_memory_bytes", "process_cpu_seconds_total")
OF_PROMETHEUS: Final = {"node", "job", "le", "severity"}


class Case(NamedTuple):
    """Series (each with its values, a minute apart) with which an alert fires at minute 15, and
    with which it does not."""

    fires: Mapping[str, str]
    silent: Mapping[str, str]


BUCKET: Final = "leasehold_record_append_seconds_bucket"
CASES: Final[Mapping[str, Case]] = {
    "LeaseholdNoMaster": Case(
        {'leasehold_master{node="m1"}': "1x5 0x15", 'leasehold_master{node="m2"}': "0x20"},
        {'leasehold_master{node="m1"}': "0x20", 'leasehold_master{node="m2"}': "1x20"},
    ),
    "LeaseholdProcessDown": Case(
        {'up{job="leasehold",node="r1"}': "1x5 0x15"}, {'up{job="leasehold",node="r1"}': "1x20"}
    ),
    "LeaseholdOftenElected": Case(
        {'leasehold_takeovers_total{node="m1"}': "0+1x20"},
        {'leasehold_takeovers_total{node="m1"}': "0x5 1x15"},
    ),
    "LeaseholdNotCoherent": Case(
        {'leasehold_coherent{node="r1"}': "1x5 0x15"}, {'leasehold_coherent{node="r1"}': "1x20"}
    ),
    "LeaseholdOftenNotCoherent": Case(
        {'leasehold_coherency_losses_total{node="r1"}': "0+1x20"},
        {'leasehold_coherency_losses_total{node="r1"}': "0x10 1x10"},
    ),
    "LeaseholdBehind": Case(
        {
            'leasehold_applied_lsn{node="m1"}': "0+5000x20",
            'leasehold_applied_lsn{node="r1"}': "0x20",
        },
        {
            'leasehold_applied_lsn{node="m1"}': "0+5000x20",
            'leasehold_applied_lsn{node="r1"}': "0+4990x20",
        },
    ),
    "LeaseholdSlowAppend": Case(
        {
            BUCKET + '{node="m1",le="1.0"}': "0+10x20",
            BUCKET + '{node="m1",le="2.5"}': "0+100x20",
            BUCKET + '{node="m1",le="+Inf"}': "0+100x20",
        },
        {
            BUCKET + '{node="m1",le="0.01"}': "0+100x20",
            BUCKET + '{node="m1",le="2.5"}': "0+100x20",
            BUCKET + '{node="m1",le="+Inf"}': "0+100x20",
        },
    ),
    "LeaseholdQueueFull": Case(
        {'leasehold_queue_paused{node="m1",queue="requests"}': "0x5 1x15"},
        {'leasehold_queue_paused{node="m1",queue="requests"}': "0x20"},
    ),
    "LeaseholdDeadLetters": Case(
        {
            'leasehold_refusals_total{node="m1",sqlstate="23505",disposition="dead letter"}': (
                "0x10 1x10"
            )
        },
        {'leasehold_refusals_total{node="m1",sqlstate="40001",disposition="replay"}': "0+5x20"},
    ),
    "LeaseholdJobWaitsForLeases": Case(
        {
            'leasehold_job_phase_age_seconds{node="m1",job="7",table="t",phase="draining"}': (
                "0+60x20"
            )
        },
        {
            'leasehold_job_phase_age_seconds{node="m1",job="7",table="t",phase="backfilling"}': (
                "0+60x20"
            )
        },
    ),
    "LeaseholdJobFailed": Case(
        {'leasehold_jobs_ended_total{node="m1",status="failed"}': "0x10 1x10"},
        {'leasehold_jobs_ended_total{node="m1",status="succeeded"}': "0+1x20"},
    ),
    "LeaseholdLedgerAway": Case(
        {'leasehold_ledger_calls_total{node="m1",outcome="unavailable"}': "0+3x20"},
        {'leasehold_ledger_calls_total{node="m1",outcome="answered"}': "0+3x20"},
    ),
    "LeaseholdFastPathLeft": Case(
        {'leasehold_fast_path_pause_seconds{node="r1",path="log"}': "0x5 4x15"},
        {'leasehold_fast_path_pause_seconds{node="r1",path="log"}': "0x10 4x1 0x9"},
    ),
    "LeaseholdKafkaAway": Case(
        {'leasehold_kafka_client_up{node="m1",client="leasehold-m1"}': "1x5 0x15"},
        {'leasehold_kafka_client_up{node="m1",client="leasehold-m1"}': "1x20"},
    ),
    "LeaseholdDiskNearlyFull": Case(
        {
            'leasehold_disk_free_bytes{node="m1"}': "4x20",
            'leasehold_disk_bytes{node="m1"}': "100x20",
        },
        {
            'leasehold_disk_free_bytes{node="m1"}': "40x20",
            'leasehold_disk_bytes{node="m1"}': "100x20",
        },
    ),
    "LeaseholdDiskBelowReserve": Case(
        {'leasehold_disk_short{node="m1"}': "1x20"},
        {'leasehold_disk_short{node="m1"}': "0x20"},
    ),
    "LeaseholdLogNearBudget": Case(
        {'leasehold_topic_budget_ratio{node="d1",topic="log"}': "0.9x20"},
        {'leasehold_topic_budget_ratio{node="d1",topic="log"}': "0.7x20"},
    ),
    "LeaseholdLogBeyondBudget": Case(
        {'leasehold_topic_budget_ratio{node="d1",topic="log"}': "1.1x20"},
        {'leasehold_topic_budget_ratio{node="d1",topic="log"}': "0.9x20"},
    ),
    "LeaseholdRedisNearlyFull": Case(
        {'leasehold_redis_memory_ratio{node="d1"}': "0.9x20"},
        {'leasehold_redis_memory_ratio{node="d1"}': "0.7x20"},
    ),
    "LeaseholdChangefeedBehind": Case(
        {
            'leasehold_applied_commit_timestamp_seconds{node="m1"}': "0+60x20",
            'leasehold_changefeed_commit_timestamp_seconds{node="changefeed"}': "0x20",
        },
        {
            'leasehold_applied_commit_timestamp_seconds{node="m1"}': "0+60x20",
            'leasehold_changefeed_commit_timestamp_seconds{node="changefeed"}': "0+60x20",
        },
    ),
    "LeaseholdFeedHeld": Case(
        {'leasehold_changefeed_held_feeds{node="changefeed"}': "0x5 2x15"},
        {'leasehold_changefeed_held_feeds{node="changefeed"}': "0x5 1x3 0x12"},
    ),
    "LeaseholdIntakeHeld": Case(
        {'leasehold_intake_held{node="intake",topic="orders"}': "0x5 1x15"},
        {'leasehold_intake_held{node="intake",topic="orders"}': "0x5 1x3 0x12"},
    ),
    "LeaseholdRetriesStopped": Case(
        {'leasehold_retry_stream_trouble{node="spark"}': "0x5 1x15"},
        {'leasehold_retry_stream_trouble{node="spark"}': "0x5 1x3 0x12"},
    ),
}
_NAME: Final = re.compile(r"\b(leasehold_[a-z_]+|process_[a-z_]+)\b")
_OF_HISTOGRAM: Final = re.compile(r"_(bucket|sum|count)$")
_LABEL: Final = re.compile(r"\{\{ ?(?:\$labels\.)?([a-z_]+) ?\}\}")
_GROUPED: Final = re.compile(r"by \(([a-z_, ]+)\)")


def metrics_of(expression: str) -> Iterator[Metric]:
    """Yield the metric of each series that an expression names; fails for what there is not."""
    for name in _NAME.findall(re.sub(r'"[^"]*"', '""', expression)):
        if name in NOT_OURS:
            continue
        metric = METRICS.get(name)
        if metric is None or metric.kind is Kind.HISTOGRAM:
            metric = METRICS.get(_OF_HISTOGRAM.sub("", name))
            assert metric is not None, f"{name} is declared nowhere"
            assert metric.kind is Kind.HISTOGRAM, f"{name} is no series of a histogram"
        yield metric


def check(expression: str, shown: str) -> None:
    """Hold an expression, and a text with labels in it, to what is declared."""
    found = list(metrics_of(expression))
    there = OF_PROMETHEUS | {label for metric in found for label in metric.labels}
    used = set(_LABEL.findall(shown))
    for group in _GROUPED.findall(expression):
        used |= set(group.split(", "))
    assert used <= there, expression


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_names_what_there_is_and_its_runbook(alert: Alert) -> None:
    check(alert.expression, alert.summary)
    page = ROOT / RUNBOOKS / f"{alert.runbook}.md"
    assert alert.name in page.read_text("utf-8"), "the page says which alerts lead there"


def test_each_runbook_belongs_to_an_alert() -> None:
    pages = {path.stem for path in (ROOT / RUNBOOKS).glob("*.md")}
    assert pages == {alert.runbook for alert in ALERTS}


@pytest.mark.parametrize("board", BOARDS, ids=lambda board: board.name)
def test_a_board_names_what_there_is(board: object) -> None:
    (found,) = (each for each in BOARDS if each is board)
    for panel in found.panels:
        for line in panel.lines:
            check(line.expression, line.name)
    whole = json.loads(board_json(found))
    places = [tuple(panel["gridPos"].values()) for panel in whole["panels"]]
    assert len(set(places)) == len(places)


def test_an_expression_over_nothing_declared_is_found() -> None:
    with pytest.raises(AssertionError, match="declared nowhere"):
        check("rate(leasehold_no_such_total[1m])", "")
    with pytest.raises(AssertionError):
        check("sum by (colour) (leasehold_master)", "")
    with pytest.raises(AssertionError):
        check("leasehold_master", "{{table}}")


def test_the_files_are_as_they_are_declared() -> None:
    old = [path.name for path, text in files().items() if path.read_text("utf-8") != text]
    assert old == [], "run python -m infra.observe"


def test_each_alert_has_a_case() -> None:
    assert CASES.keys() == {alert.name for alert in ALERTS}


needs_promtool = pytest.mark.skipif(
    PROGRAM is None, reason="promtool is not here: make observe-tools"
)


def promtool(*arguments: str, cwd: Path) -> None:
    assert PROGRAM is not None
    done = subprocess.run(
        [PROGRAM, *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_promtool
@pytest.mark.parametrize("fires", [True, False], ids=["in trouble", "well"])
def test_alerts_fire_in_trouble_and_are_silent_else(tmp_path: Path, fires: bool) -> None:
    (tmp_path / "alerts.yml").write_text(rules(), "utf-8")
    tests = []
    for alert in ALERTS:
        case = CASES[alert.name]
        series = case.fires if fires else case.silent
        tests.append(
            {
                "interval": "1m",
                "input_series": [
                    {"series": name, "values": values} for name, values in series.items()
                ],
                "promql_expr_test": [
                    {
                        "expr": f'count(ALERTS{{alertname="{alert.name}",alertstate="firing"}})',
                        "eval_time": "15m",
                        "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
                    }
                ],
            }
        )
    whole = {"rule_files": ["alerts.yml"], "evaluation_interval": "15s", "tests": tests}
    (tmp_path / "test.yml").write_text(json.dumps(whole), "utf-8")
    promtool("test", "rules", "test.yml", cwd=tmp_path)


@needs_promtool
def test_prometheus_reads_rules_boards_and_configuration(tmp_path: Path) -> None:
    lines = [line.expression for board in BOARDS for panel in board.panels for line in panel.lines]
    made = [{"record": f"board:line{n}", "expr": each} for n, each in enumerate(lines)]
    group = {"groups": [{"name": "boards", "rules": made}]}
    (tmp_path / "boards.yml").write_text(json.dumps(group), "utf-8")
    (tmp_path / "prometheus.yml").write_text(configuration({"m1": 9461}), "utf-8")
    promtool("check", "rules", "boards.yml", cwd=tmp_path)
    promtool("check", "config", "prometheus.yml", cwd=tmp_path)


def test_each_service_is_scraped_under_its_name() -> None:
    whole = json.loads(configuration({"m1": 9461, "r1": 9462}))
    (job,) = whole["scrape_configs"]
    assert [(c["targets"], c["labels"]) for c in job["static_configs"]] == [
        (["127.0.0.1:9461"], {"node": "m1"}),
        (["127.0.0.1:9462"], {"node": "r1"}),
    ]


def test_without_prometheus_somebody_is_told_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ProcessFailure, match="make observe-tools"):
        find_binary(str(tmp_path), tmp_path)
    program = tmp_path / "prometheus"
    program.touch(0o755)
    assert find_binary(str(tmp_path / "nowhere"), tmp_path) == str(program)


def test_free_ports_are_all_different() -> None:
    ports = Ports.free()
    all_ports = [
        *(ports.kafka, ports.kafka_controller, ports.redis, ports.dashboard, ports.kafka_trusted),
        *(ports.prometheus, *ports.sql, *ports.metrics),
    ]
    assert len(set(all_ports)) == len(all_ports)
