#!/usr/bin/env bash
# Run every benchmark, one after the other: they measure, so they must not share the machine.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

benchmarks=(benchmarks/*.py)
if ((${#benchmarks[@]} == 0)); then
  echo "bench: no benchmarks yet (benchmarks/*.py)" >&2
fi
for file in "${benchmarks[@]}"; do
  echo "bench: $file" >&2
  name=${file#benchmarks/}
  PATH="$PWD/.venv/bin:$PATH" .venv/bin/python -m "benchmarks.${name%.py}"
done
