#!/usr/bin/env bash
# Unpacks the source tarball with the crates of others where there is no git repository, builds it
# with an empty folder of cargo's and without asking a network, and runs the demo:
# ci/dist-test.sh TARBALL
set -eu
tarball=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar -xf "$tarball" -C "$work"
cd "$work"/openlapi-*
echo "== dist-test: the files are those of MANIFEST"
sha256sum --quiet -c MANIFEST
# rustup's settings stay where they are.
RUSTUP_HOME=$(realpath -m "${RUSTUP_HOME:-$HOME/.rustup}")
export RUSTUP_HOME CARGO_HOME=$work/cargo CARGO_NET_OFFLINE=true
unset CARGO_TARGET_DIR LAPI_STAGE BUILD_PROFILE MAKEFLAGS MAKELEVEL
make stage
ci/demo.sh "$PWD/target/stage"
read -r commit _ <packaging/commit
echo "== dist-test: the library names the commit ${commit:0:12}"
target/stage/bin/lapi_info | grep -F "commit ${commit:0:12}"
echo "== dist-test: built from $(basename "$tarball"), without git and without a network"
