"""Render the Helm chart: `python -m infra.chart`.

With `--check` nothing is written: exit code 1 names what is out of date, or what Helm says.
"""

from __future__ import annotations

import sys
from pathlib import Path

from infra.chart.rendering import (
    CHART,
    RENDERED,
    ChartFailure,
    find_helm,
    render,
    rendered_file,
    run_helm,
    value_files,
)


def main(arguments: list[str]) -> int:
    """Write or check; return the exit code."""
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        helm = find_helm()
        for values in value_files().values():
            run_helm([helm, "lint", "--strict", "--quiet", str(CHART), f"--values={values}"])
        made = {rendered_file(name): render(helm, name) for name in value_files()}
    except ChartFailure as failure:
        print(f"chart: {failure}", file=sys.stderr)
        return 1
    there = set(RENDERED.glob("*.yaml"))
    old = [path for path, text in made.items() if not _is(path, text)]
    for path in [*old, *sorted(there - made.keys())]:
        if arguments:
            print(f"chart: {path.name}: out of date; run make chart", file=sys.stderr)
        elif path in made:
            RENDERED.mkdir(exist_ok=True)
            path.write_text(made[path], "utf-8")
            print(f"chart: wrote {path.name}")
        else:
            path.unlink()
            print(f"chart: removed {path.name}")
    return 1 if arguments and (old or there - made.keys()) else 0


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text("utf-8") == text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
