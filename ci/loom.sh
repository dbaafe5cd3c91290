#!/usr/bin/env bash
# The models of the lock-free parts, in every order of their threads
# (docs/design/0007-model-checking.md):
# ci/loom.sh [NAME], where NAME is the beginning of a model's name, such as lock or
# lock::each_thread.
# A build folder of its own: the flag would make cargo rebuild everything else.
set -eu
cd "$(dirname "$0")/.."
echo "== loom"
export RUSTFLAGS="--cfg loom" CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
cargo test --release -p openlapi --lib "base::models::${1:-}" </dev/null
