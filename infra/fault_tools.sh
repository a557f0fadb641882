#!/usr/bin/env bash
# Fetches toxiproxy's server by the Go proxy, and builds it, into .leasehold/fault-tools: the proxies
# by which tests/faults cuts and delays links. Go checks what it fetches by its sums. What can't be
# had is said, and its tests are skipped.
set -euo pipefail
cd -P "$(dirname "$0")/.."

VERSION=v2.5.0
folder=.leasehold/fault-tools
[ "$(cat $folder/version 2>/dev/null)" != "$VERSION" ] || exit 0

if ! command -v go > /dev/null; then
  echo "fault tools: Go is not there, so no toxiproxy: tests that disturb links will be skipped" >&2
  exit 0
fi
mkdir -p .leasehold
unfinished=$(mktemp -d .leasehold/fault-tools.XXXXXX)
trap 'rm -rf "$unfinished"' EXIT
echo "fault tools: fetching toxiproxy $VERSION into $folder"
GOBIN=$PWD/$unfinished go install "github.com/Shopify/toxiproxy/v2/cmd/server@$VERSION" || {
  echo "fault tools: Go could not fetch or build toxiproxy; see above" >&2
  exit 0
}
mv "$unfinished/server" "$unfinished/toxiproxy-server"
printf '%s\n' "$VERSION" > "$unfinished/version"
chmod 755 "$unfinished"
rm -rf "$folder"
mv "$unfinished" "$folder"
