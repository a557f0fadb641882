"""Goal: what is committed is what Helm makes of the chart; it refuses what can't work.

Method: the Helm that `infra/chart_tools.sh` has built, which takes minutes: so these are long
tests.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Final

import pytest
from ruamel.yaml import YAML

from infra.chart.rendering import (
    CHART,
    ROOT,
    ChartFailure,
    find_helm,
    render,
    rendered_file,
    run_helm,
    value_files,
)
from infra.chart.schemas import FILE, read_schemas

WHEELS: Final = tuple((ROOT / ".leasehold" / "chart-tools").glob("kubernetes_validate-*.whl"))
pytestmark = pytest.mark.long("Helm is built for it, in some minutes")


@pytest.fixture(scope="module")
def helm() -> str:
    try:
        return find_helm()
    except ChartFailure as failure:
        pytest.skip(str(failure))


@pytest.mark.parametrize("name", value_files())
def test_the_committed_file_is_the_rendered_one(helm: str, name: str) -> None:
    assert rendered_file(name).read_text("utf-8") == render(helm, name), "run: make chart"
    run_helm([helm, "lint", "--strict", str(CHART), f"--values={value_files()[name]}"])


REFUSED: Final = {
    "a misspelt value": (["--set", "kafka.bootstrp=x:1"], "bootstrp"),
    "in the clear without a word": (["--set", "allowPlaintext=false"], "snapshots.tlsSecret"),
    "passwords of nowhere": (["--set", "kafka.security=SASL_SSL"], "kafka.passwordsSecret"),
    "to restore from nowhere": (["--set", "restore.enabled=true"], "restore.place"),
    "to restore to two places of the log": (
        [
            *("--set", "restore.enabled=true,restore.claim=c"),
            *("--set", "restore.toLsn=7,restore.toTime=2026-11-28T21:15:00Z"),
        ],
        "restore.toLsn",
    ),
    "executors without a folder": (["--set", "spark.mode=kubernetes"], "spark.folder"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_it_refuses_in_words(helm: str, wrong: str) -> None:
    more, words = REFUSED[wrong]
    values = value_files()["minimal"]
    with pytest.raises(ChartFailure, match=words):
        run_helm([helm, "template", "leasehold", str(CHART), f"--values={values}", *more])


def test_the_notes_say_how_to_look_at_it(helm: str, tmp_path: Path) -> None:
    """Helm shows them to who installs, for which it asks a cluster: here as a manifest."""
    chart = tmp_path / CHART.name
    shutil.copytree(CHART, chart)
    text = (chart / "templates" / "NOTES.txt").read_text("utf-8")
    (chart / "templates" / "NOTES.txt").unlink()
    (chart / "templates" / "_notes.tpl").write_text(f'{{{{ define "notes" }}}}{text}{{{{ end }}}}')
    (chart / "templates" / "notes.yaml").write_text(
        'notes: |\n{{ include "notes" . | indent 2 }}\n'
    )
    command = [helm, "template", "leasehold", str(chart), "--namespace=default"]
    more = [f"--values={value_files()['observed']}", "--show-only=templates/notes.yaml"]
    notes = run_helm([*command, *more])
    assert "exec deploy/leasehold-operator -- leasehold status" in notes
    assert "leasehold-sql.default.svc:5432" in notes


def test_a_position_and_a_key_reach_the_restoring_command(helm: str) -> None:
    """A number of a million and more stays one."""
    values = value_files()["restored"]
    said = "restore.toLsn=1234567,restore.keySecret=k,restore.id=full-7,restore.rate=50"
    told = run_helm(
        [
            *(helm, "template", "leasehold", str(CHART), f"--values={values}", "--set", said),
            "--show-only=templates/restore.yaml",
        ]
    )
    _, job = (each for each in YAML(typ="safe").load_all(told) if each)
    command = job["spec"]["template"]["spec"]["containers"][0]["command"]
    assert command[command.index("--to-lsn") + 1] == "1234567"
    assert command[command.index("--id") + 1] == "full-7"
    assert command[command.index("--rate") + 1] == "50"
    assert command[command.index("--key-file") + 1] == "/run/secrets/leasehold/backup-key"


@pytest.mark.skipif(not WHEELS, reason="infra/chart_tools.sh has not fetched the descriptions")
def test_the_descriptions_are_those_of_kubernetes() -> None:
    assert json.loads(FILE.read_text("utf-8")) == read_schemas(Path(WHEELS[0]))
