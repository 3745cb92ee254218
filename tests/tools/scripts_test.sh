#!/usr/bin/env bash
# The scripts: clean for shellcheck, helpful, refusing what they do not know, and harmless to repeat.
set -euo pipefail
scripts=(tools/setup tools/build tools/test tools/demo tools/package tools/fuzz tools/make-goldens .ci/run tests/tools/*_test.sh)
fail() { echo "FAILED: $*"; exit 1; }

command -v shellcheck >/dev/null || { echo "shellcheck is not installed: skipped"; exit 77; }
shellcheck "${scripts[@]}"

for script in tools/setup tools/build tools/test tools/demo tools/fuzz tools/package tools/get-data tools/get-checkpoint; do
  [ -x "$script" ] || fail "$script has no run bit"
  "$script" --help | grep -qi usage || fail "$script --help says nothing of its usage"
done
for script in tools/setup tools/demo tools/fuzz tools/package tools/get-data tools/get-checkpoint; do
  code=0
  "$script" --no-such-option 2>/dev/null || code=$?
  [ $code = 2 ] || fail "$script takes --no-such-option (exit $code)"
done

# Without the right to install, the one line to run is printed.
bin=$(mktemp -d)
trap 'rm -rf "$bin"' EXIT
for tool in bash sed grep cat dirname tr python3; do ln -s "$(command -v $tool)" "$bin/$tool"; done
printf '#!/bin/sh\nexit 1\n' >"$bin/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$bin/id"
chmod +x "$bin/dpkg-query" "$bin/id"
code=0
said=$(PATH=$bin tools/setup 2>&1 </dev/null) || code=$?
[ $code = 2 ] || fail "setup without rights: exit $code"
case "$said" in *"sudo apt-get install -y"*libsentencepiece-dev*) ;; *) fail "setup without rights says: $said" ;; esac

# A LibTorch that is not there is named, not replaced by a download.
code=0
said=$(CALQUE_TORCH=/nowhere tools/setup 2>&1) || code=$?
[ $code = 2 ] || fail "setup with a wrong CALQUE_TORCH: exit $code"
case "$said" in *"CALQUE_TORCH=/nowhere holds no LibTorch"*) ;; *) fail "setup says: $said" ;; esac
echo ok
