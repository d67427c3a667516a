#!/usr/bin/env bash
# Builds and vets everything here against another version of Kubernetes, in a copy
# of the tree, and says which packages break, and how. Then it makes the changes that
# are known, hack/compat/v1.MINOR.patch, if there are any, and looks again: what depends on
# a broken package is not tried before. Nothing in the tree is changed. Exit code 1
# means that something breaks that is not known: with the changes, too, or there are none.
#
#   KUBE=v1.36.3                the version of k8s.io/kubernetes
#   CONTROLLER_RUNTIME=v0.24.1  what goes with it
#   KEEP=dir                    make the copy there, and leave it
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# The benchmarks of the whole scheduler are behind a tag.
export CGO_ENABLED=0 GOFLAGS="-mod=mod -buildvcs=false -tags=perf"
kube=${KUBE:-v1.36.3}
runtime=${CONTROLLER_RUNTIME:-v0.24.1}
staging=v0.${kube#v1.}
copy=${KEEP:-$(mktemp -d)}
[[ -n ${KEEP:-} ]] || trap 'rm -rf "$copy"' EXIT
mkdir -p "$copy/tree"

# What git knows, or would if it were added; modules of their own stay behind.
git ls-files -z --cached --others --exclude-standard -- . ':!tools' ':!test/monitoring' ':!test/karpenter' ':!bin' |
  while IFS= read -r -d '' path; do if [[ -f $path ]]; then printf '%s\0' "$path"; fi; done |
  xargs -0 cp --parents -t "$copy/tree"
cd "$copy/tree"

# Which modules of Kubernetes are released together is what its own go.mod says.
source=$(go mod download -json "k8s.io/kubernetes@$kube" | awk -F '"' '$2 == "GoMod" {print $4}')
mapfile -t parts < <(awk '$2 == "=>" && $3 ~ /^\.\/staging\// {print $1}' "$source")
if ((${#parts[@]} == 0)); then # newer ones list them in a workspace; the names have not changed
  mapfile -t parts < <(awk '$2 == "=>" && $1 ~ /^k8s\.io\// {print $1}' go.mod)
fi
edits=(-require="k8s.io/kubernetes@$kube" -require="sigs.k8s.io/controller-runtime@$runtime")
for part in "${parts[@]}"; do
  edits+=(-replace="$part=$part@$staging")
done
while read -r module; do
  edits+=(-require="$module@$staging")
done < <(awk '$1 ~ /^k8s\.io\// && $2 ~ /^v0\.35\./ && !/=>/ && !/indirect/ {print $1}' go.mod)
go mod edit "${edits[@]}"
echo "modules: Kubernetes $kube, staging $staging, controller-runtime $runtime"
if ! go mod tidy -e >"$copy/tidy.log" 2>&1; then
  grep -v '^go: \(downloading\|finding\)' "$copy/tidy.log" >&2 || true
fi
grep -v '^go: \(downloading\|finding\|found\)' "$copy/tidy.log" || true

broken=0
report() { # command, log
  echo "== $1"
  if $1 >"$2" 2>&1; then echo "nothing breaks"; else broken=1; cat "$2"; fi
}
# The go command goes on after an error, but not to packages that import a broken one.
look() { # what is looked at, for the log
  report "go build ./..." "$copy/build.log"
  report "go vet ./..." "$copy/vet.log"
  local bad
  bad=$(cat "$copy"/{build,vet}.log | awk '/^# \[?[a-z]/ {sub(/^# \[?/, ""); sub(/[] ].*/, ""); sub(/_test$/, ""); print}' | sort -u)
  echo "== packages$1"
  go list -e -test -f '{{or .ForTest .ImportPath}}{{range .Deps}} {{.}}{{end}}' ./... | BAD=$bad awk '
    BEGIN { n = split(ENVIRON["BAD"], list, "\n"); for (i = 1; i <= n; i++) bad[list[i]] = 1 }
    {
      sub(/\.test$/, "", $1)
      if (!($1 in state)) state[$1] = "ok"
      for (i = 2; i <= NF; i++) if ($i in bad && $i != $1) state[$1] = "not tried, or in part: it imports a broken one, its tests perhaps"
      if ($1 in bad) state[$1] = "broken"
    }
    END {
      for (name in state) {
        count[state[name]]++
        if (state[name] != "ok") print "  " name ": " state[name] | "sort"
      }
      close("sort")
      for (what in count) print count[what], what | "sort -rn"
    }'
}
look ""
known=hack/compat/${kube%.*}.patch
if ((broken)) && [[ -f $known ]]; then
  echo "== with the changes of $known"
  # The copy may be inside of this repository, or another one.
  GIT_CEILING_DIRECTORIES=$copy git apply "$known" || { echo "compat: $known does not fit any more: make it anew from a copy that builds"; exit 1; }
  broken=0
  look ", with $known"
  ((broken)) || echo "compat: nothing breaks with $kube but what $known mends"
elif ((broken == 0)); then
  echo "compat: nothing breaks with $kube"
fi
exit "$broken"
