#!/usr/bin/env bash
# Fetches a schema registry for the long tests, Apicurio's with Confluent's API, into
# .leasehold/registry: once, by Maven, and only with the digest that stands here.
set -euo pipefail
cd -P "$(dirname "$0")/.."

VERSION=3.0.9
DIGEST=2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43
TARGET=.leasehold/registry

fail() { printf 'registry: %s\n' "$*" >&2; exit 1; }

[ "$(cat "$TARGET/version" 2>/dev/null)" != "$VERSION" ] || exit 0
unfinished=$(mktemp -d .leasehold/registry.XXXXXX)
trap 'rm -rf "$unfinished"' EXIT
printf 'registry: fetching Apicurio Registry %s with Maven into %s\n' "$VERSION" "$TARGET"
mvn --batch-mode --quiet --strict-checksums \
  org.apache.maven.plugins:maven-dependency-plugin:2.8:copy \
  -Dartifact="io.apicurio:apicurio-registry-app:$VERSION:tar.gz:all" \
  -DoutputDirectory="$PWD/$unfinished" || fail "Maven could not fetch it; see above."
archive=$unfinished/apicurio-registry-app-$VERSION-all.tar.gz
printf '%s  %s\n' "$DIGEST" "$archive" | sha256sum --check --quiet ||
  fail "what was fetched has not the digest of $VERSION."
mkdir "$unfinished/app"
tar --extract --gzip --file "$archive" --directory "$unfinished/app"
printf '%s\n' "$VERSION" > "$unfinished/app/version"
rm -rf "$TARGET"
mv "$unfinished/app" "$TARGET"
