#!/usr/bin/env bash
# Puts into .leasehold/observe what is not ours and looks at what we tell: Debian's Prometheus with
# promtool, and, built with Go, Jaeger, which collects traces, and a reader of boards by Grafana's own
# types. For tests; each is had once for what stands here, and nothing of the system changes.
set -euo pipefail
cd -P "$(dirname "$0")/.."

JAEGER=v1.76.0
package=github.com/jaegertracing/jaeger/cmd/jaeger
reader=$PWD/infra/observe/board_check

folder=$PWD/.leasehold/observe
say() { printf 'observe tools: %s\n' "$*"; }
fail() { printf 'observe tools: %s\n' "$*" >&2; exit 1; }
is_there() { [ "$(cat "$folder/$1.version" 2>/dev/null)" = "$2" ]; }

mkdir -p "$folder"
if ! command -v promtool > /dev/null && [ ! -x "$folder/root/usr/bin/promtool" ]; then
  command -v apt-get > /dev/null || fail "there is no apt-get, which Prometheus is fetched with; put prometheus and promtool on the PATH."
  say "fetching Prometheus"
  (
    cd "$folder"
    rm -f prometheus_*.deb
    apt-get -qq -o Debug::NoLocking=1 download prometheus 2> fetch.log && dpkg -x prometheus_*.deb root
  ) || fail "apt-get could not fetch prometheus: $(cat "$folder/fetch.log")"
  rm -f "$folder"/prometheus_*.deb
fi
boards=$(cat "$reader"/* | sha256sum | cut -d' ' -f1)
is_there jaeger "$JAEGER" && is_there board-check "$boards" && exit 0
command -v go > /dev/null || fail "there is no Go, which they are built with; install it (golang.org), or put go on the PATH."
export CGO_ENABLED=0

if ! is_there board-check "$boards"; then
  say "building the reader of boards with Go (a minute)"
  (cd "$reader" && go build -trimpath -o "$folder/board-check" .) || fail "Go could not build it; see above."
  printf '%s\n' "$boards" > "$folder/board-check.version"
fi
if ! is_there jaeger "$JAEGER"; then
  say "building Jaeger $JAEGER with Go (some minutes)"
  # In a module of our own: its go.mod replaces modules, which `go install` refuses.
  module=$(mktemp -d "$folder/module.XXXXXX")
  trap 'rm -rf "$module"' EXIT
  cd "$module"
  go mod init leasehold.invalid/tools 2> /dev/null
  go get -tool "$package@$JAEGER" || fail "Go could not fetch Jaeger; see above."
  go build -trimpath -ldflags "-s -w" -o "$folder/jaeger" "$package" ||
    fail "Go could not build Jaeger; see above."
  printf '%s\n' "$JAEGER" > "$folder/jaeger.version"
fi
