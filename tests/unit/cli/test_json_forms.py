"""What commands print with `--json` is what their JSON Schemas say.

Method: reports as commands make them, of views that have all there is, held to the schemas. What
needs a database is held to them by the tests that run the command: `check_printed` looks at all
that the suites' commands print.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from leasehold.adapters.audit.lines import encode_line
from leasehold.admin.dead_letters import letter_report
from leasehold.admin.job_report import jobs_report
from leasehold.admin.report import check_report, leases_report, ledger_report, report, table_report
from leasehold.admin.troubles import troubles_of
from leasehold.admin.upgrade_report import upgrade_report
from leasehold.admin.view import TopicEnds
from leasehold.catalog.job import Phase
from leasehold.cli.completion import all_words
from leasehold.cli.doctor.checks import CHECKS
from leasehold.cli.doctor.finding import count, examine
from leasehold.cli.json_forms import ERROR, FORMS
from leasehold.cli.main import main
from leasehold.cli.output import Output, show_outcome
from leasehold.cli.top import HotTables, frame_of
from leasehold.lease.replies import Holding
from leasehold.model.audit import Audited, AuditEvent
from leasehold.model.records.acks import CheckReport
from leasehold.model.records.requests import DeadLetter, Outcome
from leasehold.schema_change.plan.explain import ExplainRow
from tests.support.admin.doctor_facts import good_facts
from tests.support.admin.view_events import NOW, ack, job, ledger, log, seen, version
from tests.support.cli.json_output import WITHOUT_FORM, check_printed, form_of, wrong

PRINTS_NOTHING = {"user add", "user remove", "intake run"}
HISTORY = {"versions diff", "versions history"}
"""No actions, but words in a table's place."""
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


def test_every_command_that_prints_json_is_documented() -> None:
    """Its actions, too; what is not there any more is not documented either."""
    all_paths = {words.path for words in all_words()}
    printing = {words.path for words in all_words() if "--json" in words.options}
    undocumented = {path for path in printing if form_of(path.split()) is None}
    undocumented -= {path.rpartition(" ")[0] for path in all_paths}  # what wants an action
    assert undocumented <= WITHOUT_FORM | PRINTS_NOTHING
    assert FORMS.keys() <= all_paths | HISTORY


def test_what_becomes_of_a_request_is_as_it_is_documented(
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = Output(as_json=True)
    done = Outcome(1, 41, 0, NOW, True, answer={"level": 3})
    refused = Outcome(1, 0, 0, NOW, True, "55000", "no", {"job": 7})
    for outcome in (done, refused):
        for words, more in (
            (["upgrade", "finalize"], {}),
            (["clock", "reset"], {}),
            (["jobs", "pause"], {"job": 7, "action": "pause"}),
            (["dead-letter", "resubmit"], {"id": "0193"}),
        ):
            show_outcome(outcome, output, str, **more)
            assert check_printed([*words, "--json"], capsys.readouterr().out)


def test_parts_of_reports_are_as_they_are_documented() -> None:
    step = ExplainRow(1, 2, "column gate", "leases of version 1", -1, False, -1)
    check = CheckReport(
        b"job:1", "r1", b"", 1, 2, 3, 4, 5, {7: 8}, b"x", 1, ((1, 2, (3,), "w"),), 9
    )
    of_request = (bytes(16), 1, "23505", "words")
    letter = DeadLetter(*of_request, {}, NOW, "requests", 3, "application/json", b"{}")
    told = letter_report(4, letter)
    found = wrong("ddl", [step.to_wire()])
    found += wrong("check", {"reports": [{"table": "t", **check_report(check)}], "troubles": []})
    found += wrong("dead-letter", [told])
    found += wrong("dead-letter explain", {**told, "advice": "none"})
    findings = examine(good_facts(), CHECKS)
    about = {"database": "d", "release": "1.0", "counts": count(findings)}
    found += wrong("doctor", {**about, "findings": [each.to_json() for each in findings]})
    event = json.loads(encode_line(AuditEvent(Audited.GRANT, user="anna"), "r1", NOW))
    found += wrong("audit", event)
    assert found == []


def test_a_name_that_is_gone_is_found() -> None:
    told = frame_of(VIEW, HotTables(VIEW), "main")
    del told["hot_tables"]
    told["jobs"][0]["job"] = "2"
    assert len(wrong("top", told)) == 2
