"""The boards of Grafana: panels as data, and the JSON that Grafana imports.

The files in `boards/` are made from these (`python -m infra.observe`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

FOLDER: Final = Path(__file__).with_name("boards")
SCHEMA_VERSION: Final = 38
"""Of Grafana 10, which later ones read."""
WIDTH: Final = 24
HEIGHT: Final = 8
ACROSS: Final = 3


class Line(NamedTuple):
    """A line of a panel. `name`: what its legend says, with labels in double braces."""

    expression: str
    name: str = "{{node}}"


class Panel(NamedTuple):
    """A panel of lines over time. `unit`: in Grafana's words."""

    title: str
    unit: str
    lines: tuple[Line, ...]


class Board(NamedTuple):
    """A board. `name`: of its file, and in its address."""

    name: str
    title: str
    panels: tuple[Panel, ...]


def _quantiles(metric: str, by: str = "") -> tuple[Line, ...]:
    """Return the middle and the slowest of a histogram, for each value of the label `by`."""
    grouped = f"le, {by}" if by else "le"
    behind = f" {{{{{by}}}}}" if by else ""
    return tuple(
        Line(
            f"histogram_quantile({q}, sum by ({grouped}) (rate({metric}_bucket[1m])))",
            f"p{round(100 * q)}{behind}",
        )
        for q in (0.5, 0.99)
    )


