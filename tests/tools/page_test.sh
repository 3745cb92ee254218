#!/usr/bin/env bash
# The page of `calque serve` in a headless Chromium: every feature is clicked (tests/serve/page/page_test.mjs). Two small runs
# are trained for it. Skipped (77) where node, Chromium or the npm packages are missing; tools/setup --tests installs them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
root=$PWD
missing() { echo "page_test: skipped: $1; tools/setup --tests installs it"; exit 77; }
command -v node >/dev/null || missing "no node"
[ -x "${CHROMIUM:-/usr/bin/chromium}" ] || missing "no Chromium"
[ -d tests/serve/page/node_modules/playwright-core ] || missing "no playwright-core"
[ -z "${CALQUE_SANITIZE:-}" ] || { echo "page_test: skipped: too slow under a sanitizer"; exit 77; }

work=$(mktemp -d)
server=
stop() { [ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$work"; }
trap stop EXIT
cd "$work"
head -60 "$root/data/everyday/test.tsv" >test.tsv
seed=1
for run in first second; do
  "$CALQUE" train "$root/configs/few-scratch.yaml" run=$run train.steps=60 train.validate_every=30 train.checkpoint_every=30 \
    train.warmup_steps=5 train.log_every=10 seed=$((seed++)) data.test="$work/test.tsv" \
    data.valid="$work/test.tsv" -q
  "$CALQUE" evaluate $run >/dev/null
done
"$CALQUE" compare first second >/dev/null
"$CALQUE" serve first second --port 0 2>server.log &
server=$!
for _ in $(seq 100); do
  url=$(grep -o 'http://127.0.0.1:[0-9]*' server.log | head -1 || true)
  [ -n "$url" ] && curl -sf "$url/v1/health" >/dev/null && break
  sleep 0.1
done
[ -n "$url" ] || { cat server.log; exit 1; }
cd "$root/tests/serve/page"
CALQUE_URL=$url node --test page_test.mjs
