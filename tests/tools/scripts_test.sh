#!/usr/bin/env bash
# The scripts: clean for shellcheck, helpful, refusing what they do not know, and harmless to repeat.
set -euo pipefail
scripts=(tools/setup tools/build tools/test tools/demo tools/package tools/fuzz tools/test-arm64 tools/make-goldens .ci/run tests/tools/*_test.sh)
fail() { echo "FAILED: $*"; exit 1; }

command -v shellcheck >/dev/null || { echo "shellcheck is not installed: skipped"; exit 77; }
shellcheck "${scripts[@]}"

for script in tools/setup tools/build tools/test tools/demo tools/fuzz tools/test-arm64 tools/torture tools/mutate tools/package tools/get-data tools/get-checkpoint; do
  [ -x "$script" ] || fail "$script has no run bit"
  help=$("$script" --help)  # not in a pipe, whose early end is an error in Python
  grep -qi usage <<<"$help" || fail "$script --help says nothing of its usage"
done
for script in tools/setup tools/demo tools/fuzz tools/test-arm64 tools/torture tools/mutate tools/package tools/get-data tools/get-checkpoint; do
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
case "$said" in *"CALQUE_TORCH=/nowhere contains no LibTorch"*) ;; *) fail "setup says: $said" ;; esac

# Where pip's index has no CPU build, PyTorch's own index is tried, and that is said. A stub stands in for pip.
copy=$(mktemp -d)
trap 'rm -rf "$bin" "$copy"' EXIT
mkdir -p "$copy/tools" "$copy/bin"
cp tools/setup "$copy/tools/"
cat >"$copy/bin/python3" <<'STUB'
#!/bin/sh
[ "$1" = -m ] || exit 0   # the check for venv
mkdir -p "$3/bin"
cat >"$3/bin/pip" <<'PIP'
#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in *--index-url*) exit 0 ;; *) exit 1 ;; esac
PIP
chmod +x "$3/bin/pip"
STUB
printf '#!/bin/sh\necho installed\n' >"$copy/bin/dpkg-query"
chmod +x "$copy/bin/python3" "$copy/bin/dpkg-query"
said=$(CALLS=$copy/calls PATH=$copy/bin:$PATH CMAKE_PREFIX_PATH='' CALQUE_TORCH='' "$copy/tools/setup" 2>&1) || fail "setup with a stub pip: $said"
[ "$(wc -l <"$copy/calls")" = 2 ] || fail "pip was called: $(cat "$copy/calls")"
tail -n 1 "$copy/calls" | grep -q -- "--index-url .*torch==" || fail "no fallback: $(cat "$copy/calls")"
case "$said" in *"trying PyTorch's own index"*) ;; *) fail "setup does not say where it looks: $said" ;; esac
echo ok
