#!/usr/bin/env bash
# Write the locks from pyproject.toml. Arguments go to uv, for instance --upgrade or --upgrade-package NAME.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v uv >/dev/null || { echo "lock: needs uv; install it (pip install uv)" >&2 && exit 1; }

lock() {
  uv pip compile --quiet --python-version 3.11 --no-emit-index-url --no-emit-find-links --no-header --no-annotate \
    pyproject.toml "$@"
}

lock --output-file requirements/runtime.txt "$@"
lock --group dev --extra tracing --output-file requirements/dev.txt "$@"
echo "lock: wrote requirements/runtime.txt and requirements/dev.txt" >&2
