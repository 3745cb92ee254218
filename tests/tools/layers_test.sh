#!/usr/bin/env bash
# A layer that includes what is above it must not compile: base includes a header of data, with base's own flags.
set -euo pipefail
flags=$(python3 - <<'PY'
import json, os, shlex
for entry in json.load(open(os.environ["CALQUE_BUILD"] + "/compile_commands.json")):
    if "/calque_base.dir/" in entry["command"]:
        words = shlex.split(entry["command"])
        print(" ".join(word for word in words if word.startswith(("-I", "-D", "-std"))))
        break
PY
)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo '#include "calque/base/error.h"' >"$folder/below.cpp"
echo '#include "calque/data/line_reader.h"' >"$folder/above.cpp"
# shellcheck disable=SC2086
c++ $flags -fsyntax-only "$folder/below.cpp"
# shellcheck disable=SC2086
if c++ $flags -fsyntax-only "$folder/above.cpp" 2>"$folder/errors"; then
  echo "FAILED: base can include a header of data"
  exit 1
fi
grep -q 'calque/data/line_reader.h: No such file' "$folder/errors"
echo ok
