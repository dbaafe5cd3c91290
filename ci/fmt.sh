#!/usr/bin/env bash
# The Rust sources are formatted as rustfmt.toml says.
set -eu
cd "$(dirname "$0")/.."
. ci/component.sh rustfmt fmt
echo "== fmt"
cargo fmt --all --check
