"""The command `leasehold check`: every live node compares its rows and entries at one position of
the log."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from leasehold.adapters.os.clock import unix_us
from leasehold.admin.durations import span
from leasehold.admin.parts import checks_table
from leasehold.admin.repairs import Proof, proof_of
from leasehold.admin.report import check_report
from leasehold.admin.sliced_check import SlicedCheck
from leasehold.admin.view import SILENT_AFTER_US, ClusterView
from leasehold.admin.watch import ClusterWatch
from leasehold.cli.command import Subparsers, add, add_timeout
from leasehold.cli.exit_code import ExitCode
from leasehold.cli.looking import looking
from leasehold.cli.output import Output
from leasehold.model.errors import UnknownTable
from leasehold.model.ids import SEQUENCES_FROM, is_sequence_id
from leasehold.model.records.acks import ROLES_CHECKED, CheckReport
from leasehold.model.records.log import CheckSlice
from leasehold.replica.barrier import ask_check
from leasehold.settings.client import ClientSettings

EVERY_TABLE: Final = -1
US_PER_S: Final = 1_000_000
FINDINGS_SHOWN_MAX: Final = 20
SLICE_ROWS_MAX: Final = 10_000_000


def register(subparsers: Subparsers) -> None:
    parser = add(
        subparsers,
        "check",
        run,
        "Compares rows, columns and index entries on each node,\n"
        "and checksums between them; without a table also roles, memberships and\n"
        "privileges. Exit code 1 for findings, for checksums that differ at the\n"
        "same position, and for a live node that does not report in time.",
    )
    parser.add_argument("table", nargs="?", help="only this table")
    parser.add_argument(
        "--repair",
        action="store_true",
        help="then put right, on each node, index entries that its own rows prove wrong: only where"
        " its rows are those of all other nodes; everything else is listed and left alone",
    )
    parser.add_argument(
        "--slice-rows",
        type=positive_rows,
        default=0,
        metavar="ROWS",
        help="check the table in slices of so many rows or entries, each at a log position of its"
        " own: for a table that is too big for one pass, which holds back the store's WAL",
    )
    parser.set_defaults(refuse=parser.error)
    add_timeout(parser, 120.0, "the reports")


def positive_rows(text: str) -> int:
    """Return the number. Raises ArgumentTypeError unless it is from 1 to SLICE_ROWS_MAX."""
    if not text.isdecimal() or not 1 <= int(text) <= SLICE_ROWS_MAX:
        raise argparse.ArgumentTypeError(f"expected a number from 1 to {SLICE_ROWS_MAX:,}")
    return int(text)


def run(args: argparse.Namespace, settings: ClientSettings, output: Output) -> int:
    if args.repair and args.table is None:
        args.refuse("--repair wants the table that is to be repaired")
    if args.slice_rows and (args.table is None or args.repair):
        args.refuse("--slice-rows wants one table, and nothing to repair")
    with looking(settings, output) as (watch, view):
        table_ids = _find_tables(view, args.table)
        if not table_ids:
            if output.as_json:
                _show((), [], {}, None, output)
            else:
                output.line("no table yet: nothing to check", "dim")
            return ExitCode.OK
        live, silent = find_live(watch, view)
        if len(table_ids) == 1:
            live = [node for node in live if checks_table(view, node, table_ids[0])]
        names = {table_id: table.event.name for table_id, table in view.tables.items()}
        output.note(f"live nodes: {', '.join(live) or 'none'}; tables: {len(table_ids)} …")
        if silent:
            output.note(f"not asked, since nothing was heard of them: {', '.join(silent)}")
        look = Look(settings, watch, live, args.table is None, table_ids, args.timeout)
        if args.slice_rows:
            table = view.tables[table_ids[0]].descriptor
            return _check_in_slices(look, SlicedCheck(table, live, args.slice_rows), output)
        reports = look.reports()
        repaired = None
        unproven: tuple[str, ...] = ()
        if args.repair:
            proof = proof_of(reports)
            unproven = proof.reasons
            repaired = _repair_nodes(look, proof, output)
            if repaired:
                reports = look.reports()
    troubles = troubles_of(reports, look.wanted, names)
    for node in silent_on_roles(reports) if look.everything else ():
        output.note(f"node {node} is of an earlier release: its roles were not compared")
    troubles += [f"not repaired: {reason}" for reason in unproven]
    _show(reports, troubles, names, repaired, output)
    return ExitCode.NOT_RIGHT if troubles else ExitCode.OK


class Look(NamedTuple):
    """What is checked, by whom, and how long it is waited for."""

    settings: ClientSettings
    watch: ClusterWatch
    live: list[str]
    everything: bool
    table_ids: list[int]
    timeout_s: float

    @property
    def wanted(self) -> set[tuple[str, int]]:
        return self._wanted_by(self.watch.view)

    def _wanted_by(self, view: ClusterView) -> set[tuple[str, int]]:
        """Return who is to report on what: not on a table that is dropped meanwhile, of which the
        nodes may know before the view does."""
        return {
            (node, table_id)
            for node in self.live
            for table_id in self.table_ids
            if table_id in view.tables and checks_table(view, node, table_id)
        }

    def reports(self) -> list[CheckReport]:
        """Return the reports of every live node at one log position, of those that came in time."""
        check = EVERY_TABLE if self.everything else self.table_ids[0]
        return self._await_reports(ask_check(self.settings, check), self._wanted_by)

    def repair(self, node: str) -> CheckReport | None:
        """Return the node's report after its repair, or None if it has not said in time that it is
        done."""
        subject = ask_check(self.settings, self.table_ids[0], node)
        found = self._await_reports(subject, lambda _: {(node, self.table_ids[0])})
        return next((report for report in found if report.node == node), None)

    def slice(self, part: CheckSlice) -> list[CheckReport]:
        return self._await_reports(
            ask_check(self.settings, self.table_ids[0], part=part), self._wanted_by
        )

    def _await_reports(
        self, subject: bytes, wanted: Callable[[ClusterView], set[tuple[str, int]]]
    ) -> list[CheckReport]:
        self.watch.wait_for(
            lambda seen: (
                wanted(seen) <= _reported(seen, subject)
                and not _at_several_places(seen.checks.get(subject, {}).values())
            ),
            self.timeout_s,
        )
        return list(self.watch.view.checks.get(subject, {}).values())


def _repair_nodes(look: Look, proof: Proof, output: Output) -> dict[str, int]:
    """Repair node by node, and return how many entries each has put right."""
    done = {}
    for node in proof.nodes:
        report = look.repair(node)
        done[node] = report.repaired if report is not None else 0
        if report is None or report.error:
            why = report.error if report else "it has not answered in time; check again"
            output.error(f"node {node} was not repaired: {why}")
        else:
            output.note(f"node {node}: {plural(done[node])} put right by its own rows")
    if not proof.nodes and not proof.reasons:
        output.note("nothing to repair")
    return done


def _check_in_slices(look: Look, check: SlicedCheck, output: Output) -> int:
    while (part := check.wanted) is not None:
        check.take(look.slice(part))
    troubles = check.verdict()
    nodes: list[dict[str, Any]] = [
        {
            "node": node,
            "rows": check.rows[node],
            "entries": check.entries[node],
            "findings_total": check.findings_total[node],
            "took_ms": check.took_ms[node],
        }
        for node in check.rows
    ]
    if output.as_json:
        found = [{"node": node, "finding": list(each)} for node, each in check.findings]
        output.json(
            {"slices": check.slices, "nodes": nodes, "findings": found, "troubles": troubles}
        )
        return ExitCode.NOT_RIGHT if troubles else ExitCode.OK
    rows = [[*list(told.values())[:-1], span(told["took_ms"])] for told in nodes]
    output.table(["node", ">rows", ">entries", ">findings", ">took"], rows, "no live node")
    _show_verdict(
        check.findings[:FINDINGS_SHOWN_MAX], troubles, output, f", in {check.slices:,} slices"
    )
    return ExitCode.NOT_RIGHT if troubles else ExitCode.OK


def plural(entries: int) -> str:
    return f"{entries:,} index {'entry' if entries == 1 else 'entries'}"


def _find_tables(view: ClusterView, name: str | None) -> list[int]:
    found = [t for t, table in sorted(view.tables.items()) if name in (None, table.event.name)]
    if not found and name is not None:
        raise UnknownTable(f"table {name!r} does not exist", table=name)
    return found


def find_live(watch: ClusterWatch, view: ClusterView) -> tuple[list[str], list[str]]:
    """Return who lives, and who is silent: of whom nothing was heard lately, nor while he was
    listened to for as long as that. In a first view a node's newest words may be missing, since
    they stand behind all that had to be read before; and its clock may be behind."""
    at_us = view.as_of_us(unix_us())
    quiet = {name: node.ack for name, node in view.nodes.items() if view.is_silent(node, at_us)}

    def unheard(seen: ClusterView) -> list[str]:
        return [
            name
            for name, ack in quiet.items()
            if name in seen.nodes and seen.nodes[name].ack == ack
        ]

    if quiet:
        watch.wait_for(lambda seen: not unheard(seen), SILENT_AFTER_US / US_PER_S)
    silent = sorted(unheard(watch.view))
    return sorted(watch.view.nodes.keys() - silent), silent


def _reported(view: ClusterView, subject: bytes) -> set[tuple[str, int]]:
    return set(view.checks.get(subject, {}))


def _at_several_places(reports: Iterable[CheckReport]) -> dict[int, set[int]]:
    """Return the log offsets that tables were reported on at, of those that were at more than one.
    A request that was sent twice stands in the log twice, and a node answers each time: until all
    have answered the later one nothing is known of them."""
    places: dict[int, set[int]] = {}
    for report in reports:
        if not report.error:
            places.setdefault(report.table_id, set()).add(report.offset)
    return {table_id: offsets for table_id, offsets in places.items() if len(offsets) > 1}


def _name_of(table_id: int, names: dict[int, str]) -> str:
    """Return the name of what a report is on. Sequences are told of to nobody but the nodes: they
    have their numbers here."""
    if table_id == ROLES_CHECKED:
        return "roles and privileges"
    if is_sequence_id(table_id):
        return f"sequence {table_id - SEQUENCES_FROM}"
    return names.get(table_id, f"table {table_id}")


def troubles_of(
    reports: Sequence[CheckReport],
    wanted: set[tuple[str, int]],
    names: dict[int, str],
) -> list[str]:
    """Return sentences on what is not right: nodes that said nothing, findings, differences."""

    def name(table_id: int) -> str:
        return _name_of(table_id, names)

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
    for table_id, offsets in sorted(_at_several_places(reports).items()):
        places = ", ".join(f"{offset:,}" for offset in sorted(offsets))
        found.append(
            f"nodes have reported on {name(table_id)} at log offsets {places}, so that not all"
            " were compared: check again"
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


def silent_on_roles(reports: Sequence[CheckReport]) -> list[str]:
    """Return the nodes that have reported on tables and not on roles, which comes first."""
    told = {report.node for report in reports if report.table_id == ROLES_CHECKED}
    return sorted({report.node for report in reports} - told)


def _show(
    reports: Sequence[CheckReport],
    troubles: list[str],
    names: dict[int, str],
    repaired: dict[str, int] | None,
    output: Output,
) -> None:
    """Show the reports. `repaired` is a count by node, or None where no repair was asked for."""
    if output.as_json:
        told: list[dict[str, Any]] = [
            {"table": names.get(r.table_id, ""), **check_report(r)} for r in reports
        ]
        more = {} if repaired is None else {"repaired": repaired}
        output.json({"reports": told, "troubles": troubles, **more})
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
                _name_of(r.table_id, names),
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
    findings = [(r.node, found) for r in reports for found in r.findings[:FINDINGS_SHOWN_MAX]]
    _show_verdict(findings, troubles, output)


def _show_verdict(
    findings: Iterable[tuple[str, Any]], troubles: Sequence[str], output: Output, how: str = ""
) -> None:
    """Show what each node has found, and what is wrong with the whole, if anything."""
    for node, (condition, element, key, words) in findings:
        said = f"  {node} condition {condition}, element {element}, key {key}: {words}"
        output.line(said, "red")
    for trouble in troubles:
        output.line(f"! {trouble}", "red")
    if not troubles:
        output.line(f"consistent, and the same on every live node{how}", "green")
