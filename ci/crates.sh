#!/usr/bin/env bash
# Makes the packages of the crate lapi and of those that it needs, into the build folder's package,
# builds each from what is in its package, and their documentation as docs.rs does.
# What cargo checks before it uploads is checked too; nothing is uploaded.
set -eu
cd "$(dirname "$0")/.."
crates=(-p openlapi-libfabric-sys -p openlapi -p openlapi-runtime -p openlapi-session -p lapi)
echo "== crates"
# --allow-dirty: the packages hold the files as they are, committed or not.
cargo package --locked --allow-dirty "${crates[@]}"
cargo publish --dry-run --no-verify --locked --allow-dirty "${crates[@]}"
RUSTDOCFLAGS="--cfg docsrs -D warnings -A rustdoc::private-intra-doc-links" cargo doc --locked --no-deps "${crates[@]}"
ls "$(realpath -m "${CARGO_TARGET_DIR:-target}")"/package/*.crate
