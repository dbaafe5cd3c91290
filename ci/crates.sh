#!/usr/bin/env bash
# Makes the packages of the crate lapi and of those that it needs, into the build folder's package,
# builds each from what is in its package, and their documentation as docs.rs does: ci/crates.sh
# What cargo checks before it uploads is checked too; nothing is uploaded.
# ci/crates.sh --no-verify only makes the packages.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# cargo keeps what it has unpacked of a version in the same folder before, in its home, and compiles
# that instead: each run has a folder of its own.
mkdir -p "$build/package"
CARGO_TARGET_DIR=$(mktemp -d "$build/crates.XXXXXX")
export CARGO_TARGET_DIR
trap 'rm -rf "$CARGO_TARGET_DIR"' EXIT
crates=(-p openlapi-libfabric-sys -p openlapi -p openlapi-runtime -p openlapi-session -p lapi)
echo "== crates"
# --allow-dirty: the packages hold the files as they are, committed or not.
cargo package --locked --allow-dirty "$@" "${crates[@]}"
if [ $# -eq 0 ]; then
    cargo publish --dry-run --no-verify --locked --allow-dirty "${crates[@]}"
    RUSTDOCFLAGS="--cfg docsrs -D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --no-deps "${crates[@]}"
fi
cp "$CARGO_TARGET_DIR"/package/*.crate "$build/package"
ls "$build"/package/*.crate
