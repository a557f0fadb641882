#!/usr/bin/env bash
# Makes .leasehold/tools, a venv of what infra/tools.lock names, where it is not there yet, and prints
# its folder of programs. On failure says what to do and exits 1.
set -euo pipefail
cd -P "$(dirname "$0")/.."

folder=.leasehold/tools
wanted=$(sha256sum < infra/tools.lock)
if [ ! -f "$folder/made" ] || [ "$(cat "$folder/made")" != "$wanted" ]; then
  [ -x .venv/bin/python ] || { echo "tools: there is no .venv yet; run: make setup" >&2; exit 1; }
  rm -rf "$folder"
  .venv/bin/python -m venv "$folder" >&2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: \
      --require-hashes --requirement infra/tools.lock >&2 \
    || { echo "tools: pip could not install infra/tools.lock; see above" >&2; exit 1; }
  printf '%s\n' "$wanted" > "$folder/made"
fi
echo "$folder/bin"
