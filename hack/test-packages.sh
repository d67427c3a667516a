#!/usr/bin/env bash
# Prints the packages that have unit tests: with "race" those to test with the race
# detector, with "plain" the others. These are the packages that link the API server of
# Kubernetes, whose build for the race detector takes longer than all tests together, and
# those in which the linter permits no lock: they have nothing to race, and their
# exhaustive tests take seven times as long with the detector. The simulation is in both:
# with the race detector it lives a small part of its histories.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
want=${1:?race or plain}
go list -test -f '{{.ImportPath}}{{range .Deps}} {{.}}{{end}}' ./... | awk -v want="$want" '
  $1 !~ /\.test$/ || $1 ~ /\/test\/integration/ { next }
  {
    kind = $1 ~ /\/pkg\/(planner|queues|resources)[\/.]/ ? "plain" : "race"
    for (i = 2; i <= NF; i++) if ($i == "k8s.io/kubernetes/cmd/kube-apiserver/app") kind = "plain"
    sub(/\.test$/, "", $1)
    if (want == "plain" && $1 ~ /\/test\/simulation$/) kind = "plain"
    if (kind == want) print $1
  }'
