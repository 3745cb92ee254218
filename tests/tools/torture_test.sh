#!/usr/bin/env bash
# A sample of the torture test: kills, power failures, full disks and damaged bytes do no harm.
set -euo pipefail
[ -z "${CALQUE_SANITIZE:-}" ] || { echo "not for sanitizer builds, which cannot preload: skipped"; exit 77; }
command -v gcc >/dev/null || { echo "gcc is not installed: skipped"; exit 77; }
tools/torture --short --seed "${TORTURE_SEED:-1}"
echo ok
