#!/usr/bin/env bash
# Every test of the workspace: unit tests, tests with real processes, documentation tests.
# LAPI_STAGE names the installation to test; without it `make stage` is run by the first test that needs it.
set -eu
cd "$(dirname "$0")/.."
echo "== test"
cargo test --workspace --no-fail-fast </dev/null
