#!/usr/bin/env bash
# Builds the Python package into FOLDER, or the build folder's wheel: ci/wheel.sh [FOLDER]
# BUILD_PROFILE is as in the Makefile.
#
# One wheel serves every Python from 3.11 on, and every Linux whose C library is as new as the
# symbols that the module uses: maturin looks at them, gives the wheel the tag manylinux_2_NN, and
# refuses a module that is linked with other libraries than that tag allows. LAPI's library is not
# in it; it is opened at run time (docs/python.md).
#
# make wheel sets SOURCE_DATE_EPOCH, so that the same sources make the same wheel. The tests do not:
# with another value of it cargo compiles the core again, for the wheel and again for what follows.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wheel=$(realpath -m "${1:-$build/wheel}")
ci/venv.sh "$build/python/build" 'maturin>=1.16,<2'
echo "== wheel: $wheel"
packaging/install/paths.sh "$build"
# An older version in the same folder would be installed instead.
rm -f "$wheel"/*.whl
"$build/python/build/bin/maturin" build --quiet --profile "${BUILD_PROFILE:-release}" --locked --compatibility pypi --auditwheel check \
    --config "$build/paths.toml" --interpreter "$build/python/build/bin/python" --manifest-path python/Cargo.toml --out "$wheel"
ls "$wheel"/*.whl
