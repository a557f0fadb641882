#!/usr/bin/env bash
# Sets up everything that the demo, the tests and the local cluster need, inside this folder:
# system packages (by apt-get, as root only), a venv in .venv, Kafka's and Spark's jars in
# .leasehold/jars, the services' hot path, compiled, in .leasehold/compiled. Each part is done once
# per version of what it is made from, so a second run takes a moment. Prints what it does; on
# failure says what to do and exits 1.
set -euo pipefail
cd -P "$(dirname "$0")/.."

STATE=.leasehold/setup
JARS=.leasehold/jars

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

# done_already PART FILE…  - was PART finished from exactly these files?
digest() { cat "$@" | sha256sum | cut -d' ' -f1; }
done_already() {
  local part=$1; shift
  [ -f "$STATE/$part" ] && [ "$(cat "$STATE/$part")" = "$(digest "$@")" ]
}
mark_done() {
  local part=$1; shift
  mkdir -p "$STATE"
  digest "$@" > "$STATE/$part"
}

# The distribution's before any other on the PATH: one that pyenv builds as a shared library without
# --enable-optimizations takes a seventh more of every processor (tests/bench/DESIGN.md). One that
# can't make a venv only if no other can. LEASEHOLD_PYTHON names the one to take.
python_311() {
  local candidate modules candidates=(python3.11 python3 python)
  [[ ":$PATH:" != *:/usr/bin:* ]] || candidates=(/usr/bin/python3.11 "${candidates[@]}")
  [ -z "${LEASEHOLD_PYTHON:-}" ] || candidates=("$LEASEHOLD_PYTHON")
  for modules in 'venv, ensurepip' sys; do
    for candidate in "${candidates[@]}"; do
      if "$candidate" -c "import sys, $modules; sys.exit(sys.version_info[:2] != (3, 11))" 2>/dev/null; then
        command -v "$candidate"
        return 0
      fi
    done
  done
  return 1
}

java_17() {
  local java=${JAVA_HOME:+$JAVA_HOME/bin/}java version
  version=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || return 1
  [ -n "$version" ] && [ "$version" -ge 17 ]
}

# A venv knows the folder that it was made in, so that one moved or copied with the project would
# quietly run the other folder's code. pip goes in last: without it, making the venv was interrupted.
venv_is_whole() {
  [ -x .venv/bin/python ] && [ -x .venv/bin/pip ] \
    && grep -qF " $PWD/.venv" .venv/pyvenv.cfg
}

