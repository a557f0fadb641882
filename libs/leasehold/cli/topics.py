"""The command `leasehold topics`: the topics of a database, created where they are missing."""

from __future__ import annotations

import argparse

from leasehold.adapters.kafka.topic_creation import ensure_topics
from leasehold.cli.command import Subparsers, add
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.output import Output
from leasehold.settings.client import ClientSettings


def register(subparsers: Subparsers) -> None:
    add(
        subparsers,
        "topics",
        run,
        "Nothing that is there is altered. LEASEHOLD_REPLICATION_FACTOR says how many brokers keep"
        " each.",
    )


def run(_: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    topics = settings.topics.all_static()
    report = ensure_topics(settings.kafka, topics, settings.cluster.replication_factor)
    if output.as_json:
        output.json({"created": report.created, "existing": report.existing, "drift": report.drift})
    else:
        output.line(f"{len(report.created)} created, {len(report.existing)} were there")
    for sentence in report.drift:
        output.note(f"warning: {sentence}")
    return ExitCode.OK