OVERVIEW: Final = Board(
    "leasehold-overview",
    "Leasehold: overview",
    (
        Panel("Master", "short", (Line("leasehold_master"),)),
        Panel("Coherent", "short", (Line("leasehold_coherent"),)),
        Panel(
            "Takeovers and terms lost",
            "short",
            (
                Line("increase(leasehold_takeovers_total[5m])", "{{node}} took over"),
                Line("increase(leasehold_terms_lost_total[5m])", "{{node}} lost its term"),
            ),
        ),
        Panel(
            "Commits a second", "ops", (Line("sum(rate(leasehold_commits_total[1m]))", "commits"),)
        ),
        Panel(
            "Refusals a second",
            "ops",
            (
                Line(
                    "sum by (sqlstate, disposition) (rate(leasehold_refusals_total[1m]))",
                    "{{sqlstate}} {{disposition}}",
                ),
                Line("sum(rate(leasehold_replays_total[1m]))", "replays"),
            ),
        ),
        Panel("Request to answer", "s", _quantiles("leasehold_request_seconds")),
        Panel("Station 1: queue", "s", _quantiles("leasehold_request_queue_seconds")),
        Panel("Station 2: decision", "s", _quantiles("leasehold_record_decide_seconds")),
        Panel("Station 3: log", "s", _quantiles("leasehold_record_append_seconds")),
        Panel("Station 4: nodes", "s", _quantiles("leasehold_record_acknowledge_seconds")),
        Panel(
            "Transactions behind",
            "short",
            (Line("scalar(max(leasehold_applied_lsn)) - leasehold_applied_lsn"),),
        ),
        Panel(
            "Bytes that wait on the master",
            "bytes",
            (
                Line("leasehold_queue_bytes", "{{queue}}"),
                Line("leasehold_answers_waiting_bytes", "answers"),
            ),
        ),
        Panel(
            "Changefeed behind",
            "s",
            (
                Line(
                    "scalar(max(leasehold_applied_commit_timestamp_seconds))"
                    " - leasehold_changefeed_commit_timestamp_seconds",
                    "changefeed",
                ),
            ),
        ),
        Panel("Kafka is reached", "short", (Line("min by (node) (leasehold_kafka_client_up)"),)),
        Panel(
            "Redis is reached", "short", (Line("min by (node) (leasehold_redis_connection_up)"),)
        ),
    ),
)
TABLES: Final = Board(
    "leasehold-tables",
    "Leasehold: tables and statements",
    (
        Panel(
            "Row changes a second",
            "ops",
            (
                Line(
                    "topk(10, max by (table) (rate(leasehold_table_row_changes_total[1m])))",
                    "{{table}}",
                ),
            ),
        ),
        Panel(
            "Statements a second",
            "ops",
            (Line("sum by (kind) (rate(leasehold_statements_total[1m]))", "{{kind}}"),),
        ),
        Panel("Statements", "s", _quantiles("leasehold_statement_seconds", "kind")),
        Panel(
            "Statements that failed",
            "ops",
            (
                Line(
                    "sum by (sqlstate) (rate(leasehold_statement_errors_total[1m]))",
                    "{{sqlstate}}",
                ),
            ),
        ),
        Panel("Sessions", "short", (Line("sum by (state) (leasehold_sessions)", "{{state}}"),)),
        Panel("Requests in flight", "short", (Line("leasehold_requests_in_flight", "{{node}}"),)),
        Panel(
            "Rows of jobs",
            "short",
            (
                Line("leasehold_job_rows_done", "{{job}} {{table}} done"),
                Line("leasehold_job_rows", "{{job}} {{table}} in all"),
            ),
        ),
        Panel("Jobs go on for", "s", (Line("leasehold_job_left_seconds", "{{job}} {{table}}"),)),
        Panel("Dead letters", "short", (Line("leasehold_dead_letters", "dead letters"),)),
    ),
)
NODE: Final = Board(
    "leasehold-node",
    "Leasehold: nodes",
    (
        Panel("Apply a record", "s", _quantiles("leasehold_record_apply_seconds", "node")),
        Panel("Records a second", "ops", (Line("rate(leasehold_records_applied_total[1m])"),)),
        Panel(
            "Seconds without coherency, of each second",
            "percentunit",
            (Line("rate(leasehold_incoherent_seconds_total[1m])"),),
        ),
        Panel(
            "Fast paths in use", "short", (Line("leasehold_fast_path_in_use", "{{node}} {{path}}"),)
        ),
        Panel(
            "Fast paths left",
            "ops",
            (Line("rate(leasehold_fast_path_exits_total[5m])", "{{node}} {{path}}: {{reason}}"),),
        ),
        Panel("Calls of the ledger", "s", _quantiles("leasehold_ledger_call_seconds", "node")),
        Panel("Memory", "bytes", (Line("process_resident_memory_bytes"),)),
        Panel("Memory of statements", "bytes", (Line("leasehold_statement_memory_bytes"),)),
        Panel("Processors", "percentunit", (Line("rate(process_cpu_seconds_total[1m])"),)),
        Panel(
            "Store",
            "bytes",
            (
                Line("leasehold_store_bytes", "{{node}} file"),
                Line("leasehold_store_wal_bytes", "{{node}} WAL"),
            ),
        ),
        Panel(
            "Pages of the WAL that are not copied",
            "short",
            (Line("leasehold_store_wal_pages_uncopied"),),
        ),
        Panel(
            "Checkpoints a minute",
            "short",
            (Line("60 * rate(leasehold_store_checkpoints_total[5m])", "{{node}} by {{by}}"),),
        ),
        Panel(
            "Cache hits",
            "percentunit",
            (
                Line(
                    "rate(leasehold_store_cache_hits_total[1m])"
                    " / (rate(leasehold_store_cache_hits_total[1m])"
                    " + rate(leasehold_store_cache_misses_total[1m]))"
                ),
            ),
        ),
        Panel("Free on the disk", "bytes", (Line("leasehold_disk_free_bytes"),)),
        Panel(
            "Warnings and errors a minute",
            "short",
            (
                Line(
                    '60 * rate(leasehold_log_lines_total{level=~"warning|error"}[5m])',
                    "{{node}} {{level}}",
                ),
            ),
        ),
    ),
)
SCHEMA_CHANGE: Final = Board(
    "leasehold-schema-change",
    "Leasehold: schema changes",
    (
        Panel(
            "Jobs by phase",
            "short",
            (Line("sum by (phase, status) (leasehold_jobs)", "{{phase}} ({{status}})"),),
        ),
        Panel(
            "Jobs are in their phase for",
            "s",
            (Line("leasehold_job_phase_age_seconds", "{{job}} {{table}} {{phase}}"),),
        ),
        Panel("Phases took", "s", _quantiles("leasehold_job_phase_seconds", "phase")),
        Panel(
            "Jobs that ended",
            "short",
            (Line("sum by (status) (increase(leasehold_jobs_ended_total[1h]))", "{{status}}"),),
        ),
        Panel(
            "Leases on old versions",
            "short",
            (Line('leasehold_descriptor_leases{version="before"}'),),
        ),
        Panel("Age of the oldest of them", "s", (Line("leasehold_old_lease_age_seconds"),)),
        Panel(
            "Backfill, rows a second",
            "ops",
            (Line("sum(rate(leasehold_backfill_rows_total[1m]))", "into the log"),),
        ),
        Panel("Rows of a round beside users", "short", (Line("leasehold_backfill_round_rows"),)),
        Panel(
            "Spark, rows a second", "ops", (Line("leasehold_spark_run_rows_per_second", "{{job}}"),)
        ),
        Panel("Micro-batches", "s", _quantiles("leasehold_spark_batch_seconds", "stream")),
        Panel(
            "Retries",
            "short",
            (
                Line("leasehold_retry_waiting_requests", "buckets that wait"),
                Line("leasehold_retry_stream_trouble", "the stream can't work"),
            ),
        ),
        Panel("The ledger troubles jobs", "short", (Line("leasehold_ledger_trouble"),)),
    ),
)
BOARDS: Final = (OVERVIEW, TABLES, NODE, SCHEMA_CHANGE)


def board_json(board: Board) -> str:
    """Return what Grafana imports. Its data source is chosen there."""
    body: dict[str, Any] = {
        "uid": board.name,
        "title": board.title,
        "tags": ["leasehold"],
        "schemaVersion": SCHEMA_VERSION,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "annotations": {"list": []},
        "templating": {
            "list": [{"name": "source", "type": "datasource", "query": "prometheus"}],
        },
        "panels": [_panel(number, panel) for number, panel in enumerate(board.panels)],
    }
    return json.dumps(body, indent=2) + "\n"


def _panel(number: int, panel: Panel) -> dict[str, Any]:
    width = WIDTH // ACROSS
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "datasource": source,
        "gridPos": {
            "x": number % ACROSS * width,
            "y": number // ACROSS * HEIGHT,
            "w": width,
            "h": HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + place),
                "expr": line.expression,
                "legendFormat": line.name,
                "datasource": source,
            }
            for place, line in enumerate(panel.lines)
        ],
    }
