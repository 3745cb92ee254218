#!/usr/bin/env bash
# calque starts itself with a shorter spinning of OpenMP's threads, keeps its arguments, and leaves the user's own setting alone.
set -euo pipefail
[ -z "${CALQUE_SANITIZE:-}" ] || { echo "not for sanitizer builds: skipped"; exit 77; }
setting() {  # of a calque that waits for its input
  coproc "$@" "$CALQUE" -q translate checkpoints/base 2>/dev/null
  local process=$COPROC_PID found=
  for _ in $(seq 100); do
    found=$(tr '\0' '\n' <"/proc/$process/environ" | grep -E '^(GOMP_SPINCOUNT|OMP_WAIT_POLICY)=' | sort | tr '\n' ' ' || true)
    grep -qz translate "/proc/$process/cmdline" && [ -n "$found" ] && break
    sleep 0.05
  done
  tr '\0' ' ' <"/proc/$process/cmdline" | grep -q 'translate checkpoints/base' || { echo "FAILED: arguments"; exit 1; }
  kill "$process"
  wait "$process" 2>/dev/null || true
  echo "$found"
}
unset GOMP_SPINCOUNT OMP_WAIT_POLICY
expect() { [ "$1" = "$2" ] || { echo "FAILED: expected '$2', found '$1'"; exit 1; }; }
expect "$(setting env)" "GOMP_SPINCOUNT=2000 "
expect "$(setting env OMP_WAIT_POLICY=passive)" "OMP_WAIT_POLICY=passive "
expect "$(setting env GOMP_SPINCOUNT=7)" "GOMP_SPINCOUNT=7 "
echo ok
