#!/usr/bin/env bash
# Everything CI runs. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/lint.sh
scripts/setup.sh shell
exec .venv/bin/python -m pytest "$@"
