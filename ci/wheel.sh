#!/usr/bin/env bash
# Builds the Python package into the build folder's wheel: ci/wheel.sh
#
# One wheel serves every Python from 3.11 on. It does not contain LAPI's library, which it
# opens at run time.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
ci/venv.sh "$build/python/build" 'maturin>=1.16,<2'
echo "== wheel: $build/wheel"
# An older version in the same folder would be installed instead.
rm -rf "$build/wheel"
# Built for this machine's C library, as everything else is.
"$build/python/build/bin/maturin" build --quiet --release --locked --compatibility linux \
    --interpreter "$build/python/build/bin/python" --manifest-path python/Cargo.toml --out "$build/wheel"
ls "$build"/wheel/*.whl
