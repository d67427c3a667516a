#!/usr/bin/env bash
# Builds programs of other projects as they are released, from the Go module proxy, and
# copies their CRDs: to the directory of the first argument. Each builds in its own module,
# with the versions that its authors chose.
set -euo pipefail

to=$(mkdir -p "$1" && cd "$1" && pwd)

# module prints the directory of a released module.
module() { go mod download -json "$1" | sed -n 's/^[[:space:]]*"Dir": "\(.*\)",*$/\1/p'; }

# program builds one: its name, module and package.
program() {
  local dir
  dir=$(module "$2")
  echo "ecosystem: $1 from $2"
  (cd "$dir" && GOWORK=off go build -o "$to/$1" "$3")
}

# definitions copies CRDs: the name of the program, its module and their directories.
definitions() {
  local dir from
  dir=$(module "$2")
  mkdir -p "$to/crds/$1"
  for from in "${@:3}"; do
    cp --no-preserve=mode "$dir/$from"/*.yaml "$to/crds/$1/"
  done
  rm -f "$to/crds/$1/kustomization.yaml"
}

program jobset sigs.k8s.io/jobset@v0.8.2 .
definitions jobset sigs.k8s.io/jobset@v0.8.2 config/components/crd/bases
program kuberay github.com/ray-project/kuberay/ray-operator@v1.5.0 .
definitions kuberay github.com/ray-project/kuberay/ray-operator@v1.5.0 config/crd/bases
# The samples of these are held against their CRDs. Their newest versions are not on the
# proxy.
definitions lws sigs.k8s.io/lws@v0.7.0 config/crd/bases
definitions kueue sigs.k8s.io/kueue@v0.17.0 config/components/crd/bases
definitions argo github.com/argoproj/argo-workflows/v4@v4.0.5 manifests/base/crds/full
program descheduler sigs.k8s.io/descheduler@v0.36.0 ./cmd/descheduler
# v1.14.0 is the last version that builds with the Go of go.mod.
program karpenter sigs.k8s.io/karpenter@v1.14.0 ./kwok
definitions karpenter sigs.k8s.io/karpenter@v1.14.0 pkg/apis/crds kwok/apis/crds
