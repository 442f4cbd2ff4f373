#!/usr/bin/env bash
# Style and types of all Python code.
set -euo pipefail
cd "$(dirname "$0")/.."
.venv/bin/ruff check .
.venv/bin/mypy p4front wire engine fastswitch ebpf rdma controller mininet_topos lab fuzz
