#!/usr/bin/env bash
# Regenerates the deep copies, defaults and conversions of the plugin arguments.
# The generators are pinned in tools/go.mod.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CGO_ENABLED=0
module=$(go list -m)
tools=$PWD/bin/tools
mkdir -p "$tools"
(cd tools && go build -o "$tools/" \
  k8s.io/code-generator/cmd/{deepcopy-gen,defaulter-gen,conversion-gen})

find apis -name 'zz_generated.*.go' -delete
header=hack/boilerplate.go.txt
"$tools/deepcopy-gen" --go-header-file "$header" \
  --output-file zz_generated.deepcopy.go "$module/apis/config" "$module/apis/config/v1"
"$tools/defaulter-gen" --go-header-file "$header" \
  --output-file zz_generated.defaults.go "$module/apis/config/v1"
"$tools/conversion-gen" --go-header-file "$header" \
  --output-file zz_generated.conversion.go "$module/apis/config/v1"
gofmt -w apis/config/zz_generated.*.go apis/config/v1/zz_generated.*.go
