#!/usr/bin/env bash
# Builds Helm with Go, and fetches the description of Kubernetes' API, into .leasehold/chart-tools: for
# `make chart` and the long tests of the chart. Each is had once for each version that stands here.
set -euo pipefail
cd -P "$(dirname "$0")/.."

HELM=v3.18.6
SCHEMAS=1.37.0
SCHEMAS_DIGEST=85136d018a27b50ec7fc049d902bfa5193f5976807e6c0f408e3ab6fe078cad9

folder=$PWD/.leasehold/chart-tools
say() { printf 'chart tools: %s\n' "$*"; }
fail() { printf 'chart tools: %s\n' "$*" >&2; exit 1; }
is_there() { [ "$(cat "$folder/$1.version" 2>/dev/null)" = "$2" ]; }

mkdir -p "$folder/bin"
if ! is_there helm "$HELM"; then
  command -v go > /dev/null || fail "there is no Go, which Helm is built with; install it (golang.org), or put helm on the PATH."
  say "building Helm $HELM with Go (some minutes)"
  # The version of Kubernetes that it takes where none can be asked: its own build says it so, too.
  library=helm.sh/helm/v3/pkg
  flags="-s -w -X helm.sh/helm/v3/internal/version.version=$HELM"
  for place in lint/rules chartutil; do
    flags+=" -X $library/$place.k8sVersionMajor=1 -X $library/$place.k8sVersionMinor=33"
  done
  GOBIN=$folder/bin CGO_ENABLED=0 go install -trimpath -ldflags "$flags" "helm.sh/helm/v3/cmd/helm@$HELM" \
    || fail "Go could not build Helm; see above."
  printf '%s\n' "$HELM" > "$folder/helm.version"
fi
if ! is_there schemas "$SCHEMAS"; then
  say "fetching kubernetes-validate $SCHEMAS"
  .venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --require-hashes --dest "$folder" \
    --requirement <(echo "kubernetes-validate==$SCHEMAS --hash=sha256:$SCHEMAS_DIGEST") \
    || fail "pip could not fetch it; see above."
  printf '%s\n' "$SCHEMAS" > "$folder/schemas.version"
fi
