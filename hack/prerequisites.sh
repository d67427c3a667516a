#!/usr/bin/env bash
# What the tests need beside Go and make: git, a C compiler (the race detector) and
# Chromium (the tests of the web pages). What is missing is installed where that is
# allowed, as root and with apt-get; elsewhere the one command that does it is printed.
# `make test` runs this first, so that nothing is compiled in vain.
set -euo pipefail

fail() { printf 'make test: %s\n' "$*" >&2; exit 1; }

has() { command -v "$1" >/dev/null; }

# A compiler without the headers of the C library is of no use to cgo.
compiles() { "${CC:-gcc}" -E - <<<'#include <stdlib.h>' >/dev/null 2>&1; }

# The names are those of test/browser.
browses() { has "${CHROMIUM:-chromium}" || { [[ -z ${CHROMIUM:-} ]] && { has chromium-browser || has google-chrome; }; }; }

# lacking prints the Debian packages of what is missing.
lacking() {
  has git || printf 'git '
  compiles || printf 'gcc libc6-dev '
  browses || printf 'chromium '
}

has go || fail "Go is not installed; see https://go.dev/dl"
[[ -z ${CC:-} ]] || compiles || fail "CC is $CC, which compiles nothing; correct or unset it"
[[ -z ${CHROMIUM:-} ]] || browses || fail "CHROMIUM is $CHROMIUM, which is not a program; correct or unset it"

read -ra packages <<<"$(lacking)"
((${#packages[@]})) || exit 0

install=(apt-get install -y --no-install-recommends "${packages[@]}")
# elsewhere fails with the command of another package manager, if there is one.
elsewhere() {
  local headers=libc6-dev
  has "${1%% *}" || return 0
  case $1 in dnf*|zypper*) headers=glibc-devel ;; apk*) headers=musl-dev ;; esac
  fail "packages are missing; run as root: $1 ${packages[*]//libc6-dev/$headers}"
}
has apt-get || for manager in "dnf install -y" "zypper install -y" "apk add"; do elsewhere "$manager"; done
has apt-get || fail "these packages of Debian, or what they are called here, are missing: ${packages[*]}"
[[ $(id -u) == 0 ]] || fail "packages are missing, and installing them takes root; run: sudo apt-get update && sudo ${install[*]}"

printf 'make test: installing %s\n' "${packages[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q >/dev/null || fail "apt-get update failed; these packages are needed: ${packages[*]}"
"${install[@]}" >/dev/null || fail "this failed: ${install[*]}"
left=$(lacking)
[[ -z $left ]] || fail "still missing after they were installed: $left"
