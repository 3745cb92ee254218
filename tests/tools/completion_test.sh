#!/usr/bin/env bash
# The completion scripts work in the shells themselves.
set -euo pipefail
PATH=$(dirname "$CALQUE"):$PATH
fail() { echo "FAILED: $*"; exit 1; }

found=$(bash -c 'source <(calque completion bash); COMP_WORDS=(calque data che); COMP_CWORD=2; compopt() { :; }; _calque; echo "${COMPREPLY[@]}"')
[ "$found" = check ] || fail "bash: $found"
found=$(bash -c 'source <(calque completion bash); COMP_WORDS=(calque data check x.yaml tokenizer.voc); COMP_CWORD=4; compopt() { :; }; _calque; echo "${COMPREPLY[@]}"')
[ "$found" = tokenizer.vocabulary= ] || fail "bash: $found"
if command -v fish >/dev/null; then
  found=$(fish --no-config -c 'calque completion fish | source; complete -C "calque data che"')
  [ "$found" = check ] || fail "fish: $found"
fi
if command -v zsh >/dev/null; then
  calque completion zsh | zsh -n || fail "zsh: syntax"
fi
echo ok
