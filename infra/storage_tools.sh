#!/usr/bin/env bash
# Fetches what the long tests of storage run on, into .leasehold/storage: HDFS with its servers and
# S3A with its SDK by Maven (600 MB), and an S3 server that keeps objects in a folder, built with Go.
# Each is had once for each version that stands here; jars are kept only with their digests.
set -euo pipefail
cd -P "$(dirname "$0")/.."

S3_SERVER=v1.8.0
JARS=infra/storage/jars.sha256
COPY=org.apache.maven.plugins:maven-dependency-plugin:2.8:copy

folder=$PWD/.leasehold/storage
say() { printf 'storage tools: %s\n' "$*"; }
fail() { printf 'storage tools: %s\n' "$*" >&2; exit 1; }
is_there() { [ "$(cat "$folder/$1.version" 2>/dev/null)" = "$2" ]; }

mkdir -p "$folder/bin"
version=$(sha256sum < "$JARS" | cut -d' ' -f1)
if ! is_there jars "$version"; then
  command -v mvn > /dev/null || fail "there is no Maven, which fetches the jars; install it, or put mvn on the PATH."
  say "fetching HDFS and S3A into .leasehold/storage (600 MB, some minutes)"
  unfinished=$(mktemp -d .leasehold/storage_tools.XXXXXX)
  trap 'rm -rf "$unfinished"' EXIT
  while read -r artifact; do
    mvn --batch-mode --quiet --strict-checksums "$COPY" -Dartifact="$artifact" \
      -DoutputDirectory="$PWD/$unfinished" || fail "Maven could not fetch $artifact; see above."
  done < infra/storage/jars.coordinates
  digests=$PWD/$JARS
  (cd "$unfinished" && sha256sum --check --quiet "$digests") ||
    fail "the jars are not those of $JARS."
  rm -rf "$folder/jars"
  mv "$unfinished" "$folder/jars"
  chmod 755 "$folder/jars"
  printf '%s\n' "$version" > "$folder/jars.version"
fi

if ! is_there s3-server "$S3_SERVER"; then
  command -v go > /dev/null || fail "there is no Go, which the S3 server is built with; install it (golang.org), or put go on the PATH."
  say "building versitygw $S3_SERVER with Go (a minute or two)"
  GOBIN=$folder/bin CGO_ENABLED=0 go install -trimpath \
    "github.com/versity/versitygw/cmd/versitygw@$S3_SERVER" || fail "Go could not build it; see above."
  printf '%s\n' "$S3_SERVER" > "$folder/s3-server.version"
fi
