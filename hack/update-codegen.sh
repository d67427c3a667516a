#!/usr/bin/env bash
# Regenerates the deep copies of the plugin arguments.
# With --check it fails if that changed anything. The generator is pinned in
# tools/go.mod.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0
module=$(go list -m)
tools=$PWD/bin/tools
header=$(mktemp) # generated files begin with nothing
trap 'rm -f "$header"' EXIT

digest() { find apis -name 'zz_generated.*.go' -print0 | LC_ALL=C sort -z | xargs -0 cat | git hash-object --stdin; }
before=$(digest)

(cd tools && go build -o "$tools/" k8s.io/code-generator/cmd/deepcopy-gen)
"$tools/deepcopy-gen" --go-header-file "$header" \
  --output-file zz_generated.deepcopy.go "$module/apis/config"

if [[ ${1:-} == --check && $before != "$(digest)" ]]; then
  echo "generated code was not up to date and is now: look at it and commit it" >&2
  exit 1
fi
