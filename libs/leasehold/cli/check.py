"""`leasehold check`: every live node compares its rows and entries at one position of the log."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, Final

from leasehold.cli.command import Subparsers, add, positive_seconds
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking, now_us
from leasehold.cli.output import Output, span
from leasehold.client.barrier import append_barrier
from leasehold.client.client_settings import ClientSettings
from leasehold.client.cluster_report import check_report
from leasehold.client.cluster_view import ClusterView
from leasehold.model.errors import UnknownTable
from leasehold.model.records import CheckReport

EVERY_TABLE: Final = -1
FINDINGS_SHOWN_MAX: Final = 20


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "check",
        run,
        "have every live node check its tables at one log position",
        "Compares rows, columns and index entries (the seven conditions of d ⊨ S) on each node,\n"
        "and checksums between them. Exit code 1 for findings, for checksums that differ at the\n"
        "same position, and for a live node that does not report in time.",
    )
    parser.add_argument("table", nargs="?", help="only this table")
    parser.add_argument(
        "--timeout",
        type=positive_seconds,
        default=120.0,
        metavar="SECONDS",
        help="longest wait for the reports (default: 120)",
    )


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    with looking(settings) as (watch, view):
        table_ids = _table_ids(view, args.table)
        if not table_ids:
            if output.as_json:
                _show((), [], {}, output)
            else:
                output.line("no table yet: nothing to check", "dim")
            return ExitCode.OK
        live = live_nodes(view, now_us())
        subject = append_barrier(settings, EVERY_TABLE if args.table is None else table_ids[0])
        output.note(f"live nodes: {', '.join(live) or 'none'}; tables: {len(table_ids)} …")
        wanted = {(node, table_id) for node in live for table_id in table_ids}
        watch.wait_for(lambda seen: wanted <= _reported(seen, subject), args.timeout)
        reports = [report for report in watch.view.checks if report.subject == subject]
        names = {table_id: table.event.name for table_id, table in view.tables.items()}
    troubles = troubles_of(reports, wanted, names)
    _show(reports, troubles, names, output)
    return ExitCode.NOT_RIGHT if troubles else ExitCode.OK


def _table_ids(view: ClusterView, name: str | None) -> list[int]:
    found = [t for t, table in sorted(view.tables.items()) if name in (None, table.event.name)]
    if not found and name is not None:
        raise UnknownTable(f"table {name!r} does not exist", table=name)
    return found


def live_nodes(view: ClusterView, now: int) -> list[str]:
    return sorted(name for name, node in view.nodes.items() if not node.silent(now))


def _reported(view: ClusterView, subject: bytes) -> set[tuple[str, int]]:
    return {(r.node, r.table_id) for r in view.checks if r.subject == subject}


def troubles_of(
    reports: Sequence[CheckReport],
    wanted: set[tuple[str, int]],
    names: dict[int, str],
) -> list[str]:
    """Sentences on what is not right: nodes that said nothing, findings, differences."""

    def name(table_id: int) -> str:
        return names.get(table_id, f"table {table_id}")

    found = [
        f"node {node} has not reported on {name(table_id)}"
        for node, table_id in sorted(wanted - {(r.node, r.table_id) for r in reports})
    ]
    if not wanted:
        found.append("no live node: nobody can check")
    for report in reports:
        if report.error:
            found.append(
                f"node {report.node} could not check {name(report.table_id)}: {report.error}"
            )
        elif report.findings_total:
            found.append(
                f"node {report.node} has {report.findings_total:,} findings in "
                f"{name(report.table_id)}"
            )
    # L6: stores at the same log position are equal.
    by_place: dict[tuple[int, int], dict[bytes, list[str]]] = {}
    for report in reports:
        if not report.error:
            sums = by_place.setdefault((report.table_id, report.offset), {})
            sums.setdefault(report.checksum, []).append(report.node)
    for (table_id, offset), sums in sorted(by_place.items()):
        if len(sums) > 1:
            groups = " against ".join(", ".join(sorted(nodes)) for nodes in sums.values())
            found.append(f"{name(table_id)} differs at log offset {offset:,}: {groups}")
    return found


def _show(
    reports: Sequence[CheckReport], troubles: list[str], names: dict[int, str], output: Output
) -> None:
    if output.as_json:
        told: list[dict[str, Any]] = [
            {"table": names.get(r.table_id, ""), **check_report(r)} for r in reports
        ]
        output.json({"reports": told, "troubles": troubles})
        return
    output.table(
        [
            "table",
            "node",
            ">LSN",
            ">version",
            ">rows",
            ">entries",
            "checksum",
            ">findings",
            ">took",
        ],
        [
            [
                names.get(r.table_id, str(r.table_id)),
                r.node,
                r.lsn,
                f"v{r.version}",
                r.rows,
                sum(r.entries.values()),
                r.checksum.hex()[:16],
                r.findings_total,
                span(r.took_ms),
            ]
            for r in sorted(reports, key=lambda r: (r.table_id, r.node))
        ],
        "no node has reported",
    )
    for report in reports:
        for condition, element, key, words in report.findings[:FINDINGS_SHOWN_MAX]:
            output.line(
                f"  {report.node} condition {condition}, element {element}, key {key}: {words}",
                "red",
            )
    for trouble in troubles:
        output.line(f"! {trouble}", "red")
    if not troubles:
        output.line("consistent, and the same on every live node", "green")
