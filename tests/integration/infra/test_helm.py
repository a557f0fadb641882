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


@pytest.mark.skipif(not WHEELS, reason="infra/chart_tools.sh has not fetched the descriptions")
def test_the_descriptions_are_those_of_kubernetes() -> None:
    assert json.loads(FILE.read_text("utf-8")) == read_schemas(Path(WHEELS[0]))
