#!/usr/bin/env bash
# Finds warnings of the compiler and of clippy in libraries and programs: ci/clippy.sh [--all]
# With --all: in tests and benches, too, with the locks of ci/sanitize.sh, and those of rustdoc in
# the crates of ci/crates.sh, which see a link to what is not there any more.
set -eu
all=${1-}
cd "$(dirname "$0")/.."
. ci/component.sh clippy clippy
echo "== clippy"
# Tests and benches take as long again. They bring the feature, whose code is in the libraries.
cargo clippy --workspace --features fuzz ${all:+--all-targets} -- -D warnings
[ -n "$all" ] || exit 0
# The locks of ci/sanitize.sh, which takes too long for every change.
cargo clippy -p openlapi --lib -- -D warnings --cfg one_mapping
echo "== links in the documentation"
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --no-deps --document-private-items \
    -p openlapi-libfabric-sys -p openlapi -p openlapi-runtime -p openlapi-session -p lapi
