"""Run uv as pip would run: `python infra/run_uv.py UV pip install …` reads what this interpreter's
pip is told by its files and by PIP_… and runs the program UV with the same.

uv reads no setting of pip's: without them it would ask another index, or not reach any. Ends with
uv's exit code, or with 3 and one sentence where pip is told something that uv can't be.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping

NOT_FOR_UV = 3
SECTIONS = ("global", "install", ":env:")
"""A later one of them wins, as in pip."""
UV_NAMES: Mapping[str, str] = {
    "cert": "SSL_CERT_FILE",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "index-url": "UV_DEFAULT_INDEX",
    "timeout": "UV_HTTP_TIMEOUT",
}
WITHOUT_EFFECT = frozenset(
    [
        "break-system-packages",
        "cache-dir",
        "disable-pip-version-check",
        "log",
        "no-cache-dir",
        "no-color",
        "no-compile",
        "no-input",
        "no-python-version-warning",
        "no-warn-script-location",
        "prefer-binary",
        "progress-bar",
        "quiet",
        "require-virtualenv",
        "retries",
        "root-user-action",
        "verbose",
    ]
)
"""Settings of pip that change nothing of which files are fetched, and from where."""
SEVERAL = {"UV_FIND_LINKS": ",", "UV_INDEX": " "}


def read_settings(lines: Iterable[str]) -> dict[str, str]:
    """Return the environment that uv needs, from the lines of `pip config list`. Raises ValueError
    naming what uv can't be told."""
    told: dict[int, dict[str, str]] = {rank: {} for rank in range(len(SECTIONS))}
    for line in lines:
        full, _, value = line.partition("=")
        section, _, name = full.rpartition(".")
        if section in SECTIONS:
            told[SECTIONS.index(section)][name] = str(ast.literal_eval(value))
    found: dict[str, str] = {}
    for rank in sorted(told):
        for name, value in told[rank].items():
            if name in UV_NAMES:
                variable = UV_NAMES[name]
                found[variable] = SEVERAL.get(variable, " ").join(value.split())
            elif name not in WITHOUT_EFFECT:
                raise ValueError(f"pip is told {name!r}, which uv can't be")
    return found


def main() -> None:
    asked = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(asked, capture_output=True, text=True, check=False)
    try:
        if listed.returncode:
            raise ValueError(f"pip does not tell its settings: {listed.stderr.strip()}")
        settings = read_settings(listed.stdout.splitlines())
    except ValueError as error:
        print(error, file=sys.stderr)
        raise SystemExit(NOT_FOR_UV) from None
    # What uv is told by its own variables comes first: whoever set them meant uv.
    os.execve(sys.argv[1], sys.argv[1:], {**settings, **os.environ})  # noqa: S606 - named by setup.sh


if __name__ == "__main__":
    main()
