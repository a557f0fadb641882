"""A frame of `leasehold top`: tables side by side with the width that there is. PURE."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leasehold.admin.durations import span
from leasehold.cli.job_watch import left_words
from leasehold.cli.output import STYLES, clock_time
from leasehold.cli.terminal_text import escape_control

WIDE: Final = 100
MEDIUM: Final = 64
ROWS_MAX: Final = 12
"""Of each table; who wants all asks the commands that are named."""


def make_frame(told: Mapping[str, Any], width: int) -> RenderableType:
    """Return a frame of what `frame_of` tells, for a terminal of that width."""
    parts: list[RenderableType] = [_head(told, width)]
    parts += [
        Text(f"! {part} can't be reached: {_plain(why)}", "red")
        for part, why in told["unreachable"].items()
    ]
    parts += [_nodes(told, width), _jobs(told, width)]
    if told["old_versions"]:
        parts.append(_old_versions(told))
    if told["hot_tables"]:
        parts.append(_hot_tables(told))
    parts += [Text(f"! {_plain(words)}", "yellow") for words in told["troubles"]]
    if not told["troubles"] and not told["unreachable"]:
        parts.append(Text("all is well", "green"))
    return Group(*parts)


def _head(told: Mapping[str, Any], width: int) -> RenderableType:
    log, rates, ledger = told["log"], told["rates"], told["ledger"]
    waiting = ", ".join(f"{queue} {n:,}" for queue, n in told["waiting"].items() if n)
    facts = [
        f"{told['database']} {clock_time(told['now_us'])}",
        f"master {log['master'] or 'none'} · epoch {log['epoch']} · LSN {log['lsn']:,}",
        (
            f"{rates['committed_per_second']:,.0f} commits/s"
            f" · {rates['refused_per_second']:,.0f} refused/s"
        ),
        f"ledger {ledger['state']} · {ledger['sessions']} sessions · {ledger['leases']} leases",
        f"waiting: {waiting or 'nobody'}",
    ]
    if width < WIDE:
        return Group(*(Text(_plain(fact), "bold" if not n else "") for n, fact in enumerate(facts)))
    return Group(Text(_plain("   ".join(facts[:3])), "bold"), Text(_plain("   ".join(facts[3:]))))


def _nodes(told: Mapping[str, Any], width: int) -> RenderableType:
    heads = ["node", "coherency", ">lag"]
    heads += ["role", ">LSN", ">heard"] if width >= MEDIUM else []
    rows = [
        [
            node["node"],
            node["coherency"],
            f"{node['lag_records']:,}",
            *([node["role"], f"{node['lsn']:,}", span(node["age_ms"])] if width >= MEDIUM else []),
        ]
        for node in told["nodes"]
    ]
    return _table(heads, rows, "no node has been heard of", "leasehold status")


def _jobs(told: Mapping[str, Any], width: int) -> RenderableType:
    heads = ["job", "table", ">done", ">left"]
    heads += ["doing", "waits for"] if width >= MEDIUM else []
    rows = []
    for job in told["jobs"]:
        row = [str(job["job"]), job["table"], f"{job['fraction'] * 100:.0f} %"]
        row.append(left_words(job) or "–")
        if width >= MEDIUM:
            row += [f"{job['phase']}: {job['doing']}", "; ".join(job["waits_for"]) or "–"]
        rows.append(row)
    return _table(heads, rows, "no job runs", "leasehold jobs")


def _old_versions(told: Mapping[str, Any]) -> RenderableType:
    rows = [
        [each["table"], f"{each['version']} of {each['current']}", ", ".join(each["agents"])]
        for each in told["old_versions"]
    ]
    return _table(["table", ">version", "still held by"], rows, "", "leasehold leases")


def _hot_tables(told: Mapping[str, Any]) -> RenderableType:
    rows = [[each["table"], f"{each['changes_per_second']:,}"] for each in told["hot_tables"]]
    return _table(["table", ">rows changed/s"], rows, "", "leasehold versions")


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], empty: str, more: str
) -> RenderableType:
    if not rows:
        return Text(f"\n{empty}", "dim")
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in heads:
        right = head.startswith(">")
        table.add_column(
            Text(head.removeprefix(">")),
            justify="right" if right else "left",
            no_wrap=True,
            overflow="ellipsis",
        )
    for row in rows[:ROWS_MAX]:
        table.add_row(*(Text(_plain(cell), STYLES.get(cell, "")) for cell in row))
    parts: list[RenderableType] = [Text(), table]
    if len(rows) > ROWS_MAX:
        parts.append(Text(f"… and {len(rows) - ROWS_MAX:,} more: {more}", "dim"))
    return Group(*parts)


def _plain(text: str) -> str:
    return escape_control(text)
