"""The alerts of Prometheus: when somebody is called, and which page says what he can do.

`alerts.yml` beside this is made from these (`python -m infra.observe`). It is JSON, which is YAML.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, NamedTuple

ALERTS_FILE: Final = Path(__file__).with_name("alerts.yml")
RUNBOOKS: Final = "docs/how-to/runbooks"
CRITICAL: Final = "critical"
"""Somebody is to come at once: writes or reads fail."""
WARNING: Final = "warning"
"""Somebody is to look the same day: it goes on, slower or with less in reserve."""


class Alert(NamedTuple):
    """An alert. `lasts`: how long its expression has to hold. `runbook`: its page, without its
    ending."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    runbook: str


ALERTS: Final = (
    Alert(
        "LeaseholdNoMaster",
        "(max(leasehold_master) or vector(0)) < 1",
        "15s",
        CRITICAL,
        "no node is master: no write is decided",
        "no-master",
    ),
    Alert(
        "LeaseholdProcessDown",
        'up{job="leasehold"} == 0',
        "1m",
        CRITICAL,
        "{{ $labels.node }} can't be scraped: its process is gone, or does not answer",
        "process-down",
    ),
    Alert(
        "LeaseholdOftenElected",
        "sum(increase(leasehold_takeovers_total[30m])) > 3",
        "0s",
        WARNING,
        "the master has changed {{ $value | printf `%.0f` }} times in half an hour",
        "often-elected",
    ),
    Alert(
        "LeaseholdNotCoherent",
        "leasehold_coherent == 0",
        "1m",
        CRITICAL,
        "{{ $labels.node }} answers no reads: it holds no coherency lease",
        "not-coherent",
    ),
    Alert(
        "LeaseholdOftenNotCoherent",
        "increase(leasehold_coherency_losses_total[10m]) > 3",
        "0s",
        WARNING,
        "{{ $labels.node }} loses its coherency lease again and again",
        "not-coherent",
    ),
    Alert(
        "LeaseholdBehind",
        "(scalar(max(leasehold_applied_lsn)) - leasehold_applied_lsn) > 10000",
        "1m",
        WARNING,
        "{{ $labels.node }} is {{ $value | printf `%.0f` }} transactions behind",
        "behind",
    ),
    Alert(
        "LeaseholdSlowAppend",
        "histogram_quantile(0.99,"
        " sum by (le) (rate(leasehold_record_append_seconds_bucket[5m]))) > 1",
        "2m",
        CRITICAL,
        "one of a hundred records takes more than a second to the log: all writes wait",
        "slow-append",
    ),
    Alert(
        "LeaseholdQueueFull",
        "leasehold_queue_paused == 1",
        "1m",
        WARNING,
        "the queue {{ $labels.queue }} of the master is full: more is asked than decided",
        "queue-full",
    ),
    Alert(
        "LeaseholdDeadLetters",
        'sum(increase(leasehold_refusals_total{disposition="dead letter"}[10m])) > 0',
        "0s",
        WARNING,
        "requests have become dead letters: somebody has to look at them",
        "dead-letters",
    ),
    Alert(
        "LeaseholdJobWaitsForLeases",
        'leasehold_job_phase_age_seconds{phase=~"publishing|draining"} > 600',
        "0s",
        WARNING,
        "job {{ $labels.job }} on {{ $labels.table }} has waited ten minutes for leases",
        "job-waits",
    ),
    Alert(
        "LeaseholdJobFailed",
        'sum(increase(leasehold_jobs_ended_total{status="failed"}[10m])) > 0',
        "0s",
        WARNING,
        "a schema change has failed, and everything is as before it",
        "job-failed",
    ),
    Alert(
        "LeaseholdLedgerAway",
        'sum by (node) (increase(leasehold_ledger_calls_total{outcome="unavailable"}[2m])) > 0',
        "1m",
        WARNING,
        "the lease ledger in Redis does not answer {{ $labels.node }}: schema changes wait",
        "redis-away",
    ),
    Alert(
        "LeaseholdFastPathLeft",
        "max_over_time(leasehold_fast_path_pause_seconds[1m]) > 0",
        "5m",
        WARNING,
        "the fast path of {{ $labels.path }} on {{ $labels.node }} does not work; Kafka carries"
        " all, a little slower",
        "redis-away",
    ),
    Alert(
        "LeaseholdKafkaAway",
        "leasehold_kafka_client_up == 0",
        "30s",
        CRITICAL,
        "{{ $labels.node }} does not reach Kafka ({{ $labels.client }})",
        "kafka-away",
    ),
    Alert(
        "LeaseholdDiskNearlyFull",
        "leasehold_disk_free_bytes / leasehold_disk_bytes < 0.05",
        "5m",
        CRITICAL,
        "the disk of {{ $labels.node }}'s store is nearly full",
        "disk-nearly-full",
    ),
    Alert(
        "LeaseholdDiskBelowReserve",
        "leasehold_disk_short == 1",
        "0s",
        CRITICAL,
        "the disk of {{ $labels.node }}'s store has less than its reserve: a master refuses what"
        " needs room (53100)",
        "disk-nearly-full",
    ),
    Alert(
        "LeaseholdLogNearBudget",
        "leasehold_topic_budget_ratio > 0.8",
        "5m",
        WARNING,
        "the topic {{ $labels.topic }} has more than four fifths of LEASEHOLD_LOG_BUDGET_MB",
        "log-too-large",
    ),
    Alert(
        "LeaseholdLogBeyondBudget",
        "leasehold_topic_budget_ratio > 1",
        "5m",
        CRITICAL,
        "the topic {{ $labels.topic }} has more than LEASEHOLD_LOG_BUDGET_MB",
        "log-too-large",
    ),
    Alert(
        "LeaseholdRedisNearlyFull",
        "leasehold_redis_memory_ratio > 0.8",
        "5m",
        WARNING,
        "Redis uses more than four fifths of its maxmemory: beyond it leases are refused",
        "redis-away",
    ),
    Alert(
        "LeaseholdChangefeedBehind",
        "(scalar(max(leasehold_applied_commit_timestamp_seconds))"
        " - leasehold_changefeed_commit_timestamp_seconds) > 60",
        "1m",
        WARNING,
        "the changefeed is {{ $value | printf `%.0f` }} s behind: subscribers and backfills wait",
        "changefeed-behind",
    ),
    Alert(
        "LeaseholdFeedHeld",
        "leasehold_changefeed_held_feeds > 0",
        "5m",
        WARNING,
        "{{ $value }} feeds wait for their schema registry; their events are kept",
        "feed-held",
    ),
    Alert(
        "LeaseholdIntakeHeld",
        "leasehold_intake_held == 1",
        "5m",
        WARNING,
        "the intake {{ $labels.node }} does not go on with topic {{ $labels.topic }}",
        "intake-held",
    ),
    Alert(
        "LeaseholdRetriesStopped",
        "leasehold_retry_stream_trouble == 1",
        "5m",
        WARNING,
        "Spark does not retry requests that met a conflict",
        "retries-stopped",
    ),
)


def rules() -> str:
    """Return the file of rules that Prometheus reads."""
    made = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary,
                "runbook": f"{RUNBOOKS}/{alert.runbook}.md",
            },
        }
        for alert in ALERTS
    ]
    return json.dumps({"groups": [{"name": "leasehold", "rules": made}]}, indent=2) + "\n"
