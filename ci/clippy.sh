#!/usr/bin/env bash
# No warning of the compiler or of clippy, in any target.
set -eu
cd "$(dirname "$0")/.."
. ci/component.sh clippy clippy
echo "== clippy"
cargo clippy --workspace --all-targets -- -D warnings
# The locks of ci/sanitize.sh, which takes too long for every change.
cargo clippy -p openlapi --lib -- -D warnings --cfg one_mapping
