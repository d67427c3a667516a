#!/usr/bin/env bash
# Makes the image twice, from two directories, and looks whether it is the same both
# times; whether what is in it runs, and says its versions; and whether the SBOM names
# what it is built from. It is the last commit that is tried, not what is changed since.
#
#   ARCH=amd64   of this machine by default, or the binary cannot be run
#   FRESH=1      compile all of it both times; else the second time takes from the cache
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
arch=${ARCH:-$(go env GOARCH)}
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
fail() { echo "check-image: $*" >&2; exit 1; }

digests=()
source=.
for name in one another/deeper; do
  git clone --quiet "$source" "$dir/$name"
  source=$dir/one # the same commit, whatever is committed meanwhile
  [[ -z ${FRESH:-} ]] || export GOCACHE="$dir/cache-${name%%/*}"
  said=$(make --no-print-directory -C "$dir/$name" image ARCH="$arch" IMAGE=registry.example.com/paddock:check)
  echo "$said"
  digests+=("${said##* }")
done
[[ ${digests[0]} == sha256:* ]] || fail "no digest was printed: ${digests[0]}"
[[ ${digests[0]} == "${digests[1]}" ]] || fail "two directories, two images: ${digests[*]}"
cmp "$dir"/{one,another/deeper}/bin/image/scheduler-oci.tar

mkdir "$dir/layout" "$dir/unpacked"
tar -xf "$dir/one/bin/image/scheduler-oci.tar" -C "$dir/layout"
for blob in "$dir"/layout/blobs/sha256/*; do
  [[ $(sha256sum <"$blob") == "$(basename "$blob") "* ]] || fail "the name of $blob is not its checksum"
  if tar -tf "$blob" >/dev/null 2>&1; then tar -xf "$blob" -C "$dir/unpacked"; fi
done
[[ -x $dir/unpacked/scheduler ]] || fail "there is no /scheduler in it: $(ls -R "$dir/unpacked")"
version=$("$dir/unpacked/scheduler" --version)
echo "$version"
kubernetes=$(awk '$1 == "k8s.io/kubernetes" {print $2; exit}' go.mod)
[[ $version == *"$kubernetes"* ]] || fail "it does not say that it is built from Kubernetes $kubernetes"
[[ $version == *"$(git -C "$dir/one" describe --tags --always)"* ]] || fail "it does not say its own version"

sbom=$dir/one/bin/image/scheduler-linux-$arch.spdx.json
grep -q '"k8s.io/kubernetes"' "$sbom" || fail "the SBOM does not name k8s.io/kubernetes"
grep -q "$(sha256sum <"$dir/unpacked/scheduler" | cut -d' ' -f1)" "$sbom" || fail "the SBOM has not the checksum of the binary"
# The modules in the binary, as the go command reads them, and those of the SBOM.
linked() { go version -m "$1" | awk '$1 == "dep" {n++; m[n] = $2 "@" $3} $1 == "=>" {m[n] = $2 "@" $3} END {for (i in m) print m[i]}'; }
module=$(cd "$dir/one" && go list -m)
named() { grep -o '"pkg:golang/[^"]*"' "$1" | sed 's/^"pkg:golang\///; s/"$//; s/%2B/+/g' | grep -v "^$module@"; }
differs=$({ linked "$dir/unpacked/scheduler"; echo "std@$(go version "$dir/unpacked/scheduler" | sed 's/.*: go//')"; } | sort | diff - <(named "$sbom" | sort)) ||
  fail "the SBOM (>) and the binary (<) have different modules: $differs"
echo "modules in the SBOM: $(named "$sbom" | wc -l)"
echo "image checked: ${digests[0]}"
