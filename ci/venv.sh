#!/usr/bin/env bash
# Makes a virtual environment of Python with packages, unless it is there and has them: ci/venv.sh
# FOLDER PACKAGE...
# pip gets the packages from where it is configured to.
set -eu
folder=$1
shift
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "ci/venv.sh: $(command -v python3) is $(python3 --version); openlapi needs Python 3.11 or later" >&2
    exit 1
fi
wanted=$(printf '%s\n' "$(python3 --version)" "$@")
# The last step of making it, so that one that was interrupted is made again.
if [ "$(cat "$folder/packages" 2>/dev/null)" != "$wanted" ]; then
    echo "== venv: $folder: $*"
    rm -rf "$folder"
    if ! python3 -m venv "$folder"; then
        echo "ci/venv.sh: no virtual environment: ci/deps.sh python installs what is missing (python3-venv)" >&2
        exit 1
    fi
    "$folder/bin/pip" --disable-pip-version-check install --quiet "$@"
    echo "$wanted" >"$folder/packages"
fi