system_packages() {
  local packages=() names=() python
  if [ -n "${LEASEHOLD_PYTHON:-}" ] && ! python_311 >/dev/null; then
    fail "LEASEHOLD_PYTHON is $LEASEHOLD_PYTHON, which is no Python 3.11; unset it or name one, then run this again."
  fi
  if ! python=$(python_311); then
    packages+=(python3.11 python3.11-venv); names+=("Python 3.11")
  elif ! venv_is_whole && ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    packages+=(python3.11-venv); names+=("Python's venv module")
  fi
  if ! java_17; then packages+=(openjdk-17-jdk-headless); names+=("JDK 17"); fi
  if ! command -v mvn >/dev/null; then packages+=(maven); names+=("Maven"); fi
  if ! command -v redis-server >/dev/null; then packages+=(redis-server); names+=("redis-server"); fi
  [ ${#packages[@]} -gt 0 ] || return 0

  local missing
  missing=$(printf ', %s' "${names[@]}"); missing=${missing:2}
  if [ -n "${JAVA_HOME:-}" ] && [[ " ${packages[*]} " == *" openjdk-17-jdk-headless "* ]]; then
    fail "JAVA_HOME is $JAVA_HOME, which holds no Java 17 or newer; unset it or point it to one, then run this again."
  fi
  if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    local run='Run: sudo ' and='&& sudo '
    command -v sudo >/dev/null || { run='Run as root: '; and='&& '; }
    fail "missing: $missing. ${run}apt-get update ${and}apt-get install -y --no-install-recommends ${packages[*]}; then run this again."
  fi
  say "installing $missing by apt-get (${packages[*]})"
  apt-get update -qq || fail "apt-get update failed; see above."
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" \
    >/dev/null || fail "apt-get could not install ${packages[*]}; see above."
  python_311 >/dev/null || fail "Python 3.11 is still not found after installing; install it and run this again."
  java_17 || fail "Java 17 is still not found after installing; install it and run this again."
}

locked() { # locked NAME LOCK  - the lock's lines for this package
  awk -v name="$1==" 'index($0, name) == 1 { on = 1 } on { print } !/\\$/ { on = 0 }' "$2"
}

# What comes as source is built with the lock's own setuptools: a build in isolation would fetch
# whichever is newest, with no digest to check it by. The lock already holds everything, so the
# project itself goes in without looking further.
install_by_pip() {
  local pip=(.venv/bin/python -m pip install --quiet --disable-pip-version-check --require-virtualenv)
  "${pip[@]}" --require-hashes --requirement <(locked setuptools requirements.lock) \
    && "${pip[@]}" --require-hashes --use-pep517 --no-build-isolation --requirement requirements.lock \
    && "${pip[@]}" --no-deps --no-build-isolation --editable .
}

# In a third of pip's time. What it fetches is told by the same digests.
install_by_uv() {
  local folder=$STATE/uv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --no-deps \
    --only-binary :all: --target "$folder" --require-hashes \
    --requirement <(locked uv infra/tools.lock) || return 1
  local uv=(.venv/bin/python infra/run_uv.py "$folder/bin/uv" pip install --quiet --python .venv/bin/python)
  "${uv[@]}" --require-hashes --requirement <(locked setuptools requirements.lock) \
    && "${uv[@]}" --require-hashes --no-build-isolation --requirement requirements.lock \
    && "${uv[@]}" --no-deps --no-build-isolation --editable .
}

python_packages() {
  if venv_is_whole && done_already python pyproject.toml requirements.lock; then
    say "Python packages are in place (.venv)"
    return 0
  fi
  if ! venv_is_whole; then
    # Clearing it would empty the folder that the link leads to, which is somebody else's.
    [ ! -L .venv ] || fail ".venv is a link to $(readlink .venv), not a venv of this folder; remove it: rm .venv"
    say "making a venv with Python 3.11 in .venv"
    "$(python_311)" -m venv --clear "$PWD/.venv" || fail "Python could not make .venv; see above."
  fi
  say "installing Python packages (pyspark is large: a minute the first time)"
  # A wheel that is made of a source package is unpacked and thrown away: compressing pyspark's takes
  # longer than everything else that is done to it.
  export DIST_EXTRA_CONFIG=$PWD/infra/wheels.cfg
  local words
  if ! words=$(install_by_uv 2>&1); then
    say "uv could not do it, so pip does: $(tail -n 1 <<< "$words")"
    install_by_pip || fail "pip could not install requirements.lock and this project; see above."
  fi
  .venv/bin/python -m pip check --disable-pip-version-check >/dev/null \
    || fail "requirements.lock does not fit pyproject.toml (see: .venv/bin/python -m pip check); run: make lock"
  mark_done python pyproject.toml requirements.lock
}

jars() { # jars NAME POM DIGESTS
  local name=$1 pom=$2 digests="$PWD/$3" target="$JARS/$1"
  if [ -d "$target" ] && done_already "jars-$name" "$pom" "$3"; then
    say "$name jars are in place ($target)"
    return 0
  fi
  say "fetching $name jars with Maven into $target"
  local unfinished="$PWD/$JARS/.$name.unfinished"
  rm -rf "$unfinished"
  mkdir -p "$unfinished"
  local output
  # strict-checksums: a damaged download stops here, not in a broker. Maven prints colour codes even
  # when it is quiet, so its words are shown only if something went wrong.
  if ! output=$(mvn --batch-mode --quiet --strict-checksums --file "$pom" \
      dependency:copy-dependencies "-DoutputDirectory=$unfinished" 2>&1); then
    printf '%s\n' "$output" >&2
    fail "Maven could not fetch the jars of $pom; see above."
  fi
  check_jars "$unfinished" "$digests" "$pom"
  rm -rf "$target"
  mv "$unfinished" "$target"
  mark_done "jars-$name" "$pom" "$3"
}

# Maven's own checksums come from where the jars come from, so they tell a damaged one and not
# another one: that the files are those which were tested is told by digests of our own.
check_jars() { # check_jars FOLDER DIGESTS POM
  local folder=$1 digests=$2 pom=$3 wrong
  if ! wrong=$(cd "$folder" && sha256sum --check --quiet --strict "$digests" 2>&1); then
    printf '%s\n' "$wrong" >&2
    fail "the jars of $pom are not those of $digests; see above. If their versions were changed on purpose, run: make lock"
  fi
  wrong=$(cd "$folder" && for jar in *; do grep -qF "  $jar" "$digests" || echo "$jar"; done)
  [ -z "$wrong" ] || fail "the jars of $pom hold files that $digests does not name: $wrong"
}

# The hot path compiled by mypyc: nothing needs it, so whatever is in the way, services run interpreted
# then, and a sentence says so. Only LEASEHOLD_COMPILED=always makes that a failure.
ready=ready
compiled() {
  if [ "${LEASEHOLD_COMPILED:-}" = never ]; then
    .venv/bin/python -m infra.compiled build
    return 0
  fi
  infra/compiler.sh
  .venv/bin/python -m infra.compiled build || fail "LEASEHOLD_COMPILED stands in the way; see above."
  # The last line is what is read.
  [ -n "$(.venv/bin/python -m infra.compiled path)" ] || ready="ready, but services run interpreted; see above"
}

system_packages
infra/postgresql.sh

# pip keeps one processor busy, so Maven works beside it: one after the other, since two of them
# must not write one repository. A process group of its own, to be ended whole.
set -m
{
  jars kafka infra/kafka/pom.xml infra/kafka/jars.sha256
  jars spark infra/spark/pom.xml infra/spark/jars.sha256
} </dev/null &
fetching=$!
set +m
trap 'kill -- "-$fetching" 2>/dev/null || true' EXIT
python_packages
wait "$fetching" || fail "Kafka's or Spark's jars are missing; Maven's words are above."
trap - EXIT
# What starts no service has no use for it, and would wait for it after each change of the sources.
[ "${1:-}" = --without-build ] || { compiled; .venv/bin/python -m infra.class_archives build; }
say "$ready"
