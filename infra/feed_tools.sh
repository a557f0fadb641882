#!/usr/bin/env bash
# Fetches by Maven what the long tests of feeds read them with: a schema registry (Apicurio's, with
# Confluent's API) into .leasehold/registry, Kafka Connect, Debezium's JDBC sink for it and Flink into
# folders of their own beside it. Each is fetched once, and kept only with the digests that stand here.
set -euo pipefail
cd -P "$(dirname "$0")/.."

REGISTRY=3.0.9
REGISTRY_DIGEST=2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43
# This one reads an artifact whose parent is not served.
COPY=org.apache.maven.plugins:maven-dependency-plugin:2.8:copy
COPY_ALL=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies

say() { printf 'feed tools: %s\n' "$*"; }
fail() { printf 'feed tools: %s\n' "$*" >&2; exit 1; }
fetch() { mvn --batch-mode --quiet --strict-checksums "$@" || fail "Maven could not fetch it; see above."; }

# place NAME VERSION  - what is in $unfinished/NAME comes to its place
place() {
  printf '%s\n' "$2" > "$unfinished/$1/version"
  rm -rf ".leasehold/$1"
  mv "$unfinished/$1" ".leasehold/$1"
}
is_there() { [ "$(cat ".leasehold/$1/version" 2>/dev/null)" = "$2" ]; }

mkdir -p .leasehold
unfinished=$(mktemp -d .leasehold/feed_tools.XXXXXX)
trap 'rm -rf "$unfinished"' EXIT

if ! is_there registry "$REGISTRY"; then
  say "fetching Apicurio Registry $REGISTRY into .leasehold/registry"
  fetch "$COPY" -Dartifact="io.apicurio:apicurio-registry-app:$REGISTRY:tar.gz:all" \
    -DoutputDirectory="$PWD/$unfinished"
  archive=$unfinished/apicurio-registry-app-$REGISTRY-all.tar.gz
  printf '%s  %s\n' "$REGISTRY_DIGEST" "$archive" | sha256sum --check --quiet ||
    fail "what was fetched has not the digest of $REGISTRY."
  mkdir "$unfinished/registry"
  tar --extract --gzip --file "$archive" --directory "$unfinished/registry"
  place registry "$REGISTRY"
fi

# jars FOLDER WHAT  - the jars of infra/FOLDER/pom.xml come to .leasehold/FOLDER
jars() {
  local list=infra/$1/jars.sha256 version digests
  version=$(sha256sum < "$list" | cut -d' ' -f1)
  is_there "$1" "$version" && return
  say "fetching $2 into .leasehold/$1"
  fetch --file "infra/$1/pom.xml" "$COPY_ALL" -DincludeScope=runtime \
    -DoutputDirectory="$PWD/$unfinished/$1"
  digests=$PWD/$list
  (cd "$unfinished/$1" && sha256sum --check --quiet "$digests") || fail "the jars are not those of $list."
  place "$1" "$version"
}

jars connect "Kafka Connect"
jars debezium_sink "Debezium's JDBC sink"
jars flink "Flink"
jars lease_agent "what the agent in Java is made with"
