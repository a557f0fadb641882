#!/usr/bin/env bash
# A C compiler and Python's headers, for mypyc (infra/compiled.py); nothing else needs them. By apt-get,
# as root only. Whatever is in the way, it ends well: `infra.compiled` then says that services run
# interpreted, and why. Tried once a folder.
set -uo pipefail
cd -P "$(dirname "$0")/.."

TRIED=.leasehold/setup/compiler
PYTHON=.venv/bin/python
UPDATE_S=15 DOWNLOAD_S=60

there() {
  local program
  for program in ${CC:-cc gcc clang}; do
    # No pipe: where the compiler is done before echo is, pipefail would have it fail.
    "$program" -I "$headers" -fsyntax-only -x c - <<< '#include <Python.h>' 2>/dev/null && return 0
  done
  return 1
}
apt() { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=5 "$@" >/dev/null 2>&1; }

headers=$("$PYTHON" -c 'import sysconfig; print(sysconfig.get_path("include"))') || exit 0
there && exit 0
[ ! -e "$TRIED" ] && [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null || exit 0
mkdir -p "$(dirname "$TRIED")" && : > "$TRIED"
packages=(gcc libc6-dev)
# The distribution's headers are of use to its own Python only; another one brings its own.
[[ $headers != /usr/include/* ]] || packages+=(python3.11-dev)
printf 'setup: installing a C compiler by apt-get (%s)\n' "${packages[*]}"
timeout "$UPDATE_S" apt-get update -qq >/dev/null 2>&1
# Fetching may be cut off at any moment; what is fetched is then unpacked without a limit.
timeout "$DOWNLOAD_S" apt-get install -y -qq --no-install-recommends --download-only \
  "${packages[@]}" >/dev/null 2>&1 && apt install -y -qq --no-install-recommends "${packages[@]}"
there && rm -f "$TRIED"
exit 0
