#!/usr/bin/env bash
# A PostgreSQL for the tests that compare with it, with psql and pgbench; nothing else needs one.
# By apt-get, as root only; no server is left running and no cluster made. Whatever is in the way,
# it says so and ends well: those tests are then skipped, and say so, too. Tried once a folder.
set -uo pipefail
cd -P "$(dirname "$0")/.."

TRIED=.leasehold/setup/postgresql
CONFIG=${POSTGRESQL_COMMON:-/etc/postgresql-common}/createcluster.conf
UPDATE_S=15 DOWNLOAD_S=40

skip() {
  printf 'setup: PostgreSQL is NOT there: %s. Tests that compare with it are skipped (to try again: rm %s)\n' \
    "$*" "$TRIED"
  exit 0
}
apt() { DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=5 "$@" >/dev/null 2>&1; }
unpack() { apt install -y -qq --no-install-recommends "$@"; }

compgen -G "${POSTGRESQL_PROGRAMS:-/usr/lib/postgresql}/*/bin/initdb" >/dev/null \
  && command -v psql >/dev/null && exit 0
[ ! -e "$TRIED" ] || skip "installing it was tried before"
command -v apt-get >/dev/null || skip "there is no apt-get here"
[ "$(id -u)" -eq 0 ] || skip "that takes root: apt-get install -y --no-install-recommends postgresql"

mkdir -p "$(dirname "$TRIED")" && : > "$TRIED"
printf 'setup: installing PostgreSQL by apt-get, for tests that compare with it\n'
timeout "$UPDATE_S" apt-get update -qq >/dev/null 2>&1 \
  || skip "apt-get update failed, or took longer than $UPDATE_S s"
# Fetching may be cut off at any moment; what is fetched is then unpacked without a limit.
timeout "$DOWNLOAD_S" apt-get install -y -qq --no-install-recommends --download-only postgresql \
  >/dev/null 2>&1 || skip "apt-get could not fetch it within $DOWNLOAD_S s"
unpack postgresql-common || skip "apt-get could not install postgresql-common"
# Debian's package would make a cluster and start it.
kept=$(cat "$CONFIG" 2>/dev/null) || kept=''
printf 'create_main_cluster = false\n' >> "$CONFIG" || skip "$CONFIG can't be written"
unpack postgresql
installed=$?
printf '%s\n' "$kept" > "$CONFIG"
[ "$installed" -eq 0 ] || skip "apt-get could not install postgresql"
rm -f "$TRIED"
