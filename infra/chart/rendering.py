"""Renders the chart with Helm: with each set of values of its folder `ci`.

What comes of it is committed (`infra/helm/rendered`), so that tests of it need no Helm, which takes
minutes to build, and so that it can be read. A digest in the first line tells what it was made of.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML

ROOT: Final = Path(__file__).resolve().parent.parent.parent
CHART: Final = ROOT / "infra" / "helm" / "leasehold"
RENDERED: Final = ROOT / "infra" / "helm" / "rendered"
TOOLS: Final = ROOT / ".leasehold" / "chart-tools" / "bin"
RELEASE: Final = "leasehold"
NAMESPACE: Final = "default"
TIMEOUT_S: Final = 60
DIGEST_CHARACTERS: Final = 16


class ChartFailure(Exception):
    """Helm is not there, or does not take the chart; its words say why."""


def value_files() -> dict[str, Path]:
    """Return the files of values, each by its name."""
    return {path.stem: path for path in sorted((CHART / "ci").glob("*.yaml"))}


def rendered_file(name: str) -> Path:
    return RENDERED / f"{name}.yaml"


def chart_digest() -> str:
    """Return a digest of all that the rendered files are made of."""
    digest = hashlib.sha256()
    for path in sorted(CHART.rglob("*")):
        if path.is_file():
            digest.update(f"{path.relative_to(CHART)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:DIGEST_CHARACTERS]


def header(name: str) -> str:
    """Return the first lines of a rendered file."""
    return (
        f"# infra/helm/leasehold, digest {chart_digest()}, with ci/{name}.yaml.\n"
        "# Written by `make chart`; not edited by hand.\n"
    )


def find_helm(environ: Mapping[str, str] | None = None) -> str:
    """Return the path of Helm: what `infra/chart_tools.sh` has built, else that of the PATH. Raises
    ChartFailure."""
    built = TOOLS / "helm"
    search = (os.environ if environ is None else environ).get("PATH")
    found = str(built) if built.is_file() else shutil.which("helm", path=search)
    if found is None:
        raise ChartFailure("there is no helm; infra/chart_tools.sh builds it, with Go")
    return found


def render(helm: str, name: str) -> str:
    """Return what Helm makes of the chart with a set of values. Raises ChartFailure."""
    values = value_files()[name]
    command = [helm, "template", RELEASE, str(CHART), f"--namespace={NAMESPACE}"]
    return header(name) + run_helm([*command, f"--values={values}"])


def run_helm(command: list[str]) -> str:
    """Return what a command of Helm's prints. Raises ChartFailure."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ChartFailure(f"{command[0]} can't be run: {error}") from error
    if done.returncode != 0:
        raise ChartFailure(f"{' '.join(command[1:3])}: {done.stderr.strip()}")
    return done.stdout


def manifests(name: str) -> list[dict[str, Any]]:
    """Return the manifests of a rendered file."""
    text = rendered_file(name).read_text("utf-8")
    return [each for each in YAML(typ="safe").load_all(text) if each]
