#!/usr/bin/env bash
# Runs everything that is too long for every change: part by part, each with a log
# of its own in bin/nightly, and a table of how each ended, summary.md.
# With arguments, only the named parts, one after the other; the table keeps the lines of
# others that ran before, each with its commit. Without, all of them: those that have
# times to keep, or work for a time, one after the other, and beside them the others,
# which get what these leave of the cores. Runs of different parts may go on at once.
# A part that failed does not keep the others from running.
set -uo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
out=bin/nightly
mkdir -p "$out"
module=$(go list -m)

# What the part "unit" leaves to others: packages that want the control plane, and
# the simulation.
others="$module/test/(integration|simulation|perf)(/|$)"

unit() { go list ./... | grep -Ev "$others" | xargs go test -count=1 -tags nightly -p 1 -timeout 4h; }
# What make test has found out before is asked again.
race() { GOFLAGS="${GOFLAGS:-} -count=1" make --no-print-directory unit-race; }
# Half of the histories each for two processes, for one uses one core. All are of the day:
# make test has the same ones each time.
simulation() {
  local first second wrong=0 today tonight
  today="$(date -u +%Y%m%d)00000" tonight="$(date -u +%Y%m%d)50000"
  echo "== seeds from $today, and from $tonight"
  go test -count=1 -tags nightly -timeout 8h -v ./test/simulation -args -first "$today" -steps 2500000 &
  first=$!
  go test -count=1 -tags nightly -timeout 8h -v -run '^TestSimulation$' ./test/simulation -args -first "$tonight" -steps 2500000 &
  second=$!
  wait "$first" || wrong=1
  wait "$second" || wrong=1
  return "$wrong"
}
lockorder() { make --no-print-directory lockorder STEPS=250000 FIRST="$(date -u +%Y%m%d)00000"; }
# The pages run many of the other parts' programs, for minutes each: a part of their own.
integration() { controlplane ./test/integration ./test/integration/conformance; }
pages() { controlplane ./test/integration/docs; }
controlplane() { go test -count=1 -tags nightly -p 1 -timeout 4h -v "$@"; }
conformance() { make --no-print-directory conformance; }
fuzz() {
  local package target count=0 wrong=0
  for package in $(grep -rl --include='*_test.go' '^func Fuzz' pkg cmd apis internal | xargs -n1 dirname | sort -u); do
    for target in $(grep -rhoE '^func Fuzz[A-Za-z0-9_]+' "$package"/*_test.go | sed 's/^func //'); do
      echo "== $package $target"
      count=$((count + 1))
      go test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-2m}" -fuzzminimizetime 2s "./$package" || wrong=1
    done
  done
  echo "$count targets fuzzed for ${FUZZTIME:-2m} each"
  return "$wrong"
}
image() { hack/check-image.sh; }
# What breaks is in the log; it fails where hack/compat has no changes that mend it.
compat() { make --no-print-directory compat; }
# What other projects release, beside our scheduler on a real control plane.
ecosystem() {
  hack/ecosystem.sh bin/ecosystem || return 1
  go test -count=1 -tags ecosystem -timeout 2h -v -run '^TestEcosystem' ./test/integration \
    -args -ecosystem "$PWD/bin/ecosystem" -ecosystem-for "${ECOSYSTEM_FOR:-10m}"
}
# A tenant that attacks, and the pods of another one that are timed meanwhile.
hostile() {
  go test -count=1 -tags hostile -timeout 2h -v -run '^TestHostile' ./test/integration \
    -args -hostile-table "$PWD/$out/hostile.md" -hostile-for "${HOSTILE_FOR:-30s}"
}
large() { make --no-print-directory bench CASES='-large-' LARGE=1 PAIRS="${PAIRS:-3}"; }

# essence prints the lines of a log that say how much was done.
essence() {
  grep -hE 'hostile: [a-z0-9-]+: |ecosystem: .*(avoidable|bought|restarts|made again)|^[0-9]+ targets fuzzed|races took|failovers took|[0-9] steps/s|tests? passed|^image checked|^compat: |^\| [A-Za-z-]+-large-[a-z]+( \| [0-9]+){3} \|' "$1" |
    sed -E -e 's/^ *[a-z_]+_test\.go:[0-9]+: //' -e 's/^\| ([^ ]+) \| ([0-9]+) \| [0-9]+ \| [0-9]+ \| ([^|]+) \|.*/\1: pods\/s \3/' |
    tail -n 9 | paste -sd ';' | cut -c1-700
}

timed=(integration conformance pages ecosystem hostile large fuzz)
patient=(simulation unit race image compat lockorder)
all=(unit race simulation lockorder integration pages conformance ecosystem hostile fuzz image compat large)
# Class idle of the kernel's scheduler runs only while no other process wants the core.
idly=(nice -n 19)
if command -v chrt >/dev/null && chrt -i 0 true 2>/dev/null; then idly=(chrt -i 0); fi
parts=("$@")
beside=
if [[ ${#parts[@]} -eq 0 ]]; then
  parts=("${timed[@]}")
  rm -f "$out"/*.row
  trap 'trap - INT TERM; kill 0' INT TERM # parts in the background get no Ctrl-C
  "${idly[@]}" hack/nightly.sh "${patient[@]}" >"$out/patient.log" 2>&1 &
  beside=$!
fi
for part in "${parts[@]}"; do
  if [[ " ${all[*]} " != *" $part "* ]]; then
    echo "nightly: there is no part $part; parts are: ${all[*]}" >&2
    exit 2
  fi
done

# tree says what of the repository is here now.
tree() {
  local commit
  commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
  [[ -z $(git status --porcelain 2>/dev/null) ]] || commit+=" and changes"
  echo "$commit"
}

# summarize prints the table of all parts that have run.
summarize() {
  local part
  echo "$(go version | cut -d' ' -f3), $(nproc) cores."
  echo
  echo "| part | result | took | day | commit | load | tests | what it says |"
  echo "|---|---|---|---|---|---|---|---|"
  for part in "${all[@]}"; do
    [[ ! -f $out/$part.row ]] || cat "$out/$part.row"
  done
}

failed=0
for part in "${parts[@]}"; do
  log=$out/$part.log
  began=$SECONDS
  echo "nightly: $part, log in $log"
  rm -f "$out/$part.row"
  commit=$(tree)
  if "$part" >"$log" 2>&1; then result=passed; else result=FAILED failed=1; fi
  took=$((SECONDS - began))
  [[ $commit == "$(tree)" ]] || commit+=", then $(tree)"
  load=$(cut -d' ' -f3 /proc/loadavg 2>/dev/null || echo '?')
  passed=$(grep -cE '^\s*--- PASS|^ok ' "$log")
  echo "| $part | $result | $((took / 60)) min $((took % 60)) s | $(date -u +%F) | $commit | $load | $passed | $(essence "$log") |" >"$out/$part.row"
  summarize >"$out/summary.$$" && mv "$out/summary.$$" "$out/summary.md"
  [[ $result == passed ]] || grep -E '^\s*--- FAIL|^FAIL|^panic:' "$log" | head -n 10
done
if [[ -n $beside ]]; then
  echo "nightly: ${patient[*]}, log in $out/patient.log"
  wait "$beside" || failed=1
  grep -E '^\s*--- FAIL|^FAIL|^panic:' "$out/patient.log"
fi
cat "$out/summary.md"
exit "$failed"
