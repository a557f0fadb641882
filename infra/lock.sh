#!/usr/bin/env bash
# Writes requirements.lock: the exact versions that a fresh install of pyproject.toml gives now.
set -euo pipefail
cd "$(dirname "$0")/.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/venv"
"$folder/venv/bin/python" - > "$folder/wanted.txt" <<'PYTHON'
import tomllib

with open("pyproject.toml", "rb") as source:
    project = tomllib.load(source)["project"]
print(*project["dependencies"], *project["optional-dependencies"]["dev"], sep="\n")
PYTHON
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check \
  --requirement "$folder/wanted.txt"
{
  echo "# The exact versions of a fresh install, dependencies of dependencies included."
  echo "# Written by \`make lock\` from pyproject.toml; not edited by hand."
  "$folder/venv/bin/python" -m pip freeze --all --disable-pip-version-check \
    | grep -v -i -E '^pip=='
} > requirements.lock
