#!/usr/bin/env bash
# Writes requirements.lock: the exact versions that a fresh install of pyproject.toml gives now, with
# the digests of their files, so that nobody can put another file in place of one of them. Writes
# infra/*/jars.sha256 likewise, of what Maven gives for the poms beside them.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! [ -x .venv/bin/pip ]; then
  echo "lock: there is no .venv yet; run: make setup" >&2
  exit 1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
.venv/bin/python -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
"$folder/venv/bin/uv" pip compile --quiet --generate-hashes --extra dev --python-version 3.11 \
  --no-header --no-annotate --no-emit-index-url --output-file "$folder/lock" pyproject.toml
{
  echo "# The exact versions of a fresh install, dependencies of dependencies included, with digests."
  echo "# Written by \`make lock\` from pyproject.toml; not edited by hand."
  cat "$folder/lock"
} > requirements.lock

for name in kafka spark; do
  mvn --batch-mode --quiet --strict-checksums --file "infra/$name/pom.xml" \
    dependency:copy-dependencies "-DoutputDirectory=$folder/$name"
  (cd "$folder/$name" && LC_ALL=C sha256sum -- *.jar) > "infra/$name/jars.sha256"
done
