#!/usr/bin/env bash
# Writes requirements.lock: the exact versions that a fresh install of pyproject.toml gives now, with
# the digests of their files, so that nobody can put another file in place of one of them; likewise
# infra/tools.lock of infra/tools.in. Writes infra/*/jars.sha256 and jars.coordinates (with licences)
# of what Maven gives for the poms beside them, and infra/images.lock where a registry can be asked.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! [ -x .venv/bin/pip ]; then
  echo "lock: there is no .venv yet; run: make setup" >&2
  exit 1
fi
tools=$(infra/tools.sh)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

resolve() { # resolve SOURCE LOCK WHAT [OPTION…]
  local source=$1 lock=$2 what=$3
  shift 3
  "$tools/uv" pip compile --quiet --generate-hashes --python-version 3.11 \
    --no-header --no-annotate --no-emit-index-url "$@" --output-file "$folder/lock" "$source"
  {
    echo "# The exact versions of $what, dependencies of dependencies included, with digests."
    echo "# Written by \`make lock\` from ${source##*/}; not edited by hand."
    cat "$folder/lock"
  } > "$lock"
  rm "$folder/lock"
}
resolve pyproject.toml requirements.lock "a fresh install" --extra dev
resolve infra/tools.in infra/tools.lock "the tools" --only-binary :all:

for name in kafka spark; do
  mvn --batch-mode --quiet --strict-checksums --file "infra/$name/pom.xml" \
    dependency:copy-dependencies "-DoutputDirectory=$folder/$name"
  (cd "$folder/$name" && LC_ALL=C sha256sum -- *.jar) > "infra/$name/jars.sha256"
  mvn --batch-mode --quiet --strict-checksums --file "infra/$name/pom.xml" \
    org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom -DoutputFormat=json \
    "-DoutputDirectory=$folder" "-DoutputName=$name"
  .venv/bin/python -m infra.sbom coordinates < "$folder/$name.json" > "infra/$name/jars.coordinates"
done
.venv/bin/python -m infra.image_lock
