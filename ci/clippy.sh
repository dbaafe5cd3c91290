#!/usr/bin/env bash
# No warning of the compiler or of clippy, in any target, nor of rustdoc in the crates of
# ci/crates.sh: no other test sees a link to what is not there any more.
set -eu
cd "$(dirname "$0")/.."
. ci/component.sh clippy clippy
echo "== clippy"
cargo clippy --workspace --all-targets -- -D warnings
# The locks of ci/sanitize.sh, which takes too long for every change.
cargo clippy -p openlapi --lib -- -D warnings --cfg one_mapping
echo "== links in the documentation"
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --no-deps --document-private-items \
    -p openlapi-libfabric-sys -p openlapi -p openlapi-runtime -p openlapi-session -p lapi
