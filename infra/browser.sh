#!/usr/bin/env bash
# A browser for the tests of the dashboard's pages: Debian's Chromium with its driver, and axe-core
# from npm, unpacked into .leasehold/browser; nothing of the system changes. What can't be had is
# said, and those tests are then skipped.
set -uo pipefail
cd -P "$(dirname "$0")/.."

folder=$PWD/.leasehold/browser
archives=$folder/archives
mkdir -p "$archives/partial" "$folder/root"

miss() { echo "browser: $1 is not there: tests of the dashboard's pages will be skipped" >&2; exit 0; }

if [ ! -e "$folder/node_modules/axe-core/axe.min.js" ]; then
  command -v npm > /dev/null || miss "npm"
  npm install --silent --no-fund --no-audit --ignore-scripts --prefix "$folder" axe-core@4.10.3 \
    || miss "axe-core"
fi

command -v chromium > /dev/null && command -v chromedriver > /dev/null && exit 0
[ -x "$folder/root/usr/bin/chromedriver" ] && exit 0
command -v apt-get > /dev/null || miss "apt-get"
# With what the system lacks of the libraries that they need; without root, too.
apt-get -qq -o Debug::NoLocking=1 -o Dir::Cache::archives="$archives" --download-only --yes \
  --no-install-recommends install chromium chromium-driver > "$folder/log" 2>&1 || miss "chromium ($folder/log)"
for package in "$archives"/*.deb; do
  dpkg -x "$package" "$folder/root" || miss "$package"
done
rm -r "$archives"
