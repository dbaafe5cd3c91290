#!/usr/bin/env bash
# The tests of the Python package, with the wheel as users install it: ci/python.sh
# [ARGUMENT OF PYTEST...]
# LAPI_STAGE names the installation whose poe and library they use. Everything is in the build
# folder's python.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
stage=$(realpath -m "${LAPI_STAGE:-$build/stage}")
ci/wheel.sh
ci/venv.sh "$build/python/test" numpy pytest
echo "== python"
"$build/python/test/bin/pip" --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall "$build"/wheel/*.whl
# Nothing is written into the sources.
cd python
export OPENLAPI_WHEEL
OPENLAPI_WHEEL=$(ls "$build"/wheel/*.whl)
LAPI_STAGE=$stage PYTHONDONTWRITEBYTECODE=1 "$build/python/test/bin/python" -m pytest -p no:cacheprovider -q "$@" </dev/null
