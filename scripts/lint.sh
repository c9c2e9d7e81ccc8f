#!/usr/bin/env bash
# Format, lint, types, layers: one line each, and all that is wrong.
set -euo pipefail
cd "$(dirname "$0")/.."

status=0

run() {
  local output
  printf '%-14s' "$1" >&2
  if output=$("${@:2}" 2>&1); then
    tail -n 1 <<<"$output" >&2
  else
    status=1
    printf 'failed\n%s\n' "$output" >&2
  fi
}

run "ruff format" .venv/bin/ruff format --check
run "ruff check" .venv/bin/ruff check
run "mypy" .venv/bin/mypy
run "lint-imports" .venv/bin/lint-imports
exit $status
