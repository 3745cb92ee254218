#!/usr/bin/env bash
# Every C++ file is as clang-format would leave it.
set -euo pipefail
command -v clang-format >/dev/null || { echo "clang-format is not installed: skipped"; exit 77; }
find src include tests \( -name '*.h' -o -name '*.cpp' \) -print0 | xargs -0 clang-format --dry-run -Werror
echo ok
