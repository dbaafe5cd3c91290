#!/usr/bin/env bash
# Writes cargo's settings for files that name no folder of this machine, so that the same sources
# make the same files in every folder: paths.sh BUILD writes BUILD/paths.toml, for --config.
#
# Sources are named /usr/src/openlapi-VERSION, crates of the registry /usr/src/crates, what a build
# makes /usr/src/build. A user's own RUSTFLAGS or CFLAGS take the place of these settings.
set -eu
cd "$(dirname "$0")/../.."
mkdir -p "$1"
build=$(realpath "$1") sources=$(pwd -P)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# The last one that matches is used: the build folder is often in the sources, and so may all be
# in cargo's.
maps=("$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")/registry/src=/usr/src/crates"
    "$sources=/usr/src/openlapi-$version" "$build=/usr/src/build")
{
    echo "[target.'cfg(all())']"
    printf 'rustflags = ['
    printf '"--remap-path-prefix=%s", ' "${maps[@]}"
    printf ']\n\n[env]\nCFLAGS = "%s"\n' "$(printf -- '-ffile-prefix-map=%s ' "${maps[@]}")"
} >"$build/paths.toml.$$"
# Another build may read it.
mv "$build/paths.toml.$$" "$build/paths.toml"
