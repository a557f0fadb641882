"""What commands print with `--json` is what their JSON Schemas say.

Method: reports as commands make them, of views that have all there is, held to the schemas; what
`leasehold schema` and `init` print is held to them by their own tests, through `check`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from leasehold.admin.job_report import jobs_report
from leasehold.admin.report import leases_report, ledger_report, report, table_report
from leasehold.admin.upgrade_report import upgrade_report
from leasehold.admin.view import TopicEnds
from leasehold.catalog.job import Phase
from leasehold.cli.json_forms import ERROR, FORMS
from leasehold.cli.main import main
from leasehold.cli.status import troubles_of
from leasehold.cli.top import HotTables, frame_of
from leasehold.lease.replies import Holding
from tests.support.admin.view_events import NOW, ack, job, ledger, log, seen, version


def wrong(name: str, value: Any) -> list[str]:
    """What of a value is not as the schema of a command says."""
    found = Draft202012Validator(FORMS[name].schema).iter_errors(value)
    return [f"{name} {error.json_path}: {error.message[:200]}" for error in found]


VIEW = seen(
    *(log(7), ack("m1", "master"), ack("r1", coherent=False), version(1), version(2), job()),
    job(job_id=3, phase=Phase.BACKFILLING),
    ledger({1: (Holding(1, 2, 7, "a"),)}, sessions=((7, 3, False),)),
    TopicEnds({"requests": 4, "rows/1": 3}),
)
EMPTY = seen()


def test_every_schema_is_one() -> None:
    for schema in (ERROR, *(form.schema for form in FORMS.values())):
        Draft202012Validator.check_schema(dict(schema))


def test_reports_are_as_they_are_documented() -> None:
    found = []
    for view in (VIEW, EMPTY):
        told = report(view, NOW)
        found += wrong("status", {**told, "troubles": troubles_of(told)})
        found += wrong("top", frame_of(view, HotTables(view), "main"))
        found += wrong("upgrade", upgrade_report(view, NOW))
        found += wrong("jobs", jobs_report(view, NOW))
        leases = {"ledger": ledger_report(view, NOW), "leases": leases_report(view, NOW)}
        found += wrong("leases", leases)
        for table in view.tables.values():
            found += wrong("versions", table_report(view, table))
        for each in jobs_report(view, NOW):
            found += wrong("jobs watch", each)
    assert found == []


def test_what_is_printed_is_as_it_is_documented(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", "--file", str(tmp_path / "x.env"), "--json"]) == 0
    assert main(["completion", "bash", "--json"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert wrong("init", first) + wrong("completion", second) == []
    assert main(["init", "--file", str(tmp_path / "x.env"), "--json"]) == 2
    Draft202012Validator(ERROR).validate(json.loads(capsys.readouterr().out))


def test_a_name_that_is_gone_is_found() -> None:
    told = frame_of(VIEW, HotTables(VIEW), "main")
    del told["hot_tables"]
    told["jobs"][0]["job"] = "2"
    assert len(wrong("top", told)) == 2
