#!/usr/bin/env bash
# The tests of the Python package, installed from its wheel: ci/python.sh [ARGUMENT OF PYTEST...]
# LAPI_STAGE names the installation whose poe and library they use. Everything is in the build
# folder's python.
set -eu
cd "$(dirname "$0")/.."
build=$(realpath -m "${CARGO_TARGET_DIR:-target}")
stage=$(realpath -m "${LAPI_STAGE:-$build/stage}")
wheel=$build/python/wheel
ci/wheel.sh "$wheel"
ci/venv.sh "$build/python/test" numpy pytest
echo "== python"
"$build/python/test/bin/pip" --disable-pip-version-check install --quiet --no-deps --no-index --force-reinstall "$wheel"/*.whl
# Nothing is written into the sources.
cd python
export OPENLAPI_WHEEL
OPENLAPI_WHEEL=$(ls "$wheel"/*.whl)
LAPI_STAGE=$stage PYTHONDONTWRITEBYTECODE=1 "$build/python/test/bin/python" -m pytest -p no:cacheprovider -q "$@" </dev/null
